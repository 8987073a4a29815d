"""One answer to one client, over however many upstreams it takes.

Headers are held until the model has said something, for one keep-alive interval at most: until then a failing upstream is
still an HTTP status. After it the status is 200, keep-alives go out, and an error is the dialect's own frame. Another
upstream is possible until the model spoke; then the stream ends whole or with an error, never with a made-up success.

One task does the *work* on the answer, and alone enters, drives and leaves pipes; the handler waits for it, and for the next
keep-alive. A client that left, or that stalls, ends the work: see ``client_connection.py``.

Source: design.md §6; limits.md §1, T8; clients.md §5; quirks.md 117 to 129.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from aiohttp import HttpVersion11, web
from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.dialects import client_named, keep_alive
from streamkit.dialects.profiles import Encoding, KeepAliveForm
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import Interrupted
from streamkit.events import ProviderFailed, StreamEnded
from streamkit.limits import MIB
from streamkit.pipeline import Pipe
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.resume.log import End
from streamkit.text.quoting import quoted
from streamkit.web.client_connection import Gone, StreamBody, Watch, bound_unsent
from streamkit.web.json_array import as_array
from streamkit.web.refusals import error_answer
from streamkit.web.shutdown import LIVE
from streamkit.web.source import DRAIN_S
from streamkit.web.surfaces import Ask
from streamkit.web.tap import Tap
from streamkit.web.upstream.hiding import Cut, hidden, without_keys

log = logging.getLogger("streamkit.web")
#: What is held of a stream in which the model says nothing; behind it the client gets it after all.
HELD_BYTES: Final = 64 * 1024

#: How an answer ended: whole; with an error instead of it; with an error inside it; without the client.
Ending: TypeAlias = Literal["whole", "error", "broken"] | Gone

#: For streams on their way through proxies: nobody shall hold, compress or keep them (quirks.md 122, 124).
STREAM_HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


@frozen(kw_only=True)
class Delivery:
    """How an answer reaches a client."""

    #: Silence after which a keep-alive is written. Proxies and balancers cut after 60 s by default.
    keep_alive_s: float = field(default=15.0, validator=gt(0))
    #: Its form, where the dialect has several.
    keep_alive: KeepAliveForm = "dialect"
    #: Whether whole JSON answers get leading white space meanwhile. Their status is then 200, whatever comes.
    whole_keep_alive: bool = False
    #: Bytes that wait for the client before the upstream is left unread. Most answers fit, and free their upstream.
    unsent_bytes: int = field(default=MIB, validator=ge(1))
    #: How long a client may take none of the bytes that wait for it.
    stall_s: float = field(default=30.0, validator=gt(0))
    #: How long a client that does not leave at an error frame keeps its connection, where the body stays without its end
    #: (``Dialect.failed_end``). A client that reads more slowly than that loses what it has not read.
    linger_s: float = field(default=2.0, validator=ge(0))
    policy: Policy = TOLERANT
    #: Whether the report of a stream says what each stage took of it (``StreamReport.timings``).
    timings: bool = False


DEFAULT_DELIVERY = Delivery()


FAILED: Final = ProviderFailed("server", "the request was not answered")


class ClientLeftError(Exception):
    """The client is gone; nothing can be written any more."""


class Interruptible(Protocol):
    """What is being read, as far as an answer has to do with it."""

    report: StreamReport | None

    def fail(self, error: Exception) -> None:
        """Make the reader's next or present read raise ``error``."""


class Writer(Protocol):
    """What a body is written to. Raises ConnectionError once the client is gone."""

    @property
    def output_size(self) -> int:
        """Bytes that were given to the transport."""

    async def write(self, data: bytes, /) -> None: ...


class Outlet:
    """Where an answer goes: as one of HTTP, or in messages of a WebSocket."""

    async def begin(self, _response: web.StreamResponse, /) -> Writer | None:
        """Write status and headers, and the body of a ``web.Response``. Returns what writes the rest."""
        raise NotImplementedError

    async def end(self, _response: web.StreamResponse, _failed_end: bytes | None, /) -> None:
        """End the body; ``failed_end`` replaces its end where the answer failed (``Dialect.failed_end``)."""
        raise NotImplementedError

    def answers(self, reply: Reply) -> None:
        """Whose outlet it is."""

    def keep_alive(self, _usual: bytes, /) -> bytes:
        """What is written while the model is silent; empty: nothing. Given is how the dialect has it over HTTP."""
        return b""

    async def stay_alive(self, writer: Writer, data: bytes, /) -> None:
        """Write a keep-alive, which is no part of the answer."""
        await writer.write(data)

    def last(self) -> None:
        """What is written from now on says that the answer is over, or comes behind that."""

    #: The client is gone, and the answer goes on without it.
    has_left = False

    def goes_on(self) -> bool:
        """The client is gone: whether the answer goes on without it."""
        return False

    def over(self, why: End) -> None:
        """Nothing is written any more. Called whatever happened, once or twice: the first one counts."""


