"""A reverse proxy for one provider that records every exchange and changes none.

The proxy forwards any method and path to the provider's base URL, with the same body bytes. It writes each read of a response
to the client before it makes the next read. It forwards all headers except those of a connection (RFC 9110 §7.6.1), and
asks the provider for uncompressed bodies. It does not follow redirects; the client does. If one side breaks its connection,
the proxy closes the other side's connection.

A client's API keys are forwarded and are not written to disk (``recording/writer.py``). The proxy refuses requests whose
``Host`` is not one of its own names, and requests from web pages: it may reach servers that those pages cannot reach.

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
from attrs import define, field
from multidict import CIMultiDict
from yarl import URL

from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import Interrupted, SourceFailed, StreamError, TimedOut, UsageError
from streamkit.lab.recording.headers import HOP_BY_HOP
from streamkit.lab.recording.recorder import OpenRecording, Recorder
from streamkit.limits import MIB
from streamkit.text.quoting import quoted
from streamkit.web.client_dialect import client_dialect, expected, no_socket, wants_socket
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.observers import CLIENT_LEFT, SHUT_DOWN, end_of
from streamkit.web.refusals import Refused, with_status
from streamkit.web.source import TimedSource, Timeouts, iter_upstream
from streamkit.web.surfaces import surfaces
from streamkit.web.upstream import client_session
from streamkit.web.upstream.sending import not_answered, sent_once_more

#: The largest request body. The body is held in memory until it is sent; prompts with images have some MiB.
BODY_BYTES: Final = 64 * MIB
#: The proxy's time limits for a provider. They are longer than those of clients, so that the client decides when to give up.
TIMEOUTS: Final = Timeouts(connect_s=10.0, first_byte_s=3600.0, idle_s=3600.0)
#: Request headers that the proxy writes itself: they describe the body that it has read, and the host that it sends to.
_WRITTEN: Final = frozenset({"accept-encoding", "content-length", "expect", "host"})
#: Headers that aiohttp adds to a request that lacks them.
_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@define(eq=False)
class Exchanged:
    """An exchange, as data for one log line. It is complete when the exchange is over and its file is closed."""

    method: str
    path: str  #: the path that the client requested, without the query
    status: int | None = None  #: the provider's status; None: the provider did not respond
    reads: int = 0
    bytes: int = 0
    seconds: float = 0.0
    end: str = ""  #: how the exchange ended, as a value of ``recording.End.kind``
    file: Path | None = None  #: the recording's file; None: the exchange was not recorded
    file_end: str = (
        ""  #: the end written in the file; it differs from ``end`` if the recorder stopped the recording early
    )


def base_url(text: str) -> str:
    """Return a provider's address without a trailing slash. Raises UsageError for an invalid address."""
    try:
        url = URL(text)
        is_known = url.scheme in {"http", "https"} and bool(url.host) and url.port != 0
    except ValueError:
        is_known = False
    if not is_known or any(letter.isspace() or not letter.isprintable() for letter in text):
        raise UsageError(f"{quoted(text)} is not a provider's address; write https://host or https://host/path")
    if url.user is not None or url.password is not None or "?" in text or "#" in text:
        raise UsageError("a provider's address must have no user, password, `?` or `#`; clients send their keys")
    return str(url).rstrip("/")


@define(eq=False)
class Proxy:
    """The proxy of one provider. It calls ``tell`` with each exchange when the exchange is over and its file is closed.

    ``base_url`` must be a result of the function ``base_url``. ``dialect`` is the provider's dialect; if it is None, the
    request's path decides, or else the bytes of the response.
    """

    base_url: str
    recorder: Recorder
    tell: Callable[[Exchanged], None]
    dialect: str | None = None
    provider: str = ""
    timeouts: Timeouts = TIMEOUTS
    _session: ClientSession = field(init=False, repr=False)
    _asking: set[asyncio.Task[object] | None] = field(init=False, factory=set)  # tasks that wait for response headers
    _live: set[TimedSource] = field(init=False, factory=set)
    _is_stopping: bool = field(init=False, default=False)

    def app(self, hosts: Hosts | None = None) -> web.Application:
        """Return the web application. ``hosts`` are the accepted ``Host`` names, by default this machine's names."""
        app = web.Application(client_max_size=BODY_BYTES, middlewares=[guarded(hosts or Hosts(), "recorder")])
        app.router.add_route("*", "/{path:.*}", self._handle, expect_handler=expected)
        self.add_to(app)
        return app

    def add_to(self, app: web.Application) -> None:
        """Open and close the proxy's client session with ``app``, so that handlers of ``app`` can call ``pass_on``."""
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
        """Send a client's request with this body to the provider and return the response. Record both.

        Raises Refused if the provider does not respond, and for a path that would leave the base URL.
        """
        target = _target(request)
        loop, line = asyncio.get_running_loop(), Exchanged(request.method, request.path)
        started, closed = loop.time(), loop.create_future()

        def note_file(file: Path | None, end: str) -> None:
            line.file, line.file_end = file, end
            closed.set_result(None)

        dialect = _dialect_of(request.path) if self.dialect is None else self.dialect
        recording = self.recorder.open(
            dialect=dialect,
            provider=self.provider,
            saved=lambda *written: loop.call_soon_threadsafe(note_file, *written),
        )
        try:
            return await self._exchange(request, target, body, recording, line)
        finally:
            # this has no effect if the recording already has an end
            recording.end(SHUT_DOWN if self._is_stopping else CLIENT_LEFT)
            line.end, line.seconds = recording.ending, loop.time() - started
            closed.add_done_callback(lambda _closed: self.tell(line))

    async def _exchange(
        self, request: web.Request, target: str, body: bytes | None, recording: OpenRecording, line: Exchanged
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
        """Return the provider's response with its body unread, or the error if the provider did not respond."""

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
    request: web.Request, response: ClientResponse, source: TimedSource, line: Exchanged
) -> web.StreamResponse:
    """Forward the provider's response read by read. If it is interrupted, close the client's connection."""
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
    except StreamError:  # the recording has the error
        if request.transport is not None:
            request.transport.close()
    return answer


def _unanswered(request: web.Request, error: SourceFailed) -> Refused:
    """Return the error response for a client whose provider did not respond (RFC 9110 §15.6.3, §15.6.5)."""
    failed, status = failure_from(error), 504 if isinstance(error, TimedOut) else 502
    return Refused(with_status(failed.type, failed.message, status, client_dialect(request)))


def _target(request: web.Request) -> str:
    """Return path and query as the client sent them. Raises Refused for a target that would leave the base URL."""
    target = request.raw_path
    segments = unquote(target.partition("?")[0]).replace("\\", "/").split("/")
    if not target.startswith("/") or "#" in target or not {".", ".."}.isdisjoint(segments):
        message = "the path must begin with `/` and must not contain `..`"
        raise Refused(with_status("invalid_request", message, 400, client_dialect(request)))
    return target


def _dialect_of(path: str) -> str | None:
    """Return the dialect whose endpoint has this path; None if no dialect or several have it."""
    found = [name for name, surface in surfaces().items() if surface.path.search(path)]
    return found[0] if len(found) == 1 else None


def _end_to_end(headers: Mapping[str, str], left_out: frozenset[str]) -> CIMultiDict[str]:
    """Return the headers except those in ``left_out`` and those that ``Connection`` names."""
    listed = [value for name, value in headers.items() if name.lower() == "connection"]
    named = {name.strip().lower() for value in listed for name in value.split(",")}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out | named)
