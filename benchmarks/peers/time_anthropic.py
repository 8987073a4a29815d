"""The anthropic SDK: its SSE decoder alone; ``messages.stream`` to its final message, of a stream in its own dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
from anthropic._streaming import SSEDecoder
from worker import MESSAGES, Stream, Task, digest, main, said, transport

RUNNER = asyncio.Runner()
STOPS = {"end_turn": "stop", "tool_use": "tool_calls"}


def sse(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    return lambda: [event.data for event in SSEDecoder().iter_bytes(iter(stream.reads))], digest


def accumulate(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    http = httpx2.AsyncClient(transport=transport(httpx2, stream))
    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://127.0.0.1:9", http_client=http, max_retries=0)

    async def ask() -> Any:
        async with client.messages.stream(model="m", max_tokens=100, messages=MESSAGES) as events:
            async for _ in events:
                pass
            return await events.get_final_message()

    return lambda: RUNNER.run(ask()), tell


def tell(message: Any) -> dict[str, Any]:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    return said(text, calls, STOPS.get(message.stop_reason, message.stop_reason))


main({"sse": ("anthropic", sse), "accumulate": ("anthropic", accumulate)})
