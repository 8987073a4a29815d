"""The servers of the test tools: one listener on this machine, until a signal ends it.

Source: observe.md O24, O27, O31, O35.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from streamkit.web.listening import listening, url_of

#: Seconds after which a connection without a request is closed.
IDLE_S = 75.0
#: What ends a server.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@asynccontextmanager
async def serving(
    app: web.Application, address: tuple[str, int], what: str, *, decompress: bool = True
) -> AsyncGenerator[str, None]:
    """Serve an application at a host and port (0: a free one) while the block runs, and give its URL.

    Without ``decompress``, handlers get bodies as they were sent. ``what`` is for the message of the UsageError that says why
    the address can't be had.
    """
    async with listening(app, address, idle_s=IDLE_S, what=what, decompress=decompress) as bound:
        yield url_of(bound)


async def signalled() -> None:
    """Wait for a signal of ``SIGNALS``."""
    came, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, came.set)
    try:
        await came.wait()
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
