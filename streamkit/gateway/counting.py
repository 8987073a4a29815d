"""How many tokens a request has, asked of the route's upstreams that can count. A guess would be taken for a count.

Source: issue text 6 §2; dialects.md §3.2, §5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import ClientSession, web
from attrs import evolve

from streamkit.bodies import encode_request
from streamkit.dialects.encoding import failure_from
from streamkit.errors import BadRequest, StreamError
from streamkit.events import ProviderFailed
from streamkit.gateway.routing import Leg, Route
from streamkit.web.counts import count_response
from streamkit.web.refusals import Refused, no_count
from streamkit.web.source import iter_upstream, whole_body
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import (
    can_count,
    count_of,
    count_request,
    error_of,
    hidden,
    redactor,
    response_headers,
    send,
)
from streamkit.web.upstream.headers import NO_HEADERS

#: A count is one number in a small object.
COUNT_BYTES: Final = 64 * 1024


async def count(ask: Ask, route: Route, session: ClientSession, client_headers: Mapping[str, str]) -> web.Response:
    """The count of the first upstream that gives one. Raises Refused: not found where none can, else the last failure."""
    failed, told = no_count(ask.model), NO_HEADERS
    for leg in route.legs:
        if not can_count(leg.upstream):
            continue
        tokens, told = await _ask(ask, leg, session, client_headers)
        if isinstance(tokens, int):
            body = count_response(ask.dialect, tokens)
            return web.Response(body=body, content_type="application/json", headers=told)
        failed = tokens
    raise Refused(failed, told)


async def _ask(
    ask: Ask, leg: Leg, session: ClientSession, client_headers: Mapping[str, str]
) -> tuple[int | ProviderFailed, Mapping[str, str]]:
    """The count, and what else its upstream tells the client."""
    upstream, model = leg.upstream, leg.model or ask.model
    request = evolve(ask.request, model=model, stream=None, stream_usage=None)
    told, cut = NO_HEADERS, redactor([upstream])
    try:
        body = encode_request(request, upstream.dialect, max_tokens=upstream.max_tokens, emulate=upstream.emulate)
        response = await send(
            session,
            upstream,
            count_request(upstream, body, model),
            model=model,
            stream=False,
            operation="count",
            client_dialect=ask.dialect,
            client_headers=client_headers,
        )
        told = {name: cut(value) for name, value in response_headers(response.headers).items()}
        if response.status != 200:
            return await error_of(response, upstream), told
        body = await whole_body(iter_upstream(response, timeouts=upstream.timeouts), body_bytes=COUNT_BYTES)
        return count_of(upstream, body), told
    except BadRequest as error:
        return ProviderFailed("invalid_request", str(error)), told
    except StreamError as error:
        return hidden(failure_from(error), cut), told
