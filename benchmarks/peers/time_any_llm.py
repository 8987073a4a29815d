"""any-llm: ``amessages`` with the OpenAI provider: Anthropic's events over an OpenAI Chat upstream; framed here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import any_llm
import httpx2
from worker import MESSAGES, MODEL, URL, Stream, Task, main, sse_of, transport

RUNNER = asyncio.Runner()


def reencode(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    arguments = {"http_client": httpx2.AsyncClient(transport=transport(httpx2, stream)), "max_retries": 0}
    provider = any_llm.AnyLLM.create("openai", api_key="none", api_base=URL, **arguments)

    async def ask() -> bytes:
        events = await provider.amessages(model=MODEL, messages=MESSAGES, max_tokens=100, stream=True)
        return b"".join([sse_of(event.model_dump(exclude_none=True)) async for event in events])

    return lambda: RUNNER.run(ask()), bytes


main({"reencode": ("any-llm-sdk", reencode)})
