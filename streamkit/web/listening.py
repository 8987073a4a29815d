"""Listen on ports: serve an application on one port, and reserve a port that several processes share.

Requests that providers accept are accepted here: with a key or cookies of 20 KiB, or with two ``User-Agent`` lines. Other
faulty requests are refused in the dialect of their path. Header values may be keys, so no response and no log shows them.
Responses have ``Server: streamkit`` without any version, so that a search for servers with a known fault finds nothing.

Source: clients.md §10.10; limits.md T6, T7, T8; RFC 9110 §10.2.4 (Server); RFC 9112 §3, §6.3; RFC 6585 §5.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from aiohttp import hdrs, web
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, InvalidHeader, InvalidURLError, LineTooLong
from aiohttp.streams import StreamReader
from multidict import CIMultiDict

from streamkit.errors import UsageError
from streamkit.text.quoting import excerpt
from streamkit.web.client_dialect import dialect_of
from streamkit.web.refusals import error_response, with_status

log = logging.getLogger("streamkit.web")
#: What aiohttp's parser returns: requests, whether the connection changes its protocol, and the unparsed rest.
_Fed: TypeAlias = tuple[list[tuple[RawRequestMessage, StreamReader]], bool, bytes]

LINE_BYTES: Final = 64 * 1024  #: the longest line of a request's head
HEAD_BYTES: Final = 128 * 1024  #: The largest head of a request. Providers' networks allow 32 to 128 KiB.
HEADERS: Final = 256  #: the most headers of a request
#: If a request can't be parsed: how many bytes are searched for its path, which tells the client's dialect.
PATH_BYTES: Final = 2048
SERVER: Final = "streamkit"  #: the value of the response header ``Server``
#: Headers that should occur once. A request that repeats one is accepted, since these headers affect neither where the request
#: ends nor which host it is for.
_HARMLESS: Final = frozenset({b"content-type", b"etag", b"max-forwards", b"server", b"user-agent"})
#: Matches a request line: method, and path without host and query.
_REQUEST_LINE: Final = re.compile(rb"([!-~]{1,20}) (?:https?://[^/?# ]*)?([^?# ]*)")
#: Matches the parser's constant error texts. A text with other characters may repeat bytes of the client's request.
_FAULT: Final = re.compile(r"[A-Za-z`' /-]{1,80}\.?")
#: Matches a response's id in a path. The log omits the id, because anyone with the id can read the response (resume.md §13.3).
_ID: Final = re.compile(r"(/streams/|/responses/).*", re.DOTALL)


class UnreadableRequest(HttpProcessingError):
    """A request that can't be parsed: its method, path, header names without values, and the reason."""

    def __init__(self, head: bytes, error: HttpProcessingError) -> None:
        first, _, rest = head.partition(b"\r\n")
        found = _REQUEST_LINE.match(first)
        self.method, path = (found[1].decode(), found[2]) if found else ("", b"/")
        self.path = unquote_to_bytes(path[:PATH_BYTES]).decode("utf-8", "replace")
        lines = rest.partition(b"\r\n\r\n")[0].split(b"\r\n")
        self.sent = CIMultiDict((line.partition(b":")[0].decode("latin-1"), "") for line in lines)
        status, self.reason = _why(len(first), error)
        super().__init__(code=status, message=f"the request can't be parsed: {self.reason}")


def _why(first_line_bytes: int, error: HttpProcessingError) -> tuple[int, str]:
    """Return the HTTP status and the reason for a parser's error. The reason contains no value from the request."""
    if isinstance(error, LineTooLong) and first_line_bytes > LINE_BYTES:
        return 414, f"its URL exceeds {LINE_BYTES:,} bytes"
    if isinstance(error, LineTooLong):
        return 431, f"a header exceeds {LINE_BYTES:,} bytes, or all headers together exceed {HEAD_BYTES:,}"
    fault = error.message.partition("\n\n")[0].rpartition("\n")[2].strip().rstrip(":")
    if fault.startswith("Too many headers"):
        return 431, f"it has more than {HEADERS} headers"
    if isinstance(error, InvalidHeader):
        return 400, "a header has an invalid name or value"
    if isinstance(error, InvalidURLError):
        return 400, "its URL has an invalid character"
    return 400, fault.rstrip(".") if _FAULT.fullmatch(fault) else "it is not HTTP"


