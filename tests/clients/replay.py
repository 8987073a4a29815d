"""A server on loopback that answers each chat endpoint with bytes that were registered before.

A body is registered under a name, and a request asks for it as its ``model``: so one server and one client of each kind
serve any number of streams. The server runs in a thread of its own, because the clients here are the synchronous ones.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiohttp import web

#: Where each dialect is served.
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "ollama": "/api/chat",
    "mistral": "/mistral/v1/chat/completions",
    "cohere": "/v2/chat",
    "gemini": "/v1/models/{model}:streamGenerateContent",
    "gemini, whole": "/v1/models/{model}:generateContent",
    "gemini-interactions": "/v1/interactions",
    "bedrock": "/model/{model}/converse-stream",
    "bedrock, whole": "/model/{model}/converse",
    "bedrock, the model's own events": "/model/{model}/invoke-with-response-stream",
}
EVENT_STREAM, NDJSON = "text/event-stream", "application/x-ndjson"
MESSAGES = "application/vnd.amazon.eventstream"
PIECE_BYTES = 16 * 1024


class ReplayServer:
    """Use as a context manager; ``url`` is known inside it."""

    def __init__(self) -> None:
        self.url = ""
        self._bodies: dict[str, tuple[bytes, str | None]] = {}
        self._heads: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.asked: dict[str, bytes] = {}  #: the last request for each name, as its client wrote it
        self.times: Counter[str] = Counter()  #: how often each name was asked for
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="replay server")

    def register(
        self, body: bytes, media_type: str | None = None, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> str:
        """The name under which ``body`` is served from now on: as the dialect's stream if no media type is given."""
        name = f"stream-{len(self._bodies)}"
        self._bodies[name] = body, media_type
        self._heads[name] = status, headers or {}
        return name

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(timeout=10):
            raise RuntimeError("the replay server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._leave is not None
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(timeout=10)

    async def _serve(self) -> None:
        self._loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        for path in PATHS.values():
            app.router.add_post(path, self._answer)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        self.url = f"http://{host}:{port}"
        self._started.set()
        await self._leave.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("model") or (await request.json())["model"]
        if name not in self._bodies:
            raise web.HTTPNotFound(text=f"no stream is called {name}")
        body, media_type = self._bodies[name]
        self.asked[name] = await request.read()
        self.times[name] += 1
        status, headers = self._heads[name]
        kind = NDJSON if request.path == PATHS["ollama"] else EVENT_STREAM
        if request.path.startswith("/model/"):
            kind = MESSAGES
        response = web.StreamResponse(status=status, headers={"content-type": media_type or kind, **headers})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for start in range(0, len(body), PIECE_BYTES):
            await response.write(body[start : start + PIECE_BYTES])
        await response.write_eof()
        return response
