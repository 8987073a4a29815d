"""A reverse proxy in front of one provider, which records what goes over it and changes none of it.

Any method and path below the base URL is passed on, with the same bytes of bodies, and each read of an answer is written
before the next is made. Headers pass but for those of a connection (RFC 9110 §7.6.1), and the provider is asked for bodies
that are not compressed. Redirects are the client's to follow. Where one side breaks off, the other side's connection is
closed.

A client's keys pass, and are written nowhere (``recording/writer.py``). What asks by another name than the proxy's, and pages
of the web, are refused: the proxy may be able to reach what they can't.

Source: observe.md O24, O25; RFC 9110 §7.6.1, §15.5.20 (421); limits.md T15.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, web
from attrs import define, field, frozen
from multidict import CIMultiDict
from yarl import URL

from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import Interrupted, SourceFailed, StreamError, TimedOut, UsageError
from streamkit.lab.recording.recorder import OpenRecording, Recorder
from streamkit.limits import MIB
from streamkit.text.quoting import quoted
from streamkit.web.client_dialect import client_dialect, expected, no_socket, wants_socket
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.recording import CLIENT_LEFT, SHUT_DOWN, end_of
from streamkit.web.refusals import Refused, with_status
from streamkit.web.source import TimedSource, Timeouts, iter_upstream
from streamkit.web.surfaces import surfaces
from streamkit.web.upstream import client_session
from streamkit.web.upstream.connections import sent_once_more
from streamkit.web.upstream.sending import not_answered

#: The longest body of a request, which is held until it is sent: prompts with images have some MiB.
BODY_BYTES: Final = 64 * MIB
#: A proxy has less reason to give up than its client; a model that thinks, or a queue, may be silent for long.
TIMEOUTS: Final = Timeouts(connect_s=10.0, first_byte_s=3600.0, idle_s=3600.0)
#: Headers of a connection, whatever ``Connection`` names beside them (RFC 9110 §7.6.1; RFC 9112 §9.6, §6.1).
HOP_BY_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
#: Headers of a request that are the proxy's to write: of the body that it has read, and where it goes.
_WRITTEN: Final = frozenset({"accept-encoding", "content-length", "expect", "host"})
#: What aiohttp adds to a request where it is not there.
_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@frozen(kw_only=True)
class Exchanged:
    """One exchange that is over, for a line about it."""

    method: str
    path: str  #: as the client asked, without the query
    status: int | None  #: of the provider; None: it did not answer
    reads: int
    bytes: int
    seconds: float
    end: str  #: a word of ``recording.End.kind``
    file: Path | None  #: None: it is in no file
    file_end: str  #: the end that stands there, which is another where the recorder ended it


def base_url(text: str) -> str:
    """A provider's address as the proxy needs it: no slash at its end. Raises UsageError for one that can't be."""
    try:
        url = URL(text)
        is_known = url.scheme in {"http", "https"} and bool(url.host) and url.port != 0
    except ValueError:
        is_known = False
    if not is_known or any(letter.isspace() or not letter.isprintable() for letter in text):
        raise UsageError(f"{quoted(text)} is no address of a provider; write it as https://host or https://host/path")
    if url.user is not None or url.password is not None or "?" in text or "#" in text:
        raise UsageError(
            "the address of a provider has no user, no password, no `?` and no `#`; clients send their keys"
        )
    return str(url).rstrip("/")


@define(eq=False)
class Proxy:
    """What passes on and records. ``tell`` gets each exchange once it is over and its file is closed.

    ``base_url`` is as the function of that name gives it. ``dialect`` is that of the provider; None: each path says it, or
    else the bytes of the answer.
    """

    base_url: str
    recorder: Recorder
    tell: Callable[[Exchanged], None]
    dialect: str | None = None
    provider: str = ""
    timeouts: Timeouts = TIMEOUTS
    _session: ClientSession = field(init=False, repr=False)
    _asking: set[asyncio.Task[object] | None] = field(init=False, factory=set)  # that wait for an answer's headers
    _live: set[TimedSource] = field(init=False, factory=set)
    _is_stopping: bool = field(init=False, default=False)

    def app(self, hosts: Hosts | None = None) -> web.Application:
        """The application; ``hosts`` are the names by which it may be called, by default this machine's own."""
        app = web.Application(client_max_size=BODY_BYTES, middlewares=[guarded(hosts or Hosts(), "recorder")])
        app.router.add_route("*", "/{path:.*}", self._handle, expect_handler=expected)
        self.add_to(app)
        return app

    def add_to(self, app: web.Application) -> None:
        """Let handlers of an application use ``pass_on``."""
        app.cleanup_ctx.append(self._connected)
        app.on_shutdown.append(self._stop)

    async def _connected(self, _app: web.Application) -> AsyncGenerator[None, None]:
        async with client_session(decompress=False) as self._session:
            yield

    async def _stop(self, _app: web.Application) -> None:
        self._is_stopping = True
        for task in filter(None, self._asking):
            task.cancel()
        for source in self._live:
            source.fail(Interrupted("the recorder is shutting down"))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if wants_socket(request):
            raise no_socket(request)
        return await self.pass_on(request, await request.read() if request.can_read_body else None)

    async def pass_on(self, request: web.Request, body: bytes | None) -> web.StreamResponse:
        """Ask the provider what a client asks, with this body, and give the client its answer. Both are recorded.

        Raises Refused where there is no answer, and for a path that would lead elsewhere.
        """
        target = _target(request)
        line = _Line(request, self.tell)
        dialect = _dialect_of(request.path) if self.dialect is None else self.dialect
        recording = self.recorder.open(dialect=dialect, provider=self.provider, saved=line.saved)
        try:
            return await self._exchange(request, target, body, recording, line)
        finally:
            recording.end(SHUT_DOWN if self._is_stopping else CLIENT_LEFT)  # its first end counts
            line.ended(recording.ending)

    async def _exchange(
        self, request: web.Request, target: str, body: bytes | None, recording: OpenRecording, line: _Line
    ) -> web.StreamResponse:
        url = URL(self.base_url + target, encoded=True)
        headers = _end_to_end(request.headers, HOP_BY_HOP | _WRITTEN)
        headers["Accept-Encoding"] = "identity"
        recording.request(request.method, url.raw_path_qs, headers.items(), body)
        response = await self._ask(request.method, url, headers, body)
        if isinstance(response, SourceFailed):
            recording.end(end_of(response, answered=False))
            raise _unanswered(request, response)
        line.status = response.status
        recording.response(response.status, response.headers.items())
        source = iter_upstream(response, timeouts=self.timeouts)
        source.recording = recording
        self._live.add(source)
        try:
            return await _answer(request, response, source, line)
        finally:
            self._live.discard(source)
            if self._is_stopping:
                recording.end(SHUT_DOWN)
            await source.aclose()

    async def _ask(
        self, method: str, url: URL, headers: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse | SourceFailed:
        """The provider's answer, its body unread, or why there is none."""

        async def send() -> ClientResponse:
            return await self._session.request(
                method,
                url,
                data=None if body is None else io.BytesIO(body),
                headers=headers,
                skip_auto_headers=_ADDED,
                allow_redirects=False,
                timeout=ClientTimeout(total=None, connect=self.timeouts.connect_s),
            )

        task = asyncio.current_task()
        self._asking.add(task)
        try:
            async with asyncio.timeout(self.timeouts.first_byte_s):
                return await sent_once_more(send)
        except (ClientError, OSError) as error:
            return not_answered(error, self.timeouts)
        finally:
            self._asking.discard(task)


async def _answer(
    request: web.Request, response: ClientResponse, source: TimedSource, line: _Line
) -> web.StreamResponse:
    """Write the provider's answer as it comes. Where it breaks off, so does the client's connection."""
    answer = web.StreamResponse(
        status=response.status, reason=response.reason, headers=_end_to_end(response.headers, HOP_BY_HOP)
    )
    try:
        await answer.prepare(request)
        async for chunk in source:
            line.reads += 1
            line.bytes += len(chunk)
            await answer.write(chunk)
        await answer.write_eof()
    except StreamError:  # the recording says which
        if request.transport is not None:
            request.transport.close()
    return answer


@define(eq=False)
class _Line:
    """What is told of an exchange, once it is over and its file is closed, whichever comes last."""

    request: web.Request
    tell: Callable[[Exchanged], None]
    status: int | None = None
    reads: int = 0
    bytes: int = 0
    _loop: asyncio.AbstractEventLoop = field(init=False, factory=asyncio.get_running_loop)
    _started: float = field(init=False)
    _seconds: float = field(init=False, default=0.0)
    _end: str = field(init=False, default="")
    _file: Path | None = field(init=False, default=None)
    _file_end: str = field(init=False, default="")
    _is_saved: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._started = self._loop.time()

    def saved(self, file: Path | None, end: str) -> None:
        """The file is closed; told by the thread that writes."""
        self._loop.call_soon_threadsafe(self._report_end, file, end)

    def ended(self, end: str) -> None:
        self._end, self._seconds = end, self._loop.time() - self._started
        if self._is_saved:
            self._write()

    def _report_end(self, file: Path | None, end: str) -> None:
        self._file, self._file_end, self._is_saved = file, end, True
        if self._end:
            self._write()

    def _write(self) -> None:
        self.tell(
            Exchanged(
                method=self.request.method,
                path=self.request.path,
                status=self.status,
                reads=self.reads,
                bytes=self.bytes,
                seconds=self._seconds,
                end=self._end,
                file=self._file,
                file_end=self._file_end,
            )
        )


def _unanswered(request: web.Request, error: SourceFailed) -> Refused:
    """What a client is told where the provider did not answer (RFC 9110 §15.6.3, §15.6.5)."""
    failed, status = failure_from(error), 504 if isinstance(error, TimedOut) else 502
    return Refused(with_status(failed.type, failed.message, status, client_dialect(request)))


def _target(request: web.Request) -> str:
    """Path and query as the client sent them. Raises Refused for what would lead elsewhere than below the base URL."""
    target = request.raw_path
    segments = unquote(target.partition("?")[0]).replace("\\", "/").split("/")
    if not target.startswith("/") or "#" in target or not {".", ".."}.isdisjoint(segments):
        message = "a path that begins with `/` and does not climb is needed"
        raise Refused(with_status("invalid_request", message, 400, client_dialect(request)))
    return target


def _dialect_of(path: str) -> str | None:
    """The one dialect that is asked at a path; None: the path does not say."""
    found = [name for name, surface in surfaces().items() if surface.path.search(path)]
    return found[0] if len(found) == 1 else None


def _end_to_end(headers: Mapping[str, str], left_out: frozenset[str]) -> CIMultiDict[str]:
    """The headers without these names, and without what ``Connection`` names."""
    listed = [value for name, value in headers.items() if name.lower() == "connection"]
    named = {name.strip().lower() for value in listed for name in value.split(",")}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out | named)
