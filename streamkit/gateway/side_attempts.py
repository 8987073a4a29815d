"""Request token counts and compactions from the upstreams of a route.

Source: clients.md §10.4; dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from aiohttp import ClientSession, web
from attrs import define

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


@define
class SideAttempts:
    """Asks the upstreams of a route for a token count or a compaction, until one responds.

    Each request to an upstream becomes an attempt in ``record``. ``server`` says what happens if there is no count, and
    whether the response names the upstream. ``stopping`` returns whether the gateway is shutting down; it tells a shutdown
    from a client that disconnected if an attempt is cancelled. The attempts do not change an upstream's ``health``, because
    counts and compactions have endpoints of their own.
    """

    ask: Ask
    route: Route
    session: ClientSession
    client_headers: Mapping[str, str]
    record: Record
    health: Health
    stopping: Callable[[], bool]
    server: Server

    async def run(self) -> web.Response:
        """Return the response of ``first_count`` or ``first_compaction``. Raises Refused."""
        if self.ask.operation == "compact":
            made = (Compaction(self.ask, *each) for each in self._upstreams(resting_too=True))
            return await self._named(first_compaction(self.ask, made, self._try))
        mode = self.server.count_tokens
        counts = (Count(self.ask, *each) for each in self._upstreams(resting_too=mode != "estimate"))
        response = await self._named(first_count(self.ask, counts, mode, self._try))
        self.record.estimated = ESTIMATED in response.headers
        return response

    def _upstreams(self, *, resting_too: bool) -> list[tuple[Upstream, ClientSession, Mapping[str, str], str | None]]:
        """Return the upstreams in their order, each with the key to use, and what a request to it needs.

        Those that rest are last, or left out: an estimate can replace their count.
        """
        now = asyncio.get_running_loop().time()
        targets = ordered(self.route, self.ask, None, self.health.streams)
        known = [(known_of(target, self.ask.model), target) for target in targets]
        awake = [pair for pair in known if self.health.rests_until(pair[0], now) <= now]
        chosen = [*awake, *(pair for pair in known if pair not in awake)] if resting_too else awake
        return [
            (self.health.account(name, target.upstream, None, now)[0], self.session, self.client_headers, target.model)
            for name, target in chosen
        ]

    async def _named(self, answering: Awaitable[web.Response]) -> web.Response:
        """Return the response, with the headers that name its upstream if ``server`` says so. Refused has them, too."""
        try:
            response = await answering
        except Refused as refused:
            refused.headers |= self._names()
            raise
        if ESTIMATED not in response.headers:
            response.headers.update(self._names())
        return response

    def _names(self) -> dict[str, str]:
        attempts = self.record.attempts
        if not self.server.name_upstreams or not attempts:
            return {}
        return names_of(attempts[-1].upstream, attempts[-1].model, len(attempts))

    async def _try(self, asking: SideRequest[T]) -> T | ProviderFailed:
        loop = asyncio.get_running_loop()
        started = loop.time()
        outcome, detail = "failed", ""
        try:
            found = await asking.fetch()
            outcome = "counted" if asking.ask.operation == "count" else "success"
            if isinstance(found, ProviderFailed):
                outcome, detail = failed_outcome(found, asking.report, asking.status), found.message
        except asyncio.CancelledError:
            outcome = "shut_down" if self.stopping() else "client_left"
            raise
        finally:
            seconds = loop.time() - started
            upstream, model = asking.upstream, asking.model or asking.ask.model
            path = path_of(upstream, model, stream=False, operation=asking.ask.operation)
            self.record.attempts.append(
                Attempt(upstream.name, outcome, seconds, detail, asking.report, asking.asked, path, model=model)
            )
        return found
