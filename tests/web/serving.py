"""An aiohttp application on a loopback port, and bytes sent to it by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web


@asynccontextmanager
async def serving(app: web.Application, *, handler_cancellation: bool = False, shutdown_timeout: float = 1.0, tls=None):
    """Serve ``app``; yields its port."""
    runner = web.AppRunner(
        app, handler_cancellation=handler_cancellation, access_log=None, shutdown_timeout=shutdown_timeout
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
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


@contextmanager
def counted_turns() -> Iterator[Callable[[], int]]:
    """The number of the running loop's turn, which no turn is waited for to have."""
    loop = asyncio.get_running_loop()
    turn, going = 0, True

    def tick() -> None:
        nonlocal turn
        turn += 1
        if going:
            loop.call_soon(tick)

    tick()
    try:
        yield lambda: turn
    finally:
        going = False
