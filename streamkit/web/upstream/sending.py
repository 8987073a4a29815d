"""Send a request to an upstream, over HTTP or a WebSocket, and read the responses that are errors.

Redirects are not followed, since the key would be sent there too. Proxies and ``.netrc`` of the environment are not used
(``connection`` has the upstream's own proxy), and cookies are not kept (limits.md T5, T6). An error of the transport becomes
``SourceFailed``, whose message names no host and no key. Its cause is chained for logs, except if its ``repr`` shows the
request's headers (``ClientResponseError``).

Nothing is retried here, with one exception. A server closes a connection that was idle for some seconds. A request may be on
its way at that moment: it fails before any byte of a response arrives, although the server works and never read the request.
Such a request is sent once more, at once, on a new connection (RFC 9112 §9.3.1). This applies only to connections that were
used before: if a new connection closes without a response, the request has failed.

A WebSocket is used if the upstream's configuration says so (``transport``) and its dialect allows it. Each request opens a
connection, which is closed after the response. A response that does not open the socket is an error with its status and body.
Messages become the bytes of the dialect's stream (``Endpoint.socket``). A ping is answered and becomes a comment, which resets
the idle timer. Other tasks may run after each ping, pong and empty message. The response ends after its last message. If the
socket is closed before that, the response was interrupted, whatever the close code says. A message may be as long as an event
of a stream. No compression is offered.

Source: design.md §6; limits.md §1, T5, T6, T9; seeds.md S3; clients.md §10.9; ui-protocols.md §4.1;
RFC 6455 §4.1, §5.5, §7.4.1; RFC 9112 §9.3.1, §9.5.
"""

from __future__ import annotations

import asyncio
import io
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeVar, cast

from aiohttp import (
    BaseConnector,
    ClientConnectionError,
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientHandlerType,
    ClientHttpProxyError,
    ClientProxyConnectionError,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    ClientWebSocketResponse,
    ConnectionTimeoutError,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
    WebSocketError,
    WSCloseCode,
    WSMsgType,
    WSServerHandshakeError,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from attrs import define, evolve, frozen
from yarl import URL

from streamkit.dialects.http import Operation, SocketEndpoint
from streamkit.dialects.vocabulary.error_bodies import REDIRECTED
from streamkit.errors import ConnectTimeout, EventTooLong, FirstByteTimeout, SourceFailed, StreamError, TotalTimeout
from streamkit.events import ProviderFailed
from streamkit.framing.sse import KEEP_ALIVE
from streamkit.http_errors import BODY_BYTES, decode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.sources import BROKE, because, is_reset
from streamkit.web.observers import CLIENT_LEFT, TIMEOUT, WHOLE, ExchangeRecording
from streamkit.web.source import READ_BYTES, TimedSource, Timeouts
from streamkit.web.upstream.hiding import redactor, redactor_for
from streamkit.web.upstream.requests import NO_HEADERS, address, authorised, request_headers
from streamkit.web.upstream.value import Upstream

T = TypeVar("T")


class _Protocol(ResponseHandler):
    """A connection that counts its requests and notes whether any bytes arrived since the last one."""

    requests = 0
    has_response = False

    def data_received(self, data: bytes) -> None:
        self.has_response = True
        super().data_received(data)


@define
class _Use:
    """The connection that a request uses."""

    is_new: bool = False  #: whether the connection must be new, not one that served an earlier request
    protocol: _Protocol | None = None


_USE: Final[ContextVar[_Use | None]] = ContextVar("streamkit-connection", default=None)


#: Seconds after which an idle connection to an upstream is closed. An agent's next request often comes within a minute, and a
#: new connection with TLS takes two round trips more. Servers and load balancers keep idle connections for 60 s or longer.
KEPT_S: Final = 50.0


class Connector(TCPConnector):
    """A connector without a limit on connections, since each open stream holds one: limit streams instead."""

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEPT_S)
        self._factory = partial(cast("type[ResponseHandler]", _Protocol), self._loop)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 - aiohttp's own name
    ) -> Connection:
        """Return a connection as aiohttp does. If the request needs a new one, skip connections that were used before."""
        use = _USE.get() or _Use()
        kept: list[Connection] = []
        try:
            while True:
                connection = await super().connect(req, traces, timeout)
                used = connection.protocol
                if not (use.is_new and isinstance(used, _Protocol) and used.requests):
                    break
                kept.append(connection)
        finally:
            for each in kept:
                each.release()
        if isinstance(used, _Protocol):
            used.requests, used.has_response, use.protocol = used.requests + 1, False, used
        return connection


