"""Run a test tool's server on one address of this machine until a signal ends it.

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
#: The signals that end a server.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@asynccontextmanager
async def serving(
    app: web.Application, address: tuple[str, int], what: str, *, decompress: bool = True
) -> AsyncGenerator[str, None]:
    """Serve an application at a host and port (0: any free port) while the block runs. Yield the server's URL.

    Without ``decompress``, handlers receive request bodies as sent. ``what`` names the server in the message of the UsageError
    that is raised if the address cannot be used.
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
