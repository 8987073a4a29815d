"""One WebSocket of a client: messages with requests, and their responses, one after the other.

The dialect defines the messages (``Surface.socket``). Each becomes an ``Ask`` and gets a response like an HTTP request; the
response's outlet is the socket. A few messages may wait while a response is in progress. If the socket closes, the response is
cancelled and its upstream's connection is closed at once. Slow clients are treated as over HTTP; pings detect dead clients.

A message counts in the budget for all requests from its first byte until its response ends, also while it is incomplete, in
however many frames and however slowly it is sent. aiohttp's reader joins messages without counting their memory, so this
module has its own. If the budget has no room, the message is dropped at once, the socket's next message is an error with the
refusal, and no further frame is read. Frames that RFC 6455 forbids, such as those without a mask, close the socket with the
code that the RFC gives. No extension is negotiated, so no frame is compressed. After each message, ping and pong, other tasks
of the event loop may run.

Source: ui-protocols.md §4.1; RFC 6455 §5, §7.4.1, §8.1; limits.md T8.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, cast

from aiohttp import WebSocketError, WSCloseCode, WSMessage, WSMsgType, web
from aiohttp._websocket.helpers import websocket_mask  # a C function; Python code takes 20 ms for 1 MiB
from attrs import evolve, field, frozen

from streamkit.dialects import client_named
from streamkit.dialects.http import Conversation, SocketForm, SocketRequest
from streamkit.dialects.profiles import Encoding
from streamkit.events import Event, ProviderFailed, ResponseFinished, ResponseStarted, StreamEnded
from streamkit.limits import MIB, REQUEST_VALUES
from streamkit.report import StreamReport
from streamkit.web.budget import UNCOUNTED_BYTES, Budget, Hold, hold_in
from streamkit.web.client_connection import bound_unsent
from streamkit.web.heavy import count_values, in_thread, is_heavy
from streamkit.web.refusals import Refused
from streamkit.web.reply import Outlet, Writer
from streamkit.web.surfaces import RECALL, Ask, ask_in

# -- frames ------------------------------------------------------------------------------------------------------------


HEADER_BYTES: Final = 14  #: the largest frame header: two bytes, a length of eight, a mask of four
CONTROL_BYTES: Final = 125  #: the largest payload of a control frame (RFC 6455 §5.5)
_LENGTH_BYTES: Final = {126: 2, 127: 8}
_LAST: Final = 0x80
_MASKED: Final = 0x80
_DATA: Final = frozenset({WSMsgType.TEXT, WSMsgType.BINARY})
_CONTROL: Final = frozenset({WSMsgType.CLOSE, WSMsgType.PING, WSMsgType.PONG})
_CLOSE_CODES: Final = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)})


class FrameReader:
    """Reads frames, and puts their messages into ``queue``, from which aiohttp's socket takes them.

    ``hold`` gets the bytes of each message. The reader of the queue returns them for each message that it takes.
    """

    def __init__(self, queue: Any, hold: Hold, message_bytes: int) -> None:
        self._queue = queue
        self._hold = hold
        self._message_bytes = message_bytes
        self._over = False
        self._header = b""  # the received bytes of the next frame's header
        self._kind = WSMsgType.CLOSE  # the type of the present frame
        self._is_last = True  # whether the frame is the last one of its message
        self._mask = b""  # the frame's mask, rotated to its next byte; empty between frames
        self._left = 0  # bytes of the frame that are not received yet
        self._control = b""  # the payload of a control frame
        self._message: bytearray | None = None  # the incomplete message
        self._message_kind = WSMsgType.TEXT

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Read bytes. Return, as aiohttp's protocols require, whether reading is over, and the rest of ``data``."""
        if self._over:
            return True, b""
        try:
            self._read(data)
        except Refused as refused:
            self._over, self._message = True, None
            self._queue.feed_data(WSMessage(WSMsgType.ERROR, refused, None), 0)
        except WebSocketError as error:
            self._over, self._message = True, None
            self._queue.set_exception(error)
        return self._over, b""

    def feed_eof(self) -> None:
        self._queue.feed_eof()

    def _read(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if not self._mask:
                begun, self._header = len(self._header), self._header + data[at : at + HEADER_BYTES]
                size = self._header_size()
                if len(self._header) < size:
                    return
                at += size - begun
                self._begin(self._header[:size])
                self._header = b""
            piece = data[at : at + self._left]
            at, self._left = at + len(piece), self._left - len(piece)
            if piece:
                shown = bytearray(piece)
                websocket_mask(self._mask, shown)
                self._add(shown)
                turn = len(piece) % 4
                self._mask = self._mask[turn:] + self._mask[:turn]
            if not self._left:
                self._end()

    def _header_size(self) -> int:
        """Return the length of the next frame's header. Raises WebSocketError if its first two bytes can't be a client's."""
        if len(self._header) < 2:
            return HEADER_BYTES
        if not self._header[1] & _MASKED:
            raise _broken("a frame from a client must have a mask")
        return 2 + _LENGTH_BYTES.get(self._header[1] & ~_MASKED, 0) + 4

    def _begin(self, header: bytes) -> None:
        """Handle a frame's header. Raises WebSocketError if the frame is not allowed, and Refused if the budget is full."""
        code, size = header[0] & ~_LAST, header[1] & ~_MASKED
        if code not in {WSMsgType.CONTINUATION, *_DATA, *_CONTROL}:
            raise _broken(f"the opcode {code} does not exist")
        self._kind, self._is_last = WSMsgType(code), bool(header[0] & _LAST)
        self._left = int.from_bytes(header[2:-4], "big") if size in _LENGTH_BYTES else size
        self._mask = header[-4:]
        if code in _CONTROL:
            if self._left > CONTROL_BYTES or not self._is_last:
                raise _broken(f"a control frame is fragmented, or exceeds {CONTROL_BYTES} bytes")
            return
        if (code == WSMsgType.CONTINUATION) != (self._message is not None):
            raise _broken("a message begins inside another, or continues without a beginning")
        if self._message is None:
            self._message, self._message_kind = bytearray(), self._kind
        if len(self._message) + self._left > self._message_bytes:
            raise WebSocketError(WSCloseCode.MESSAGE_TOO_BIG, f"a message exceeds {self._message_bytes} bytes")
        # refuse before any of the payload is read, as for a request body
        self._hold.budget.refuse_beyond(self._left - UNCOUNTED_BYTES)

    def _add(self, piece: bytearray) -> None:
        if self._kind in _CONTROL:
            self._control += bytes(piece)
            return
        self._hold.add(len(piece))
        cast("bytearray", self._message).extend(piece)

    def _end(self) -> None:
        """Handle the end of a frame: if it is the message's last frame, queue the message."""
        self._mask = b""
        if self._kind in _CONTROL:
            payload, self._control = self._control, b""
            data = _close_code(payload) if self._kind is WSMsgType.CLOSE else payload
            self._queue.feed_data(WSMessage(self._kind, data, ""), len(payload))
        elif self._is_last:
            text, self._message = bytes(self._message or b""), None
            if self._message_kind is WSMsgType.TEXT:
                _check_utf8(text)
            self._queue.feed_data(WSMessage(self._message_kind, text, ""), len(text))


def _broken(why: str) -> WebSocketError:
    return WebSocketError(WSCloseCode.PROTOCOL_ERROR, why)


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise WebSocketError(WSCloseCode.INVALID_TEXT, "a text message is not UTF-8") from None


def _close_code(payload: bytes) -> int:
    """Return the code in the payload of a close frame; 0 if there is none."""
    code = int.from_bytes(payload[:2], "big")
    if payload and (len(payload) == 1 or code not in _CLOSE_CODES):
        raise _broken("a close frame has an invalid code")
    _check_utf8(payload[2:])
    return code


class HeldSocket(web.WebSocketResponse[bool]):
    """A WebSocket whose messages count in a budget from their first byte. Text messages are received as bytes, too."""

    def __init__(self, hold: Hold, message_bytes: int, **options: Any) -> None:
        super().__init__(**options, compress=False)  # a compressor takes 256 KiB per socket
        self._hold = hold
        self._message_bytes = message_bytes
        self._frames: FrameReader | None = None

    @property
    def _parser(self) -> Any:
        """Our frame reader. aiohttp's protocol uses this attribute instead of the reader that aiohttp creates."""
        return self._frames

    @_parser.setter
    def _parser(self, reader: Any) -> None:
        self._frames = None if reader is None else FrameReader(self._reader, self._hold, self._message_bytes)


# -- messages and responses --------------------------------------------------------------------------------------------


MESSAGE_BYTES: Final = 32 * MIB  #: the default limit for a message
WAITING: Final = 4  #: messages that may wait while a response is in progress
WRITE_BYTES: Final = 16 * 1024  #: after this many bytes, a write checks whether it has to wait for the client
#: The largest read from a client. A ping takes six bytes, so handling a read of 32 KiB full of pings would block for 20 ms.
READ_BYTES: Final = 8 * 1024
CLOSE_S: Final = 1.0  #: seconds that a client may take to answer a close frame
SOON_S: Final = 0.001  #: The shortest time to wait for a message, in seconds. For aiohttp, 0 means no limit.


@frozen(kw_only=True)
class SocketLimits:
    """The limits of one WebSocket, and the budget for what all sockets of an application keep."""

    message_bytes: int = MESSAGE_BYTES
    idle_s: float = 600.0  #: seconds without a message and a response before the socket is closed
    ping_s: float = 15.0
    unsent_bytes: int = MIB
    #: The budget for requests and responses that sockets keep between messages. It is separate from the budget of request
    #: bodies, so that idle sockets take no memory from requests.
    kept: Budget = field(factory=Budget)


class Message:
    """One message of a client, and the outlet for its response."""

    def __init__(self, socket: Socket, text: bytes, hold: Hold) -> None:
        self.outlet = SocketOutlet(socket)
        self.about: Any = None  #: any value that the ``Answer`` function needs; not used here
        self.warm_up = False  #: the client wants no output; known after ``read``
        self._socket = socket
        self._text = text
        self._hold = hold

    async def read(self) -> Ask:
        """Return the request in the message. Raises Refused."""
        text, self._text = self._text, b""
        values = await count_values(text, REQUEST_VALUES)
        if values > REQUEST_VALUES:
            message = f"the message exceeds the limit of {REQUEST_VALUES:,} JSON values; send less at once"
            raise Refused(ProviderFailed("too_large", message))
        heavy = is_heavy(len(text), values)
        asked = await self._asked(text, heavy=heavy)
        if isinstance(asked, ProviderFailed) and await self._recalled():
            asked = await self._asked(text, heavy=heavy)
        del text
        if isinstance(asked, ProviderFailed):
            raise Refused(asked)
        self.warm_up = asked.warm_up
        self._socket.keep()
        self._hold.resize(len(asked.body))
        return await ask_in(self._socket.request, self._socket.dialect, asked.body, self._hold, report=asked.report)

    async def _asked(self, text: bytes, *, heavy: bool) -> SocketRequest | ProviderFailed:
        read = partial(self._socket.conversation.read, text)
        return await in_thread(read) if heavy else read()

    async def _recalled(self) -> bool:
        """Look up the response that the message refers to in the application, because this connection does not have it.

        Return whether it was found.
        """
        conversation, recall = self._socket.conversation, self._socket.request.config_dict.get(RECALL)
        answer_id = conversation.unknown_id
        value = await recall.answer(self._socket.request, answer_id) if recall is not None and answer_id else None
        if value is not None:
            conversation.recall(answer_id, value)
        return value is not None

    async def refuse(self, refused: Refused) -> None:
        await self.outlet.begin(refused.response(self._socket.dialect))

    async def prepared(self, model: str) -> None:
        """Respond to a warm-up message with an empty response of the dialect."""
        dialect, profile = client_named(self._socket.dialect)
        encoder = dialect.encoder(Encoding(profile=evolve(profile, model=model)), StreamReport())
        events: list[Event] = [ResponseStarted(model=model), ResponseFinished("stop"), StreamEnded(clean=True)]
        await self.outlet.write(encoder.feed(events) + encoder.finish())
        await self.outlet.finish()

    def close(self) -> None:
        self._hold.shrink(0)
        self._socket.conversation.over()
        self._socket.keep()


#: Responds to a message. It must handle all its exceptions except Refused.
Answer: TypeAlias = Callable[[Message], Awaitable[object]]


class SocketOutlet(Outlet):
    """Writes a response as messages of a socket."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket

    @property
    def output_size(self) -> int:
        return self._socket.written_bytes

    async def begin(self, response: web.StreamResponse, /) -> Writer | None:
        if isinstance(response, web.Response):
            body = response.body if isinstance(response.body, bytes) else b"{}"
            headers = {name.lower(): value for name, value in response.headers.items()}
            headers.pop("content-type", None)
            await self._socket.send(self._socket.conversation.error(response.status, headers, body))
        return self

    async def write(self, data: bytes, /) -> None:
        for message in self._socket.conversation.write(data):
            await self._socket.send(message)

    async def end(self, _response: web.StreamResponse, _failed_end: bytes | None, /) -> None:
        """Write the rest of the response. A WebSocket message needs no other end, so ``failed_end`` is ignored."""
        await self.finish()

    async def finish(self) -> None:
        """Write the rest of the response."""
        for message in self._socket.conversation.end():
            await self._socket.send(message)


class Socket:
    """The WebSocket that ``request`` asks for. Call ``run`` with a function that responds to each message."""

    def __init__(self, request: web.Request, dialect: str, form: SocketForm, limits: SocketLimits) -> None:
        self.request = request
        self.dialect = dialect
        self.conversation: Conversation = form.conversation(limits.message_bytes)
        self.written_bytes = 0
        self._limits = limits
        self._kept = Hold(limits.kept)
        self._arriving = hold_in(request)  # the memory held by messages that are arriving or waiting
        self._waiting: deque[Message] = deque()
        self._work: asyncio.Task[Any] | None = None
        self._stopping = False
        self._idle_since = asyncio.get_running_loop().time()
        self._socket = HeldSocket(
            self._arriving,
            limits.message_bytes,
            heartbeat=limits.ping_s,
            timeout=CLOSE_S,
            autoping=False,  # aiohttp would answer pings without letting other tasks run
            writer_limit=WRITE_BYTES,
        )

    async def run(self, answer: Answer) -> web.StreamResponse:
        """Respond to messages until the client disconnects, is idle for too long, or the server stops."""
        await self._socket.prepare(self.request)
        transport: Any = self.request.transport
        if transport is not None:
            bound_unsent(transport, self._limits.unsent_bytes)
            transport.max_size = READ_BYTES  # limits each read; only asyncio's own transports have this attribute
        with self._kept, self._arriving:
            try:
                while not self._socket.closed:
                    if not await self._receive(answer):
                        break
                    await asyncio.sleep(0)
            finally:
                for message in self._waiting:
                    message.close()
                self._waiting.clear()
                if (work := self._work) is not None:
                    work.cancel()
                    await asyncio.wait({work})
        return self._socket

    def stop(self) -> None:
        """Close the socket after the response in progress, because the server stops."""
        self._stopping = True
        if self._work is None:
            self._work = asyncio.create_task(
                self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server is shutting down")
            )

    async def send(self, message: str) -> None:
        """Send a message. Raises ConnectionError after the client has disconnected."""
        await self._socket.send_str(message)
        self.written_bytes += len(message)

    def keep(self) -> None:
        """Count the kept request and response in the budget. If the budget has no room, forget them."""
        try:
            self._kept.resize(self.conversation.kept_bytes)
        except Refused:
            self.conversation.forget()
            self._kept.resize(0)

    # -- messages --------------------------------------------------------------------------------------------------

    async def _receive(self, answer: Answer) -> bool:
        """Receive a message, ping or pong, and keep no reference to it. Return False once the socket is closed."""
        loop = asyncio.get_running_loop()
        idle_at = math.inf if self._work else self._idle_since + self._limits.idle_s
        try:
            received = await self._socket.receive(timeout=min(self._limits.idle_s, max(idle_at - loop.time(), SOON_S)))
        except TimeoutError:
            if self._work is None and loop.time() >= self._idle_since + self._limits.idle_s:
                await self._socket.close(code=WSCloseCode.OK, message=b"idle for too long")
            return True
        kind, data = received.type, received.data
        del received
        refused: Refused | None = None
        if kind is WSMsgType.TEXT or kind is WSMsgType.BINARY:
            self._arriving.add(-len(data))
            refused, data = self._take(data, answer), b""
        elif kind is WSMsgType.ERROR and isinstance(data, Refused):
            self._arriving.shrink(0)
            refused = data
        elif kind is not WSMsgType.PING and kind is not WSMsgType.PONG:
            return False
        with suppress(ConnectionError):
            if kind is WSMsgType.PING:
                await self._socket.pong(data)
            if refused is not None:
                await Message(self, b"", Hold()).refuse(refused)
            if kind is WSMsgType.ERROR:
                await self._socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"no memory for this message")
        return kind is not WSMsgType.ERROR

    def _take(self, text: bytes, answer: Answer) -> Refused | None:
        """Queue a message for its response. Return the refusal if there is no room."""
        hold = hold_in(self.request)
        if len(self._waiting) >= WAITING or self._stopping:
            return Refused(
                ProviderFailed("rate_limit", "too many messages are waiting for the current response; retry later")
            )
        try:
            hold.add(len(text))
        except Refused as refused:
            return refused
        self._idle_since = asyncio.get_running_loop().time()
        self._waiting.append(Message(self, text, hold))
        if self._work is None:
            self._work = asyncio.create_task(self._answer_waiting(answer))
        return None

    async def _answer_waiting(self, answer: Answer) -> None:
        try:
            while self._waiting:
                message = self._waiting.popleft()
                try:
                    await answer(message)
                finally:
                    message.close()
            if self._stopping:
                await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server is shutting down")
        finally:
            self._work, self._idle_since = None, asyncio.get_running_loop().time()


SOCKETS: Final = web.AppKey("streamkit-sockets", set[Socket])  #: the open WebSockets of an application


def close_sockets_on_shutdown(app: web.Application) -> None:
    """Close the sockets of ``app`` when it shuts down: idle ones at once, others after the response in progress."""
    sockets: set[Socket] = set()
    app[SOCKETS] = sockets

    async def stop(_app: web.Application) -> None:
        for socket in list(sockets):
            socket.stop()

    app.on_shutdown.append(stop)
