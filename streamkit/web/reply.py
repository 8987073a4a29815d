"""One response to one client, from as many upstreams as are tried.

HTTP headers are held back until the model has emitted something, for at most one keep-alive interval. Until then a failing
upstream still becomes an HTTP status. After that the status is 200, keep-alives are sent, and an error becomes an error frame
of the dialect. Another upstream can be tried until the model has emitted something; then the stream ends either complete or
with an error, and never pretends to be complete.

The handler's task does the *work* on the response: it enters, drives and leaves pipes. Only a response that may continue
without its client has a task of its own. A timer writes keep-alives. A client that disconnects or stalls ends the work: see
``client_connection.py``.

Source: design.md §6; limits.md §1, T8; clients.md §5; quirks.md 117 to 129 (what clients and proxies do with streams).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from aiohttp import HttpVersion11, web
from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.dialects import client_named, keep_alive
from streamkit.dialects.http import ArrayForm
from streamkit.dialects.profiles import Encoding, KeepAliveForm
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.dialects.vocabulary.error_bodies import TRUNCATED
from streamkit.errors import Interrupted, StreamError, stage_of
from streamkit.events import ProviderFailed, StreamEnded
from streamkit.limits import DEFAULT_LIMITS, MIB, Limits
from streamkit.pipeline import Pipe, Stage, pipe
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.resume.log import End
from streamkit.text.quoting import quoted
from streamkit.tool_calls.schema import schema_library
from streamkit.web.answered_by import NAMES
from streamkit.web.client_connection import Gone, Sized, StreamBody, Watch, bound_unsent
from streamkit.web.observers import Tap
from streamkit.web.refusals import error_answer
from streamkit.web.source import DRAIN_S
from streamkit.web.surfaces import Ask
from streamkit.web.upstream.hiding import Cut, hidden, without_keys

log = logging.getLogger("streamkit.web")
#: The most bytes of a stream to hold back until the model's first output, so that another upstream can still be tried. With
#: more bytes than this, the client gets the stream anyway.
HELD_BYTES: Final = 64 * 1024

#: How a response ended: complete; an error in place of a response; an error inside it; or the client disconnected.
Ending: TypeAlias = Literal["whole", "error", "broken"] | Gone

#: Headers for streams that pass proxies: a proxy must not buffer, compress or cache them (quirks.md 122, 124: some do).
STREAM_HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


@frozen(kw_only=True)
class Delivery:
    """How a response is sent to a client."""

    #: Seconds of silence after which a keep-alive is sent. Many proxies close silent connections after 60 s.
    keep_alive_s: float = field(default=15.0, validator=gt(0))
    keep_alive: KeepAliveForm = "dialect"  #: the form of a keep-alive, if the dialect has several
    #: Whether a whole JSON response may begin with white space as a keep-alive. The status of an error is then 200 too.
    whole_keep_alive: bool = False
    #: Bytes that may wait for the client before its upstream is no longer read. Most responses fit, which frees the upstream.
    unsent_bytes: int = field(default=MIB, validator=ge(1))
    stall_s: float = field(default=30.0, validator=gt(0))  #: seconds that a client may leave all waiting bytes unread
    #: Seconds before the connection is closed after an error frame, if the client does not close it and the body has no end
    #: (``Dialect.failed_end``). A client that reads more slowly than this loses the bytes that it has not read.
    linger_s: float = field(default=2.0, validator=ge(0))
    policy: Policy = TOLERANT
    #: Whether a response's text is checked against the JSON schema of its request (needs the extra ``schema``). If False, or
    #: if the schema can't be used, the text is only checked to be JSON, and the verdict on valid JSON is ``unchecked``.
    check_schemas: bool = False
    timings: bool = (
        False  #: whether the report of a stream shows the time that each stage took (``StreamReport.timings``)
    )

    def __attrs_post_init__(self) -> None:
        if self.check_schemas:
            schema_library("or leave check_schemas out")


DEFAULT_DELIVERY = Delivery()


FAILED: Final = ProviderFailed("server", "the request got no response")


class ClientLeftError(Exception):
    """The client has disconnected; nothing more can be written."""


class Interruptible(Protocol):
    """A source whose reading another task can interrupt."""

    report: StreamReport | None

    def fail(self, error: Exception) -> None:
        """Make the present or next read raise ``error``."""


class Writer(Sized, Protocol):
    """Writes a response body. Raises ConnectionError after the client has disconnected."""

    async def write(self, data: bytes, /) -> None: ...


class Gate(Protocol):
    """Decides when the response of one attempt is written, and whether.

    Without a gate, it is written as soon as the model has emitted something, or once it is complete.
    """

    def holds(self) -> bool:
        """Return whether to hold the output back, although the model has emitted something."""

    def keeps(self, body: bytes, report: StreamReport, cut: Cut, /) -> ProviderFailed | None:
        """Take a complete stream of which nothing is written yet. Return why it is not written; None: it is."""

    def opens(self) -> None:
        """Called before the first byte is written. After that, no other attempt may write."""


class Outlet:
    """The destination of a response: an HTTP response, or messages of a WebSocket."""

    async def begin(self, _response: web.StreamResponse, /) -> Writer | None:
        """Write status and headers, and the body if it is a ``web.Response``. Return the writer for the rest of the body."""
        raise NotImplementedError

    async def end(self, _response: web.StreamResponse, _failed_end: bytes | None, /) -> None:
        """End the body. ``failed_end`` replaces the normal end if the response failed (``Dialect.failed_end``)."""
        raise NotImplementedError

    joins_end = False  #: whether ``end_with`` writes the last bytes together with the body's end

    async def end_with(self, _response: web.StreamResponse, _last: bytes, /) -> None:
        """Write the last bytes of a response that is complete, and the end of the body."""
        raise NotImplementedError

    def answers(self, reply: Reply) -> None:
        """Connect the outlet to the reply that writes to it. Called once."""

    def keep_alive(self, _usual: bytes, /) -> bytes:
        """Return the bytes to write while the model is silent, if any. ``_usual`` is the dialect's keep-alive over HTTP."""
        return b""

    async def stay_alive(self, writer: Writer, data: bytes, /) -> None:
        """Write a keep-alive, which is not a part of the response."""
        await writer.write(data)

    def last(self) -> None:
        """Called before the last bytes of the response are written: its terminator or its error. Only ``end`` follows them."""

    outlives = False  #: whether the response may continue after its client has disconnected
    has_left = False  #: whether the client has disconnected while the response continues without it

    def goes_on(self) -> bool:
        """Called when the client has disconnected. Return whether the response continues without it."""
        return False

    def over(self, why: End) -> None:
        """Called when nothing more will be written, however the response ended. A second call has no effect."""


