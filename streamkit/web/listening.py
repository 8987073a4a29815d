"""Listen on ports: serve an application on one port, and reserve a port that several processes share.

Responses have ``Server: streamkit`` without any version, so that a search for servers with a known fault finds nothing.

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

#: Seconds that aiohttp may take after the grace period to close the remaining connections.
CLOSE_S: Final = 1.0
#: The length of the system's queue of connections that are not accepted yet.
BACKLOG: Final = 1024
#: Connections that are accepted in one turn of the event loop; the responses in progress wait meanwhile.
ACCEPTED_AT_ONCE: Final = 8
#: How many connections may receive a refusal at the same time; further connections are closed at once.
REFUSING: Final = 32
#: The most seconds that sending a refusal may take.
REFUSING_S: Final = 5.0
#: How many bytes of a refused request are read: enough for its first line.
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
    """Serve ``app``, which is not started yet, at ``address``.

    Yields the address with the real port, if it was 0. Leaving the block ends serving gracefully. A connection without a
    request in progress, or with incomplete headers, is closed after ``idle_s`` seconds. ``shared``: other processes listen on
    the same port. If ``connections`` are open, further ones get 503, and 200 at ``/healthz``. Without ``decompress``, handlers
    get bodies as they were sent. Raises UsageError if the address can't be used; ``what`` names its purpose in the message.
    """
    app.on_response_prepare.append(_name_server)
    # cancel a handler at once when its client disconnects
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
    """Set ``Server`` to our name instead of aiohttp's. A handler for ``on_response_prepare``."""
    response.headers[hdrs.SERVER] = SERVER


class _Site(web.TCPSite):
    """A site that limits its connections.

    It sets the backlog and the number of connections accepted in a turn separately: asyncio uses one number for both.
    """

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
    """Refuses one client because there are too many connections, but answers health probes, and closes the connection."""

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


#: The dialect of the client is not known yet, but the libraries of all dialects act on the status.
_FULL: Final = _answer(
    "503 Service Unavailable",
    "application/json",
    b'{"error":{"message":"the gateway has too many connections; ask again","type":"overloaded_error"}}',
    "Retry-After: 1",
)
_FULL_ALIVE: Final = _answer("200 OK", "text/plain; charset=utf-8", b"ok\n")


def reserved(address: tuple[str, int]) -> socket.socket:
    """Bind a port without listening on it, so that processes that share it can start and stop. Raises UsageError."""
    try:
        # raises if another gateway has this port: sharing would succeed if it is of the same user
        _bound(address, shared=False).close()
        return _bound(address, shared=True)
    except OSError as error:
        raise _cannot_listen(address, CLIENTS, error) from error


def _bound(address: tuple[str, int], *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # else binding fails while connections of an earlier gateway are still closing
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _cannot_listen(address: tuple[str, int], what: str, error: OSError) -> UsageError:
    reason = (error.strerror or str(error)).rpartition(": ")[2]  # asyncio's message repeats the address
    return UsageError(f"cannot listen on {url_of(address)} for {what}: {reason.lower()}")


def url_of(address: tuple[str, int]) -> str:
    """Return the URL of a host and a port, with an IPv6 address in brackets."""
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
