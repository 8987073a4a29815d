"""Allow-lists: the parts of a request and a response that may be written to disk. Everything else is left out.

A header is in a list only if no server and no client puts a key in it: content types, user agents, requested features, request
ids, rate limits. All of a path is kept, except query parameters with the name of a key.

Source: observe.md O25, F47; limits.md T6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote_plus

import orjson

from streamkit.dialects import endpoints, key_headers
from streamkit.dialects.http import RATE_LIMIT_PREFIXES, REQUEST_ID_HEADERS, RETRY_HEADERS

Headers: TypeAlias = Iterable[tuple[str, str]]  #: headers as received: a name may be repeated, in upper or lower case

#: Headers of one connection, never forwarded, like those that ``Connection`` lists (RFC 9110 §7.6.1; RFC 9112 §9.6, §6.1).
HOP_BY_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
#: Request headers that may be written, in addition to those that ask for features (``Endpoint.features``).
REQUEST_HEADERS: Final = frozenset({
    "accept", "accept-encoding", "content-encoding", "content-length", "content-type", "traceparent", "user-agent",
    *REQUEST_ID_HEADERS,
})  # fmt: skip
#: Headers in which the official SDKs describe themselves: language, version, number of the retry.
REQUEST_PREFIXES: Final = ("x-stainless-",)
#: Response headers that may be written, in addition to rate limits and those that a dialect names (``Endpoint.passed``).
RESPONSE_HEADERS: Final = frozenset({
    "cache-control", "content-encoding", "content-length", "content-type", "date", "server", "traceresponse",
    "transfer-encoding", "x-accel-buffering", *REQUEST_ID_HEADERS, *RETRY_HEADERS,
})  # fmt: skip
#: The longest header value that is written. Longer values are left out.
VALUE_CHARS: Final = 4096
#: Header names whose values are or contain keys. Such a value is also removed where it occurs in a path or body.
_KEY_HEADER: Final = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)
#: Query parameter names that carry keys, including all parameters of AWS's and Google's signed URLs.
_KEY_NAME: Final = re.compile(
    r"(?i:key|token|secret|password|credential|auth|sig(?:nature)?\Z|^code\Z|^x-amz-|^x-goog-)"
)
#: Separates the parts of a header value that has a key among other things: ``Bearer KEY``, ``a=1; session=KEY``.
_PARTS: Final = re.compile(r"[;,]?\s+")
_NAMED: Final = re.compile(r"[\w.-]+=(?=[^=])")
#: Separates the pairs of a query. Old servers also split at ``;``.
_PAIRS: Final = re.compile(r"[&;]")


def kept_request_headers(headers: Headers) -> tuple[dict[str, str], bool]:
    """Return the request headers that may be written, with names in lower case, and whether others were left out."""
    return _kept(headers, REQUEST_HEADERS | _features(), REQUEST_PREFIXES)


def kept_response_headers(headers: Headers) -> tuple[dict[str, str], bool]:
    """Return the response headers that may be written, with names in lower case, and whether others were left out."""
    names, beginnings = _passed()
    return _kept(headers, RESPONSE_HEADERS | names, RATE_LIMIT_PREFIXES + beginnings)


def kept_target(target: str) -> tuple[str, bool]:
    """Return the path and query, percent-encoded as sent, without keys, and whether keys were removed."""
    path, mark, query = target.partition("?")
    kept = [pair for pair in query.split("&") if not _names_key(pair)]
    query = "&".join(kept)
    return path + (mark if query else "") + query, len(kept) != len(target.partition("?")[2].split("&"))


def keys_in(headers: Headers, target: str = "") -> Iterator[str]:
    """Yield every value in a request's headers and query that may be a key, whole and as its parts."""
    own = {name for name, _ in key_headers().values()}
    for name, value in headers:
        if name.lower() in own or _KEY_HEADER.search(name):
            scheme, *parts = _PARTS.split(value.strip())
            for part in parts if parts and not _NAMED.match(scheme) else [scheme, *parts]:
                yield _NAMED.sub("", part, count=1)
    for pair in _PAIRS.split(target.partition("?")[2]):
        if _names_key(pair):
            value = pair.partition("=")[2]
            yield from {value, unquote_plus(value)}


def _names_key(pairs: str) -> bool:
    """Return whether any name in ``pairs`` is that of a key. Decode names and split at ``;``, as servers do."""
    return any(_KEY_NAME.search(unquote_plus(pair.partition("=")[0])) for pair in pairs.split(";"))


def _kept(headers: Headers, names: frozenset[str], beginnings: tuple[str, ...]) -> tuple[dict[str, str], bool]:
    """Return the headers with these names or prefixes. Join repeated headers with a comma (RFC 9110 §5.3)."""
    kept: dict[str, str] = {}
    left_out = False
    for came_as, value in headers:
        name = came_as.lower()
        if (name in names or name.startswith(beginnings)) and len(value) <= VALUE_CHARS:
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
        else:
            left_out = True
    return kept, left_out


@cache
def _features() -> frozenset[str]:
    return frozenset(name for endpoint in endpoints() for name in endpoint.features)


@cache
def _passed() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the response headers that dialects name: full names, and prefixes (which end with ``-``)."""
    every = [name for endpoint in endpoints() for name in endpoint.passed]
    return frozenset(every), tuple(name for name in every if name.endswith("-"))


# -- bodies of requests ------------------------------------------------------------------------------------------------


#: ``full``: the whole body. ``shape``: only member names and types (``shape_of``). ``none``: nothing.
Bodies: TypeAlias = Literal["full", "shape", "none"]
DEPTH: Final = 100  #: the deepest nesting of a body whose shape is kept


def kept_body(body: bytes, bodies: Bodies) -> bytes | None:
    """Return the body or its shape. Return None if ``bodies`` is none, or the shape needs JSON of ``DEPTH`` levels at most."""
    if bodies == "full":
        return body
    try:
        return None if bodies == "none" else orjson.dumps(shape_of(json.loads(body)))
    except (ValueError, RecursionError):
        return None


def shape_of(value: Any, depth: int = DEPTH) -> Any:
    """Return a JSON value with each text, number and boolean replaced by the name of its type. Keep member names.

    Raises RecursionError for a value with more than ``depth`` levels.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if not depth:
        raise RecursionError
    if isinstance(value, list):
        return [shape_of(item, depth - 1) for item in value]
    return {name: shape_of(inner, depth - 1) for name, inner in value.items()}