class Shape(Protocol):
    """Changes the bytes of a response before they are written, except keep-alives and HTTP errors."""

    async def stream(self, chunk: bytes, /) -> bytes:
        """Return the changed ``chunk``, which has whole frames of a stream."""

    async def whole(self, body: bytes, /) -> bytes: ...


class HTTPOutlet(Outlet):
    """Writes the HTTP response to ``request``."""

    joins_end = True

    def __init__(self, request: web.Request) -> None:
        self._request = request

    def keep_alive(self, usual: bytes, /) -> bytes:
        return usual

    async def begin(self, response: web.StreamResponse, /) -> Writer | None:
        if self._request.version < HttpVersion11 and response.content_length is None:
            response.force_close()  # HTTP/1.0 has no chunks: closing ends the body (RFC 1945 §7.2.2)
        return cast("Writer | None", await response.prepare(self._request))

    async def end(self, response: web.StreamResponse, failed_end: bytes | None, /) -> None:
        if failed_end:
            await response.write(failed_end)
        if failed_end is not None and self._request.version >= HttpVersion11 and isinstance(response, StreamBody):
            response.leave_open()
        else:  # HTTP/1.0 ends a body by closing the connection in both cases
            await response.write_eof()

    async def end_with(self, response: web.StreamResponse, last: bytes, /) -> None:
        await response.write_eof(last)


