"""The upstream's answer as a source of bytes, with four timers, each its own error.

Bytes are read as the network brings them (``iter_any``): aiohttp's line iteration dies at a line of 512 KiB. What breaks the
transport becomes ``SourceFailed``, so that encoders can tell the client in its own dialect, with the operating system's word
for it (``Connection refused``); the cause is chained, and its other words, which may name hosts, are for nobody.

Timers run while the source is *waited for*: an upstream that we do not read, because the client reads slowly, is not silent.
An upstream's keep-alives are bytes, and so count as life once the answer has begun; they do not begin it. Some leave the body
open behind their terminator: then what comes within a second is read, and that is the end (quirks.md 69). A timer interrupts
the one task that reads, inside the await, and nowhere else: no error appears between two stages (PEP 789).

Source: design.md §6, limits.md §1 (defaults), quirks.md 127, 128.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, Final, Protocol, runtime_checkable

from aiohttp import ClientError, ClientPayloadError, ClientResponse
from attrs import field, frozen
from attrs.validators import gt, optional

from streamkit.errors import BodyTooLong, FirstByteTimeout, IdleTimeout, Interrupted, SourceFailed, TotalTimeout
from streamkit.pipeline import close_each
from streamkit.report import StreamReport
from streamkit.web.output_times import OutputTimes
from streamkit.web.recording import CLIENT_LEFT, TIMEOUT, ExchangeRecording, end_of
from streamkit.web.tap import Tap


@frozen(kw_only=True)
class Timeouts:
    """How long an upstream may take, in seconds."""

    #: To open a connection, TLS included.
    connect_s: float = field(default=10.0, validator=gt(0))
    #: From sending the request to the first byte of the answer's body: a thinking model may be silent for a minute.
    #: Comments and pings are no answer: an upstream that sends nothing else is left for the next.
    first_byte_s: float = field(default=120.0, validator=gt(0))
    #: Between two reads. Keep-alives of the upstream count as life.
    idle_s: float = field(default=300.0, validator=gt(0))
    #: From sending the request to the end of the answer; None: no bound, since answers may take an hour.
    total_s: float | None = field(default=None, validator=optional(gt(0)))


DEFAULT_TIMEOUTS = Timeouts()
#: Lines of an event stream that say nothing but that somebody is there, comments aside.
_ALIVE: Final = re.compile(
    rb"(?:id|retry):.*|event: ?(?:ping|keep-?alive|heartbeat)"
    rb'|data: ?(?:\{\s*"type"\s*:\s*"(?:ping|keep-?alive|heartbeat)"\s*\})?'
)
_BEGUN_LINES: Final = (b"e", b"d", b"i", b"r")
#: A ping is shorter.
PING_BYTES: Final = 256
#: How long is read behind the terminator, or the provider's error, of a body that stays open.
DRAIN_S: Final = 1.0
#: What is read of an upstream at once. Each stage has what it made of a read until the client took it, so that 100 clients
#: that read slowly take 140 MiB, 100 of which is unsent; with asyncio's own 256 KiB they take 340, and a flood of small
#: events twice the CPU. Below 128 KiB, glibc maps no memory for each read, which takes an eighth of a plain relay's CPU.
READ_BYTES: Final = 32 * 1024
#: The longest whole answer: images and long reasoning pass 1 MiB.
ANSWER_BYTES: Final = 64 * 1024 * 1024


def because(words: str, error: BaseException | None) -> str:
    """``words``, and what the operating system or TLS says of it: no host, no path, nothing that came over the wire."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if reason := _reason(error):
            return f"{words}: {reason}"
        wrapped = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        error = wrapped or error.__cause__ or error.__context__
    return words


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return str(getattr(error, "reason", None) or "")  # a name of OpenSSL's; its number is none of the system's
    if isinstance(error, socket.gaierror):
        return error.strerror or ""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if isinstance(number, int) and number > 0 else ""


