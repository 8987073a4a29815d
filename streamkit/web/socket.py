"""One WebSocket of a client: messages with requests, and their responses, one after the other.

The dialect defines the messages (``Surface.socket``). Each becomes an ``Ask`` and gets a response like an HTTP request; the
response's outlet is the socket. A few messages may wait while a response is in progress. If the socket closes, the response is
cancelled and its upstream's connection is closed at once. Slow clients are treated as over HTTP; pings detect dead clients.

A message counts in the budget for all requests from its first byte until its response ends, and is dropped at once if it is
refused. After each message, ping and pong, other tasks of the event loop may run.

Source: ui-protocols.md §4.1; RFC 6455 §5.5, §7.4.1; limits.md T8.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from aiohttp import WSCloseCode, WSMsgType, web
from attrs import evolve, field, frozen

from streamkit.dialects import client_named
from streamkit.dialects.http import Conversation, SocketForm, SocketRequest
from streamkit.dialects.profiles import Encoding
from streamkit.events import Event, ProviderFailed, ResponseFinished, ResponseStarted, StreamEnded
from streamkit.limits import MIB, REQUEST_VALUES
from streamkit.report import StreamReport
from streamkit.web.budget import Budget, Hold, hold_in
from streamkit.web.client_connection import bound_unsent
from streamkit.web.heavy import beside, count_values, is_heavy
from streamkit.web.refusals import Refused
from streamkit.web.reply import Outlet, Writer
from streamkit.web.socket_frames import HeldSocket
from streamkit.web.surfaces import RECALL, Ask, ask_in

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
            message = f"the message has more than the {REQUEST_VALUES:,} JSON values that are read; send less at once"
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
        return await ask_in(self._socket.request, self._socket.dialect, asked.body, self._hold, asked.report)

    async def _asked(self, text: bytes, *, heavy: bool) -> SocketRequest | ProviderFailed:
        read = partial(self._socket.conversation.read, text)
        return await beside(read) if heavy else read()

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
        self._work: asyncio.Task[None] | None = None
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
                await self._leave()
        return self._socket

    def stop(self) -> None:
        """Close the socket after the response in progress, because the server stops."""
        self._stopping = True
        if self._work is None:
            self._work = asyncio.create_task(self._close(WSCloseCode.GOING_AWAY, b"the server is shutting down"))

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
                await self._close(WSCloseCode.OK, b"idle for too long")
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
                await self._close(WSCloseCode.TRY_AGAIN_LATER, b"no memory for this message")
        return kind is not WSMsgType.ERROR

    def _take(self, text: bytes, answer: Answer) -> Refused | None:
        """Queue a message for its response. Return the refusal if there is no room."""
        hold = hold_in(self.request)
        if len(self._waiting) >= WAITING or self._stopping:
            return Refused(ProviderFailed("rate_limit", "too many messages wait for the answer under way; ask again"))
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
                await self._close(WSCloseCode.GOING_AWAY, b"the server is shutting down")
        finally:
            self._work, self._idle_since = None, asyncio.get_running_loop().time()

    async def _leave(self) -> None:
        for message in self._waiting:
            message.close()
        self._waiting.clear()
        work = self._work
        if work is not None:
            work.cancel()
            await asyncio.wait({work})

    async def _close(self, code: WSCloseCode, why: bytes) -> None:
        await self._socket.close(code=code, message=why)


SOCKETS: Final = web.AppKey("streamkit-sockets", set[Socket])  #: the open WebSockets of an application


def close_sockets_on_shutdown(app: web.Application) -> None:
    """Close the sockets of ``app`` when it shuts down: idle ones at once, others after the response in progress."""
    sockets: set[Socket] = set()
    app[SOCKETS] = sockets

    async def stop(_app: web.Application) -> None:
        for socket in list(sockets):
            socket.stop()

    app.on_shutdown.append(stop)