async def sent_once_more(send: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``send``; call ``send`` again if the upstream had closed a kept connection of ``Connector``."""
    use = _Use()
    reset = _USE.set(use)
    try:
        try:
            return await send()
        except ClientConnectionError:
            used = use.protocol
            if used is None or used.requests == 1 or used.has_response:  # the upstream may have read the request
                raise
        use.is_new = True
        return await send()
    finally:
        _USE.reset(reset)


# -- requests ----------------------------------------------------------------------------------------------------------


#: Limits on an upstream's headers: bytes of one line, and number of lines. Cookies may take 10 KiB and more.
HEADER_BYTES, HEADERS = 64 * 1024, 256
PIECE_BYTES: Final = 64 * 1024  #: the largest body that is sent in one piece
#: Seconds to wait for the body of an error. It has a few hundred bytes and arrives with its headers.
ERROR_BODY_S: Final = 10.0
#: Encodings that aiohttp decodes in bounded steps; the last two only if their libraries are installed.
_DECODED: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
#: The words for each type of connection error in a message that must not show the upstream's host. The first matching type
#: counts.
_BROKE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ClientProxyConnectionError, "the connection to the proxy could not be opened"),
    (ClientConnectorCertificateError, "the upstream's certificate was not accepted"),
    (ClientSSLError, "the TLS connection to the upstream failed"),
    (ClientConnectorDNSError, "the host name of the upstream, or of its proxy, could not be resolved"),
    (ClientConnectorError, "the connection to the upstream could not be opened"),
    (ServerDisconnectedError, "the upstream closed the connection before it responded"),
    (WSServerHandshakeError, "the upstream's response to the WebSocket handshake is invalid"),
    (ClientResponseError, "the upstream's response is not valid HTTP"),
)
PROXY_REFUSED: Final = "the upstream's proxy refused the request (status {})"


def client_session(*, connector: BaseConnector | None = None, decompress: bool = True) -> ClientSession:
    """Return a session for ``send``; the caller closes it. Call this in the event loop that will use the session.

    Without ``decompress``, response bodies are read as they were sent.
    """
    return ClientSession(
        connector=connector if connector is not None else Connector(),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),
        trust_env=False,
        auto_decompress=decompress,
        raise_for_status=False,
        read_bufsize=READ_BYTES,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        max_headers=HEADERS,
    )


async def send(
    session: ClientSession,
    upstream: Upstream,
    body: bytes,
    *,
    model: str,
    stream: bool,
    operation: Operation = "generate",
    client_dialect: str = "",
    client_headers: Mapping[str, str] = NO_HEADERS,
    features: Mapping[str, str] = NO_HEADERS,
    trace_headers: Mapping[str, str] = NO_HEADERS,
    recording: ExchangeRecording | None = None,
) -> ClientResponse:
    """Post ``body`` and return the response, whatever its status, with its body unread. The caller closes it.

    ``model`` is the upstream's name for the model. ``features`` and ``trace_headers`` are those of ``request_headers``.
    ``recording`` records the request and the response's headers; it records the end only if the response is refused here.
    Raises SourceFailed, ConnectTimeout, FirstByteTimeout (no headers within ``first_byte_s``) and TotalTimeout. Raises
    BadRequest if the model's name or a client's header can't be sent, and UsageError for a count that the dialect does not
    have. Cancelling the call closes the connection.
    """
    url = address(upstream, model, stream=stream, operation=operation)
    asks_stream = stream and operation == "generate"
    headers = request_headers(
        upstream, client_dialect, client_headers, stream=asks_stream, features=features, trace_headers=trace_headers
    )
    headers = await authorised(upstream, "POST", url, headers, body)
    headers |= upstream.connection.headers
    if recording is not None:
        recording.request("POST", url.raw_path_qs, headers.items(), body)

    def post() -> Awaitable[ClientResponse]:
        return session.post(
            url,
            # a large body as a file, which aiohttp sends in pieces: sending more than 1 MiB as bytes blocks the event loop
            data=body if len(body) <= PIECE_BYTES else io.BytesIO(body),
            headers=headers,
            allow_redirects=False,
            timeout=ClientTimeout(total=None, connect=upstream.timeouts.connect_s),
            **upstream.connection.arguments,
        )

    response = await in_time(upstream.timeouts, asyncio.get_running_loop().time(), sent_once_more(post))
    encoding = response.headers.get("content-encoding", "").lower()
    if recording is not None:
        recording.response(response.status, _of_decoded(response, encoding))
    refused = ""
    if _is_of_proxy(response, upstream):
        refused = PROXY_REFUSED.format(response.status)
    elif response.status == 200 and encoding not in _DECODED:
        refused = "the upstream compressed its response in a way that the request did not accept"
    if refused:
        response.close()
        if recording is not None:
            recording.end(CLIENT_LEFT)
        raise SourceFailed(refused)
    return response


def _is_of_proxy(response: ClientResponse, upstream: Upstream) -> bool:
    """Return whether the upstream's proxy refused the gateway's credentials for it: only proxies send the status 407."""
    return response.status == 407 and upstream.proxy is not None


def _of_decoded(response: ClientResponse, encoding: str) -> list[tuple[str, str]]:
    """Return the response's headers, without those that describe the compression if aiohttp has decoded the body."""
    undone = {"content-encoding", "content-length"} if encoding in _DECODED - {"", "identity"} else set()
    return [(name, value) for name, value in response.headers.items() if name.lower() not in undone]


def not_answered(error: ClientError | OSError, times: Timeouts) -> SourceFailed:
    """Return why a request got no response: a timer that ran out, or an error of the transport."""
    failed: SourceFailed
    if isinstance(error, ClientHttpProxyError):
        failed = SourceFailed(PROXY_REFUSED.format(error.status))
    elif not isinstance(error, TimeoutError):
        words = next((words for kind, words in _BROKE if isinstance(error, kind)), BROKE)
        failed = SourceFailed(because(words, error))
    elif isinstance(error, ConnectionTimeoutError):
        failed = ConnectTimeout(times.connect_s)
    elif times.total_s is None or times.first_byte_s <= times.total_s:
        failed = FirstByteTimeout(times.first_byte_s)
    else:
        failed = TotalTimeout(times.total_s)
    # a ClientResponseError shows the request's headers
    failed.__cause__ = error.__cause__ if isinstance(error, ClientResponseError) else error
    return failed


async def in_time(times: Timeouts, started: float, sending: Awaitable[T]) -> T:
    """Return the response that ``sending`` returns. Raises SourceFailed if there is none within the time since ``started``."""
    try:
        async with asyncio.timeout_at(started + min(times.first_byte_s, times.total_s or math.inf)):
            return await sending
    except (ClientError, OSError) as error:
        failed = not_answered(error, times)
    raise failed  # outside of ``except``: the error's context would show the request's headers


async def error_of(
    response: ClientResponse, source: Upstream | str, *, recording: ExchangeRecording | None = None
) -> ProviderFailed:
    """Return the error in a response whose status is not 200, and close the response.

    At most 64 KiB of the body are read, for at most 10 seconds. ``source`` is the upstream, whose keys are then removed from
    the error, or the name of its dialect. ``recording`` records the body. Raises UsageError for an unknown name.
    """
    body, whole = await _beginning(response, recording)
    if isinstance(source, Upstream):
        hidden = redactor_for(source, response)(body.decode("utf-8", "surrogateescape"))
        body, source = hidden.encode("utf-8", "surrogateescape"), source.dialect
    failed = decode_error(response.status, body, source, response.headers)
    if 300 <= response.status < 400:
        # The message omits the location: it may have secrets, and clients may not know hosts. The operator can look it up.
        message = (
            f"the upstream responded with a redirect (status {response.status}), which is not followed. "
            "The gateway's operator must correct the scheme, the host or the path of the upstream's base_url"
        )
        return evolve(failed, type="server", message=message, code=REDIRECTED, vendor="", raw=None)
    return failed if whole else evolve(failed, message=f"{failed.message} (the rest of its body did not arrive)")


async def _beginning(response: ClientResponse, recording: ExchangeRecording | None) -> tuple[bytes, bool]:
    """Return at most 64 KiB of a body and one byte, which shows that it is longer; and whether no error occurred."""
    body = bytearray()
    whole, end = True, CLIENT_LEFT
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            async for chunk in response.content.iter_any():
                body += chunk
                if recording is not None:
                    recording.read(chunk)
                if len(body) > BODY_BYTES:
                    break
            else:
                end = WHOLE
    except (ClientError, OSError) as error:
        # or a timeout; the body is incomplete, but the status, which says most, has arrived
        whole = False
        end = f"{TIMEOUT}idle" if isinstance(error, TimeoutError) else "reset" if is_reset(error) else "cut"
    finally:
        response.close()
        if recording is not None:
            recording.end(end)
    return bytes(body[: BODY_BYTES + 1]), whole


# -- requests over a WebSocket -----------------------------------------------------------------------------------------


CLOSE_S: Final = 1.0  #: the most seconds for writing a WebSocket's close message
#: Request headers that describe a body. A handshake has no body.
_OF_A_BODY: Final = frozenset({"accept", "content-type"})
#: Response statuses to a handshake that mean that the server has no WebSocket at this URL, whatever the request.
_NO_SOCKET: Final = frozenset({405, 426, 501})


@frozen
class SocketAnswer:
    """The response to a request over a WebSocket."""

    #: The response as a source, whose timers run since the request was sent; or the error.
    answer: TimedSource | ProviderFailed
    status: int  #: as over HTTP
    headers: Mapping[str, str]  #: the response headers of the handshake, and the headers of an error
    sent: Mapping[str, str]  #: the request headers of the handshake


async def send_over_socket(
    session: ClientSession,
    upstream: Upstream,
    body: bytes,
    *,
    model: str,
    started: float,
    client_dialect: str = "",
    client_headers: Mapping[str, str] = NO_HEADERS,
    features: Mapping[str, str] = NO_HEADERS,
    trace_headers: Mapping[str, str] = NO_HEADERS,
    recording: ExchangeRecording | None = None,
) -> SocketAnswer:
    """Send the request ``body`` and return when the first message has arrived. The caller closes a returned source.

    ``started`` is the event loop's time from which ``first_byte_s`` and ``total_s`` are measured. The other arguments and the
    errors are those of ``send``. A recording has the response as the stream made from its messages, not byte for byte. The
    connections are those of ``session``'s connector.
    """
    endpoint = upstream.socket_endpoint
    url = address(upstream, model, stream=True)
    headers = request_headers(upstream, client_dialect, client_headers, features=features, trace_headers=trace_headers)
    headers = await authorised(upstream, "GET", url, headers, b"")
    headers |= upstream.connection.headers
    headers = {name: value for name, value in headers.items() if name not in _OF_A_BODY}
    if recording is not None:
        recording.request("GET", url.raw_path_qs, headers.items(), body)
    answer = _sent_over_socket(session, upstream, endpoint, url, headers, body, started, recording)
    return await in_time(upstream.timeouts, started, answer)


async def _sent_over_socket(
    session: ClientSession,
    upstream: Upstream,
    endpoint: SocketEndpoint,
    url: URL,
    headers: Mapping[str, str],
    body: bytes,
    started: float,
    recording: ExchangeRecording | None,
) -> SocketAnswer:
    handshake = _Handshake()
    try:
        async with _handshaking(session, upstream, handshake) as opening:
            connect = partial(
                opening.ws_connect,
                url,
                headers=headers,
                autoclose=False,  # aiohttp's automatic close would wait for the server
                autoping=False,
                max_msg_size=DEFAULT_LIMITS.event_bytes + 1,
                decode_text=False,
                **upstream.connection.arguments,
            )
            socket = await sent_once_more(connect)
    except _NotSwitchedError as refused:
        answer = refused.response
        if _is_of_proxy(answer, upstream):
            answer.close()
            raise SourceFailed(PROXY_REFUSED.format(answer.status)) from None
        if recording is not None:
            recording.response(answer.status, answer.headers.items())
        failed = await error_of(answer, upstream, recording=recording)
        if answer.status < 300 or answer.status in _NO_SOCKET:
            message = (
                f"the upstream has no WebSocket at this URL (status {answer.status}); "
                "set the upstream's transport to http"
            )
            failed = evolve(
                failed, type="not_found", message=message, http_status=None, raw=None, vendor="", native_type=None
            )
        return SocketAnswer(failed, answer.status, answer.headers, headers)
    messages = _Messages(socket, handshake.response, endpoint)
    try:
        await socket.send_frame(endpoint.message(body), WSMsgType.TEXT)
        first = await messages.first()
    except BaseException:
        await messages.aclose()
        raise
    refusal = endpoint.refusal(first)
    if recording is not None:
        recording.response(200 if refusal is None else refusal.status, handshake.response.headers.items())
    if refusal is None:
        source = TimedSource(messages, upstream.timeouts, started=started, name=upstream.name)
        source.recording = recording
        return SocketAnswer(source, 200, handshake.response.headers, headers)
    if recording is not None:
        recording.read(refusal.body)
        recording.end(WHOLE)
    await messages.aclose()
    cut = redactor([upstream], headers)
    told = cut(refusal.body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    failed = decode_error(refusal.status, told, upstream.dialect, refusal.headers)
    return SocketAnswer(failed, refusal.status, {**handshake.response.headers, **refusal.headers}, headers)


# -- the handshake -----------------------------------------------------------------------------------------------------


class _NotSwitchedError(Exception):
    """The server answered the handshake with an ordinary HTTP response, whose body is unread."""

    def __init__(self, response: ClientResponse) -> None:
        super().__init__()
        self.response = response


class _Handshake:
    """Keeps the response to a handshake. aiohttp passes this response to middlewares only."""

    response: ClientResponse

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        self.response = await handler(request)
        if self.response.status != 101:
            raise _NotSwitchedError(self.response)  # before aiohttp follows a redirect or drops the body
        return self.response


def _handshaking(session: ClientSession, upstream: Upstream, handshake: _Handshake) -> ClientSession:
    """Return a session for one handshake, with the connections and proxy of ``session``: ``ws_connect`` takes no time-outs."""
    return ClientSession(
        connector=session.connector,
        connector_owner=False,
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, connect=upstream.timeouts.connect_s),
        trust_env=session.trust_env,
        proxy=session._default_proxy,  # noqa: SLF001 - it has no public name, and the proxy must be used
        proxy_auth=session._default_proxy_auth,  # noqa: SLF001 - the same
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        max_headers=HEADERS,
        middlewares=(handshake,),
    )


# -- the messages ------------------------------------------------------------------------------------------------------


class _Messages:
    """The messages of a socket as the bytes of a stream. Closing it closes the connection."""

    def __init__(
        self, socket: ClientWebSocketResponse[bool], response: ClientResponse, endpoint: SocketEndpoint
    ) -> None:
        self._socket = socket
        self._response = response
        self._endpoint = endpoint
        self._unread = b""
        self._over = False

    async def first(self) -> bytes:
        """Return the first message; iteration returns it again. Raises as reading does, and SourceFailed if there is none."""
        while (received := await self._received()) == b"":
            pass
        if received is None:
            raise SourceFailed("the upstream closed the connection before it responded")
        self._unread = self._stream_of(received)
        return received

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> bytes:
        if self._unread:
            data, self._unread = self._unread, b""
            return data
        received = None if self._over else await self._received()
        if received is None:
            await self.aclose()
            raise StopAsyncIteration
        return self._stream_of(received) if received else KEEP_ALIVE

    def unread(self, data: bytes) -> None:
        self._unread = data + self._unread

    def _stream_of(self, received: bytes) -> bytes:
        self._over = self._endpoint.is_last(received)
        return self._endpoint.event(received)

    async def _received(self) -> bytes | None:
        """Return a message; empty for a ping; None if the server closed the socket normally. Raises StreamError."""
        while True:
            message = await self._socket.receive()
            match message.type:
                case WSMsgType.TEXT | WSMsgType.BINARY:
                    if message.data:
                        return bytes(message.data)
                case WSMsgType.PING:
                    with suppress(ConnectionError):  # the connection is closed; the next read reports that
                        await self._socket.pong(message.data)
                    await asyncio.sleep(0)
                    return b""
                case WSMsgType.PONG:
                    pass
                case WSMsgType.CLOSE if message.data in {0, WSCloseCode.OK}:
                    return None
                case _:
                    raise self._broken(message.data)
            await asyncio.sleep(0)  # aiohttp may hold many messages already; let other tasks run between them

    def _broken(self, data: object) -> StreamError:
        if isinstance(data, WebSocketError) and data.code == WSCloseCode.MESSAGE_TOO_BIG:
            return EventTooLong(DEFAULT_LIMITS.event_bytes)
        if isinstance(data, int):
            return SourceFailed(f"the upstream closed the WebSocket during its response, with the code {data}")
        error = data if isinstance(data, BaseException) else self._socket.exception()
        failed = SourceFailed(because(BROKE, error))
        failed.__cause__ = error
        return failed

    async def aclose(self) -> None:
        """Send a close message, and close the connection without waiting for the server's close message."""
        self._over, self._unread = True, b""
        if self._response.connection is None:
            return
        try:
            with suppress(TimeoutError, ClientError, ConnectionError):
                async with asyncio.timeout(CLOSE_S):
                    code = int(WSCloseCode.OK).to_bytes(2, "big")
                    await self._socket.send_frame(code, WSMsgType.CLOSE)
        finally:
            self._response.close()
