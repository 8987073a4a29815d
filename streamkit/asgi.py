"""streamkit under ASGI (FastAPI, Starlette, uvicorn, hypercorn), without importing a framework.

``application`` serves clients from one upstream, to be mounted or run; ``relay`` makes a response to return from a handler.
Both are streamkit's aiohttp handlers behind ``ASGIApplication``, which runs any aiohttp application: each request becomes a
connection in memory. So keep-alives, back-pressure, errors and the reaction to a client that disconnects are the same.

WebSockets are refused; clients then use HTTP.

Source: ASGI 3.0, HTTP message format 2.5 and lifespan protocol 2.0.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from aiohttp import web

from streamkit.limits import MIB
from streamkit.rewrite.given import EventStage, given_stages
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery
from streamkit.web.setup import Pipeline, Source, pipeline_of, setup
from streamkit.web.setup import relay as answer
from streamkit.web.source import DEFAULT_TIMEOUTS, Timeouts
from streamkit.web.token_counts import CountTokens
from streamkit.web.upstream import Upstream

__all__ = ["ASGIApplication", "Relay", "application", "relay"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Headers that the ASGI server reads and writes itself, as those about one connection (RFC 9110 §7.6.1).
_OF_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer", b"expect", b"date", b"server"}
)
#: A path that may be written into a request unchanged.
_RAW: Final = re.compile(rb"/[^\x00-\x20?#\x7f-\xff]*")
_RELAY: Final = "streamkit.relay"


class ASGIApplication:
    """Runs an aiohttp application under ASGI, or the application that a function returns.

    aiohttp binds an application to one event loop, so the function is called for each loop, and again after a stop. The
    application starts and stops with ``lifespan``; without it, it starts with the first request. A server runs only the
    lifespan of the outermost application, so pass ``lifespan`` to your framework: ``FastAPI(lifespan=mounted.lifespan)``.
    """

    def __init__(self, app: web.Application | Callable[[], web.Application]) -> None:
        self._make: Callable[[], Any] = app  # an aiohttp application returns itself
        self._running: dict[asyncio.AbstractEventLoop, tuple[web.AppRunner, asyncio.Task[None]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            await self.handle(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None, None]:
        """Start the application, and stop it at the end. Live streams then have ``grace_s`` seconds to finish (``setup``)."""
        loop = asyncio.get_running_loop()
        try:
            await self.start()
            yield
        finally:
            runner, _ = self._running[loop]
            await runner.cleanup()
            del self._running[loop]

    async def start(self) -> web.AppRunner:
        """Start the application in this event loop if it has not started."""
        loop = asyncio.get_running_loop()
        if loop not in self._running:
            self._running = {each: running for each, running in self._running.items() if not each.is_closed()}
            runner = web.AppRunner(self._make(), access_log=None, handle_signals=False, lingering_time=0)
            self._running[loop] = runner, asyncio.ensure_future(runner.setup())
        runner, starting = self._running[loop]
        await asyncio.shield(starting)
        return runner

    async def handle(self, scope: Scope, receive: Receive, send: Send, extra: Mapping[str, Any] | None = None) -> None:
        """Respond to one HTTP request. ``extra`` is for ``request.transport.get_extra_info``."""
        server = (await self.start()).server
        if server is None:
            raise RuntimeError("the application has been stopped")
        protocol = server()
        connection = _Connection(scope, protocol, extra or {})
        protocol.connection_made(connection)
        reading = asyncio.ensure_future(connection.read(scope, receive))
        try:
            await connection.write_to(send)
        finally:
            reading.cancel()
            if not connection.is_answered:
                connection.leave()
            if not connection.is_answered and not connection.has_request:
                protocol.connection_lost(None)  # a handler that waits for the rest of the request would wait forever
            else:
                with suppress(asyncio.CancelledError):
                    await connection.closed.wait()
                protocol.connection_lost(None)
            with suppress(asyncio.CancelledError, ConnectionError):
                await reading

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        stage = "startup"
        try:
            async with self.lifespan():
                stage = "shutdown"
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:
            await send({"type": f"lifespan.{stage}.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


class _Connection(asyncio.Transport):
    """One connection in memory: the bytes of aiohttp's server become ASGI messages."""

    def __init__(self, scope: Scope, protocol: Any, extra: Mapping[str, Any]) -> None:
        super().__init__({"peername": scope.get("client"), "sockname": scope.get("server"), **extra})
        self.closed = asyncio.Event()  #: the server has ended the connection
        self.has_request = False  #: the whole request was given to the server
        self._protocol = protocol
        self._response = _Response(has_body=scope["method"] != "HEAD")
        self._left = False  # the client has disconnected
        self._something = asyncio.Event()  # there is something to send, or the connection is over
        self._high, self._low = 64 * 1024, 16 * 1024
        self._paused = False
        self._reads = asyncio.Event()
        self._reads.set()

    @property
    def is_answered(self) -> bool:
        """Whether the whole response was sent."""
        return self._response.over and not self._response.messages

    # -- the ASGI side ---------------------------------------------------------------------------------------------

    async def read(self, scope: Scope, receive: Receive) -> None:
        """Give the request to the server. Wait for the client to disconnect."""
        sized = any(name.lower() == b"content-length" for name, _ in scope["headers"])
        self._protocol.data_received(_head(scope, chunked=not sized))
        self.has_request = (b"content-length", b"0") in scope["headers"]
        while True:
            await self._reads.wait()
            message = await receive()
            if message["type"] == "http.disconnect":
                self.leave()
                return
            body = message.get("body", b"")
            if body and not self.has_request:
                self._protocol.data_received(body if sized else b"%x\r\n%b\r\n" % (len(body), body))
            if not self.has_request and not message.get("more_body", False):
                self.has_request = True
                if not sized:
                    self._protocol.data_received(b"0\r\n\r\n")

    async def write_to(self, send: Send) -> None:
        """Send what the server writes, until it ends the connection. A body without its end is left without one."""
        while True:
            while self._response.messages and not self._left:
                message = self._response.messages.popleft()
                await send(message)
                self._response.waiting -= len(message.get("body", b""))
                if self._paused and self._response.waiting <= self._low:
                    self._paused = False
                    self._protocol.resume_writing()
            if self._left or self.closed.is_set() or self._response.over:
                return
            self._something.clear()
            await self._something.wait()

    def leave(self) -> None:
        """Note that the client has disconnected, or has the whole response."""
        self._left = True
        self._something.set()
        if self._paused:
            self._paused = False
            self._protocol.resume_writing()

    # -- the transport of aiohttp's server -------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._left:
            return
        self._response.feed(bytes(data))
        self._something.set()
        if not self._paused and self._response.waiting > self._high:
            self._paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.closed.set()
        self._something.set()

    def abort(self) -> None:
        self.leave()

    def is_closing(self) -> bool:
        return self._left or self.closed.is_set()

    def get_write_buffer_size(self) -> int:
        return self._response.waiting

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 64 * 1024 if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def pause_reading(self) -> None:
        self._reads.clear()

    def resume_reading(self) -> None:
        self._reads.set()

    def is_reading(self) -> bool:
        return self._reads.is_set()


