"""llm-rosetta: its gateway's streaming handler, an Anthropic client in front of an OpenAI Chat upstream."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from common import Result, events_of, main, read_messages, result
from llm_rosetta.gateway.providers import build_provider_info
from llm_rosetta.gateway.proxy import handle_streaming
from llm_rosetta.gateway.transport.http.transport import HttpTransport
from llm_rosetta.routing import ResolvedRoute

REQUEST = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
logging.disable()


async def ask(url: str) -> Result:
    transport = HttpTransport(timeout=10)
    provider = build_provider_info("openai_chat", {"api_key": "none", "base_url": url})
    route = ResolvedRoute("anthropic", "openai_chat", "peer")
    response, _ = await handle_streaming(route, provider, dict(REQUEST), transport=transport)
    if not hasattr(response, "_generator"):
        return result([], "", None, success=False, error=f"status {response.status_code}")
    output, error = "", None
    try:
        async for piece in response._generator:  # noqa: SLF001 - what its HTTP server would write
            output += piece if isinstance(piece, str) else piece.decode()
    except Exception as raised:  # noqa: BLE001 - the connection would break here
        error = f"{type(raised).__name__}: {raised}"
    await transport.close()
    return read_messages(events_of(output), error)


def answer(url: str, _stream: dict[str, Any]) -> Result:
    return asyncio.run(ask(url))


main("llm-rosetta", answer)
