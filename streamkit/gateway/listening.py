"""Ports: an application on one, and one that several processes have together.

Source: limits.md T8.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from streamkit.errors import UsageError

#: What aiohttp may take behind the grace time to close what is left.
CLOSE_S: Final = 1.0
#: The system's own queue of connections that nobody accepted yet.
BACKLOG: Final = 1024
CLIENTS: Final = "clients"


@asynccontextmanager
async def listening(
    app: web.Application, address: tuple[str, int], *, idle_s: float, shared: bool = False, what: str = CLIENTS
) -> AsyncGenerator[tuple[str, int], None]:
    """Serve ``app`` there; yields the address, with the port that was taken for 0. Leaving ends it as gracefully as it can.

    A connection without a request under way, one whose headers do not come included, is closed after ``idle_s`` seconds.
    ``shared``: other processes listen there too. Raises UsageError, which says for ``what`` it was, where it can't be had.
    """
    runner = web.AppRunner(
        app,
        handler_cancellation=True,  # a client that leaves is heard of at once
        access_log=None,  # the gateway has its own line
        keepalive_timeout=idle_s,
        shutdown_timeout=CLOSE_S,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *address, reuse_port=shared or None, backlog=BACKLOG).start()
        except OSError as error:
            raise _cannot_listen(address, what, error) from error
        yield runner.addresses[0][:2]
    finally:
        await runner.cleanup()


def reserved(address: tuple[str, int]) -> socket.socket:
    """A port bound and never listened on, so that those who share it can come and go. Raises UsageError."""
    try:
        _bound(address, shared=False).close()  # another gateway of the same user would share its port with this one
        return _bound(address, shared=True)
    except OSError as error:
        raise _cannot_listen(address, CLIENTS, error) from error


def _bound(address: tuple[str, int], *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of a gateway that ended linger
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _cannot_listen(address: tuple[str, int], what: str, error: OSError) -> UsageError:
    reason = (error.strerror or str(error)).rpartition(": ")[2]  # asyncio's says the address before it
    return UsageError(f"cannot listen on {url_of(address)} for {what}: {reason.lower()}")


def url_of(address: tuple[str, int]) -> str:
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
