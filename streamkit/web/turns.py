"""Let only a few requests begin in each turn of the event loop, so that a burst does not delay the responses in progress.

A turn runs every task that is ready when it begins. If 700 requests arrive at once, each takes its next step in every turn,
and a stream's next event waits for all of them: up to 344 ms, since one step of a request takes half a millisecond.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

#: How many requests may begin in one turn of the event loop. Each takes about seven steps in later turns; together the steps
#: then take about 15 ms a turn.
AT_ONCE: Final = 4


class Turns:
    """Lets ``at_once`` callers continue in each turn of the running event loop, in the order of their calls."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun = 0  # how many requests began in this turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timed = False

    async def wait(self) -> None:
        """Return at once, or in a later turn if enough callers have continued in this one."""
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
        """Called when a turn is over: let the next waiting callers continue."""
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            first = self._waiting.popleft()
            if not first.done():  # a future that is done was cancelled with its caller
                first.set_result(None)
                self._begun += 1
        self._timed = self._begun > 0
        if self._timed:
            asyncio.get_running_loop().call_soon(self._next)