class Reply:
    """A response to ``request`` in the dialect of ``client``. Call ``run`` with the work that writes it.

    * ``stream``: send a stream; else one JSON body. ``as_array``: send the stream as a JSON array.
    * ``headers``: headers that are sent in every case. ``outlet``: the destination, if not the response to ``request`` itself.
    * ``begins``: called once no other upstream will be tried. ``shape``: changes what is written.
    """

    def __init__(
        self,
        request: web.Request,
        client: str,
        *,
        stream: bool = True,
        as_array: bool = False,
        delivery: Delivery = DEFAULT_DELIVERY,
        headers: Mapping[str, str] | None = None,
        begins: Callable[[], None] = lambda: None,
        outlet: Outlet | None = None,
        shape: Shape | None = None,
    ) -> None:
        self.client = client
        self._shape = shape
        self.headers: dict[str, str] = dict(headers or {})  #: sent with the response, whichever upstream it is from
        self.upstream_headers: Mapping[str, str] = {}  #: the headers of the upstream that responds; sent too
        self.begun = False  #: whether anything except keep-alives was written: then no other upstream can be tried
        self._begins = begins
        self.ending: Ending | None = None
        self.failure: ProviderFailed | None = None  #: the error that the client got instead of a whole response
        self.keep_alives = 0
        self.first_at: float | None = (
            None  #: the event loop's time at the response's first byte, not counting keep-alives
        )
        self.interrupted: Exception | None = None  #: set by ``interrupt``: no other upstream is tried after that
        self.tap: Tap | None = None  #: receives all bytes that are read and written for this response
        self._has_end = (
            False  #: Whether the terminator or an error frame was written. The upstream's body may still be open.
        )
        self._written: StreamReport | None = None  # the report of the pipe whose output is written
        self._sources: list[Interruptible] = []  # the sources that are being read: two if two attempts race
        self._request = request
        self._outlet = outlet or HTTPOutlet(request)
        self._dialect = client_named(client)[0]
        self._stream = stream
        surface = self._dialect.http.surface
        self._array = surface.array if as_array and surface is not None else None
        self._media_type = self._dialect.media_type if stream and self._array is None else "application/json"
        self.delivery = delivery
        if stream and self._array is None:
            alive = keep_alive(client, delivery.keep_alive)
        else:
            alive = b" " if stream or delivery.whole_keep_alive else b""
        self._alive = self._outlet.keep_alive(alive)
        self._response: web.StreamResponse | None = None
        self._last = b""  # the last bytes, which are sent together with the end of the body
        self._writer: Writer | None = None  # the response's writer; calling it directly saves a coroutine
        self._preparing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._wrote_at = self._loop.time()
        self._work: asyncio.Task[Any] | None = None  # the task that does the work, while it does
        self._is_stopped = False  # whether ``_stop`` has cancelled it
        self._timer: asyncio.TimerHandle | None = None  # for the next keep-alive
        self._staying_alive: asyncio.Task[None] | None = None  # writes a keep-alive
        self._was_cancelled = False  # aiohttp cancelled the handler, but the response continues
        self._watch = Watch(request, self._gone, stall_s=delivery.stall_s)
        self._outlet.answers(self)

    @property
    def status(self) -> int:
        """The HTTP status that the client got; 499 if the client disconnected before there was a status."""
        return 499 if self._response is None else self._response.status

    @property
    def client_headers(self) -> Mapping[str, str]:
        """The headers of the request, including the client's key."""
        return self._request.headers

    # -- called by the handler -------------------------------------------------------------------------------------

    async def run(self, work: Coroutine[Any, Any, None]) -> web.StreamResponse:
        """Do ``work``, which calls ``send``, ``whole`` or ``fail``; write keep-alives meanwhile.

        If ``work`` raises, the exception is logged and the client gets an error in its dialect. Cancelling ``run`` cancels
        ``work`` and waits until ``work`` has closed everything that it opened. There is one exception: if aiohttp cancels
        ``run`` because the client disconnected and the client can resume the response, the first cancellation is ignored.
        """
        self._watch.start()
        live = self._request.config_dict.get(LIVE)
        if live is not None:
            live.add(self)
        self._time_keep_alive()
        try:
            await (self._apart(work) if self._outlet.outlives else self._here(work))
            await self._close()
            if not self._watch.all_taken:
                await self._watch.taken()
        except ClientLeftError:
            self._leave("client left")
        except asyncio.CancelledError:
            self._leave("client left")
            raise
        finally:
            self._work = None
            if live is not None:
                live.discard(self)
            self._watch.stop()
            if self._timer is not None:
                self._timer.cancel()
            if self._staying_alive is not None:
                self._staying_alive.cancel()
            self._outlet.over(self._end())
        return self._response or web.Response(status=499, reason="Client Closed Request")

    async def _here(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work in this task. Raises ClientLeftError."""
        task = self._work = cast("asyncio.Task[Any]", asyncio.current_task(self._loop))
        before = task.cancelling()
        try:
            await work
        except (ClientLeftError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except asyncio.CancelledError:
            self._work = None
            if self._is_stopped:
                task.uncancel()
            if task.cancelling() > before:  # other code cancelled the handler
                raise
            await self._cancelled()
        except BaseException as error:  # also a group with a CancelledError, and a panic of a package in Rust
            self._work = None
            stage = stage_of(error)
            where = "" if stage is None else f" in the stage {stage}"
            log.exception("the response to %s failed%s", quoted(self._request.path), where)
            await self._break_off(failure_from(error) if isinstance(error, Exception) else FAILED)
        finally:
            self._work = None

    async def _apart(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work in a task of its own, which continues if aiohttp cancels this one. Raises ClientLeftError."""
        task = self._loop.create_task(self._here(work))
        try:
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError:
                    if not self._goes_on():
                        raise
            await task
        finally:
            # the client has all: read the upstream's last bytes, so that its connection can be reused
            if self._watch.all_taken:
                await asyncio.wait({task}, timeout=DRAIN_S)
            task.cancel()
            await asyncio.wait({task})

    async def _cancelled(self) -> None:
        """Report why the work was cancelled. Raises ClientLeftError."""
        if self.interrupted is not None:
            await self._break_off(failure_from(self.interrupted))
        elif self.ending is None:  # neither the client nor the server ended it: a stage raised CancelledError
            log.error("the response to %s failed: a stage or a source was cancelled", quoted(self._request.path))
            await self._break_off(FAILED)
        else:
            raise ClientLeftError

    def _goes_on(self) -> bool:
        """Return whether the handler was cancelled because the client disconnected, and the response continues without it."""
        task = asyncio.current_task()
        if self._was_cancelled or task is None or not self._watch.closing() or not self._outlet.goes_on():
            return False
        self._was_cancelled = True
        self._alive = b""
        task.uncancel()
        return True

    def interrupt(self, error: Exception) -> None:
        """End the response with ``error`` in the client's dialect: fail the present read, or cancel other work."""
        if self.interrupted is None:
            self.interrupted = error
            for source in self._sources:
                source.fail(error)
            if not self._sources:
                self._stop()

    def _stop(self) -> None:
        """Cancel the work."""
        if self._work is not None and not self._is_stopped:
            self._is_stopped = True
            self._work.cancel()

    async def _break_off(self, failed: ProviderFailed) -> None:
        """Report an error because the work ended early. Nothing is written after a terminator, an error or a whole body."""
        if self.ending is None and not self._has_end:
            if self.begun and (self._array is not None or not self._stream):
                self.failure, self.ending = failed, "broken"  # a JSON text was begun: an error can't be written into it
            else:
                await self.fail(failed)

    def _due(self) -> float | None:
        """Return the seconds until the next keep-alive; None if no keep-alive will be sent."""
        if not self._alive or self._has_end or (self.begun and not self._stream):
            return None
        return max(0.0, self._wrote_at + self.delivery.keep_alive_s - self._loop.time())

    def _time_keep_alive(self) -> None:
        """Write a keep-alive if it is due; else set the timer to the time when it will be."""
        self._timer = None
        due = self._due()
        if due == 0:
            self._staying_alive = self._loop.create_task(self._stay_alive())
        elif due is not None:
            self._timer = self._loop.call_later(due, self._time_keep_alive)

    async def _stay_alive(self) -> None:
        try:
            await self._write(self._alive, keep_alive=True)
        except ClientLeftError:
            self._gone("client left")
            return
        self.keep_alives += 1
        self._time_keep_alive()

    async def _close(self) -> None:
        """End the body as the outlet requires, so that the client knows that the response is over."""
        if self._response is None:
            await self.fail(FAILED)  # the work ended without writing anything
        self._outlet.over(self._end())
        response = cast("web.StreamResponse", self._response)
        try:
            if self._last:
                await self._outlet.end_with(response, self._last)
                self._watch.written_last()
            else:
                await self._outlet.end(response, self._failed_end())
        except ConnectionError as error:
            raise ClientLeftError from error
        if self.ending is None:
            self.ending = "whole"

    def _failed_end(self) -> bytes | None:
        """Return the bytes that replace the end of the body after a failure; None for the normal end."""
        if self.ending not in {"error", "broken"} or isinstance(self._response, web.Response):
            return None
        if not self._stream:  # one JSON text: an error or an incomplete response
            return b"" if self.ending == "broken" else None
        failed_end = self._dialect.failed_end
        return failed_end if self._array is None or failed_end is None else b""

    def _end(self) -> End:
        """Return the kind of end that a log of resumable responses records."""
        if self.ending == "whole" and self.failure is None:
            return "done"
        if isinstance(self.interrupted, Interrupted):
            return self.interrupted.end
        return "failed" if self.ending in {"error", "broken"} else "aborted"

    def _leave(self, ending: Ending) -> None:
        if self.ending in {None, "whole"}:
            self.ending = "whole" if self._watch.all_taken else ending

    def _gone(self, why: Gone) -> None:
        if not self._watch.all_taken and self._outlet.goes_on():
            self._alive = b""
            return
        self._leave(why)
        if not self._watch.all_taken:
            self._stop()

    # -- called by the work ----------------------------------------------------------------------------------------

    async def send(
        self,
        pipe: Pipe[bytes],
        source: Interruptible | None = None,
        *,
        cut: Cut = str,
        is_array: bool = False,
        gate: Gate | None = None,
    ) -> ProviderFailed | None:
        """Enter a pipe and write its output. Return the failure if it failed before the model spoke: then nothing was written.

        A later failure is in the output, in ``failure`` and in ``pipe.report``. ``source`` is the source that the pipe reads,
        so that ``interrupt`` can fail its read. ``cut`` removes keys from failures, and from all output after a failure.
        ``is_array``: the output of the pipe is a JSON array already, if it has to be one. ``gate`` decides when it is written,
        if another attempt may still be written instead. Raises ClientLeftError.
        """
        if source is not None:
            self._sources.append(source)
            source.report = pipe.report
        if self._array is not None and not is_array:
            pipe = as_array(pipe, self._array)
        try:
            return await self._send(pipe, cut, gate)
        except Exception as error:
            if self._written is not pipe.report:
                pass  # nothing of it was written, and another attempt may be writing
            elif pipe.report.error is error:  # ``encode`` has written the error already
                self.ending, self.failure = "broken", hidden(failure_from(error), cut)
            elif self._has_end and not isinstance(error, ClientLeftError):
                self._ended(pipe.report, cut)
            raise
        except asyncio.CancelledError:
            if self._written is pipe.report and self._has_end and self.interrupted is not None:
                self._ended(pipe.report, cut)
            raise
        finally:
            if source is not None:
                self._sources.remove(source)

    async def _send(self, pipe: Pipe[bytes], cut: Cut, gate: Gate | None) -> ProviderFailed | None:
        held: list[bytes] = []
        held_bytes = 0
        async with pipe:
            async for made in pipe:
                chunk = without_keys(made, cut, pipe.report)
                if self._written is not pipe.report:
                    if self.begun:  # by another attempt: this one was cancelled, and a stage made an error of that
                        continue
                    held.append(chunk)
                    held_bytes += len(chunk)
                    spoken = pipe.report.spoken and (gate is None or not gate.holds())
                    if not spoken and held_bytes <= HELD_BYTES:
                        continue
                    if isinstance(pipe.report.error, Exception) and not isinstance(pipe.report.error, StreamError):
                        continue  # a stage or the program failed: the next step raises, and the client gets a status
                    self._begin(gate, pipe.report)
                    chunk = b"".join(held)
                    held.clear()
                report = pipe.report
                if report.clean and self._outlet.joins_end and self._writer is not None:
                    # the pipe is at its end: the last bytes are sent with the end of the body, in ``_close``
                    self._has_end = True
                    self._last += await self._noted(chunk)
                elif report.completed:
                    await self._write_last(chunk)
                elif report.failure is None and report.clean is not False:
                    await self._write(chunk)
                else:
                    await self._write_last(chunk)
                    # close the response now: many clients leave after an error frame, while the upstream may continue
                    self._ended(report, cut)
        if self._written is not pipe.report:
            if self.begun or not pipe.report.clean:
                return hidden(failure_in(pipe.report), cut)
            body = b"".join(held)
            if gate is not None and (kept := gate.keeps(body, pipe.report, cut)) is not None:
                return kept
            self._begin(gate, pipe.report)
            await self._write_last(body)
        self._ended(pipe.report, cut)
        return None

    async def write_kept(self, body: bytes, report: StreamReport, cut: Cut) -> None:
        """Write a complete stream that a gate has kept."""
        self._begin()
        await self._write_last(body)
        self._ended(report, cut)

    def _ended(self, report: StreamReport, cut: Cut) -> None:
        """Set ``failure`` and ``ending`` after the whole stream was written; later errors do not change that."""
        self.failure = None if report.clean else hidden(failure_in(report), cut)
        self.ending = "whole" if self.failure is None else "broken"

    def _begin(self, gate: Gate | None = None, report: StreamReport | None = None) -> None:
        if not self.begun:
            if gate is not None:
                gate.opens()
            self.begun, self._written = True, report
            self._begins()

    async def _write_last(self, chunk: bytes) -> None:
        """Write the bytes that end the response, or bytes after them. The client may then disconnect without a loss."""
        self._has_end = True
        self._outlet.last()
        try:
            await self._write(chunk)
        except ClientLeftError:
            if not self._watch.all_taken:
                raise
        else:
            self._watch.written_last()

    async def whole(self, body: bytes) -> None:
        self._begin()
        if self._shape is not None:
            body = await self._shape.whole(body)
        await self._write(body, length=len(body))
        self.ending = "whole"
        self._watch.written_last()

    async def fail(self, failed: ProviderFailed) -> None:
        """Send an error instead of a response: as an HTTP status, or as the dialect's error frame after keep-alives."""
        self.failure, self.ending = failed, "error"
        self._begin()
        answer = error_answer(failed, self.client)
        async with self._preparing:
            # over HTTP; a response that continues for its log has no status
            if self._response is None and not self._outlet.has_left:
                response = web.Response(
                    status=answer.status,
                    body=answer.body,
                    headers={**self.upstream_headers, **self.headers, **answer.headers},
                )
                if self.tap is not None:
                    self.tap.wrote(answer.body)
                await self._prepare(response)
                return
        self._outlet.last()
        if self._array is not None:
            await self._write(self._array.error(failed))
        elif self._stream:
            encoder = self._dialect.encoder(Encoding(profile=client_named(self.client)[1]), StreamReport())
            await self._write(encoder.feed([failed, StreamEnded(clean=False)]))
        else:
            await self._write(answer.body)

    async def _write(self, data: bytes, *, length: int | None = None, keep_alive: bool = False) -> None:
        writer = self._writer
        if writer is None or keep_alive:
            writer = await self._prepared(length, keep_alive=keep_alive)
        if writer is not None and data:
            data = await self._noted(data, keep_alive=keep_alive)
            try:
                await (self._outlet.stay_alive(writer, data) if keep_alive else writer.write(data))
            except ConnectionError as error:
                raise ClientLeftError from error

    async def _noted(self, data: bytes, *, keep_alive: bool = False) -> bytes:
        """Return the bytes to write in place of ``data``, after noting that they are written now."""
        if self._shape is not None and self._stream and not keep_alive:
            data = await self._shape.stream(data)
        self._wrote_at = self._loop.time()
        if self.begun and self.first_at is None:
            self.first_at = self._wrote_at
        if self.tap is not None:
            self.tap.wrote(data, keep_alive=keep_alive)
        return data

    async def _prepared(self, length: int | None, *, keep_alive: bool) -> Writer | None:
        """Return the body's writer, after writing the headers; None if it is too late for a keep-alive."""
        async with self._preparing:
            if keep_alive and (self.ending is not None or self._has_end or (self.begun and not self._stream)):
                return None  # another task began the response while this one waited for the lock
            if self._response is None:
                usual = STREAM_HEADERS if self._stream else {}
                headers = {**self.upstream_headers, **self.headers, "Content-Type": self._media_type, **usual}
                if not self.begun:  # a keep-alive: another upstream may still answer
                    headers = {name: value for name, value in headers.items() if name not in NAMES}
                response = StreamBody(self._request, headers, linger_s=self.delivery.linger_s)
                if length is not None and not self._stream:
                    response.content_length = length
                await self._prepare(response)
            return self._writer

    async def _prepare(self, response: web.StreamResponse) -> None:
        transport = self._request.transport
        if transport is not None and not transport.is_closing():
            bound_unsent(transport, self.delivery.unsent_bytes)
        elif not self._outlet.goes_on():
            raise ClientLeftError
        try:
            self._writer = self._watch.writer = await self._outlet.begin(response)
        except ConnectionError as error:  # aiohttp has three errors for it, all of this class (quirks.md 120)
            raise ClientLeftError from error
        self._response = response


def reply_to(
    request: web.Request,
    ask: Ask,
    delivery: Delivery,
    headers: Mapping[str, str] | None = None,
    *,
    outlet: Outlet | None = None,
    is_kept: bool = False,
    shape: Shape | None = None,
) -> Reply:
    """Return the reply to ``ask``. It frees the conversation once no other upstream is tried, or with ``is_kept`` never."""
    return Reply(
        request,
        ask.dialect,
        stream=ask.stream,
        as_array=ask.as_array,
        delivery=delivery,
        headers=headers,
        begins=(lambda: None) if is_kept else ask.let_go,
        outlet=outlet,
        shape=shape,
    )


def failure_in(report: StreamReport) -> ProviderFailed:
    """Return why a stream is incomplete: the provider's error, the error while reading it, or an interruption."""
    if isinstance(report.failure, ProviderFailed):
        return report.failure
    if report.error is not None:
        return failure_from(report.error)
    return ProviderFailed("truncated", "the upstream's response ended before its completion point", code=TRUNCATED)


# -- a stream as one JSON array ----------------------------------------------------------------------------------------


def events_to_array(form: ArrayForm, *, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, bytes]:
    """Return a stage that converts the dialect's stream, in whole frames, to one JSON array.

    Raises BrokenFrame for a frame that the stream's end truncated, and LimitExceeded.
    """
    return Stage("events to array", lambda _report: form.writer(limits), takes="bytes", gives="bytes")


def as_array(stream: Pipe[bytes], form: ArrayForm) -> Pipe[bytes]:
    """Return a pipe that yields ``stream`` as an array. Enter it instead of ``stream``; it has the same report."""
    return pipe(Entered(stream), events_to_array(form), report=stream.report)


class Entered:
    """Makes a pipe the source of another pipe. It enters the pipe at the first read, and leaves it when it is closed."""

    def __init__(self, stream: Pipe[bytes]) -> None:
        self._stream = stream
        self._entered = False

    def __aiter__(self) -> Entered:
        return self

    async def __anext__(self) -> bytes:
        if not self._entered:
            self._entered = True
            await self._stream.__aenter__()
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            raise
        except Exception as error:
            await self._stream.__aexit__(type(error), error)  # which notes the stage that raised it
            raise

    async def aclose(self) -> None:
        await self._stream.__aexit__()


# -- responses in progress when the server stops: aiohttp does not know about long streams -----------------------------

FRAMES_S: Final = 1.0  #: the last seconds of the grace period, in which unfinished streams get their error frames
LOOK_S: Final = 0.05  #: seconds between two checks whether streams are still in progress


#: The key of an application's responses in progress. ``end_streams_on_shutdown`` adds it.
LIVE: Final = web.AppKey("streamkit-live", set[Reply])


def end_streams_on_shutdown(app: web.Application, *, grace_s: float = 30.0, hurry: asyncio.Event | None = None) -> None:
    """When ``app`` shuts down, give live streams ``grace_s`` seconds to end; then end the remaining ones with an error frame.

    If ``hurry`` is set, the remaining ones end at once. All of this happens after aiohttp has stopped accepting connections,
    and before aiohttp's own ``shutdown_timeout`` begins.
    """
    live = app[LIVE] = set()

    async def shut_down(_app: web.Application) -> None:
        loop = asyncio.get_running_loop()
        await _emptied(live, loop.time() + max(0.0, grace_s - FRAMES_S), hurry)
        for reply in list(live):
            reply.interrupt(Interrupted("the server is shutting down; retry the request"))
        await _emptied(live, loop.time() + FRAMES_S)

    app.on_shutdown.append(shut_down)


async def _emptied(live: set[Reply], until: float, hurry: asyncio.Event | None = None) -> None:
    loop = asyncio.get_running_loop()
    while live and loop.time() < until and not (hurry is not None and hurry.is_set()):  # noqa: ASYNC110 - a set does not notify anyone of changes
        await asyncio.sleep(LOOK_S)
