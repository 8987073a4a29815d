"""pydantic-ai: ``OpenAIChatModel.request_stream``, and the response that its parts manager came to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from worker import MODEL, URL, Stream, Task, main, said, transport

RUNNER = asyncio.Runner()
STOPS = {"tool_call": "tool_calls"}


def accumulate(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    http = httpx2.AsyncClient(transport=transport(httpx2, stream))
    client = openai.AsyncOpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
    messages = [ModelRequest(parts=[UserPromptPart("Hi")])]

    async def ask() -> Any:
        async with model.request_stream(messages, None, ModelRequestParameters()) as events:
            async for _ in events:
                pass
            return events.get()

    return lambda: RUNNER.run(ask()), tell


def tell(response: Any) -> dict[str, Any]:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [
        (part.tool_name, part.args if isinstance(part.args, str) else json.dumps(part.args))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return said(text, calls, STOPS.get(response.finish_reason, response.finish_reason))


main({"accumulate": ("pydantic-ai-slim", accumulate)})
