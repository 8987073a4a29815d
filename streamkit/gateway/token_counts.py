"""How many tokens a request has: asked of the route's upstreams that can count, else estimated and marked as an estimate.

Source: clients.md §10.4; dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import ClientSession, web

from streamkit.events import ProviderFailed
from streamkit.gateway.outcomes import failed_outcome
from streamkit.gateway.record import Attempt, Record
from streamkit.gateway.routing import Route, Target
from streamkit.web.refusals import no_count
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import Count, count_response, estimate_instead
from streamkit.web.token_estimate import CountTokens
from streamkit.web.upstream import can_count, path_of
from streamkit.web.upstream.headers import NO_HEADERS


async def count(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    stopping: Callable[[], bool],
    mode: CountTokens = "estimate",
) -> web.Response:
    """The count of the first upstream that gives one, else an estimate.

    Raises Refused where there is to be none: not found where no upstream counts, else the last failure; and for a request
    that an upstream finds wrong.

    Each that is asked is an attempt of ``record``. ``stopping`` says whether it is the gateway that ends what is cancelled.
    """
    failed, upstream_headers = no_count(ask.model), NO_HEADERS
    for target in route.targets:
        if mode == "off" or not can_count(target.upstream):
            continue
        counting = Count(ask, target.upstream, session, target.model, client_headers)
        tokens = await _try(counting, target, record, stopping)
        if isinstance(tokens, int):
            return count_response(ask.dialect, tokens, counting.upstream_headers)
        failed, upstream_headers = tokens, counting.upstream_headers
    response = await estimate_instead(ask, failed, mode, upstream_headers)
    record.estimated = True
    return response


async def _try(counting: Count, target: Target, record: Record, stopping: Callable[[], bool]) -> int | ProviderFailed:
    loop = asyncio.get_running_loop()
    started = loop.time()
    outcome, detail = "failed", ""
    try:
        tokens = await counting.fetch()
        outcome = "counted"
        if isinstance(tokens, ProviderFailed):
            outcome, detail = failed_outcome(tokens, counting.report, counting.status), tokens.message
    except asyncio.CancelledError:
        outcome = "shut_down" if stopping() else "client_left"
        raise
    finally:
        seconds = loop.time() - started
        path = path_of(target.upstream, target.model or counting.ask.model, stream=False, operation="count")
        record.attempts.append(
            Attempt(target.upstream.name, outcome, seconds, detail, counting.report, counting.asked, path)
        )
    return tokens
