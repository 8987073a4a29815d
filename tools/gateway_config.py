"""``docs/reference/gateway-config.md``: every key of the gateway's configuration, from the classes that it becomes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

import attrs

from streamkit.dialects import DIALECTS, key_headers
from streamkit.gateway.config import Responses, Resume, Server, Telemetry
from streamkit.gateway.config_file import usual_auth
from streamkit.gateway.keys import KeySource
from streamkit.gateway.routing import Route, Target
from streamkit.toml.tables import FILE_NAMES, is_no_key
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret, Upstream
from streamkit.web.upstream.value import Rest, auths
from tools.reference import comment, prose, source_of, table

#: The tables of the file, each with its class and its introduction.
TABLES: Final[Mapping[str, tuple[type, str]]] = {
    "[server]": (Server, "How the gateway serves clients. You may omit the whole table."),
    "[responses]": (
        Responses,
        "How the gateway keeps responses for later requests that refer to them. You may omit the whole table.",
    ),
    "[resume]": (
        Resume,
        (
            "How the gateway keeps responses for clients that [resume](../how-to/resume-streams.md) them on a new "
            "connection. You may omit the whole table."
        ),
    ),
    "[telemetry]": (Telemetry, "What the gateway sends to OpenTelemetry. You may omit the whole table."),
    "[upstreams.NAME]": (
        Upstream,
        (
            "A server to which the gateway sends requests.\n"
            "Choose any `NAME` of letters, digits and `.:-_`. Routes, logs and metrics use this name."
        ),
    ),
    "[upstreams.NAME.timeouts]": (
        Timeouts,
        "Four time limits for a request. Each limit has its own error, and its own outcome in the metrics.",
    ),
    "[upstreams.NAME.rest]": (
        Rest,
        (
            "When the gateway skips a model that fails, and for how long. "
            "[Upstreams that fail](../how-to/choose-upstreams.md#upstreams-that-fail) has the details."
        ),
    ),
    "[[routes]]": (
        Route,
        "Which upstreams respond to requests for which models, and how often the gateway tries them.",
    ),
    "An element of `to`": (Target, 'A string is the name of an upstream: `"a"` means `{ upstream = "a" }`.'),
    "A key": (
        KeySource,
        "The configuration never contains the text of a key, only where to find it. Write exactly one of these two members:",
    ),
}
#: What differs between the file and the class: types, defaults and meanings.
TYPES: Final[Mapping[str, str]] = {
    "Upstream.auth": ", ".join(f'`"{name}"`' for name in auths()),
    "Server.keys": "array of [keys](#a-key)",
    "Upstream.key": "[key](#a-key)",
    "Upstream.keys": "array of [keys](#a-key)",
    "Resume.url": "[key](#a-key)",
    "Upstream.proxy": "string or [key](#a-key)",
    "Upstream.timeouts": "[table](#upstreamsnametimeouts)",
    "Upstream.rest": "[table](#upstreamsnamerest)",
    "Upstream.headers": "table of strings and [keys](#a-key)",
    "Upstream.set": "table",
    "Route.targets": "array of strings, [tables](#an-element-of-to), and arrays of both",
    "Route.stages": "array of strings and tables",
    "Target.upstream": "string",
}
DEFAULTS: Final[Mapping[str, str]] = {"Upstream.auth": "[depends on the dialect](#auth)"}
MEANINGS: Final[Mapping[str, str]] = {
    "Upstream.auth": "How the gateway sends the key to the upstream. [The next table](#auth) explains the values.",
    "Upstream.key": "The key for the upstream. Omit it if `auth` is `none`, `sigv4` or `google`. With `sigv4` and "
    "`google`, the gateway looks for credentials in the same places as the tools of AWS and Google.",
    "Upstream.proxy": "The HTTP proxy for requests: `http://proxy:3128`. If the URL has a user and a password, write it as "
    "a key. By default, the gateway uses no proxy, even if an environment variable names one.",
    "Upstream.ca_file": "A PEM file with the root certificates to accept, instead of the system's root certificates. A "
    "relative path is resolved from the folder of the configuration file.",
    "Upstream.service": "For SigV4: the AWS service for which requests are signed, such as `bedrock-mantle` or "
    "`execute-api`. AWS refuses requests that are signed for another service. The default is the dialect's service, or "
    "`bedrock`.",
    "Upstream.tools": "Set it to false if the upstream does not support tools. Requests with tools are then sent only to "
    "the other upstreams of a route.",
    "Upstream.timeouts": "How long the upstream may take.",
    "Upstream.transport": "How requests are sent. `http`: each request is a `POST`. `websocket`: each request opens its "
    "own WebSocket. Only the dialect `openai-responses` has WebSockets. Requests for token counts always use HTTP.",
    "Upstream.headers": "Constant headers that each request to the upstream has, such as OpenRouter's `HTTP-Referer`. "
    "Write a secret value as a key.",
    "Timeouts.total_s": "Seconds from sending the request to the end of the response. By default, there is no limit, "
    "because a response may take an hour.",
}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "<!-- Generated by tools/gateway_config.py from the code: edit the code, then run `make docs`. -->"
    yield "# The gateway's configuration"
    yield ""
    yield "The gateway reads one TOML file: `streamkit serve --config FILE`."
    yield "A [sample file](../how-to/gateway.toml) has all tables of the file."
    yield ""
    yield "`--check-config` checks the file and does not start the gateway. If the file is correct, the command prints a"
    yield "summary of the configuration, and exits with 0. If the file has errors, the command"
    yield "prints each error with its line and column, and exits with 2."
    yield ""
    yield "An unknown key is an error. A value of the wrong type is an error too, because the gateway converts no values."
    yield "If there is an error, the gateway does not start."
    yield "If there are only warnings, the gateway starts. Examples of what it warns about are:"
    yield ""
    yield "- an upstream that no route uses"
    yield "- a listener without keys that other machines can reach"
    yield "- a key that is sent in clear text, or that is in a file that all users can read"
    for head, (kind, meaning) in TABLES.items():
        yield ""
        yield f"## {head if head[0] != '[' else f'`{head}`'}"
        yield ""
        yield meaning
        yield ""
        yield table(["key", "type", "unit", "default", "meaning"], rows(kind))
        if kind is Upstream:
            yield from _auth()
        if kind is Route:
            yield from _choice()


def _auth() -> Iterator[str]:
    yield ""
    yield "### `auth`"
    yield ""
    yield "| value | how the key is sent | default for these dialects |"
    yield "|---|---|---|"
    sent = {name: f"`{header}: {scheme}…`" for name, (header, scheme) in key_headers().items()}
    others = {
        "none": "not at all",
        "sigv4": "as a signature (AWS Signature 4), with the credentials that botocore finds. This needs the extra `aws`",
        "google": "`authorization: Bearer …`, with a token from the credentials that google-auth finds. This needs the extra "
        "`google`",
    }
    for name in auths():
        of = [f"`{known}`" for known in _known() if usual_auth(known) == name and name != "bearer"]
        no_names = "all other dialects" if name == "bearer" else "no dialect"
        yield f"| `{name}` | {(others | sent)[name]} | {', '.join(of) or no_names} |"


def _known() -> list[str]:
    """Return the names of dialects and providers that define how a key is sent."""
    own = [provider.name for dialect in DIALECTS.values() for provider in dialect.providers if provider.auth]
    return sorted([*DIALECTS.built_in, *own])


def _choice() -> Iterator[str]:
    yield ""
    yield "If a route has the full name of a model, the gateway uses that route. Otherwise, it uses the first pattern"
    yield "in the file that matches."
    yield "It is an error if an earlier pattern covers a later pattern, because the gateway could never use the later one."
    yield "`/v1/models` and all other lists of models contain only full names, because a pattern is not the name of a model."
    yield "If clients should see a model in these lists, write its full name in `models`, next to the pattern that matches it."


def rows(kind: type) -> Iterator[tuple[str, ...]]:
    attrs.resolve_types(kind)
    lines, node = source_of(kind)
    comments = {item.target.id: comment(lines, item) for item in node.body if hasattr(item, "target")}
    for field in attrs.fields(kind):
        if is_no_key(field):
            continue
        place = f"{kind.__name__}.{field.name}"
        yield (
            f"`{FILE_NAMES.get(field.name, field.name)}`",
            TYPES.get(place) or _type(field.type),
            _unit(field.name),
            DEFAULTS.get(place) or _default(field.default),
            MEANINGS.get(place) or prose(comments[field.name]),
        )


def _type(kind: Any) -> str:
    words = {
        str: "string",
        int: "integer",
        float: "number",
        bool: "boolean",
        Secret: "key",
        Timeouts: "table",
        Rest: "table",
    }
    if kind in words:
        return words[kind]
    if get_origin(kind) is Literal:
        return ", ".join(f"`{json.dumps(word)}`" for word in get_args(kind))
    if get_origin(kind) is tuple:
        of = _type(get_args(kind)[0])
        return f"array of {of}" if of.endswith("`") else f"array of {of}s"
    (inner,) = [part for part in get_args(kind) if part is not type(None)]
    return _type(inner)


def _unit(name: str) -> str:
    return {"s": "seconds", "bytes": "bytes"}.get(name.rpartition("_")[2], "")


def _default(value: Any) -> str:
    """As TOML writes it."""
    if value is attrs.NOTHING:
        return "required"
    if value is None or isinstance(value, Timeouts | Rest):
        return "none" if value is None else "see the table"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, attrs.Factory):
        value = value.factory()
    return f"`{json.dumps(value)}`"
