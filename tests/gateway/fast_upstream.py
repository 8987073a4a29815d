"""An upstream for thousands of requests: it plays the scripts of ``EvilUpstream`` without h11, tasks and streams.

It reads a request as the gateway writes it (one at a time on a connection, with its length), so it judges nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Self

from tests.web.evil import Delay, Fin, Hang, Received, Rst, Script, Send, Step


class FastUpstream:
    """A server on a free port of 127.0.0.1, for as long as its ``async with`` lasts; ``play`` chooses a script by the request."""

    def __init__(self, play: Callable[[Received], Script]) -> None:
        self.play = play
        self.requests: list[Received] = []
        self.open: set[FastConnection] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def busy(self) -> int:
        """How many connections have a request whose script is not over."""
        return sum(connection.busy for connection in self.open)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: FastConnection(self), "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        for connection in self.open:
            connection.transport.abort()
        await self._server.wait_closed()


class FastConnection(asyncio.Protocol):
    """One client of a ``FastUpstream``."""

    transport: Any
    busy = False

    def __init__(self, upstream: FastUpstream) -> None:
        self._upstream = upstream
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._unread = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._upstream.open.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._upstream.open.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        head, end, body = self._unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
        if not end or len(body) < int(dict(headers)["content-length"]):
            return
        self._unread, (method, target, _) = b"", first.split(" ")
        request = Received(method, target, tuple(headers), body, 0, self._since, self._loop.time())
        self._upstream.requests.append(request)
        self.busy = True
        self._play(iter(self._upstream.play(request).steps))

    def _play(self, steps: Iterator[Step]) -> None:
        for step in steps:
            match step:
                case Send(data):
                    self.transport.write(data)
                case Delay(seconds):
                    self._timer = self._loop.call_later(seconds, self._play, steps)
                    return
                case Hang():
                    return
                case Fin():
                    self.transport.close()
                case Rst():
                    self.transport.abort()
        self.busy = False
