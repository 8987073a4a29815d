"""Ports: an application on one, and one that several processes have together.

What answers says ``Server: streamkit``, and no version of anything: whoever looks for servers with a known fault learns none.

Source: limits.md T8; RFC 9110 §10.2.4 (Server).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import hdrs, web

from streamkit.errors import UsageError
from streamkit.web.client_http import SERVER, ClientConnection

#: What aiohttp may take behind the grace time to close what is left.
CLOSE_S: Final = 1.0
#: The system's own queue of connections that nobody accepted yet.
BACKLOG: Final = 1024
#: Connections accepted in one turn of the event loop, in which the answers under way have to wait for them.
ACCEPTED_AT_ONCE: Final = 8
#: Connections that are being told that the gateway is full, beyond which others are closed at once, and for how long.
REFUSING: Final = 32
REFUSING_S: Final = 5.0
#: Of a request that is refused, so much is read: enough for its first line.
FIRST_LINE_BYTES: Final = 4096
CLIENTS: Final = "clients"


@asynccontextmanager
async def listening(
    app: web.Application,
    address: tuple[str, int],
    *,
    idle_s: float,
    shared: bool = False,
    what: str = CLIENTS,
    connections: int | None = None,
    decompress: bool = True,
) -> AsyncGenerator[tuple[str, int], None]:
    """Serve ``app``, not yet started, there; yields the address, with the port that was taken for 0. Leaving ends it
    gracefully.

    A connection without a request under way, or whose headers do not come, is closed after ``idle_s`` seconds. ``shared``:
    other processes listen there too. Beyond ``connections`` at once the others get 503, at ``/healthz`` 200. Without
    ``decompress``, handlers get bodies as they came. Raises UsageError, which says for ``what`` it was, where it can't be
    had.
    """
    app.on_response_prepare.append(_name_server)
    # a client that leaves is heard of at once
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=CLOSE_S)
    await runner.setup()
    try:
        try:
            site = _Site(runner, *address, reuse_port=shared or None, backlog=ACCEPTED_AT_ONCE)
            await site.start_bounded(connections, idle_s, decompress=decompress)
        except OSError as error:
            raise _cannot_listen(address, what, error) from error
        yield runner.addresses[0][:2]
    finally:
        await runner.cleanup()


async def _name_server(_request: web.Request, response: web.StreamResponse) -> None:
    """Say what answers, in place of aiohttp's words: a handler of ``on_response_prepare``."""
    response.headers[hdrs.SERVER] = SERVER


class _Site(web.TCPSite):
    """A site that bounds its connections. asyncio takes the backlog for how many it accepts in a turn, too."""

    async def start_bounded(self, connections: int | None, idle_s: float, *, decompress: bool) -> None:
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner is not set up")
        await web.BaseSite.start(self)
        loop = asyncio.get_running_loop()
        refusing: set[_Full] = set()

        def connected() -> asyncio.Protocol:
            if connections is not None and len(server.connections) >= connections:
                return _Full(refusing)
            return ClientConnection(server, idle_s=idle_s, decompress=decompress)

        made = await loop.create_server(
            connected, self._host, self._port, backlog=self._backlog, reuse_port=self._reuse_port
        )
        self._server = made
        for sock in made.sockets:
            with socket.socket(fileno=sock.dup().detach()) as listener:
                listener.listen(BACKLOG)


class _Full(asyncio.Protocol):
    """Tells one client that there are too many, probes that the process lives, and closes."""

    def __init__(self, refusing: set[_Full]) -> None:
        self._refusing = refusing
        self._timer: asyncio.TimerHandle | None = None
        self._came = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if not isinstance(transport, asyncio.Transport) or len(self._refusing) >= REFUSING:
            transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()
            return
        self._refusing.add(self)
        self._timer = asyncio.get_running_loop().call_later(REFUSING_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if not isinstance(transport, asyncio.Transport) or transport.is_closing():
            return
        self._came += data[:FIRST_LINE_BYTES]
        if b"\n" in self._came or len(self._came) >= FIRST_LINE_BYTES:
            transport.write(_FULL_ALIVE if self._came.startswith((b"GET /healthz ", b"GET /healthz?")) else _FULL)
            transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self._refusing.discard(self)
        if self._timer is not None:
            self._timer.cancel()


def _answer(status: str, kind: str, body: bytes, *more: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*head, f"{hdrs.SERVER}: {SERVER}", *more, "", ""]).encode() + body


#: Which dialect the client speaks is not known yet: every one of its libraries goes by the status.
_FULL: Final = _answer(
    "503 Service Unavailable",
    "application/json",
    b'{"error":{"message":"the gateway has too many connections; ask again","type":"overloaded_error"}}',
    "Retry-After: 1",
)
_FULL_ALIVE: Final = _answer("200 OK", "text/plain; charset=utf-8", b"ok\n")


def reserved(address: tuple[str, int]) -> socket.socket:
    """A port bound and never listened on, so that those who share it can come and go. Raises UsageError."""
    try:
        _bound(address, shared=False).close()  # another gateway of the same user would share its port with this one
        return _bound(address, shared=True)
    except OSError as error:
        raise _cannot_listen(address, CLIENTS, error) from error


def _bound(address: tuple[str, int], *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of a gateway that ended linger
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _cannot_listen(address: tuple[str, int], what: str, error: OSError) -> UsageError:
    reason = (error.strerror or str(error)).rpartition(": ")[2]  # asyncio's says the address before it
    return UsageError(f"cannot listen on {url_of(address)} for {what}: {reason.lower()}")


def url_of(address: tuple[str, int]) -> str:
    """The URL of a host and a port; an IPv6 address stands in brackets."""
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