class _Parser(HttpRequestParser):
    """aiohttp's parser, except that it accepts repeated harmless headers and raises ``UnreadableRequest``."""

    def __init__(self, connection: ClientConnection, *settings: Any, **limits: Any) -> None:
        self._connection, self._settings, self._limits = connection, settings, limits
        self._head = bytearray()  #: the bytes of the arriving request's head
        self._body: StreamReader | None = None  #: the last request's body
        super().__init__(connection, *settings, **limits)

    def feed_data(self, data: bytes, *_: Any) -> _Fed:
        if self._body is not None and not self._body.is_eof():
            return self._feed_body(data, self._body)
        self._head += data
        try:
            try:
                found = super().feed_data(data)
            except HttpProcessingError:
                fixed = _without_repeats(bytes(self._head))
                if fixed is None:
                    raise
                self._head[:] = fixed
                super().__init__(self._connection, *self._settings, **self._limits)
                found = super().feed_data(fixed)
            end = self._head.find(b"\r\n\r\n")
            if (len(self._head) if end < 0 else end) > HEAD_BYTES:
                raise LineTooLong(b"", HEAD_BYTES)
        except HttpProcessingError as error:
            raise UnreadableRequest(bytes(self._head), error) from None
        if found[0]:
            self._head.clear()
            self._body = found[0][-1][1]
        return found

    def _feed_body(self, data: bytes, body: StreamReader) -> _Fed:
        """Parse a body's bytes. If they are broken, the handler gets the error; aiohttp would write a second response."""
        try:
            return super().feed_data(data)
        except HttpProcessingError as error:
            body.set_exception(web.RequestPayloadError(_why(0, error)[1]))
            self._connection.close()
            return [], False, b""


def _without_repeats(head: bytes) -> bytes | None:
    """Return the bytes of a request with one line for each harmless header; None if no such header is repeated."""
    first, *lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
    rest = head[len(first) + sum(len(line) + 2 for line in lines) :]
    if not rest and lines:  # the last line is incomplete
        rest = b"\r\n" + lines.pop()
    kept, places = [first], dict[bytes, int]()
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name not in _HARMLESS or name not in places:
            places[name] = len(kept)
            kept.append(line)
        elif name == b"user-agent":
            kept[places[name]] += b" " + value.strip()
    return b"\r\n".join(kept) + rest if len(kept) <= len(lines) else None


