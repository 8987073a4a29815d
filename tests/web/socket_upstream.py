"""An upstream that is asked over WebSockets, and answers as a script says.

A **script** is a coroutine that gets the socket and the message that came. ``events`` are the events of a stream as messages.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import WSMsgType, web
from attrs import define, field

from streamkit.framing.sse import SSEParser
from tests.web.faults import speech
from tests.web.serving import serving

SocketScript: TypeAlias = Callable[[web.WebSocketResponse, dict[str, Any]], Awaitable[None]]
PATIENCE_S = 10.0


def events(stream: Iterable[bytes] = ()) -> list[str]:
    """The payloads of a Responses stream; of the sound answer by default."""
    body = b"".join(stream or speech("openai-responses"))
    return [frame.data.decode() for frame in SSEParser().feed(body) if frame.data.startswith(b"{")]


def saying(messages: Iterable[str]) -> SocketScript:
    """Each of these messages, and then nothing: the socket stays open."""
    every = list(messages)

    async def play(socket: web.WebSocketResponse, _asked: dict[str, Any]) -> None:
        for message in every:
            await socket.send_str(message)

    return play


@define
class SocketUpstream:
    """What came, in its order."""

    url: str = ""
    asked: list[dict[str, Any]] = field(factory=list)
    raw: list[str] = field(factory=list)
    headers: list[Mapping[str, str]] = field(factory=list)
    targets: list[str] = field(factory=list)
    posts: list[bytes] = field(factory=list)
    codes: list[int | None] = field(factory=list)  #: with which the sockets were closed
    open: int = 0
    came: asyncio.Event = field(factory=asyncio.Event)
    left: asyncio.Event = field(factory=asyncio.Event)

    async def gone(self) -> None:
        """Wait until a client has left."""
        async with asyncio.timeout(PATIENCE_S):
            await self.left.wait()


@asynccontextmanager
async def socket_upstream(
    play: SocketScript,
    *,
    handshake: Callable[[web.Request], web.Response | None] = lambda _request: None,
    ping_s: float | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[SocketUpstream]:
    """A server whose ``/v1/responses`` opens WebSockets, unless ``handshake`` answers instead.

    It pings each ``ping_s`` seconds, and leaves a client that does not answer.
    """
    upstream = SocketUpstream()

    async def serve(request: web.Request) -> web.StreamResponse:
        upstream.headers.append(request.headers)
        upstream.targets.append(request.path_qs)
        if (answer := handshake(request)) is not None:
            return answer
        socket = web.WebSocketResponse(max_msg_size=0, heartbeat=ping_s)
        await socket.prepare(request)
        upstream.open += 1
        playing: asyncio.Task[None] | None = None
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    upstream.raw.append(message.data)
                    upstream.asked.append(json.loads(message.data))
                    upstream.came.set()
                    playing = asyncio.create_task(_played(play, socket, upstream.asked[-1]))
        finally:
            if playing is not None:
                playing.cancel()
            upstream.open -= 1
            upstream.codes.append(socket.close_code)
            upstream.left.set()
        return socket

    async def post(request: web.Request) -> web.Response:
        upstream.posts.append(await request.read())
        return web.json_response({"object": "response.input_tokens", "input_tokens": 7})

    app = web.Application()
    app.router.add_get("/v1/responses", serve)
    app.router.add_post("/{path:.*}", post)
    async with serving(app, handler_cancellation=True, tls=tls) as port:
        upstream.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield upstream


async def _played(play: SocketScript, socket: web.WebSocketResponse, asked: dict[str, Any]) -> None:
    try:
        await play(socket, asked)
    except ConnectionError:
        """The client left."""