class _Response:
    """Reads the HTTP/1.1 response that aiohttp writes, as ASGI messages."""

    def __init__(self, *, has_body: bool) -> None:
        self.messages: deque[MutableMapping[str, Any]] = deque()
        self.waiting = 0  #: bytes of bodies in ``messages``
        self.over = False  #: the whole response was read
        self._received = b""
        self._steps = self._read(has_body=has_body)

    def feed(self, data: bytes) -> None:
        self._received += data
        next(self._steps, None)

    def _read(self, *, has_body: bool) -> Generator[None]:
        while b"\r\n\r\n" not in self._received:
            yield
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status, *lines = head.split(b"\r\n")
        code = int(status.split(b" ", 2)[1])
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        kept = [(name, value) for name, value in headers if name not in _OF_CONNECTION]
        self.messages.append({"type": "http.response.start", "status": code, "headers": kept})
        size = dict(headers).get(b"content-length")
        if not has_body or code in {204, 304}:
            pass
        elif size is None:  # aiohttp writes chunks to HTTP/1.1
            yield from self._read_chunks()
        else:
            yield from self._read_bytes(int(size))
        self.over = True
        self.messages.append({"type": "http.response.body", "body": b""})

    def _read_chunks(self) -> Generator[None]:
        size = -1
        while size:
            while b"\r\n" not in self._received:
                yield
            line, _, self._received = self._received.partition(b"\r\n")
            size = int(line, 16)
            yield from self._read_bytes(size)
            while len(self._received) < len(b"\r\n"):
                yield
            self._received = self._received[2:]

    def _read_bytes(self, size: int) -> Generator[None]:
        while size:
            while not self._received:
                yield
            body, self._received = self._received[:size], self._received[size:]
            size -= len(body)
            self.waiting += len(body)
            self.messages.append({"type": "http.response.body", "body": body, "more_body": True})


