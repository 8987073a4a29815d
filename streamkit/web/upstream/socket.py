"""Send requests to an upstream over a WebSocket, if its configuration says so (``transport``) and its dialect allows it.

Each request opens a connection, which is closed after the response. The handshake follows the rules for HTTP requests:
redirects are not followed, and a response that does not open the socket is an error with its status and body. Messages become
the bytes of the dialect's stream (``Endpoint.socket``). A ping is answered and becomes a comment, which resets the idle timer.
Other tasks may run after each ping, pong and empty message. The response ends after its last message. If the socket is closed
before that, the response was interrupted, whatever the close code says.

A message may be as long as an event of a stream. No compression is offered.

Source: ui-protocols.md §4.1; RFC 6455 §4.1, §5.5, §7.4.1; limits.md T5, T6, T9.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    DummyCookieJar,
    WebSocketError,
    WSCloseCode,
    WSMsgType,
)
from attrs import evolve, frozen
from yarl import URL

from streamkit.dialects.http import SocketEndpoint
from streamkit.errors import EventTooLong, SourceFailed, StreamError
from streamkit.events import ProviderFailed
from streamkit.framing.sse import KEEP_ALIVE
from streamkit.http_errors import decode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.web.observers import WHOLE, ExchangeRecording
from streamkit.web.source import TimedSource, because
from streamkit.web.upstream.connections import sent_once_more
from streamkit.web.upstream.hiding import redactor
from streamkit.web.upstream.requests import NO_HEADERS, address, authorised, request_headers
from streamkit.web.upstream.sending import HEADER_BYTES, HEADERS, error_of, not_answered
from streamkit.web.upstream.value import Upstream

CLOSE_S: Final = 1.0  #: the most seconds for writing a WebSocket's close message
_OF_A_BODY: Final = frozenset(
    {"accept", "content-type"}
)  #: Request headers that describe a body. A handshake has no body.
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


async def ask(
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
    headers = {name: value for name, value in headers.items() if name not in _OF_A_BODY}
    if recording is not None:
        recording.request("GET", URL(url, encoded=True).raw_path_qs, headers.items(), body)
    times = upstream.timeouts
    total_s = math.inf if times.total_s is None else times.total_s
    try:
        async with asyncio.timeout_at(started + min(times.first_byte_s, total_s)):
            return await _opened(session, upstream, endpoint, url, headers, body, started, recording)
    except (ClientError, OSError) as error:
        failed = not_answered(error, times)
    raise failed  # outside of ``except``: the error's context would show the request's headers


async def _opened(
    session: ClientSession,
    upstream: Upstream,
    endpoint: SocketEndpoint,
    url: str,
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
                URL(url, encoded=True),
                headers=headers,
                autoclose=False,  # aiohttp's automatic close would wait for the server
                autoping=False,
                max_msg_size=DEFAULT_LIMITS.event_bytes + 1,
                decode_text=False,
            )
            socket = await sent_once_more(connect)
    except _NotSwitchedError as refused:
        answer = refused.response
        if recording is not None:
            recording.response(answer.status, answer.headers.items())
        failed = await _not_switched(answer, upstream, recording)
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


async def _not_switched(
    response: ClientResponse, upstream: Upstream, recording: ExchangeRecording | None
) -> ProviderFailed:
    """Return the error in a response that did not open the socket, and close the response."""
    failed = await error_of(response, upstream, recording=recording)
    if response.status >= 300 and response.status not in _NO_SOCKET:
        return failed
    message = (
        f"the upstream opens no WebSocket there (status {response.status}); the gateway's transport for it is http"
    )
    return evolve(failed, type="not_found", message=message, http_status=None, raw=None, vendor="", native_type=None)


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
            raise SourceFailed("the upstream closed the connection before it answered")
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
            return SourceFailed(f"the upstream closed the WebSocket inside its answer, with the code {data}")
        error = data if isinstance(data, BaseException) else self._socket.exception()
        failed = SourceFailed(because("the connection to the upstream broke", error))
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
