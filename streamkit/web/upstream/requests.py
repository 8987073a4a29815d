"""The URL, headers and authorisation of a request to an upstream, the body of a token count, and the response headers.

Paths come from the dialect (``Dialect.http``) and are added to the base URL that its official clients take. The base URL may
include the version or not (``https://api.example.com`` or ``…/v1``). If the dialect names no path, requests go to the base
URL. A model's name may come from the client, so it is percent-encoded, and refused if it leaves its path, as ``../x`` does.

In both directions, a list of allowed headers decides which headers are passed on. Of the client's headers, only the feature
headers of its dialect go to the upstream, and only if the upstream speaks the same dialect. The client's keys, which are for
the gateway, never go there; nor do cookies, headers of the client's connection, and headers that name its account
(``OpenAI-Organization``). Of the upstream's headers, the client gets retry delays, rate limits and request ids. The upstream's
``x-request-id`` or ``request-id`` is renamed to ``x-upstream-request-id``, because the gateway sends a request id too.

Source: limits.md T5, T6, T7, T9; the headers of the official clients (the tests compare).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import orjson
from yarl import URL

from streamkit import __version__
from streamkit.dialects import client_named, endpoints
from streamkit.dialects.http import (
    RATE_LIMIT_PREFIXES,
    REQUEST_ID_HEADERS,
    RETRY_HEADERS,
    Compacting,
    Operation,
    TokenCount,
)
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.vocabulary.error_bodies import REFUSED_KEY
from streamkit.errors import BadRequest, BrokenFrame, UsageError
from streamkit.events import ProviderFailed
from streamkit.text.quoting import excerpt
from streamkit.web.upstream.value import HEADER_TEXT, Upstream

#: The most characters of a path that are logged. A path may contain the model's name, which the client chooses.
PATH_CHARS: Final = 300
KNOWN_URLS: Final = 256  #: how many URLs of an upstream are remembered


def count_at(upstream: Upstream) -> TokenCount:
    """Return how ``upstream`` counts tokens. Raises UsageError if its dialect has no operation for it."""
    if upstream.token_count is None:
        raise UsageError(f"{upstream.name} can't count tokens: {upstream.wire.name} has no operation for that there")
    return upstream.token_count


def address(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> URL:
    """Return the percent-encoded URL of a request.

    Raises BadRequest if the dialect puts the model into the path and this name can't be there. Raises UsageError for a token
    count if the dialect has no operation for it.
    """
    return _address(upstream, model, stream, operation)[0]


def path_of(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """Return a request's path for a log, without host, query and likely keys. Empty if the request has no valid URL."""
    try:
        return _address(upstream, model, stream, operation)[1]
    except (BadRequest, UsageError):
        return ""


def _address(upstream: Upstream, model: str, stream: bool, operation: Operation) -> tuple[URL, str]:
    known, key = upstream.known_urls, (model, stream, operation)
    found = known.get(key)
    if found is None:
        # yarl must not decode what it thinks needs no encoding: `%3A` in an ARN
        url = URL(_written(upstream, model, stream, operation), encoded=True)
        found = url, excerpt(url.raw_path, PATH_CHARS)
        if len(known) < KNOWN_URLS and len(model) <= PATH_CHARS:
            known[key] = found
    return found


def _written(upstream: Upstream, model: str, stream: bool, operation: Operation) -> str:
    endpoint, base = upstream.endpoint, str(URL(upstream.base_url)).rstrip("/")
    if operation == "count":
        url = count_at(upstream).url(base, model)
    elif operation == "compact":
        url = compact_at(upstream).url(base)
    elif endpoint is None:
        return base
    elif endpoint.deployment is not None and upstream.has_deployments:
        url = endpoint.deployment(base, model)
    else:
        url = endpoint.url(base, model, stream)
    return url + (f"?api-version={quote(upstream.api_version, safe='')}" if upstream.api_version else "")


# -- counting tokens ---------------------------------------------------------------------------------------------------


def count_request(upstream: Upstream, body: bytes, model: str) -> bytes:
    """Return the body of a count for ``body``, a request in the upstream's dialect. Raises UsageError if it can't count."""
    count = count_at(upstream)
    return orjson.dumps(count.body(_members(body, count.takes), model))


def _members(body: bytes, takes: frozenset[str] | None) -> dict[str, Any]:
    """Return those members of a body that ``takes`` has, with numbers as they were written. None: all members."""
    fields = fields_of(body)
    names = (name for name in fields.names if takes is None or name in takes)
    return {name: orjson.Fragment(fields.body.text_of(fields.peek(name), (name,))) for name in names}


def count_of(upstream: Upstream, body: bytes) -> int:
    """Return the number of tokens in the response to a count. Raises BrokenFrame if there is none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BrokenFrame("the response to a token count is not JSON", body) from error
    count = answer.get(count_at(upstream).member) if isinstance(answer, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BrokenFrame("the response to a token count has no number of tokens", body)
    return count


# -- compactions -------------------------------------------------------------------------------------------------------


def compact_at(upstream: Upstream) -> Compacting:
    """Return how ``upstream`` compacts conversations. Raises UsageError if it can't."""
    if upstream.compacting is None:
        raise UsageError(f"{upstream.name} has no path for compactions: {upstream.wire.name} has none there")
    return upstream.compacting


