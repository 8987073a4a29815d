"""Requests begin a few in each turn of the event loop, so that a burst of them does not silence the answers under way.

A turn runs whatever is ready when it begins. Where 700 requests come at once, all of them take their next step in each turn,
and a stream's next event waits for it: up to 344 ms, where one step of a request takes half a millisecond.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

#: Requests that begin in one turn. Each takes some seven steps, in turns of their own: about 15 ms where all are under way.
AT_ONCE: Final = 4


class Turns:
    """Lets ``at_once`` callers through in each turn of the loop that runs, the first one first."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun = 0  # in this turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timed = False

    async def wait(self) -> None:
        """Return at once, or in a later turn where enough have begun in this one."""
        loop = asyncio.get_running_loop()
        if not self._timed:
            self._timed = True
            loop.call_soon(self._next)
        if self._begun < self._at_once and not self._waiting:
            self._begun += 1
            return
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next(self) -> None:
        """A turn is over."""
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            first = self._waiting.popleft()
            if not first.done():  # else whoever waited is gone
                first.set_result(None)
                self._begun += 1
        self._timed = self._begun > 0
        if self._timed:
            asyncio.get_running_loop().call_soon(self._next)
