"""The same application under aiohttp's server and under two ASGI servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import hypercorn.asyncio
import hypercorn.config
import uvicorn
from aiohttp import web

from streamkit.asgi import ASGIApplication
from tests.web.serving import eventually, serving


@asynccontextmanager
async def uvicorn_server(app) -> AsyncIterator[int]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1))
    running = asyncio.ensure_future(server.serve())
    await eventually(lambda: server.started or running.done())
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def hypercorn_server(app) -> AsyncIterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = hypercorn.config.Config.from_mapping(bind=[f"127.0.0.1:{port}"], graceful_timeout=1, errorlog=None)
    stop = asyncio.Event()
    running = asyncio.ensure_future(hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait))
    await eventually(lambda: running.done() or _listens(port))
    try:
        yield port
    finally:
        stop.set()
        await running


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


ASGI_SERVERS = {"uvicorn": uvicorn_server, "hypercorn": hypercorn_server}
SERVERS = ("aiohttp", *ASGI_SERVERS)


@asynccontextmanager
async def served_by(server: str, app: Callable[[], web.Application]) -> AsyncIterator[int]:
    """Serve an aiohttp application with one of ``SERVERS``; yields the port."""
    running = serving(app()) if server == "aiohttp" else ASGI_SERVERS[server](ASGIApplication(app()))
    async with running as port:
        yield port
