"""Which headers pass, each way. Both are lists of what may: whatever is not named here stays where it came from.

To the upstream goes nothing of the client's but the feature headers of its dialect, where the upstream speaks the same: not
its keys, which are for the gateway, nor cookies, nor what belongs to its connection or names its account
(``OpenAI-Organization``). To the client go times to wait, rate limits and request ids. The upstream's ``x-request-id`` becomes
``x-upstream-request-id``, since the gateway has one of its own.

Source: limits.md T6, T7, T9; openai 3.54 and anthropic 2.12 for the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from streamkit.dialects import client_named
from streamkit.dialects.profiles import Provider
from streamkit.errors import BadRequest
from streamkit.web.upstream.value import HEADER_TEXT, Upstream

USER_AGENT: Final = f"streamkit/{version('streamkit-llm')}"
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
#: By dialect, the headers in which clients ask for features.
FEATURES: Final[Mapping[str, frozenset[str]]] = {
    "anthropic": frozenset({"anthropic-version", "anthropic-beta"}),
    "openai-chat": frozenset({"openai-beta"}),
    "openai-responses": frozenset({"openai-beta"}),
}
#: Of these, lists: an operator's own is added, not put in the client's place, whose body may depend on it.
_LISTS: Final = frozenset({"anthropic-beta", "openai-beta"})
#: What a client gets of an upstream's headers.
PASSED: Final = frozenset(
    {"retry-after", "retry-after-ms", "x-should-retry", "request-id", "openai-processing-ms", "openai-version"}
)
PASSED_PREFIXES: Final = ("x-ratelimit", "ratelimit", "anthropic-ratelimit-")
#: Where an upstream says its own id for the request: most, AWS, Azure.
_REQUEST_IDS: Final = ("x-request-id", "x-amzn-requestid", "apim-request-id")
#: Of a value, and of how many headers. Anthropic sends about twenty limits.
VALUE_CHARS, PASSED_HEADERS = 4096, 64


def request_headers(
    upstream: Upstream,
    client_dialect: str = "",
    client_headers: Mapping[str, str] = NO_HEADERS,
    *,
    stream: bool = True,
    features: Mapping[str, str] = NO_HEADERS,
) -> dict[str, str]:
    """The headers of a request but for those that authorise it, names in lower case.

    ``client_dialect`` names a dialect or a client that reads it; empty: nothing passes. ``features`` are what the request
    itself needs where the client speaks another dialect (``Dialect.features``). Raises BadRequest for a feature header
    that can't be sent on, and UsageError for an unknown name.
    """
    dialect = upstream.wire
    headers = {
        "accept": f"{dialect.media_type}, application/json" if stream else "application/json",
        "accept-encoding": "identity",  # a compressed stream is a delayed one, and a bomb (T9)
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    if dialect.name == "anthropic":  # demanded; the version that requests are written for
        headers["anthropic-version"] = (upstream.provider or Provider(name="", title="")).api_version
    if client_dialect and client_named(client_dialect)[0] is dialect:
        headers |= _features(FEATURES.get(dialect.name, frozenset()), client_headers)
    else:
        headers |= features
    for name, value in upstream.headers.items():
        headers[name] = f"{headers[name]},{value}" if name in _LISTS and name in headers else value
    return headers


def _features(wanted: frozenset[str], client_headers: Mapping[str, str]) -> dict[str, str]:
    """The client's feature headers. Lines of one name are one list (RFC 9110 §5.3)."""
    found: dict[str, str] = {}
    for came_as, value in client_headers.items():
        name = came_as.lower()
        if name in wanted:
            found[name] = f"{found[name]},{value}" if name in found else value
    for name, value in found.items():
        if len(value) > VALUE_CHARS or not HEADER_TEXT.fullmatch(value):
            raise BadRequest(f"headers.{name}", f"1 to {VALUE_CHARS:,} characters of printable ASCII are needed")
    return found


def response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What a client gets of an upstream's headers, names in lower case. What can't be sent on, or is too much, is left out."""
    passed: dict[str, str] = {}
    ids: dict[str, str] = {}
    for came_as, value in headers.items():
        name = came_as.lower()
        if len(value) > VALUE_CHARS or not HEADER_TEXT.fullmatch(value):
            continue
        if name in _REQUEST_IDS:
            ids.setdefault(name, value)
        elif (name in PASSED or name.startswith(PASSED_PREFIXES)) and len(passed) < PASSED_HEADERS:
            passed.setdefault(name, value)
    for name in _REQUEST_IDS:
        if name in ids:
            return {**passed, "x-upstream-request-id": ids[name]}
    return passed
