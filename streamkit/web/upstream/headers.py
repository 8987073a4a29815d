"""Which headers pass, each way. Both are lists of what may: whatever is not named here stays where it came from.

To the upstream goes nothing of the client's but the feature headers of its dialect, where the upstream speaks the same: not
its keys, which are for the gateway, nor cookies, nor what belongs to its connection or names its account
(``OpenAI-Organization``). To the client go times to wait, rate limits and request ids. The upstream's ``x-request-id`` or
``request-id`` becomes ``x-upstream-request-id``, since the gateway has one of its own.

Source: limits.md T6, T7, T9.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from streamkit.dialects import client_named, endpoints
from streamkit.dialects.http import RATE_LIMIT_PREFIXES, REQUEST_ID_HEADERS, RETRY_HEADERS
from streamkit.errors import BadRequest
from streamkit.web.upstream.value import HEADER_TEXT, Upstream

USER_AGENT: Final = f"streamkit/{version('streamkit-llm')}"
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
#: Of a value, and of how many headers. Some vendors send about twenty limits.
VALUE_CHARS, PASSED_HEADERS = 4096, 64


def request_headers(
    upstream: Upstream,
    client_dialect: str = "",
    client_headers: Mapping[str, str] = NO_HEADERS,
    *,
    stream: bool = True,
    features: Mapping[str, str] = NO_HEADERS,
    trace_headers: Mapping[str, str] = NO_HEADERS,
) -> dict[str, str]:
    """The headers of a request but for those that authorise it, names in lower case.

    ``client_dialect`` names a dialect or a client that reads it; empty: nothing passes. ``features`` are what the request
    itself needs where the client speaks another dialect (``Dialect.features``), ``trace_headers`` say which trace it belongs
    to. Raises BadRequest for a feature header that can't be sent on, and UsageError for an unknown name.
    """
    dialect, endpoint = upstream.wire, upstream.endpoint
    wanted = endpoint.features if endpoint is not None else {}
    headers = {
        "accept": f"{dialect.media_type}, application/json" if stream else "application/json",
        "accept-encoding": "identity",  # a compressed stream is a delayed one, and a bomb (T9)
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    if endpoint is not None:
        headers |= endpoint.headers(upstream.provider)
    if client_dialect and client_named(client_dialect)[0] is dialect:
        headers |= _features(wanted, client_headers)
    else:
        headers |= features
    for name, value in upstream.headers.items():  # to a list is added: the client's body may depend on what it asks for
        headers[name] = f"{headers[name]},{value}" if wanted.get(name) and name in headers else value
    headers |= trace_headers
    return headers


def _features(wanted: Mapping[str, bool], client_headers: Mapping[str, str]) -> dict[str, str]:
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


@cache
def _passed() -> tuple[frozenset[str], tuple[str, ...]]:
    """What passes to clients, of whichever dialect the upstream is: names, and beginnings of names."""
    every = [*RETRY_HEADERS, *(name for endpoint in endpoints() for name in endpoint.passed)]
    beginnings = (name for name in every if name.endswith("-"))
    return frozenset(every), (*RATE_LIMIT_PREFIXES, *beginnings)


def response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What a client gets of an upstream's headers, names in lower case. What can't be sent on, or is too much, is left out."""
    names, beginnings = _passed()
    passed: dict[str, str] = {}
    ids: dict[str, str] = {}
    for came_as, value in headers.items():
        name = came_as.lower()
        if len(value) > VALUE_CHARS or not HEADER_TEXT.fullmatch(value):
            continue
        if name in REQUEST_ID_HEADERS:
            ids.setdefault(name, value)
        elif (name in names or name.startswith(beginnings)) and len(passed) < PASSED_HEADERS:
            passed.setdefault(name, value)
    for name in REQUEST_ID_HEADERS:
        if name in ids:
            return {**passed, "x-upstream-request-id": ids[name]}
    return passed