class ClientConnection(web.RequestHandler):
    """A client connection with the limits of providers. It refuses an unreadable request in the dialect of its path."""

    __slots__ = ()

    def __init__(self, manager: web.Server, *, idle_s: float, decompress: bool) -> None:
        loop = manager._loop  # noqa: SLF001 - the server's connection factory reads it too
        # without aiohttp's log of requests: the gateway writes its log lines itself
        super().__init__(manager, loop=loop, keepalive_timeout=idle_s, access_log=None)  # type: ignore[arg-type]
        self._parser = _Parser(
            self,
            loop,
            self._read_bufsize,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            max_headers=HEADERS,
            payload_exception=web.RequestPayloadError,
            auto_decompress=decompress,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Write an error as aiohttp does; for an unreadable request, write it in the dialect of the path."""
        if not isinstance(exc, UnreadableRequest):
            response = super().handle_error(request, status, exc, message)
        else:
            path = _ID.sub(r"\1…", excerpt(exc.path, PATH_BYTES))
            fields = {"method": exc.method, "path": path, "status": exc.code, "error": exc.reason}
            log.info("a request can't be parsed", extra={"fields": fields})
            dialect = dialect_of(exc.path, exc.sent)
            response = error_response(with_status("invalid_request", exc.message, exc.code, dialect), dialect)
            response.force_close()
        response.headers[hdrs.SERVER] = SERVER
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Log as aiohttp does, except broken bodies: their handlers get the error."""
        if not isinstance(kwargs.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kwargs)


# -- ports -------------------------------------------------------------------------------------------------------------


CLOSE_S: Final = 1.0  #: seconds that aiohttp may take after the grace period to close the remaining connections
BACKLOG: Final = 1024  #: the length of the system's queue of connections that are not accepted yet
#: Connections that are accepted in one turn of the event loop; the responses in progress wait meanwhile.
ACCEPTED_AT_ONCE: Final = 8
REFUSING: Final = (
    32  #: how many connections may receive a refusal at the same time; further connections are closed at once
)
REFUSING_S: Final = 5.0  #: the most seconds that sending a refusal may take
FIRST_LINE_BYTES: Final = 4096  #: how many bytes of a refused request are read: enough for its first line
CLIENTS: Final = "clients"
#: The errors for an address that cannot be used, for a host that is no name, and for a port that does not exist.
_UNUSABLE: Final = (OSError, ValueError, OverflowError)


@asynccontextmanager
async def listening(
    app: web.Application,
    address: tuple[str, int],
    *,
    idle_s: float,
    shared: bool = False,
    what: str = CLIENTS,
    connections: Callable[[], int] | None = None,
    decompress: bool = True,
) -> AsyncGenerator[tuple[str, int], None]:
    """Serve ``app``, which is not started yet, at ``address``.

    Yields the address with the real port, if it was 0. Leaving the block ends serving gracefully. A connection without a
    request in progress, or with incomplete headers, is closed after ``idle_s`` seconds. ``shared``: other processes listen on
    the same port. If as many connections are open as ``connections`` returns, further ones get 503, and 200 at ``/healthz``.
    Without ``decompress``, handlers get bodies as they were sent. Raises UsageError if the address can't be used; ``what``
    names its purpose in the message.
    """
    app.on_response_prepare.append(_name_server)
    # cancel a handler at once when its client disconnects
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=CLOSE_S)
    await runner.setup()
    try:
        try:
            site = _Site(runner, *address, reuse_port=shared or None, backlog=ACCEPTED_AT_ONCE)
            await site.start_bounded(connections, idle_s, decompress=decompress)
        except _UNUSABLE as error:
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

    async def start_bounded(self, connections: Callable[[], int] | None, idle_s: float, *, decompress: bool) -> None:
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner is not set up")
        await web.BaseSite.start(self)
        loop = asyncio.get_running_loop()
        refusing: set[_Full] = set()

        def connected() -> asyncio.Protocol:
            if connections is not None and len(server.connections) >= connections():
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
    b'{"error":{"message":"the gateway has too many connections; retry later","type":"overloaded_error"}}',
    "Retry-After: 1",
)
_FULL_ALIVE: Final = _answer("200 OK", "text/plain; charset=utf-8", b"ok\n")


def reserved(address: tuple[str, int]) -> socket.socket:
    """Bind a port without listening on it, so that processes that share it can start and stop. Raises UsageError."""
    try:
        # raises if another gateway has this port: sharing would succeed if it is of the same user
        _bound(address, shared=False).close()
        return _bound(address, shared=True)
    except _UNUSABLE as error:
        raise _cannot_listen(address, CLIENTS, error) from error


def _bound(address: tuple[str, int], *, shared: bool) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # else binding fails while connections of an earlier gateway are still closing
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def _cannot_listen(address: tuple[str, int], what: str, error: Exception) -> UsageError:
    if isinstance(error, UnicodeError):
        reason = "the host is not a valid name"
    else:
        reason = (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2]  # asyncio repeats the address
    return UsageError(f"cannot listen on {url_of(address)} for {what}: {reason.lower()}")


def url_of(address: tuple[str, int]) -> str:
    """Return the URL of a host and a port, with an IPv6 address in brackets."""
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
