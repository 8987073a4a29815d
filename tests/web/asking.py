"""An application that serves every path of ``surfaces`` and keeps what was asked, and bodies to ask it with."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from streamkit.web.client_dialect import refuse_in_dialect
from streamkit.web.surfaces import Ask, Operation, read_ask, surfaces

DIALECTS = list(surfaces())
#: The path of each dialect that asks for an answer, and the smallest body.
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", CHAT),
    "openai-responses": ("/v1/responses", {"model": "m", "input": "hi"}),
    "anthropic": ("/v1/messages", {**CHAT, "max_tokens": 9}),
    "ollama": ("/api/chat", CHAT),
    "gemini": ("/v1/models/m:generateContent", CONTENTS),
    "gemini-interactions": ("/v1/interactions", {"model": "m", "input": "hi"}),
    "ag-ui": ("/v1/ag-ui/m", {"messages": CHAT["messages"]}),
    "ai-sdk": ("/v1/ai-sdk/m", {"messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
}


def asking_app(asked: list[Ask], *, body_s: float = 10.0, **options: Any) -> web.Application:
    app = web.Application(middlewares=[refuse_in_dialect], **options)

    def handler(dialect: str, operation: Operation) -> Any:
        async def handle(request: web.Request) -> web.Response:
            asked.append(await read_ask(request, dialect, operation, body_s=body_s))
            return web.Response(text="asked")

        return handle

    for dialect, surface in surfaces().items():
        for path, operation in surface.paths.items():
            app.router.add_post(path, handler(dialect, operation))
    return app


def error_in(body: bytes) -> Any:
    """An error body: JSON, or the sentence that it is."""
    return orjson.loads(body) if body[:1] == b"{" else body.decode()


def message_of(body: dict[str, Any] | str) -> str:
    """The message of an error body, in whichever dialect."""
    if isinstance(body, str):
        return body
    error = body.get("error", body)
    return error if isinstance(error, str) else error.get("message", error.get("errorText"))