class Shape(Protocol):
    """Changes what is written of an answer, keep-alives and errors over HTTP aside."""

    async def stream(self, chunk: bytes, /) -> bytes:
        """Whole frames of a stream."""

    async def whole(self, body: bytes, /) -> bytes: ...


class HTTPOutlet(Outlet):
    """The answer of ``request`` itself."""

    def __init__(self, request: web.Request) -> None:
        self._request = request

    def keep_alive(self, usual: bytes, /) -> bytes:
        return usual

    async def begin(self, response: web.StreamResponse, /) -> Writer | None:
        if self._request.version < HttpVersion11 and response.content_length is None:
            response.force_close()  # HTTP/1.0 has no chunks: only the connection's end tells the answer's (RFC 1945 §7.2.2)
        return cast("Writer | None", await response.prepare(self._request))

    async def end(self, response: web.StreamResponse, failed_end: bytes | None, /) -> None:
        if failed_end:
            await response.write(failed_end)
        if failed_end is not None and self._request.version >= HttpVersion11 and isinstance(response, StreamBody):
            response.leave_open()
        else:  # in HTTP/1.0 the connection's end looks the same either way
            await response.write_eof()


class Reply:
    """An answer to ``request`` in the dialect of ``client``. ``run`` it with the work that fills it.

    ``stream``: it is one, else one JSON body. ``as_array``: the stream is a JSON array. ``outlet`` is where it goes if it is
    not the answer of ``request`` itself.
    ``headers`` go with it, whatever it is. ``begins`` is called once no other upstream will be asked. ``shape`` changes what
    is written.
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
        self.headers: dict[str, str] = dict(headers or {})  #: go with the answer, whoever gives it
        self.upstream_headers: Mapping[str, str] = {}  #: and these, of the upstream that gives it
        self.begun = False  #: something other than keep-alives was written, or an error: no other upstream after this
        self._begins = begins
        self.ending: Ending | None = None
        self.failure: ProviderFailed | None = None  #: what the client was told instead of an answer
        self.keep_alives = 0
        self.first_at: float | None = None  #: the loop's time of the first byte of an answer, keep-alives aside
        self.interrupted: Exception | None = None  #: set by ``interrupt``: no other upstream then
        self.tap: Tap | None = None  #: sees what is read and written for it
        #: The terminator or an error frame is written; the upstream's body may stay open behind it.
        self._has_end = False
        self._source: Interruptible | None = None  # what is being read
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
        self._writer: Writer | None = None  # the response's own, without a coroutine around it
        self._preparing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._wrote_at = self._loop.time()
        self._work: asyncio.Task[None]  # there once it runs
        self._was_cancelled = False  # by aiohttp, and went on
        self._watch = Watch(request, self._gone, stall_s=delivery.stall_s)
        self._outlet.answers(self)

    @property
    def status(self) -> int:
        """The HTTP status that the client got; 499 if it left before there was one."""
        return 499 if self._response is None else self._response.status

    @property
    def client_headers(self) -> Mapping[str, str]:
        """The headers of the request; keys are among them."""
        return self._request.headers

    # -- the handler's side ----------------------------------------------------------------------------------------

    async def run(self, work: Coroutine[Any, Any, None]) -> web.StreamResponse:
        """Wait for ``work``, which calls ``send``, ``whole`` or ``fail``, and write keep-alives meanwhile.

        An exception of the work is logged; the client gets an error in its dialect. Cancelling this cancels the work, and
        waits until it has closed what it opened, unless a client that left can come back: the first time that aiohttp tells
        of that by cancelling, the answer goes on.
        """
        self._work = asyncio.create_task(work)
        self._watch.start()
        live = self._request.config_dict.get(LIVE)
        if live is not None:
            live.add(self)
        try:
            await self._wait(self._work)
            await self._close()
            await self._watch.taken()
        except ClientLeftError:
            self._leave("client left")
        except asyncio.CancelledError:
            self._leave("client left")
            raise
        finally:
            if live is not None:
                live.discard(self)
            self._watch.stop()
            if self._watch.all_taken:  # the upstream's last bytes are read, and its connection used again
                await asyncio.wait({self._work}, timeout=DRAIN_S)
            self._work.cancel()
            await asyncio.wait({self._work})
            self._outlet.over(self._end())
        return self._response or web.Response(status=499, reason="Client Closed Request")

    async def _wait(self, work: asyncio.Task[None]) -> None:
        while not work.done():
            try:
                await asyncio.wait({work}, timeout=self._due())
                if not work.done() and self._due() == 0:
                    await self._write(self._alive, keep_alive=True)
                    self.keep_alives += 1
            except asyncio.CancelledError:
                if not self._goes_on():
                    raise
        if work.cancelled():
            if self.interrupted is None:
                raise ClientLeftError
            await self._break_off(failure_from(self.interrupted))
        elif isinstance(error := work.exception(), ClientLeftError):
            raise error
        elif error is not None:
            log.error("the answer to %s failed", quoted(self._request.path), exc_info=error)
            await self._break_off(failure_from(error) if isinstance(error, Exception) else FAILED)

    def _goes_on(self) -> bool:
        """Whether the handler was cancelled because the client left, and the answer goes on without it."""
        task = asyncio.current_task()
        if self._was_cancelled or task is None or not self._watch.closing() or not self._outlet.goes_on():
            return False
        self._was_cancelled = True
        self._alive = b""
        task.uncancel()
        return True

    def interrupt(self, error: Exception) -> None:
        """End the answer with ``error`` in its dialect, since the server stops. A read fails; other work is cancelled."""
        if self.interrupted is None:
            self.interrupted = error
            if self._source is not None:
                self._source.fail(error)
            else:
                self._work.cancel()

    async def _break_off(self, failed: ProviderFailed) -> None:
        """The work ended without an end of its own. Behind a terminator, an error or a whole body nothing is told."""
        if self.ending is None and not self._has_end:
            if self.begun and (self._array is not None or not self._stream):
                self.failure, self.ending = failed, "broken"  # half of a JSON text: no frame fits into it
            else:
                await self.fail(failed)

    def _due(self) -> float | None:
        """Seconds until a keep-alive is due; None if there are none."""
        if not self._alive or self._has_end or (self.begun and not self._stream):
            return None
        return max(0.0, self._wrote_at + self.delivery.keep_alive_s - self._loop.time())

    async def _close(self) -> None:
        """End the answer, so that the client knows it."""
        if self._response is None:
            await self.fail(FAILED)  # the work wrote nothing at all
        self._outlet.over(self._end())
        with _departures():
            await self._outlet.end(cast("web.StreamResponse", self._response), self._failed_end())
        if self.ending is None:
            self.ending = "whole"

    def _failed_end(self) -> bytes | None:
        """Return the bytes instead of the body's end; None: it ends as any other."""
        if self.ending not in {"error", "broken"} or isinstance(self._response, web.Response):
            return None
        if not self._stream:  # one JSON text, an error or half of an answer
            return b"" if self.ending == "broken" else None
        failed_end = self._dialect.failed_end
        return failed_end if self._array is None or failed_end is None else b""

    def _end(self) -> End:
        """How a log says that the answer ended."""
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
            self._work.cancel()

    # -- the work's side -------------------------------------------------------------------------------------------

    async def send(
        self, pipe: Pipe[bytes], source: Interruptible | None = None, *, cut: Cut = str, is_array: bool = False
    ) -> ProviderFailed | None:
        """Enter a pipe and write what it yields. Returns what failed before the model spoke: then nothing was written.

        A failure after that is in what was written, in ``failure``, and in ``pipe.report``. ``source`` is the pipe's, so that
        ``interrupt`` reaches it. ``cut`` takes keys out of failures, and of what is written from one on. ``is_array``: what
        the pipe yields is one already, where the answer is to be one. Raises ClientLeftError.
        """
        self._source = source
        if source is not None:
            source.report = pipe.report
        if self._array is not None and not is_array:
            pipe = as_array(pipe, self._array)
        try:
            return await self._send(pipe, cut)
        except Exception as error:
            if self.begun and pipe.report.error is error:  # ``encode`` has told the client
                self.ending, self.failure = "broken", hidden(failure_from(error), cut)
            elif self._has_end and not isinstance(error, ClientLeftError):
                self._ended(pipe.report, cut)
            raise
        except asyncio.CancelledError:
            if self._has_end and self.interrupted is not None:
                self._ended(pipe.report, cut)
            raise
        finally:
            self._source = None

    async def _send(self, pipe: Pipe[bytes], cut: Cut) -> ProviderFailed | None:
        held: list[bytes] = []
        held_bytes = 0
        async with pipe:
            async for made in pipe:
                chunk = without_keys(made, cut, pipe.report)
                if not self.begun:
                    held.append(chunk)
                    held_bytes += len(chunk)
                    if not pipe.report.spoken and held_bytes <= HELD_BYTES:
                        continue
                    self._begin()
                    chunk = b"".join(held)
                    held.clear()
                report = pipe.report
                if report.completed:
                    await self._write_last(chunk)
                elif report.failure is None and report.clean is not False:
                    await self._write(chunk)
                else:
                    await self._write_last(chunk)
                    self._ended(report, cut)  # many clients leave at an error frame, and the upstream's body may go on
        if not self.begun:
            if not pipe.report.clean:
                return hidden(failure_in(pipe.report), cut)
            self._begin()
            await self._write_last(b"".join(held))
        self._ended(pipe.report, cut)
        return None

    def _ended(self, report: StreamReport, cut: Cut) -> None:
        """All of a stream was written, whatever fails now."""
        self.failure = None if report.clean else hidden(failure_in(report), cut)
        self.ending = "whole" if self.failure is None else "broken"

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._begins()

    async def _write_last(self, chunk: bytes) -> None:
        """Write what says that the answer is whole or failed, or follows that: from then on the client may leave."""
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
        """Tell the client that there is no answer: by an HTTP status, or by the dialect's error frame behind keep-alives."""
        self.failure, self.ending = failed, "error"
        self._begin()
        answer = error_answer(failed, self.client)
        async with self._preparing:
            if self._response is None and not self._outlet.has_left:  # a log has no status
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
        else:
            await self._write(_error_frame(failed, self.client) if self._stream else answer.body)

    async def _write(self, data: bytes, *, length: int | None = None, keep_alive: bool = False) -> None:
        writer = self._writer
        if writer is None or keep_alive:
            writer = await self._prepared(length, keep_alive=keep_alive)
        if writer is not None and data:
            if self._shape is not None and self._stream and not keep_alive:
                data = await self._shape.stream(data)
            self._wrote_at = self._loop.time()
            if self.begun and self.first_at is None:
                self.first_at = self._wrote_at
            if self.tap is not None:
                self.tap.wrote(data, keep_alive=keep_alive)
            try:  # `_departures`, and a lock before it, took 8 % of the CPU of an event
                await (self._outlet.stay_alive(writer, data) if keep_alive else writer.write(data))
            except ConnectionError as error:
                raise ClientLeftError from error

    async def _prepared(self, length: int | None, *, keep_alive: bool) -> Writer | None:
        """What writes the body, the headers written; None where a keep-alive has no place any more."""
        async with self._preparing:
            if keep_alive and (self.ending is not None or self._has_end or (self.begun and not self._stream)):
                return None  # the answer began while this waited
            if self._response is None:
                headers = {**self.upstream_headers, **self.headers, "Content-Type": self._media_type}
                response = StreamBody(self._request, headers, linger_s=self.delivery.linger_s)
                if self._stream:
                    response.headers.update(STREAM_HEADERS)
                elif length is not None:
                    response.content_length = length
                await self._prepare(response)
            return self._writer

    async def _prepare(self, response: web.StreamResponse) -> None:
        transport = self._request.transport
        if transport is not None and not transport.is_closing():
            bound_unsent(transport, self.delivery.unsent_bytes)
        elif not self._outlet.goes_on():
            raise ClientLeftError
        with _departures():
            self._writer = self._watch.writer = await self._outlet.begin(response)
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
    """The answer to what a client asks, which is held no longer than others may be asked; ``is_kept``: to its end."""
    return Reply(
        request,
        ask.dialect,
        stream=ask.stream,
        as_array=ask.as_array,
        delivery=delivery,
        headers=headers,
        begins=_nothing if is_kept else ask.let_go,
        outlet=outlet,
        shape=shape,
    )


def _nothing() -> None:
    """The conversation is needed until the answer is over."""


@contextlib.contextmanager
def _departures() -> Iterator[None]:
    """That the client is gone, as aiohttp says it in three ways (quirks.md 120)."""
    try:
        yield
    except ConnectionError as error:  # ClientConnectionResetError is one
        raise ClientLeftError from error


def failure_in(report: StreamReport) -> ProviderFailed:
    """What ended a stream that is not whole: the provider's own words, what broke the reading, or that it was cut."""
    if isinstance(report.failure, ProviderFailed):
        return report.failure
    if report.error is not None:
        return failure_from(report.error)
    return ProviderFailed(
        "truncated", "the upstream's answer ended before its completion point", code="stream_truncated"
    )


def _error_frame(failed: ProviderFailed, client: str) -> bytes:
    """A stream that is nothing but an error."""
    dialect, profile = client_named(client)
    encoder = dialect.encoder(Encoding(profile=profile), StreamReport())
    return encoder.feed([failed, StreamEnded(clean=False)])
