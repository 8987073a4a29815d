"""LangChain: ``ChatOpenAI.astream``, its chunks added up as its documents add them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
from langchain_openai import ChatOpenAI
from worker import MODEL, URL, Stream, Task, main, said, transport

RUNNER = asyncio.Runner()


def accumulate(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    http = httpx.AsyncClient(transport=transport(httpx, stream))
    model = ChatOpenAI(model=MODEL, api_key="none", base_url=URL, http_async_client=http, max_retries=0)

    async def ask() -> Any:
        whole = None
        async for chunk in model.astream("Hi"):
            whole = chunk if whole is None else whole + chunk
        return whole

    return lambda: RUNNER.run(ask()), tell


def tell(message: Any) -> dict[str, Any]:
    text = message.content if isinstance(message.content, str) else "".join(map(str, message.content))
    calls = [(call["name"], json.dumps(call["args"])) for call in message.tool_calls]
    return said(text, calls, message.response_metadata.get("finish_reason"))


main({"accumulate": ("langchain-core", accumulate)})
