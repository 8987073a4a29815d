"""Is the client still there, and does it take what is written to it?

aiohttp tells a handler of a client that left only where the server was made to cancel handlers, and an application that
streamkit is dropped into may not be; so it is looked, ten times a second, at a cost of microseconds. Bytes that the client
does not take wait in this process, up to a bound; behind it nothing more is read for it. One that takes none of them for long
is *stalled*, however slow others may be, and is dropped without a terminator.

Source: limits.md §1, T8; clients.md §5; quirks.md 117, 120, 121.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from aiohttp import web

#: A fraction of the 250 ms in which an upstream is to hear that its client left.
LOOK_S: Final = 0.1

Gone: TypeAlias = Literal["client left", "client stalled"]


class Watch:
    """Looks at the client of ``request`` until ``stop``; calls ``gone`` once, with the reason, when it is no longer of use."""

    def __init__(self, request: web.Request, gone: Callable[[Gone], None], *, stall_s: float) -> None:
        self._request = request
        self._gone = gone
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._written = 0
        self._taken = 0
        self._took_at = self._loop.time()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def wrote(self, size: int) -> None:
        """So many bytes are about to be written."""
        self._written += size

    def stop(self) -> None:
        self._timer.cancel()

    async def taken(self) -> None:
        """Wait until every byte is with the client's system, or the client is gone."""
        transport = self._request.transport
        while transport is not None and transport.get_write_buffer_size() and not transport.is_closing():
            await asyncio.sleep(LOOK_S)
            transport = self._request.transport

    def _look(self) -> None:
        transport, now = self._request.transport, self._loop.time()
        if transport is None or transport.is_closing():
            self._gone("client left")
            return
        waiting = transport.get_write_buffer_size()
        taken = self._written - waiting
        if taken > self._taken or not waiting:
            self._taken, self._took_at = taken, now
        elif now - self._took_at > self._stall_s:
            transport.abort()
            self._gone("client stalled")
            return
        self._timer = self._loop.call_later(LOOK_S, self._look)
