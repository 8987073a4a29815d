"""The openai SDK: its SSE decoder alone; ``chat.completions.stream`` to its final completion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import openai
from openai._streaming import SSEDecoder
from worker import MESSAGES, MODEL, URL, Stream, Task, digest, main, said, transport

RUNNER = asyncio.Runner()


def sse(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    return lambda: [event.data for event in SSEDecoder().iter_bytes(iter(stream.reads))], digest


def accumulate(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    http = httpx2.AsyncClient(transport=transport(httpx2, stream))
    client = openai.AsyncOpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)

    async def ask() -> Any:
        async with client.chat.completions.stream(model=MODEL, messages=MESSAGES) as events:
            async for _ in events:
                pass
            return await events.get_final_completion()

    return lambda: RUNNER.run(ask()), tell


def tell(completion: Any) -> dict[str, Any]:
    choice = completion.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return said(choice.message.content, calls, choice.finish_reason)


main({"sse": ("openai", sse), "accumulate": ("openai", accumulate)})
