"""An application that keeps its answers, in front of an upstream that says what a test wants and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from attrs import define, field

from streamkit.recipes import transcode
from streamkit.resume import LogLimits, MemoryStore
from streamkit.web.client_dialect import refuse_in_dialect
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, end_streams_on_shutdown
from streamkit.web.resume import Resuming, add_resuming
from streamkit.web.setup import relay
from tests.laws.running import OURS
from tests.resume.answers import frames_of
from tests.web.raw_client import RawClient, ask
from tests.web.serving import eventually, serving

ASKED = {"x-streamkit-resumable": "1"}
FRAMES = frames_of("openai-chat", next(s.body for s in OURS if s.dialect == "openai-chat" and s.name == "text"))
WHOLE = b"".join(FRAMES)


def chat_frame(text: str) -> bytes:
    return FRAMES[0].replace(b'"delta":{', b'"delta":{"content":"%b",' % text.encode(), 1)


class Upstream:
    """One answer, as an async iterator."""

    def __init__(self) -> None:
        self.taken = 0  #: pieces that were read
        self.closed_at: float | None = None
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._pieces.put_nowait(piece)

    def end(self) -> None:
        self.say(b"")

    async def read(self) -> AsyncIterator[bytes]:
        try:
            while piece := await self._pieces.get():
                self.taken += 1
                yield piece
        finally:
            self.closed_at = asyncio.get_running_loop().time()

    async def closed(self) -> float:
        """When it was closed."""
        await eventually(lambda: self.closed_at is not None)
        assert self.closed_at is not None
        return self.closed_at


@define
class Site:
    url: str
    store: MemoryStore
    resuming: Resuming
    upstreams: list[Upstream] = field(factory=list)  #: of the requests so far

    async def upstream(self, number: int = 0) -> Upstream:
        await eventually(lambda: len(self.upstreams) > number)
        return self.upstreams[number]

    @asynccontextmanager
    async def asked(self, **options: Any) -> AsyncIterator[tuple[RawClient, Upstream]]:
        """A client that asked for an answer it can come back to, and its upstream."""
        number = len(self.upstreams)
        headers = options.pop("headers", ASKED)
        async with RawClient(self.url, **options) as client:
            await client.send("POST", "/ask", headers=headers)
            yield client, await self.upstream(number)

    async def get(self, path: str, **headers: str) -> Any:
        return await ask(self.url, path, method="GET", headers={k.replace("_", "-"): v for k, v in headers.items()})

    async def stop(self, path: str, **headers: str) -> Any:
        return await ask(self.url, path, method="DELETE", headers=headers)

    async def finished(self, *, headers: dict[str, str] | None = None) -> str:
        """Where an answer is that is whole, and has its client behind it."""
        async with self.asked(headers={**ASKED, **(headers or {})}) as (client, upstream):
            upstream.say(*FRAMES)
            upstream.end()
            answer = await client.read_to_end()
        return answer.headers["location"]


@asynccontextmanager
async def keeping(
    *,
    limits: LogLimits | None = None,
    delivery: Delivery = DEFAULT_DELIVERY,
    handler_cancellation: bool = True,
    **options: Any,
) -> AsyncIterator[Site]:
    store = MemoryStore(limits or LogLimits())
    resuming = Resuming(store=store, key=lambda request: request.headers.get("key", ""), **options)
    site = Site("", store, resuming)

    async def handle(request: web.Request) -> web.StreamResponse:
        upstream = Upstream()
        site.upstreams.append(upstream)
        dialect = "openai-chat"
        return await relay(
            request,
            upstream.read(),
            lambda source: transcode(source, dialect, dialect),
            client=dialect,
            delivery=delivery,
        )

    app = web.Application(middlewares=[refuse_in_dialect])
    end_streams_on_shutdown(app, grace_s=0.2)
    app.router.add_post("/ask", handle)
    add_resuming(app, resuming, delivery=delivery)
    async with serving(app, handler_cancellation=handler_cancellation) as port:
        site.url = f"http://127.0.0.1:{port}"
        yield site
