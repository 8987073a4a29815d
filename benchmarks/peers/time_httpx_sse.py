"""httpx-sse: ``EventSource.aiter_sse`` over a response whose reads are at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
from httpx_sse import EventSource
from worker import Stream, Task, digest, main, transport

RUNNER = asyncio.Runner()


def sse(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    client = httpx.AsyncClient(transport=transport(httpx, stream))

    async def ask() -> list[str]:
        async with client.stream("GET", "http://127.0.0.1:9/") as response:
            return [event.data async for event in EventSource(response).aiter_sse()]

    return lambda: RUNNER.run(ask()), digest


main({"sse": ("httpx-sse", sse)})
