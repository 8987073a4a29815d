"""An upstream's response as a source of bytes, with four timers. Each timer raises a different error.

Bytes are read in the sizes in which the network delivers them (``iter_any``), because aiohttp's line iteration fails at a line
of 512 KiB. An error of the transport becomes ``SourceFailed``, so that encoders can report it in the client's dialect. Its
message has the operating system's text (``Connection refused``). The cause is chained; its text may name hosts and is not
shown.

Timers run only while the reader *waits* for the source: if the client reads slowly and so we do not read the upstream, the
upstream is not silent. An upstream's keep-alives are bytes, so they reset the idle timer after the response has begun; they do
not begin the response. Some servers leave the body open after the terminator: the source then reads for one more second and
ends (quirks.md 69: otherwise the connection could not be used again). A timer interrupts only the one task that reads, inside
its ``await``, so no error appears between two stages (PEP 789).

Source: design.md §6, limits.md §1 (defaults), quirks.md 127, 128.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, Final

from aiohttp import ClientError, ClientPayloadError, ClientResponse
from attrs import field, frozen
from attrs.validators import gt, optional

from streamkit.errors import BodyTooLong, FirstByteTimeout, IdleTimeout, Interrupted, SourceFailed, TotalTimeout
from streamkit.pipeline import close_each
from streamkit.report import StreamReport
from streamkit.sources import BROKE, broken, is_reset
from streamkit.web.observers import CLIENT_LEFT, TIMEOUT, ExchangeRecording, OutputTimes, Tap, end_of


@frozen(kw_only=True)
class Timeouts:
    """The longest times that an upstream may take, in seconds."""

    #: Seconds for opening a connection, including TLS.
    connect_s: float = field(default=10.0, validator=gt(0))
    #: Seconds from sending the request to the first byte of the response's body. The default is long because a thinking model
    #: may be silent for a minute. Comments and pings do not count as the first byte. If an upstream sends only comments and
    #: pings in this time, the gateway tries the next upstream.
    first_byte_s: float = field(default=120.0, validator=gt(0))
    #: The longest time without bytes from the upstream, in seconds. The upstream's keep-alives count as bytes.
    idle_s: float = field(default=300.0, validator=gt(0))
    #: Seconds from sending the request to the end of the response. None: no limit, since responses may take an hour.
    total_s: float | None = field(default=None, validator=optional(gt(0)))


DEFAULT_TIMEOUTS = Timeouts()
#: Matches lines of an event stream that only keep the connection alive, except comments, which are checked separately.
_ALIVE: Final = re.compile(
    rb"(?:id|retry):.*|event: ?(?:ping|keep-?alive|heartbeat)"
    rb'|data: ?(?:\{\s*"type"\s*:\s*"(?:ping|keep-?alive|heartbeat)"\s*\})?'
)
_BEGUN_LINES: Final = (b"e", b"d", b"i", b"r")
PING_BYTES: Final = 256  #: the longest line that may be a ping
DRAIN_S: Final = 1.0  #: seconds for which an open body is still read after the terminator or the provider's error
#: The largest read from an upstream. Each stage keeps its output of one read until the client has taken it. With 32 KiB, 100
#: slow clients take 140 MiB, of which 100 MiB are unsent bytes; with asyncio's default of 256 KiB they take 340 MiB, and a
#: flood of small events takes twice the CPU time. Below 128 KiB, glibc does not map new memory for each read, which would take
#: an eighth of a plain relay's CPU time.
READ_BYTES: Final = 32 * 1024
ANSWER_BYTES: Final = 64 * 1024 * 1024  #: The largest whole response. Images and long reasoning are larger than 1 MiB.


class Beginning:
    """Finds out where a response begins. White space, comments and the pings of an event stream come before that."""

    def __init__(self) -> None:
        self._line = b""  # the present line, as far as it was read
        self._is_ping = False  # whether the present event is a ping

    def feed(self, chunk: bytes) -> bool:
        """Return whether the response begins in ``chunk``, which follows the chunks before it."""
        text, at = self._line + chunk, 0
        while (end := text.find(b"\n", at)) >= 0:
            if self._says_something(text[at:end].replace(b"\r", b"")):
                return True
            at = end + 1
        self._line = text[at:].replace(b"\r", b"")[: PING_BYTES + 1]
        rest = self._line.lstrip()
        # The line of an event may still turn out to be a ping. A longer line, or a line of no event, begins the response.
        return bool(rest) and rest[:1] != b":" and (len(rest) > PING_BYTES or not rest.startswith(_BEGUN_LINES))

    def _says_something(self, line: bytes) -> bool:
        line = line.strip(b" \t\xef\xbb\xbf")
        if not line or line[:1] == b":" or _ALIVE.fullmatch(line):
            self._is_ping = bool(line) and (self._is_ping or line.startswith(b"event:"))
            return False
        return not (self._is_ping and line.startswith(b"data:"))


class TimedSource:
    """An async iterator over a source that can be interrupted: by its timers, or by another task that calls ``fail``."""

    def __init__(
        self, source: AsyncIterable[bytes], timeouts: Timeouts, *, started: float | None = None, name: str = ""
    ) -> None:
        self.read_bytes = 0  #: all bytes that were read, without those that were put back
        self._name = name  # the upstream's name, for its failures
        self._loop = asyncio.get_running_loop()
        self._source: AsyncIterator[bytes] = aiter(source)
        self._owned: tuple[object, ...] = (self._source, source)
        # returns bytes that have arrived, if any: then no timer is needed
        self._arrived: Callable[[], bytes] = getattr(source, "arrived", bytes)
        self._timeouts = timeouts
        self._started = self._loop.time() if started is None else started
        self._since = self._started  # when the reader began to wait
        self._reader: asyncio.Task[object] | None = None  # the task that waits in __anext__, if there is one
        self._begun = False
        self._beginning = Beginning()
        self._error: Exception | None = None  # set by ``fail``, which other tasks and the timer call
        #: The report of the pipe that reads this source, if any: it shows the terminator, after which the source soon ends.
        self.report: StreamReport | None = None
        self.output_times: OutputTimes | None = (
            None  #: receives the times of the model's outputs, if these are measured
        )
        self.copy_to: Callable[[bytes], None] | None = (
            None  #: called with each chunk that is read, to observe a response
        )
        self.tap: Tap | None = None  #: receives all bytes that are read or put back
        self.recording: ExchangeRecording | None = None  #: records all bytes that are read or put back, and the end
        self._until: float | None = None  # until this time, the body is still read after its terminator
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> TimedSource:
        return self

    async def __anext__(self) -> bytes:
        now, total_s = self._loop.time(), self._timeouts.total_s
        report = self.report
        if self._until is None and report is not None and (report.terminated or report.failure is not None):
            self._until = now + DRAIN_S
            self._disarm()  # the timer was set for another deadline, perhaps minutes away
        if total_s is not None and now >= self._started + total_s:
            self.fail(TotalTimeout(total_s))  # the total time ran out between two reads
        if self._error is DRAINED or (self._until is not None and now >= self._until):
            raise StopAsyncIteration
        if self._error is not None:
            raise self._named(self._error)
        chunk = self._arrived() or await self._awaited(now)
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

    async def _awaited(self, now: float) -> bytes:
        """Return the next chunk, before a timer ends the wait for it."""
        self._since = now if self._begun else self._started
        if self._timer is None:
            self._arm()
        reader = self._reader = asyncio.current_task(self._loop)
        cancelled = 0 if reader is None else reader.cancelling()  # cancellations by other code before this
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
            # Either nothing more is timed, or the timer was set for the first byte, and the idle time may end sooner.
            if chunk is None or not self._begun:
                self._disarm()
        return chunk

    def _end_recording(self, error: Exception | None) -> None:
        """Record why the reading ended; None: the reader stopped reading."""
        if self.recording is None:
            return
        if error is DRAINED:
            self.recording.end(f"{TIMEOUT}drain")
        else:
            self.recording.end(CLIENT_LEFT if error is None else end_of(error))

    def _interruption(self, reader: asyncio.Task[object] | None, cancelled: int) -> Exception | None:
        """Return the error of ``fail`` if ``fail`` cancelled the read, and no other task cancelled it too; else None."""
        if self._error is None or reader is None or reader.uncancel() > cancelled:
            return None
        return self._error

    def _named(self, error: Exception) -> Exception:
        """Return ``error`` with the upstream's name, unless our own server caused the error."""
        if isinstance(error, SourceFailed) and not isinstance(error, Interrupted):
            error.upstream = self._name
        return error

    def fail(self, error: Exception) -> None:
        """Make the present or next read raise ``error``. Only the first call counts."""
        if self._error is None:
            self._error = error
            if self._reader is not None:
                self._reader.cancel()

    def expect_end(self, *, soon: bool) -> None:
        """With ``soon``, end the source after one more second, as the response seems complete; else take that back."""
        if soon or self._until is not None:
            self._until = self._loop.time() + DRAIN_S if soon else None
            self._disarm()

    def unread(self, data: bytes) -> None:
        """Put back bytes of a response; the next read returns them first. No read may be in progress."""
        unread = getattr(self._source, "unread", None)  # ten times faster than ``isinstance`` with a protocol
        if unread is None:
            raise TypeError("this source does not take bytes back")
        unread(data)
        self.read_bytes -= len(data)
        if self.tap is not None:
            self.tap.unread(data)
        if self.recording is not None:
            self.recording.unread(data)

    async def aclose(self) -> None:
        self._disarm()
        is_drained = self._until is not None and self._loop.time() >= self._until
        self._end_recording(self._error or (DRAINED if is_drained else None))  # only the first end counts
        owned, self._owned = self._owned, ()
        await close_each(*owned)

    # One timer serves three time limits: it fires when the first of them may have passed, checks them, and is set again.

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
            self._timer = None  # no reader waits: the next read sets the timer again
        elif self._loop.time() < when:
            self._arm()
        else:
            self.fail(error)


