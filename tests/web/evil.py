"""An upstream that breaks HTTP as a script says, and remembers what it saw of its client.

It writes raw bytes to a socket, so that it can do what no HTTP library lets one do: reset in the middle of a line, promise a
chunk and not send it, be silent for ever. A **script** is what it does for one request, step by step; ``faults.py`` has whole
scripts by name. Requests are read by the letter (h11); one that is no HTTP is kept in ``garbage``.

    async with EvilUpstream(status(429, "anthropic"), good("anthropic")) as upstream:  # the last script is played again and again
        ...
        first = await upstream.request(0)
        await first.left()  # the client closed its connection: when is in ``left_at``, how in ``left_by``

Times are the loop's, in seconds. Nothing is random, everything is closed on exit, and what goes wrong in here is raised there.

Source: limits.md §5 (harness notes), C8, C12.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

import h11
import trustme
from attrs import define, field, frozen

#: How long a test waits for what must come; one that waits so long has failed.
PATIENCE_S = 10.0
READ_BYTES = 1 << 16
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@frozen
class Send:
    """Write these bytes in one piece, and go on once the kernel has taken them."""

    data: bytes


@frozen
class Delay:
    """Be silent for so long."""

    seconds: float


@frozen
class Until:
    """Be silent until the test sets the event."""

    event: asyncio.Event


@frozen
class Hang:
    """Be silent until the client leaves."""


@frozen
class Fin:
    """Send no more and say so (FIN). The client's side stays open until it closes it."""


@frozen
class Rst:
    """Reset the connection at once. What was sent before has arrived: it waited until the kernel had it."""


Step: TypeAlias = Send | Delay | Until | Hang | Fin | Rst

#: What the port is: a web server; closed; one whose queue is full, so that connecting never ends; addressed by https, a server
#: that speaks no TLS, or one whose certificate nobody trusts.
Door: TypeAlias = Literal["open", "refused", "full", "no-tls", "untrusted"]


@frozen
class Script:
    """What is done for one request. Without ``Hang``, ``Fin`` or ``Rst`` the connection is kept for the next."""

    steps: tuple[Step, ...] = ()
    #: Of the whole upstream: its scripts must agree on it.
    door: Door = "open"


@define(eq=False)
class Received:
    """A request, and what became of it."""

    method: str
    target: str  #: path and query, as they stood in the first line
    headers: tuple[tuple[str, str], ...]  #: names in lower case, in the order they came
    body: bytes
    connection: int  #: from 0; two requests with the same number came by one connection
    connected_at: float
    received_at: float  #: when all of it was there
    sent: list[tuple[float, int]] = field(factory=list)  #: when how many bytes were written
    played_at: float | None = None  #: when the script was over
    left_at: float | None = None  #: when the client's close was seen
    left_by: Literal["fin", "rst"] | None = None
    _left: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)

    async def left(self) -> float:
        """Wait until the client has closed the connection; when that was seen. Raises AssertionError if it stays."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._left.wait()
        except TimeoutError:
            raise AssertionError(f"the client of {self.method} {self.target} never left") from None
        assert self.left_at is not None
        return self.left_at

    def note_leaving(self, when: float, by: Literal["fin", "rst"]) -> None:
        self.left_at, self.left_by = when, by
        self._left.set()


#: A script, or what chooses one by the request.
Play: TypeAlias = Script | Callable[[Received], Script]


class EvilUpstream:
    """A server on a free port of 127.0.0.1, for as long as its ``async with`` lasts.

    The n-th request gets the n-th of ``plays``, the last one again and again. ``paths`` has plays for single paths, counted
    each by itself. A request that no script is for is an AssertionError on exit.
    """

    def __init__(self, *plays: Play, paths: Mapping[str, Sequence[Play]] | None = None) -> None:
        self.requests: list[Received] = []
        self.garbage: list[str] = []  #: what was wrong with what was no HTTP
        self.connections = 0
        self.port = 0
        self._plays = {"": plays, **(paths or {})}
        self._played = dict.fromkeys(self._plays, 0)
        every = [play for plays in self._plays.values() for play in plays]
        doors = {play.door if isinstance(play, Script) else "open" for play in every}
        if len(doors) != 1:
            raise ValueError(f"the scripts of an upstream have one door, not {sorted(doors)}")
        self._door: Door = doors.pop()
        self._news = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[Exception] = []

    @property
    def url(self) -> str:
        return f"{'https' if self._door in {'no-tls', 'untrusted'} else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        sock = socket.create_server(("127.0.0.1", 0), backlog=0) if self._door != "refused" else socket.socket()
        self._sockets.append(sock)
        if self._door == "refused":
            sock.bind(("127.0.0.1", 0))  # ours, so that nobody else listens there
        self.port = sock.getsockname()[1]
        if self._door == "full":
            self._sockets.append(socket.create_connection(sock.getsockname()))  # takes the one place in the queue
        elif self._door != "refused":
            tls = untrusted_tls() if self._door == "untrusted" else None
            self._server = await asyncio.start_server(self._accept, sock=sock, ssl=tls, backlog=1024)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._server is not None:
            self._server.close()
        while self._tasks:  # one that was being accepted comes late
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)  # where all had ended, Python 3.12 waits for nothing: their callbacks run here
        if self._server is not None:
            await self._server.wait_closed()
        for sock in self._sockets:
            sock.close()
        if self._errors:
            raise ExceptionGroup("the evil upstream failed", self._errors)

    async def request(self, number: int = 0) -> Received:
        """The request of that number, from 0, once it is there. Raises AssertionError if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while len(self.requests) <= number:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"request {number} never came; there were {len(self.requests)}") from None
        return self.requests[number]

    def take(self, request: Received) -> Script:
        """Remember the request and choose its script."""
        self.requests.append(request)
        self._news.set()
        key = request.path if request.path in self._plays else ""
        plays, number = self._plays[key], self._played[key]
        if not plays:
            raise AssertionError(f"the test has no script for {request.method} {request.target}")
        self._played[key] += 1
        play = plays[min(number, len(plays) - 1)]
        return play if isinstance(play, Script) else play(request)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(_Connection(self, self.connections, reader, writer)))
        self.connections += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: _Connection) -> None:
        try:
            await connection.run()
        except Exception as error:  # noqa: BLE001 - raised on exit, where the test sees it
            self._errors.append(error)


