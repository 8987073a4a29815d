"""What a client's frames hold of memory and of the event loop, whatever they say; and what is no client's frame."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from contextlib import asynccontextmanager

import pytest
from aiohttp import WebSocketError, WSMsgType
from attrs import define, field

from streamkit.gateway import app as gateway_module
from streamkit.limits import MIB
from streamkit.web.budget import Budget, Hold
from streamkit.web.socket import FrameReader
from tests.gateway.running import behind
from tests.web.faults import as_asked
from tests.web.serving import counted_turns, eventually

TEXT, MORE, BINARY, PING, PONG = 0x81, 0x80, 0x82, 0x89, 0x8A
BEGIN, GO_ON = 0x01, 0x00
UPGRADE = (
    "GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)


def frame(first, payload=b"", *, masked=True):
    mask = 0x80 if masked else 0
    size = bytes([mask | len(payload)]) if len(payload) < 126 else bytes([mask | 127]) + len(payload).to_bytes(8, "big")
    return bytes([first]) + size + (b"\0\0\0\0" if masked else b"") + payload


def asking(size=0, **members):
    return json.dumps({"type": "response.create", "model": "m", "input": "a" * size, **members}).encode()


@define
class Client:
    """A socket of which the test writes the frames."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *frames):
        self.writer.write(b"".join(frames))
        await self.writer.drain()

    async def frame(self):
        """The first byte and the payload of the next frame."""
        async with asyncio.timeout(10):
            first, size = await self.reader.readexactly(2)
            if size > 125:
                size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
            return first, await self.reader.readexactly(size)

    async def message(self):
        """The payload of the next frame that is no ping, which the gateway sends to a quiet socket."""
        while (found := await self.frame())[0] == 0x89:
            pass
        return found[1]

    async def closed(self):
        """The code with which the socket is closed; what stands before that is passed over."""
        while (found := await self.frame())[0] != 0x88:
            pass
        return int.from_bytes(found[1][:2], "big")


@asynccontextmanager
async def served(monkeypatch, **server):
    """The gateway's budgets (of bodies, of what sockets keep), and what opens a socket."""
    budgets = []

    def budget(limit_bytes):
        budgets.append(Budget(limit_bytes))
        return budgets[-1]

    monkeypatch.setattr(gateway_module, "Budget", budget)
    async with behind(as_asked("openai-chat"), server=server) as running:
        writers = []

        async def opened():
            reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
            writers.append(writer)
            writer.write(UPGRADE.encode())
            await reader.readuntil(b"\r\n\r\n")
            return Client(reader, writer)

        try:
            yield budgets, opened
        finally:
            for writer in writers:
                writer.transport.abort()
            await asyncio.sleep(0)


UNFINISHED = {
    "of a frame": [frame(BEGIN, b" " * MIB)[:-1]],
    "in one frame": [frame(BEGIN, b" " * MIB)],
    "in many frames": [frame(BEGIN, b" "), *[frame(GO_ON, b" " * 1024)] * 1024],
    "with pings between": [frame(BEGIN, b" "), *[frame(PING, b"a"), frame(GO_ON, b" " * 1024)] * 1024],
}


@pytest.mark.parametrize("frames", UNFINISHED.values(), ids=UNFINISHED)
async def test_an_unfinished_message_is_held_of_the_budget_and_given_back(monkeypatch, frames):
    async with served(monkeypatch) as (budgets, opened):
        client = await opened()
        await client.send(*frames)
        await eventually(lambda: 0.9 * MIB < budgets[0].held_bytes < 1.1 * MIB)
        client.writer.transport.abort()
        await eventually(lambda: not budgets[0].held_bytes)


async def test_a_message_beyond_the_budget_is_refused_and_the_socket_closed(monkeypatch):
    async with served(monkeypatch, bodies_bytes=4 * MIB, body_bytes=4 * MIB) as (budgets, opened):
        full, client = await opened(), await opened()
        await full.send(frame(BEGIN, b" " * 3 * MIB))
        await eventually(lambda: budgets[0].held_bytes > 2.9 * MIB)
        await client.send(*[frame(BEGIN, b" " * 512 * 1024), *[frame(GO_ON, b" " * 512 * 1024)] * 3])
        error = json.loads((await client.frame())[1])
        assert (error["status"], error["headers"]["retry-after"]) == (503, "1")
        assert await client.closed() == 1013
        assert budgets[0].held_bytes < 3 * MIB
        await full.send(frame(GO_ON, b" "))  # which has what it had


async def test_a_frame_that_says_how_long_it_is_is_refused_before_it_is_read(monkeypatch):
    async with served(monkeypatch, bodies_bytes=4 * MIB, body_bytes=4 * MIB) as (_, opened):
        full, client = await opened(), await opened()
        await full.send(frame(BEGIN, b" " * 3 * MIB))
        await asyncio.sleep(0.2)
        await client.send(frame(TEXT, b" " * 2 * MIB)[:14])
        assert json.loads((await client.frame())[1])["status"] == 503


async def test_messages_that_are_taken_leave_nothing_of_the_budget_held(monkeypatch):
    async with served(monkeypatch) as (budgets, opened):
        client = await opened()
        for refused in ({"tools": 5}, {"input": 5}, {"type": "response.steer"}):
            await client.send(frame(TEXT, asking(MIB, **refused)))
            assert json.loads((await client.frame())[1])["status"] == 400
        await client.send(frame(BINARY, b"\xff" * MIB))
        assert json.loads((await client.frame())[1])["status"] == 400
        await eventually(lambda: not any(budget.held_bytes for budget in budgets))


