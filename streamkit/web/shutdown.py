"""Track the responses in progress, so that a stopping server can end them: aiohttp does not know about long streams.

Source: design.md §6; clients.md §5; limits.md C16.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from aiohttp import web

from streamkit.errors import Interrupted

#: The last seconds of the grace period, in which unfinished streams get their error frames.
FRAMES_S: Final = 1.0
#: Seconds between two checks whether streams are still in progress.
LOOK_S: Final = 0.05


class Interruptible(Protocol):
    """A response that a stopping server can end early."""

    def interrupt(self, error: Exception, /) -> None: ...


#: The key of an application's responses in progress. ``end_streams_on_shutdown`` adds it.
LIVE: Final = web.AppKey("streamkit-live", set[Interruptible])


def end_streams_on_shutdown(app: web.Application, *, grace_s: float = 30.0) -> None:
    """Give live streams ``grace_s`` seconds to end when ``app`` shuts down; then end the others with an error frame.

    aiohttp calls this after it has stopped accepting connections. Its own ``shutdown_timeout`` starts after this.
    """
    live: set[Interruptible] = set()
    app[LIVE] = live

    async def shut_down(_app: web.Application) -> None:
        loop = asyncio.get_running_loop()
        await _emptied(live, loop.time() + max(0.0, grace_s - FRAMES_S))
        for reply in list(live):
            reply.interrupt(Interrupted("the server is shutting down; ask again"))
        await _emptied(live, loop.time() + FRAMES_S)

    app.on_shutdown.append(shut_down)


async def _emptied(live: set[Interruptible], until: float) -> None:
    loop = asyncio.get_running_loop()
    while live and loop.time() < until:  # noqa: ASYNC110 - a set does not notify anyone of changes
        await asyncio.sleep(LOOK_S)
