"""Request token counts and compactions from the upstreams of a route.

Source: clients.md §10.4; dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from aiohttp import ClientSession, web

from streamkit.events import ProviderFailed
from streamkit.gateway.choice import ordered
from streamkit.gateway.config import Server
from streamkit.gateway.health import Health, known_of
from streamkit.gateway.reasons import failed_outcome
from streamkit.gateway.record import Attempt, Record
from streamkit.gateway.routing import Route
from streamkit.web.answered_by import names_of
from streamkit.web.compactions import Compaction, first_compaction
from streamkit.web.refusals import Refused
from streamkit.web.side_requests import SideRequest
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import ESTIMATED, Count, first_count
from streamkit.web.upstream import Upstream, path_of

T = TypeVar("T")


async def count(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    health: Health,
    stopping: Callable[[], bool],
    server: Server,
) -> web.Response:
    """Return the response of ``first_count`` for the route's upstreams.

    Upstreams that rest are tried last, and not at all if an estimate can replace their count. A count does not change an
    upstream's ``health``, because it has an endpoint of its own. Each request to an upstream becomes an attempt in ``record``.
    ``server`` says what happens if there is no count, and whether the response names the upstream. ``stopping`` returns
    whether the gateway is shutting down; it tells a shutdown from a client that disconnected if a count is cancelled.
    """
    mode = server.count_tokens
    asked = _asked(route, ask, health, resting_too=mode != "estimate")
    counts = (Count(ask, upstream, session, client_headers, model) for upstream, model in asked)
    response = await _named(record, server, first_count(ask, counts, mode, partial(_try, record, stopping)))
    record.estimated = ESTIMATED in response.headers
    return response


async def compact(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    health: Health,
    stopping: Callable[[], bool],
    server: Server,
) -> web.Response:
    """Return the response of ``first_compaction`` for the route's upstreams. The arguments are those of ``count``."""
    asked = _asked(route, ask, health, resting_too=True)
    made = (Compaction(ask, upstream, session, client_headers, model) for upstream, model in asked)
    return await _named(record, server, first_compaction(ask, made, partial(_try, record, stopping)))


def _asked(route: Route, ask: Ask, health: Health, *, resting_too: bool) -> list[tuple[Upstream, str | None]]:
    """Return the upstreams in their order, each with the key to use and its name for the model. Those that rest are last."""
    now = asyncio.get_running_loop().time()
    known = [(known_of(target, ask.model), target) for target in ordered(route, ask, None, health.streams)]
    awake = [pair for pair in known if health.rests_until(pair[0], now) <= now]
    targets = [*awake, *(pair for pair in known if pair not in awake)] if resting_too else awake
    return [(health.account(name, target.upstream, None, now)[0], target.model) for name, target in targets]


async def _named(record: Record, server: Server, answering: Awaitable[web.Response]) -> web.Response:
    """Return the response with the headers that name its upstream, if ``server`` says so. Raises Refused, with them too."""

    def names() -> dict[str, str]:
        if not server.name_upstreams or not record.attempts:
            return {}
        last = record.attempts[-1]
        return names_of(last.upstream, last.model, len(record.attempts))

    try:
        response = await answering
    except Refused as refused:
        refused.headers |= names()
        raise
    if ESTIMATED not in response.headers:
        response.headers.update(names())
    return response


async def _try(record: Record, stopping: Callable[[], bool], asking: SideRequest[T]) -> T | ProviderFailed:
    loop = asyncio.get_running_loop()
    started = loop.time()
    outcome, detail = "failed", ""
    try:
        found = await asking.fetch()
        outcome = "counted" if asking.ask.operation == "count" else "success"
        if isinstance(found, ProviderFailed):
            outcome, detail = failed_outcome(found, asking.report, asking.status), found.message
    except asyncio.CancelledError:
        outcome = "shut_down" if stopping() else "client_left"
        raise
    finally:
        seconds = loop.time() - started
        upstream, model = asking.upstream, asking.model or asking.ask.model
        path = path_of(upstream, model, stream=False, operation=asking.ask.operation)
        record.attempts.append(
            Attempt(upstream.name, outcome, seconds, detail, asking.report, asking.asked, path, model=model)
        )
    return found
