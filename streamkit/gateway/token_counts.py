"""The number of tokens in a request: ask the route's upstreams that can count; else estimate it and mark the estimate.

Source: clients.md §10.4; dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from aiohttp import ClientSession, web

from streamkit.events import ProviderFailed
from streamkit.gateway.attempts import failed_outcome
from streamkit.gateway.record import Attempt, Record
from streamkit.gateway.routing import Route
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import ESTIMATED, Count, CountTokens, first_count
from streamkit.web.upstream import path_of


async def count(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    stopping: Callable[[], bool],
    mode: CountTokens,
) -> web.Response:
    """Return the response of ``first_count`` for the route's upstreams.

    Each upstream that is asked becomes an attempt in ``record``. ``stopping`` returns whether the gateway is shutting down; it
    tells a shutdown from a client that disconnected if a count is cancelled.
    """
    counts = (Count(ask, target.upstream, session, client_headers, target.model) for target in route.targets)
    response = await first_count(ask, counts, mode, partial(_try, record, stopping))
    record.estimated = ESTIMATED in response.headers
    return response


async def _try(record: Record, stopping: Callable[[], bool], counting: Count) -> int | ProviderFailed:
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
        upstream, model = counting.upstream, counting.model or counting.ask.model
        path = path_of(upstream, model, stream=False, operation="count")
        record.attempts.append(Attempt(upstream.name, outcome, seconds, detail, counting.report, counting.asked, path))
    return tokens