#: Marks that the source ends because enough was read. It is never raised to the reader.
DRAINED: Final = IdleTimeout(DRAIN_S)


def iter_upstream(
    response: ClientResponse, *, timeouts: Timeouts = DEFAULT_TIMEOUTS, started: float | None = None, name: str = ""
) -> TimedSource:
    """Return the body of an aiohttp client response as a source. Closing the source closes the response and its connection.

    Raises SourceFailed for errors of the transport, and FirstByteTimeout, IdleTimeout and TotalTimeout. ``started`` is the
    event loop's time when the request was sent, by default now; two of the timers begin at this time. ``name`` is the
    upstream's name; the messages of these errors begin with it.
    """
    return TimedSource(_Body(response), timeouts, started=started, name=name)


async def whole_body(source: TimedSource, *, body_bytes: int = ANSWER_BYTES) -> bytes:
    """Return all bytes of a source and close it. Raises what the source raises, and BodyTooLong."""
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
    """The chunks of a response. It is not a generator, because closing a generator that was never started closes nothing.

    It works around two faults of aiohttp 3.14. After the connection breaks, aiohttp drops bytes that it had received, perhaps
    the end of the stream. And if a server writes a chunk without a length, aiohttp leaves the reader waiting.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self._error: Exception | None = None
        # bytes that were read but not returned yet; a memoryview, so that each part is copied only once
        self._rest: bytes | memoryview = b""
        self._broken_by: BaseException | None = None  # the error that closed the connection
        protocol = response.connection.protocol if response.connection is not None else None
        transport: Any = protocol.transport if protocol is not None else None
        if hasattr(transport, "max_size"):  # asyncio's own transport, without TLS
            transport.max_size = READ_BYTES
        #: Set when the connection closes. The connection may outlive the response, so the callback must be removed again.
        self._closed = protocol.closed if protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._lost)

    def __aiter__(self) -> _Body:
        return self

    def arrived(self) -> bytes:
        """Return bytes that have arrived, if any."""
        if not self._rest and self._content.exception() is None:
            self._rest = self._content.read_nowait()
        return self._part()

    def _part(self) -> bytes:
        chunk = self._rest
        self._rest = memoryview(chunk)[READ_BYTES:]
        return bytes(chunk[:READ_BYTES])

    async def __anext__(self) -> bytes:
        chunk = self._rest
        if not chunk and self._error is None:
            try:
                chunk = await self._content.readany()
            except (ClientError, OSError) as error:
                self._error = error
                if not isinstance(error, TimeoutError):  # aiohttp's own time-out forbids further reads
                    chunk = self._content._read_nowait(-1)  # noqa: SLF001 - the public methods raise the error again
        if chunk:
            self._rest = chunk
            return self._part()
        self._forget()
        if self._error is not None:
            failed = broken(self._error)
            if str(failed) == BROKE:  # aiohttp's error has no reason; the one that closed the connection may have
                failed = broken(self._broken_by)
            failed.is_reset = is_reset(self._error) or is_reset(self._broken_by)
            raise failed from self._error
        raise StopAsyncIteration

    def unread(self, data: bytes) -> None:
        self._rest = data + bytes(self._rest)

    def _lost(self, closed: asyncio.Future[None]) -> None:
        """Called when the connection has closed. Store the error, unless aiohttp already gave the body its end or error."""
        if not closed.cancelled():
            self._broken_by = closed.exception()  # asyncio logs an exception that is never fetched
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(ClientPayloadError("the connection closed inside the body"))

    def _forget(self) -> None:
        """Remove the callback: the connection may serve other responses, and must not keep this one in memory."""
        if self._closed is not None:
            self._closed.remove_done_callback(self._lost)
            self._closed = None

    async def aclose(self) -> None:
        self._forget()
        self._response.close()
