"""Run a test tool's server on one address of this machine until a signal ends it.

Source: observe.md O24, O27, O31, O35.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from streamkit.web.listening import listening, url_of

IDLE_S = 75.0  #: seconds after which a connection without a request is closed
_NO_LINGER = struct.pack("ii", 1, 0)  #: the value of SO_LINGER that turns a close into a reset
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  #: the signals that end a server


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


def reset(request: web.Request) -> None:
    """Reset the connection of a request (TCP RST), unless it is closed."""
    if request.transport is not None:
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        request.transport.abort()
