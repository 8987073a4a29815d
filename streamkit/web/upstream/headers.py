"""Which headers are passed on, in each direction. Both directions use a list of allowed headers; all others are dropped.

Of the client's headers, only the feature headers of its dialect go to the upstream, and only if the upstream speaks the same
dialect. The client's keys, which are for the gateway, never go there; nor do cookies, headers of the client's connection, and
headers that name its account (``OpenAI-Organization``). Of the upstream's headers, the client gets retry delays, rate limits
and request ids. The upstream's ``x-request-id`` or ``request-id`` is renamed to ``x-upstream-request-id``, because the gateway
sends a request id too.

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
#: The longest header value, and the most headers, that are passed to the client. Some vendors send about twenty rate-limit
#: headers.
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
    """Return the headers of a request without those that authorise it. Names are in lower case.

    ``client_dialect`` names the client's dialect or the client; if it is empty, no client header is passed. ``features`` are
    the feature headers that the request itself needs if the client speaks another dialect (``Dialect.features``).
    ``trace_headers`` name the trace of the request. Raises BadRequest for a feature header that can't be sent, and UsageError
    for an unknown name.
    """
    dialect, endpoint = upstream.wire, upstream.endpoint
    wanted = endpoint.features if endpoint is not None else {}
    headers = {
        "accept": f"{dialect.media_type}, application/json" if stream else "application/json",
        "accept-encoding": "identity",  # compression delays a stream, and could hide a decompression bomb (T9)
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    if endpoint is not None:
        headers |= endpoint.headers(upstream.provider)
    if client_dialect and client_named(client_dialect)[0] is dialect:
        headers |= _features(wanted, client_headers)
    else:
        headers |= features
    # join the values of feature lists: the client's body may need the features that its own header names
    for name, value in upstream.headers.items():
        headers[name] = f"{headers[name]},{value}" if wanted.get(name) and name in headers else value
    headers |= trace_headers
    return headers


def _features(wanted: Mapping[str, bool], client_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the client's feature headers. Several lines with one name are joined into one list (RFC 9110 §5.3)."""
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
    """Return the headers that are passed to clients, over all dialects: full names, and prefixes of names."""
    every = [*RETRY_HEADERS, *(name for endpoint in endpoints() for name in endpoint.passed)]
    beginnings = (name for name in every if name.endswith("-"))
    return frozenset(every), (*RATE_LIMIT_PREFIXES, *beginnings)


def response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the upstream headers for the client, names in lower case. Drop invalid values, and headers over the limits."""
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
