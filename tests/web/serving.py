"""An aiohttp application on a loopback port, and bytes sent to it by hand."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serving(app: web.Application, *, handler_cancellation: bool = False, shutdown_timeout: float = 1.0):
    """Serve ``app``; yields its port."""
    runner = web.AppRunner(
        app, handler_cancellation=handler_cancellation, access_log=None, shutdown_timeout=shutdown_timeout
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def answering(handler, **routes) -> web.Application:
    """An application whose every path is answered by ``handler``."""
    app = web.Application(**routes)
    app.router.add_route("*", "/{tail:.*}", handler)
    return app


async def eventually(condition, *, within_s: float = 5.0) -> None:
    """Wait until ``condition()`` holds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not condition():
        assert loop.time() < end, f"still not after {within_s} s: {condition}"
        await asyncio.sleep(0.01)