def is_reset(error: BaseException | None) -> bool:
    """Whether the other side broke the connection: it stands in the error, or in one that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            return True
        error = error.__cause__ or error.__context__
    return False


class Beginning:
    """Whether anything came of an answer yet but signs of life: blanks, comments, pings of an event stream."""

    def __init__(self) -> None:
        self._line = b""  # what there is of it
        self._is_ping = False  # of the event that it stands in

    def feed(self, chunk: bytes) -> bool:
        """Whether ``chunk``, behind what came before, begins the answer."""
        *lines, line = (self._line + chunk).replace(b"\r", b"").split(b"\n")
        self._line = line[: PING_BYTES + 1]
        if any(map(self._says_something, lines)):
            return True
        rest = self._line.lstrip()
        # an event's line may still become a ping's; what is longer, or no event's, is the answer
        return bool(rest) and rest[:1] != b":" and (len(rest) > PING_BYTES or not rest.startswith(_BEGUN_LINES))

    def _says_something(self, line: bytes) -> bool:
        line = line.strip(b" \t\xef\xbb\xbf")
        if not line or line[:1] == b":" or _ALIVE.fullmatch(line):
            self._is_ping = bool(line) and (self._is_ping or line.startswith(b"event:"))
            return False
        return not (self._is_ping and line.startswith(b"data:"))


@runtime_checkable
class Rereadable(Protocol):
    """A source that takes back what was read of it."""

    def unread(self, data: bytes) -> None: ...


class TimedSource:
    """An async iterator over a source that can be interrupted: by its timers, and by ``fail`` from another task."""

    def __init__(
        self, source: AsyncIterable[bytes], timeouts: Timeouts, *, started: float | None = None, name: str = ""
    ) -> None:
        self.read_bytes = 0  #: of all that came, and was not put back
        self._name = name  # what its failures are told under
        self._loop = asyncio.get_running_loop()
        self._source: AsyncIterator[bytes] = aiter(source)
        self._owned: tuple[object, ...] = (self._source, source)
        self._timeouts = timeouts
        self._started = self._loop.time() if started is None else started
        self._since = self._started  # when the reader began to wait
        self._reader: asyncio.Task[object] | None = None  # the task that waits in __anext__, if one does
        self._begun = False
        self._beginning = Beginning()
        self._error: Exception | None = None  # set by ``fail``, which other tasks and the timer call
        #: Of the pipe that reads it, if any: behind the terminator that it tells of nothing is waited for.
        self.report: StreamReport | None = None
        #: Of an answer whose outputs are timed.
        self.output_times: OutputTimes | None = None
        #: Is handed what was read, for who looks at an answer as it passes.
        self.copy_to: Callable[[bytes], None] | None = None
        #: Sees what is read and what is put back.
        self.tap: Tap | None = None
        #: Is told of what is read and put back, and of the end.
        self.recording: ExchangeRecording | None = None
        self._until: float | None = None  # the time up to which a body is read behind its terminator
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> TimedSource:
        return self

    async def __anext__(self) -> bytes:
        now, total_s = self._loop.time(), self._timeouts.total_s
        report = self.report
        if self._until is None and report is not None and (report.terminated or report.failure is not None):
            self._until = now + DRAIN_S
            self._disarm()  # it was set for a clock that may have run for minutes
        if total_s is not None and now >= self._started + total_s:
            self.fail(TotalTimeout(total_s))  # it ran out while nobody read
        if self._error is DRAINED or (self._until is not None and now >= self._until):
            raise StopAsyncIteration
        if self._error is not None:
            raise self._named(self._error)
        self._since = now if self._begun else self._started
        if self._timer is None:
            self._arm()
        reader = self._reader = asyncio.current_task(self._loop)
        cancelled = 0 if reader is None else reader.cancelling()  # by others, before this
        chunk = None
        try:
            chunk = await anext(self._source)
        except asyncio.CancelledError:
            error = self._interruption(reader, cancelled)
            if error is None:
                raise
            self._end_recording(error)
            if error is DRAINED:
                raise StopAsyncIteration from None
            raise self._named(error) from error.__cause__
        except (StopAsyncIteration, SourceFailed) as error:
            self._end_recording(error)
            self._named(error)
            raise
        finally:
            self._reader = None
            # Nothing is left to time; or it was set for the first byte, and the idle clock may run out sooner.
            if chunk is None or not self._begun:
                self._disarm()
        if not self._begun:
            self._begun = self._beginning.feed(chunk)
        self.read_bytes += len(chunk)
        if self.output_times is not None and report is not None:
            self.output_times.read(report, self._loop.time())
        if self.copy_to is not None:
            self.copy_to(chunk)
        if self.tap is not None:
            self.tap.read(chunk)
        if self.recording is not None:
            self.recording.read(chunk)
        return chunk

    def _end_recording(self, error: Exception | None) -> None:
        """Tell the recording, if there is one, of what ended the reading; None: whoever read had enough."""
        if self.recording is None:
            return
        if error is DRAINED:
            self.recording.end(f"{TIMEOUT}drain")
        else:
            self.recording.end(CLIENT_LEFT if error is None else end_of(error))

    def _interruption(self, reader: asyncio.Task[object] | None, cancelled: int) -> Exception | None:
        """The error of ``fail``, if it was that which cancelled the read, and nobody else did meanwhile."""
        if self._error is None or reader is None or reader.uncancel() > cancelled:
            return None
        return self._error

    def _named(self, error: Exception) -> Exception:
        """The error, which says whose it is, unless it is nobody's but ours."""
        if isinstance(error, SourceFailed) and not isinstance(error, Interrupted):
            error.upstream = self._name
        return error

    def fail(self, error: Exception) -> None:
        """Make the reader's next or present read raise ``error``. The first one counts."""
        if self._error is None:
            self._error = error
            if self._reader is not None:
                self._reader.cancel()

    def expect_end(self, *, soon: bool) -> None:
        """What was read may be all: then what comes within a second is read, and that is the end. Or it was not all."""
        if soon or self._until is not None:
            self._until = self._loop.time() + DRAIN_S if soon else None
            self._disarm()

    def unread(self, data: bytes) -> None:
        """Put back what was read of a response: it comes again, before anything else. None may be read meanwhile."""
        if not isinstance(self._source, Rereadable):
            raise TypeError("only what was read of a response can be put back")
        self._source.unread(data)
        self.read_bytes -= len(data)
        if self.tap is not None:
            self.tap.unread(data)
        if self.recording is not None:
            self.recording.unread(data)

    async def aclose(self) -> None:
        self._disarm()
        is_drained = self._until is not None and self._loop.time() >= self._until
        self._end_recording(self._error or (DRAINED if is_drained else None))  # its first end counts
        owned, self._owned = self._owned, ()
        await close_each(*owned)

    # One timer for three clocks: it fires when the first of them could have run out, looks, and is set again.

    def _deadline(self) -> tuple[float, Exception]:
        times = self._timeouts
        if self._until is not None:
            return self._until, DRAINED
        silent: tuple[float, Exception]
        if self._begun:
            silent = (self._since + times.idle_s, IdleTimeout(times.idle_s))
        else:
            silent = (self._started + times.first_byte_s, FirstByteTimeout(times.first_byte_s))
        if times.total_s is None or self._started + times.total_s > silent[0]:
            return silent
        return (self._started + times.total_s, TotalTimeout(times.total_s))

    def _arm(self) -> None:
        self._timer = self._loop.call_at(max(self._deadline()[0], self._loop.time()), self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        when, error = self._deadline()
        if self._reader is None:
            self._timer = None  # nobody waits: the next read sets it again
        elif self._loop.time() < when:
            self._arm()
        else:
            self.fail(error)


#: Not told to anybody: what was read is whole.
DRAINED: Final = IdleTimeout(DRAIN_S)


def iter_upstream(
    response: ClientResponse, *, timeouts: Timeouts = DEFAULT_TIMEOUTS, started: float | None = None, name: str = ""
) -> TimedSource:
    """The body of an aiohttp client response as a source. Closing it closes the response; its connection too, if any is left.

    Raises SourceFailed for what breaks the transport, FirstByteTimeout, IdleTimeout and TotalTimeout. ``started`` is the
    loop's time at which the request was sent, for the two clocks that begin there; by default now. ``name`` is the
    upstream's, and stands in front of what is told of such a failure.
    """
    return TimedSource(_Body(response), timeouts, started=started, name=name)


async def whole_body(source: TimedSource, *, body_bytes: int = ANSWER_BYTES) -> bytes:
    """All of a source, which is closed. Raises what it raises, and BodyTooLong."""
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in source:
            parts.append(chunk)
            size += len(chunk)
            if size > body_bytes:
                raise BodyTooLong(body_bytes)
    finally:
        await source.aclose()
    return b"".join(parts)


class _Body:
    """The chunks of a response. No generator: closing one that was never read would not close what it was given.

    It mends two things of aiohttp 3.14. Once the connection broke, aiohttp forgets what it had read, the end of the stream
    perhaps; and where a server writes a chunk without a length, it leaves the reader waiting.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self._error: Exception | None = None
        self._rest: bytes | memoryview = b""  # of what was read; a view, as its parts are not to be copied once a part
        self._broken_by: BaseException | None = None  # what closed the connection
        protocol = response.connection.protocol if response.connection is not None else None
        transport: Any = protocol.transport if protocol is not None else None
        if hasattr(transport, "max_size"):  # asyncio's own, without TLS
            transport.max_size = READ_BYTES
        #: Of the connection, which may outlive the answer: what is told of it has to be taken back.
        self._closed = protocol.closed if protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._lost)

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        chunk = self._rest
        if not chunk and self._error is None:
            try:
                chunk = await self._content.readany()
            except (ClientError, OSError) as error:
                self._error = error
                if not isinstance(error, TimeoutError):  # aiohttp's own, after which it lets nobody read
                    chunk = self._content._read_nowait(-1)  # noqa: SLF001 - the public ways raise the error again
        if chunk:
            self._rest = memoryview(chunk)[READ_BYTES:]
            return bytes(chunk[:READ_BYTES])
        self._forget()
        if self._error is not None:
            words = "the connection to the upstream broke"
            message = because(words, self._error)
            failed = SourceFailed(because(words, self._broken_by) if message == words else message)
            failed.is_reset = is_reset(self._error) or is_reset(self._broken_by)
            raise failed from self._error
        raise StopAsyncIteration

    def unread(self, data: bytes) -> None:
        self._rest = data + bytes(self._rest)

    def _lost(self, closed: asyncio.Future[None]) -> None:
        """The connection is gone. Where aiohttp noticed, the body has its end or its error by now."""
        if not closed.cancelled():
            self._broken_by = closed.exception()  # asyncio complains where nobody asks
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(ClientPayloadError("the connection closed inside the body"))

    def _forget(self) -> None:
        """The answer is over, and the connection may bring others: it must not keep this one."""
        if self._closed is not None:
            self._closed.remove_done_callback(self._lost)
            self._closed = None

    async def aclose(self) -> None:
        self._forget()
        self._response.close()
