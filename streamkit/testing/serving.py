"""Serve an aiohttp application on loopback in a separate thread, for tests that block.

Source: observe.md O27, O31.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

from aiohttp import web

CLOSE_S = 1.0  #: seconds to wait at the end for open connections
LINE_BYTES = 64 * 1024  #: the longest line of a request's head, as at providers


@contextmanager
def served(make_app: Callable[[], web.Application], *, decompress: bool = True) -> Iterator[str]:
    """Serve an application on a free loopback port during the block. Yields its URL: ``http://127.0.0.1:40123``.

    ``make_app`` is called in the thread, in the application's event loop. Without ``decompress``, the application gets request
    bodies as they were sent. Raises what ``make_app`` raises, and OSError if it can't listen on loopback.
    """
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="streamkit-served", daemon=True)
    thread.start()
    try:
        runner, url = asyncio.run_coroutine_threadsafe(_started(make_app, decompress), loop).result()
        try:
            yield url
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _started(make_app: Callable[[], web.Application], decompress: bool) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(
        make_app(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=CLOSE_S,
        auto_decompress=decompress,
        max_line_size=LINE_BYTES,
        max_field_size=LINE_BYTES,
    )
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    except BaseException:
        await runner.cleanup()
        raise
    host, port = runner.addresses[0]
    return runner, f"http://{host}:{port}"