class _Connection:
    """Reads and plays at once, so that the client's close is seen whatever is being played."""

    def __init__(
        self, upstream: EvilUpstream, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._upstream = upstream
        self._number = number
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._connected_at = self._loop.time()
        self._http = h11.Connection(h11.SERVER)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._waiting: asyncio.Queue[Received] = asyncio.Queue()
        self._last: Received | None = None
        self._reset = False  # by us
        writer.transport.set_write_buffer_limits(high=0)  # drain() then waits until the kernel has it all

    async def run(self) -> None:
        player = asyncio.create_task(self._play_all())
        reader = asyncio.create_task(self._read_all())
        try:
            await asyncio.wait({player, reader}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._writer.transport.abort()  # before any await, which the exit may cancel
            for task in (player, reader):
                task.cancel()
            ends = await asyncio.gather(player, reader, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _read_all(self) -> None:
        """Returns when the client left, or when we reset."""
        by: Literal["fin", "rst"] = "fin"
        try:
            while data := await self._reader.read(READ_BYTES):
                for request in self._requests_in(data):
                    self._waiting.put_nowait(request)
        except (ConnectionError, ssl.SSLError):
            by = "rst"
        except h11.RemoteProtocolError as error:
            self._upstream.garbage.append(str(error))
            self._writer.write(BAD_REQUEST)
            await self._writer.drain()
            return
        if self._last is not None and not self._reset:
            self._last.note_leaving(self._loop.time(), by)

    def _requests_in(self, data: bytes) -> Iterator[Received]:
        while data:
            self._http.receive_data(data)
            data = b""
            while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Request):
                    self._head = event
                elif isinstance(event, h11.Data):
                    self._body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    yield self._received()
                    data = self._http.trailing_data[0]  # a request sent before we answered this one
                    self._http = h11.Connection(h11.SERVER)
                    break

    def _received(self) -> Received:
        assert self._head is not None
        body, self._body = bytes(self._body), bytearray()
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in self._head.headers)
        method, target = self._head.method.decode("ascii"), self._head.target.decode("ascii")
        return Received(method, target, headers, body, self._number, self._connected_at, self._loop.time())

    async def _play_all(self) -> None:
        """Returns only by an error of ours: what the client breaks, its reader has seen too."""
        try:
            while True:
                request = self._last = await self._waiting.get()
                for step in self._upstream.take(request).steps:
                    await self._play(step, request)
                request.played_at = self._loop.time()
        except ConnectionError:
            await asyncio.Event().wait()

    async def _play(self, step: Step, request: Received) -> None:
        match step:
            case Send():
                self._writer.write(step.data)
                await self._writer.drain()
                request.sent.append((self._loop.time(), len(step.data)))
            case Delay():
                await asyncio.sleep(step.seconds)
            case Until():
                await step.event.wait()
            case Hang():
                await asyncio.Event().wait()
            case Fin():
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                else:
                    self._writer.close()
            case Rst():
                self._reset = True
                sock = self._writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._writer.transport.abort()


def untrusted_tls() -> ssl.SSLContext:
    """A server's TLS with a certificate by an authority that was made for it and that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context
