"""Which headers and parts of a path may be written to a disk. What is not in these lists stays off it.

A name is in a list if no server and no client puts a key there: what a body is, who wrote it, which features are asked for,
ids of requests, rate limits. Of a path, what stands in its query is kept but for names that keys go by.

Source: observe.md O25, F47; limits.md T6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, TypeAlias
from urllib.parse import unquote_plus

from streamkit.dialects import endpoints, key_headers
from streamkit.dialects.http import RATE_LIMIT_PREFIXES, REQUEST_ID_HEADERS, RETRY_HEADERS

#: Headers as they came: a name may come several times, in any case.
Headers: TypeAlias = Iterable[tuple[str, str]]

#: Of requests, beside what clients ask features with (``Endpoint.features``).
REQUEST_HEADERS: Final = frozenset({
    "accept", "accept-encoding", "content-encoding", "content-length", "content-type", "traceparent", "user-agent",
    *REQUEST_ID_HEADERS,
})  # fmt: skip
#: What the official SDKs say of themselves: language, version, number of the retry.
REQUEST_PREFIXES: Final = ("x-stainless-",)
#: Of answers, beside rate limits and what a dialect names (``Endpoint.passed``).
RESPONSE_HEADERS: Final = frozenset({
    "cache-control", "content-encoding", "content-length", "content-type", "date", "server", "traceresponse",
    "transfer-encoding", "x-accel-buffering", *REQUEST_ID_HEADERS, *RETRY_HEADERS,
})  # fmt: skip
#: The longest value that is written; a longer one is left out.
VALUE_CHARS: Final = 4096
#: Names of headers whose values are keys, or hold some: what is found elsewhere of these is taken out there, too.
_KEY_HEADER: Final = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)
#: Names in a query that keys go by; those of AWS's signed URLs as a whole.
_KEY_NAME: Final = re.compile(
    r"(?i:key|token|secret|password|credential|auth|sig(?:nature)?\Z|^code\Z|^x-amz-|^x-goog-)"
)
#: What parts a value in which keys stand beside other things: ``Bearer KEY``, ``a=1; session=KEY``.
_PARTS: Final = re.compile(r"[;,]?\s+")
_NAMED: Final = re.compile(r"[\w.-]+=(?=[^=])")
#: What parts the pairs of a query; ``;`` for old servers.
_PAIRS: Final = re.compile(r"[&;]")


def kept_request_headers(headers: Headers) -> tuple[dict[str, str], bool]:
    """Those of a request that may be written, names in lower case, and whether others were left out."""
    return _kept(headers, REQUEST_HEADERS | _features(), REQUEST_PREFIXES)


def kept_response_headers(headers: Headers) -> tuple[dict[str, str], bool]:
    """Those of an answer that may be written, names in lower case, and whether others were left out."""
    names, beginnings = _passed()
    return _kept(headers, RESPONSE_HEADERS | names, RATE_LIMIT_PREFIXES + beginnings)


def kept_target(target: str) -> tuple[str, bool]:
    """A path with its query, percent-encoded as it was sent, without keys, and whether there were some."""
    path, mark, query = target.partition("?")
    kept = [pair for pair in query.split("&") if not _names_key(pair)]
    query = "&".join(kept)
    return path + (mark if query else "") + query, len(kept) != len(target.partition("?")[2].split("&"))


def keys_in(headers: Headers, target: str = "") -> Iterator[str]:
    """What may be keys of a request: the values of headers and of the query that keys are sent in, and what is in them."""
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
    """Return whether a part of a query has the name of a key, as a server reads it: decoded, and after ``;``, too."""
    return any(_KEY_NAME.search(unquote_plus(pair.partition("=")[0])) for pair in pairs.split(";"))


def _kept(headers: Headers, names: frozenset[str], beginnings: tuple[str, ...]) -> tuple[dict[str, str], bool]:
    """Headers of these names. Lines of one name are one list (RFC 9110 §5.3)."""
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
    """What dialects name of answers: names, and beginnings of names."""
    every = [name for endpoint in endpoints() for name in endpoint.passed]
    return frozenset(every), tuple(name for name in every if name.endswith("-"))