async def test_an_idle_socket_keeps_nothing_of_messages_that_were_refused(monkeypatch):
    async with served(monkeypatch) as (_, opened):
        clients = [await opened() for _ in range(9)]
        held = []
        gc.collect()
        gc.disable()  # no message waits for the collector
        tracemalloc.start()
        try:
            for client in clients:
                await client.send(frame(TEXT, asking(MIB, tools=5)))
                assert json.loads(await client.message())["status"] == 400
                await asyncio.sleep(0.02)
                held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
            gc.enable()
        assert held[-1] - held[0] < 3 * MIB


@pytest.mark.parametrize("first", [TEXT, BEGIN, GO_ON, PING, PONG, 0x88])
async def test_a_frame_without_a_mask_ends_the_socket(monkeypatch, first):
    async with served(monkeypatch) as (_, opened):
        client = await opened()
        await client.send(frame(first, b"", masked=False))
        assert await client.closed() == 1002


async def test_a_text_that_is_no_utf8_ends_the_socket(monkeypatch):
    async with served(monkeypatch) as (_, opened):
        client = await opened()
        await client.send(frame(TEXT, b"\xff"))
        assert await client.closed() == 1007


async def test_frames_may_be_cut_anywhere(monkeypatch):
    async with served(monkeypatch) as (budgets, opened):
        client = await opened()
        for byte in frame(BEGIN, asking(130)[:130]) + frame(PING, b"b") + frame(MORE, asking(130)[130:]):
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await client.frame() == (PONG, b"b")
        assert json.loads((await client.frame())[1])["type"] == "response.created"
        await eventually(lambda: not budgets[0].held_bytes)


FLOODS = {"pings": (PING, b""), "pongs": (PONG, b""), "empty messages": (TEXT, b""), "short messages": (TEXT, b"a")}


@pytest.mark.parametrize("flood", FLOODS)
async def test_others_have_their_turn_between_frames_that_say_nothing(monkeypatch, flood):
    async with served(monkeypatch) as (_, opened):
        client = await opened()
        first, payload = FLOODS[flood]
        with counted_turns() as turn:
            await client.send(frame(first, payload) * 2000, frame(PING, b"last"))
            while await client.frame() != (PONG, b"last"):
                pass
    assert turn() > 2000


@define
class Queue:
    """What aiohttp's socket would take."""

    messages: list = field(factory=list)
    error: WebSocketError | None = None

    def feed_data(self, message, size):
        self.messages.append((message.type, message.data))

    def set_exception(self, error):
        self.error = error


#: Frames, and what becomes of them: messages, or the code with which the socket ends.
FRAMES = {
    "a text in parts": ([frame(BEGIN, b"a"), frame(GO_ON), frame(MORE, b"b")], [(WSMsgType.TEXT, b"ab")]),
    "an empty text": ([frame(TEXT)], [(WSMsgType.TEXT, b"")]),
    "a long ping": ([frame(PING, b"a" * 125)], [(WSMsgType.PING, b"a" * 125)]),
    "a close with a code": ([frame(0x88, b"\x03\xe8bye")], [(WSMsgType.CLOSE, 1000)]),
    "a close without": ([frame(0x88)], [(WSMsgType.CLOSE, 0)]),
    "half a code": ([frame(0x88, b"\x03")], 1002),
    "a code that is never sent": ([frame(0x88, b"\x03\xed")], 1002),
    "a reason that is no UTF-8": ([frame(0x88, b"\x03\xe8\xff")], 1007),
    "a reserved bit": ([frame(TEXT | 0x40, b"a")], 1002),
    "a kind that is reserved": ([frame(0x83, b"a")], 1002),
    "a ping in parts": ([frame(0x09, b"a")], 1002),
    "a ping that is too long": ([frame(PING, b"a" * 126)], 1002),
    "what goes on without a beginning": ([frame(MORE, b"a")], 1002),
    "a message inside another": ([frame(BEGIN, b"a"), frame(TEXT, b"b")], 1002),
    "a message that is too long": ([frame(TEXT, b"a" * 1001)], 1009),
    "one in parts that is": ([frame(BEGIN, b"a" * 1000), frame(MORE, b"a")], 1009),
    "one that says it is": ([frame(TEXT, b"a" * 1001)[:14]], 1009),
}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("frames", "expected"), FRAMES.values(), ids=FRAMES)
def test_what_frames_become(frames, expected, cut):
    queue = Queue()
    reader = FrameReader(queue, Hold(), 1000)
    data = b"".join(frames)
    for piece in [data[at : at + 1] for at in range(len(data))] if cut else [data]:
        over, rest = reader.feed_data(piece)
        assert (over, rest) == (queue.error is not None, b"")
    if queue.error is not None:
        assert queue.error.code == expected
        assert queue.messages == []
    else:
        assert queue.messages == expected


def test_masks_are_taken_off_wherever_frames_are_cut():
    masked = bytes(byte ^ b"mask"[at % 4] for at, byte in enumerate(b"0123456789"))
    data = bytes([BINARY, 0x80 | 10]) + b"mask" + masked
    for first in range(1, len(data)):
        for second in range(first, len(data)):
            queue = Queue()
            reader = FrameReader(queue, Hold(), 1000)
            for piece in (data[:first], data[first:second], data[second:]):
                reader.feed_data(piece)
            assert queue.messages == [(WSMsgType.BINARY, b"0123456789")]
