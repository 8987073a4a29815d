"""Asking an upstream over a WebSocket, where its configuration says so (``transport``) and its dialect can.

Each request opens a connection of its own, closed behind the answer. The handshake is a request as over HTTP: redirects are
not followed, and an answer that does not open the socket is an error with its status and body. Messages become the bytes of
the dialect's stream (``Endpoint.socket``); a ping is answered, and becomes a comment, which counts as life. Other tasks have
their turn after each ping, pong and message without text. The answer ends after its last message; a socket that is closed
before that is interrupted, whatever the close code says.

A message may be as long as an event of a stream may. No compression is offered.

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
from streamkit.web.recording import WHOLE, ExchangeRecording
from streamkit.web.source import TimedSource, because
from streamkit.web.upstream.addresses import address
from streamkit.web.upstream.auth import authorised
from streamkit.web.upstream.connections import sent_once_more
from streamkit.web.upstream.headers import NO_HEADERS, request_headers
from streamkit.web.upstream.hiding import redactor
from streamkit.web.upstream.sending import HEADER_BYTES, HEADERS, error_of, not_answered
from streamkit.web.upstream.value import Upstream

#: How long the message that closes a socket may take to be written, in seconds.
CLOSE_S: Final = 1.0
#: Headers of a request that say something of its body, which a handshake has none of.
_OF_A_BODY: Final = frozenset({"accept", "content-type"})
#: Answers to a handshake that say nothing of the request: that nobody speaks the protocol there.
_NO_SOCKET: Final = frozenset({405, 426, 501})


@frozen
class SocketAnswer:
    """What came of a request."""

    #: The answer's stream, whose clocks run since it was asked; else what is wrong.
    answer: TimedSource | ProviderFailed
    status: int  #: as it would be over HTTP
    headers: Mapping[str, str]  #: of the handshake, and of the error
    sent: Mapping[str, str]  #: the headers of the handshake's request


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
    """Ask what ``body`` asks, and return once the first message is there. Whoever gets a source closes it.

    ``started`` is the loop's time from which ``first_byte_s`` and ``total_s`` run; the other arguments and what is raised are
    those of ``send``. A recording has the answer as the stream that its messages become, which is not what came byte for
    byte. The connections are those of ``session``'s connector.
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
    raise failed  # out here, so that a cause that shows the request's headers is not its context


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
                autoclose=False,  # which waits for the server
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
    """The answer to a handshake is one of HTTP, with its body unread."""

    def __init__(self, response: ClientResponse) -> None:
        super().__init__()
        self.response = response


class _Handshake:
    """Keeps the answer to a handshake, which aiohttp gives to middlewares alone."""

    response: ClientResponse

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        self.response = await handler(request)
        if self.response.status != 101:
            raise _NotSwitchedError(self.response)  # before aiohttp follows a redirect, or drops the body
        return self.response


def _handshaking(session: ClientSession, upstream: Upstream, handshake: _Handshake) -> ClientSession:
    """A session with the connections and the proxy of ``session``, for one handshake: ``ws_connect`` takes no time-outs."""
    return ClientSession(
        connector=session.connector,
        connector_owner=False,
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, connect=upstream.timeouts.connect_s),
        trust_env=session.trust_env,
        proxy=session._default_proxy,  # noqa: SLF001 - it has no public name, and a proxy may not be passed by
        proxy_auth=session._default_proxy_auth,  # noqa: SLF001 - as that
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        max_headers=HEADERS,
        middlewares=(handshake,),
    )


async def _not_switched(
    response: ClientResponse, upstream: Upstream, recording: ExchangeRecording | None
) -> ProviderFailed:
    """What an answer says that did not open the socket; it is closed."""
    failed = await error_of(response, upstream, recording=recording)
    if response.status >= 300 and response.status not in _NO_SOCKET:
        return failed
    message = (
        f"the upstream opens no WebSocket there (status {response.status}); the gateway's transport for it is http"
    )
    return evolve(failed, type="not_found", message=message, http_status=None, raw=None, vendor="", native_type=None)


# -- the messages ------------------------------------------------------------------------------------------------------


class _Messages:
    """The bytes of a stream in the messages of a socket. Closing it closes the connection."""

    def __init__(
        self, socket: ClientWebSocketResponse[bool], response: ClientResponse, endpoint: SocketEndpoint
    ) -> None:
        self._socket = socket
        self._response = response
        self._endpoint = endpoint
        self._unread = b""
        self._over = False

    async def first(self) -> bytes:
        """The first message, which comes again as the first of the stream. Raises what reading does, and at the end, too."""
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
        """A message; nothing for a ping; None where the server closed the socket. Raises StreamError."""
        while True:
            message = await self._socket.receive()
            match message.type:
                case WSMsgType.TEXT | WSMsgType.BINARY:
                    if message.data:
                        return bytes(message.data)
                case WSMsgType.PING:
                    with suppress(ConnectionError):  # its close is read next
                        await self._socket.pong(message.data)
                    await asyncio.sleep(0)
                    return b""
                case WSMsgType.PONG:
                    pass
                case WSMsgType.CLOSE if message.data in {0, WSCloseCode.OK}:
                    return None
                case _:
                    raise self._broken(message.data)
            await asyncio.sleep(0)  # aiohttp has what follows already, and others would wait for all of it

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
        """Say that the socket is closed, and close the connection without waiting for the server to say so, too."""
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