def compact_request(upstream: Upstream, body: bytes) -> bytes:
    """Return the body of a compaction for ``body``, a request in the upstream's dialect. Raises UsageError if it can't."""
    return orjson.dumps(_members(body, compact_at(upstream).takes))


# -- headers -----------------------------------------------------------------------------------------------------------


USER_AGENT: Final = f"streamkit/{__version__}"
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
    if client_dialect and client_named(client_dialect)[0] is upstream.wire:
        wanted = _wanted(upstream)
        features = _features(wanted, client_headers) if wanted else NO_HEADERS
    if features:
        return {**_with_features(upstream, stream, features), **trace_headers}
    if stream not in upstream.known_headers:
        upstream.known_headers[stream] = _with_features(upstream, stream, NO_HEADERS)
    return {**upstream.known_headers[stream], **trace_headers}


def _with_features(upstream: Upstream, stream: bool, features: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "accept": f"{upstream.wire.media_type}, application/json" if stream else "application/json",
        "accept-encoding": "identity",  # compression delays a stream, and could hide a decompression bomb (T9)
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    if upstream.endpoint is not None:
        headers |= upstream.endpoint.headers(upstream.provider)
    headers |= features
    # join the values of feature lists: the client's body may need the features that its own header names
    for name, value in upstream.headers.items():
        headers[name] = f"{headers[name]},{value}" if _wanted(upstream).get(name) and name in headers else value
    return headers


def _wanted(upstream: Upstream) -> Mapping[str, bool]:
    """Return the feature headers of the upstream's dialect, each with whether it is a list."""
    return {} if upstream.endpoint is None else upstream.endpoint.features


def _features(wanted: Mapping[str, bool], client_headers: Mapping[str, str]) -> dict[str, str]:
    """Return the client's feature headers. Several lines with one name are joined into one list (RFC 9110 §5.3)."""
    found: dict[str, str] = {}
    for came_as, value in client_headers.items():
        name = came_as.lower()
        if name in wanted:
            found[name] = f"{found[name]},{value}" if name in found else value
    for name, value in found.items():
        if len(value) > VALUE_CHARS or not HEADER_TEXT.fullmatch(value):
            raise BadRequest(f"headers.{name}", f"must be 1 to {VALUE_CHARS:,} characters of printable ASCII")
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


# -- authorisation -----------------------------------------------------------------------------------------------------


#: Matches errors about a request's content. Some providers report these with the type of a permission error.
_OF_CONTENT: Final = re.compile(r"moderat|flagged|\bcontent\b|\bsafety\b|usage polic", re.IGNORECASE)


async def authorised(
    upstream: Upstream, method: str, url: URL, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """Return ``headers`` with the headers that authorise this request, names in lower case.

    Raises SourceFailed if AWS's or Google's credentials can't be fetched. botocore's settings limit the time for AWS's.
    """
    if upstream.auth == "sigv4":
        # If the dialect has no AWS service, use the service that also has the paths of other dialects.
        own = [upstream.endpoint] if upstream.endpoint is not None else []
        service = upstream.service or next(at.aws_service for at in (*own, *endpoints()) if at.aws_service)
        asked = (service, upstream.region or "", method, str(url), headers["content-type"], body)
        signature = await asyncio.to_thread(_signed, *asked)
        return {**headers, **signature}
    if upstream.auth == "google":
        from streamkit.web.upstream import google  # noqa: PLC0415 - the extra `google`, and 0.2 s

        return {**headers, "authorization": f"Bearer {await google.token(upstream)}"}
    return {**headers, **upstream.key_header}


def refuses_key(failed: ProviderFailed) -> bool:
    """Return whether an upstream refused the key, and not what the request says."""
    return failed.type in {"auth", "permission"} and not _OF_CONTENT.search(failed.message)


def as_gateway_failure(
    failed: ProviderFailed, upstreams: Iterable[Upstream], client_headers: Mapping[str, str]
) -> ProviderFailed:
    """Return the failure for the client. If the upstream refused the gateway's credentials, it becomes a server error (502).

    With 401, a client would report that the user's key is wrong and ask the user for another key. If the client itself sent
    the refused key, the failure stays as it is.
    """
    if not refuses_key(failed):
        return failed
    keys = [key.reveal() for upstream in upstreams for key in upstream.every_key]
    if any(key in value for key in keys for value in client_headers.values()):
        return failed
    status = "" if failed.http_status is None else f" (status {failed.http_status})"
    message = f"the upstream refused the gateway's credentials{status}; the gateway's operator must renew them"
    return ProviderFailed("server", message, code=REFUSED_KEY)


def _signed(service: str, region: str, method: str, url: str, content_type: str, body: bytes) -> dict[str, str]:
    """Sign a request. Runs in a thread: credentials may come over the network, and hashing 32 MiB takes time."""
    from streamkit.web.upstream.sigv4 import signed  # noqa: PLC0415 - the extra `aws`, and 0.2 s

    return signed(service, region, method, url, content_type, body)
