"""LiteLLM: ``acompletion`` and ``stream_chunk_builder``; the same completion through its adapter to Anthropic's events."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

import httpx
import openai
from worker import MESSAGES, MODEL, URL, Stream, Task, main, said, transport

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a table of prices
import litellm
from litellm.llms.anthropic.pass_through.adapters.streaming_iterator import AnthropicStreamWrapper

logging.disable()
RUNNER = asyncio.Runner()


def completion(stream: Stream) -> Callable[[], Any]:
    http = httpx.AsyncClient(transport=transport(httpx, stream))
    client = openai.AsyncOpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)
    return lambda: litellm.acompletion(model=f"openai/{MODEL}", messages=MESSAGES, stream=True, client=client)


def accumulate(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    start = completion(stream)

    async def ask() -> Any:
        chunks = [chunk async for chunk in await start()]
        return litellm.stream_chunk_builder(chunks, messages=MESSAGES)

    return lambda: RUNNER.run(ask()), tell


def tell(whole: Any) -> dict[str, Any]:
    choice = whole.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return said(choice.message.content, calls, choice.finish_reason)


def reencode(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    start = completion(stream)

    async def ask() -> bytes:
        events = AnthropicStreamWrapper(completion_stream=await start(), model=MODEL)
        return b"".join([piece async for piece in events.async_anthropic_sse_wrapper()])

    return lambda: RUNNER.run(ask()), bytes


main({"accumulate": ("litellm", accumulate), "reencode": ("litellm", reencode)})