def _head(scope: Scope, *, chunked: bool) -> bytes:
    """Return the head of the request, for a connection that the server closes after the response."""
    target = _path(scope) + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target)]
    lines += [b"%b: %b" % pair for pair in scope["headers"] if pair[0].lower() not in _OF_CONNECTION]
    if not any(name.lower() == b"host" for name, _ in scope["headers"]):
        lines.append(b"Host: localhost")
    if chunked:
        lines.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def _path(scope: Scope) -> bytes:
    """Return the path below the application, with the escapes that the client wrote (``%2F``) if the scope has them."""
    path, root, raw = scope["path"], scope.get("root_path", "").rstrip("/"), scope.get("raw_path") or b""
    below = path[len(root) :] if path == root or path.startswith(f"{root}/") else path
    if _RAW.fullmatch(raw) and unquote(raw) == path:
        ends = [0, *(found.start() for found in re.finditer(b"/", raw)), len(raw)]
        for end in ends:
            if unquote(raw[end:]) == below:
                return raw[end:] or b"/"
    return quote(below or "/", safe="/:@!$&'()*+,;=~").encode()


def _without_body(scope: Scope) -> Scope:
    """Return the scope of the same request without its path and body, which a framework has read already."""
    headers = [pair for pair in scope["headers"] if not pair[0].lower().startswith(b"content-")]
    return {**scope, "path": "/", "raw_path": b"/", "root_path": "", "headers": [*headers, (b"content-length", b"0")]}


def application(
    upstream: Upstream,
    *,
    clients: Iterable[str] | None = None,
    model: str | None = None,
    delivery: Delivery = DEFAULT_DELIVERY,
    grace_s: float = 30.0,
    count_tokens: CountTokens = "estimate",
    body_bytes: int = 32 * MIB,
    stages: Iterable[EventStage] = (),
) -> ASGIApplication:
    """Return an application to mount or to run. It serves clients of the dialects ``clients`` from ``upstream``.

    The arguments are those of ``setup``; ``body_bytes`` limits the body of a request. Raises UsageError for a dialect that
    can't be served, and for an object that is not a stage.
    """
    stages = given_stages(stages, "application")

    def make() -> web.Application:
        app = web.Application(client_max_size=body_bytes)
        setup(
            app,
            upstream,
            clients=clients,
            model=model,
            delivery=delivery,
            grace_s=grace_s,
            count_tokens=count_tokens,
            stages=stages,
        )
        return app

    make()  # raises what is wrong here, not at the first request
    return ASGIApplication(make)


class Relay:
    """A response to return from a handler. ``relay`` makes it."""

    status_code = 200
    background: Any = None  #: what a framework runs after the response

    def __init__(self, *given: Any, **options: Any) -> None:
        self._given, self._options = given, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _RELAYS.handle(_without_body(scope), receive, send, {_RELAY: self})
        if self.background is not None:
            await self.background()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Respond with aiohttp's ``relay``."""
        return await answer(request, *self._given, **self._options)


def relay(
    source: Source,
    pipeline: Pipeline | None = None,
    *,
    client: str,
    provider: str | None = None,
    stages: Iterable[EventStage] = (),
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    delivery: Delivery = DEFAULT_DELIVERY,
    headers: Mapping[str, str] | None = None,
) -> Relay:
    """Return a response that streams ``source`` to ``client``. Return it from a handler, or await it as an ASGI application.

    The arguments and errors are those of ``streamkit.web.relay``. If Starlette is loaded, the response is also an instance of
    its ``Response``, which FastAPI requires.
    """
    pipeline = pipeline_of(pipeline, client, provider, stages)
    starlette = sys.modules.get("starlette.responses")
    kind = Relay if starlette is None else _relay_of(starlette.Response)
    return kind(
        source, pipeline, client=client, provider=provider, timeouts=timeouts, delivery=delivery, headers=headers
    )


@cache
def _relay_of(response: type) -> type[Relay]:
    return type("Relay", (Relay, response), {})


def _relays() -> web.Application:
    """Return the application that runs the ``answer`` of each ``Relay``."""
    app = web.Application()
    app.router.add_route("*", "/", _answer_relay)
    return app


async def _answer_relay(request: web.Request) -> web.StreamResponse:
    made: Relay = request.transport.get_extra_info(_RELAY)  # type: ignore[union-attr]
    return await made.answer(request)


_RELAYS: Final = ASGIApplication(_relays)
