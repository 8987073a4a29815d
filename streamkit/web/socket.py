"""One WebSocket of a client: messages that ask, and their answers, one after the other.

The messages are the dialect's (``Surface.socket``); each becomes an ``Ask`` and an answer like any other, whose outlet is the
socket. A few may wait for the answer under way. Whoever closes the socket leaves: the answer is cancelled, and its upstream's
connection closed at once. Slow clients are treated as over HTTP; pings find the clients that are gone.

A message counts in the budget of all requests from its first byte until its answer ends, and is dropped at once if it is
refused. After each message, ping and pong other tasks of the event loop have their turn.

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

#: The longest message, where nobody says otherwise.
MESSAGE_BYTES: Final = 32 * MIB
#: Messages that wait for the answer under way.
WAITING: Final = 4
#: Bytes after which a write looks whether the client takes what waits for it.
WRITE_BYTES: Final = 16 * 1024
#: What is read at once: of pings, which take six bytes each, 32 KiB would take 20 ms.
READ_BYTES: Final = 8 * 1024
#: How long a client may take to say that it closes, too, in seconds.
CLOSE_S: Final = 1.0
#: The least that a wait for a message takes, in seconds: for aiohttp 0 is no end.
SOON_S: Final = 0.001


@frozen(kw_only=True)
class SocketLimits:
    """What one WebSocket may have, and what all of an application's keep together."""

    message_bytes: int = MESSAGE_BYTES
    idle_s: float = 600.0  #: without a message and without an answer; then the socket is closed
    ping_s: float = 15.0
    unsent_bytes: int = MIB
    #: Of what the sockets keep between messages, apart from the bodies of requests: an idle socket takes none of theirs.
    kept: Budget = field(factory=Budget)


class Message:
    """One message of a client, and where its answer goes."""

    def __init__(self, socket: Socket, text: bytes, hold: Hold) -> None:
        self.outlet = SocketOutlet(socket)
        self.about: Any = None  #: what the server that answers it knows of it
        self.warm_up = False  #: nothing is to be generated; known once it was read
        self._socket = socket
        self._text = text
        self._hold = hold

    async def read(self) -> Ask:
        """What it asks. Raises Refused."""
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
        """Whether the application keeps the answer that the message leans on, which this connection does not."""
        conversation, recall = self._socket.conversation, self._socket.request.config_dict.get(RECALL)
        answer_id = conversation.unknown_id
        value = await recall.answer(self._socket.request, answer_id) if recall is not None and answer_id else None
        if value is not None:
            conversation.recall(answer_id, value)
        return value is not None

    async def refuse(self, refused: Refused) -> None:
        await self.outlet.begin(refused.response(self._socket.dialect))

    async def prepared(self, model: str) -> None:
        """Answer a warm-up: an answer of the dialect without any output."""
        dialect, profile = client_named(self._socket.dialect)
        encoder = dialect.encoder(Encoding(profile=evolve(profile, model=model)), StreamReport())
        events: list[Event] = [ResponseStarted(model=model), ResponseFinished("stop"), StreamEnded(clean=True)]
        await self.outlet.write(encoder.feed(events) + encoder.finish())
        await self.outlet.finish()

    def close(self) -> None:
        self._hold.shrink(0)
        self._socket.conversation.over()
        self._socket.keep()


#: What answers a message. Exceptions other than Refused are its own matter.
Answer: TypeAlias = Callable[[Message], Awaitable[object]]


class SocketOutlet(Outlet):
    """The messages that an answer becomes."""

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
        """A message has its own end; the last event may be left."""
        await self.finish()

    async def finish(self) -> None:
        """Write what the answer has left."""
        for message in self._socket.conversation.end():
            await self._socket.send(message)


class Socket:
    """The WebSocket that ``request`` asks for. ``run`` it with what answers each message."""

    def __init__(self, request: web.Request, dialect: str, form: SocketForm, limits: SocketLimits) -> None:
        self.request = request
        self.dialect = dialect
        self.conversation: Conversation = form.conversation(limits.message_bytes)
        self.written_bytes = 0
        self._limits = limits
        self._kept = Hold(limits.kept)
        self._arriving = hold_in(request)  # of messages up to when they are taken
        self._waiting: deque[Message] = deque()
        self._work: asyncio.Task[None] | None = None
        self._stopping = False
        self._idle_since = asyncio.get_running_loop().time()
        self._socket = HeldSocket(
            self._arriving,
            limits.message_bytes,
            heartbeat=limits.ping_s,
            timeout=CLOSE_S,
            autoping=False,  # aiohttp answers pings as fast as they come, and no other task has a turn
            writer_limit=WRITE_BYTES,
        )

    async def run(self, answer: Answer) -> web.StreamResponse:
        """Answer messages until the client leaves, is idle for too long, or the server stops."""
        await self._socket.prepare(self.request)
        transport: Any = self.request.transport
        if transport is not None:
            bound_unsent(transport, self._limits.unsent_bytes)
            transport.max_size = READ_BYTES  # of asyncio's own transports
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
        """Close the socket once the answer under way is over, since the server stops."""
        self._stopping = True
        if self._work is None:
            self._work = asyncio.create_task(self._close(WSCloseCode.GOING_AWAY, b"the server is shutting down"))

    async def send(self, message: str) -> None:
        """Raises ConnectionError once the client is gone."""
        await self._socket.send_str(message)
        self.written_bytes += len(message)

    def keep(self) -> None:
        """Hold what the conversation keeps, or let it forget."""
        try:
            self._kept.resize(self.conversation.kept_bytes)
        except Refused:
            self.conversation.forget()
            self._kept.resize(0)

    # -- its messages ----------------------------------------------------------------------------------------------

    async def _receive(self, answer: Answer) -> bool:
        """Receive one message, ping or pong; return False once the socket is over. The frame of this call keeps no message."""
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
        """Queue a message for its answer; return the refusal if there is no room."""
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


#: The sockets of an application.
SOCKETS: Final = web.AppKey("streamkit-sockets", set[Socket])


def close_sockets_on_shutdown(app: web.Application) -> None:
    """Let the sockets of ``app`` end when it shuts down: at once where they are idle, else behind the answer under way."""
    sockets: set[Socket] = set()
    app[SOCKETS] = sockets

    async def stop(_app: web.Application) -> None:
        for socket in list(sockets):
            socket.stop()

    app.on_shutdown.append(stop)
