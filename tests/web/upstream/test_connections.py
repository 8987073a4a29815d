"""A connection that was kept, and that its upstream closes at the moment at which the next request arrives."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import closing
from typing import Literal, TypeAlias

import pytest

from streamkit.errors import SourceFailed
from streamkit.web.source import TimedSource, Timeouts
from streamkit.web.upstream import Upstream, client_session, send
from streamkit.web.upstream.sending import send_over_socket
from tests.web.faults import TEXT
from tests.web.socket_upstream import events, saying, socket_upstream
from tests.web.upstream.recorder import Recorder, read_request, reply, serving

#: What a server does with a request: answer it, close without a word, reset, write the first letter of a response and close,
#: be silent.
Deed: TypeAlias = Literal["answer", "close", "reset", "letter", "silence"]
OK = reply(200, b"{}")
#: More than a socket's buffers take, so that the connection ends while the body is written.
LONG = b"x" * 8_000_000


def deeds(*connections: Sequence[Deed]):
    """A server that does these things with the requests of its first connection, its second, …"""

    async def played(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for deed in connections[recorder.connections - 1]:
            if deed == "reset" and recorder.sent and len(recorder.sent[-1].body) < 10:
                await reader.read(1)  # the rest is on its way
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return
            sent = await read_request(reader)
            if sent is None:
                return
            recorder.keep(sent)
            if deed == "answer":
                writer.write(OK)
            elif deed == "letter":
                writer.write(b"H")
            elif deed == "silence":
                await asyncio.sleep(60)
            if deed != "answer":
                return
        await reader.read()

    return serving(played)


def upstream(recorder: Recorder, first_byte_s: float = 20.0) -> Upstream:
    times = Timeouts(connect_s=20, first_byte_s=first_byte_s, idle_s=20)
    return Upstream(name="up", dialect="openai-chat", base_url=f"{recorder.url}/v1", auth="none", timeouts=times)


async def asked(session, recorder: Recorder, body: bytes = b"{}", **how: float) -> bytes:
    response = await send(session, upstream(recorder, **how), body, model="m", stream=True)
    try:
        return await response.read()
    finally:
        response.release()


@pytest.mark.parametrize("body", [b"{}", LONG], ids=["short", "long"])
@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_a_request_that_met_a_closed_connection_is_sent_once_more_on_a_new_one(ending, body):
    async with deeds(["answer", ending], ["answer"]) as recorder, client_session() as session:
        await asked(session, recorder)
        assert await asked(session, recorder, body) == b"{}"
    assert recorder.connections == 2
    assert recorder.last.body == body


async def test_the_new_connection_is_no_other_of_those_that_were_kept():
    async with deeds(*[["answer", "close"]] * 3, ["answer"]) as recorder, client_session() as session:
        await asyncio.gather(*[asked(session, recorder) for _ in range(3)])
        assert recorder.connections == 3
        assert await asked(session, recorder) == b"{}"
        assert (recorder.connections, len(recorder.sent)) == (4, 5)


@pytest.mark.parametrize(
    ("connections", "asked_of_it"),
    [
        ([["answer", "close"], ["close"], ["answer"]], 3),
        ([["answer", "letter"], ["answer"]], 2),
        ([["answer", "silence"], ["answer"]], 2),
    ],
    ids=["the new connection is closed too", "a byte of a response came", "it is silent"],
)
async def test_what_else_fails_on_a_kept_connection_is_a_failure(connections, asked_of_it):
    async with deeds(*connections) as recorder, client_session() as session:
        await asked(session, recorder)
        with pytest.raises(SourceFailed):
            await asked(session, recorder, first_byte_s=0.3)
    assert len(recorder.sent) == asked_of_it


async def test_a_new_connection_that_ends_without_a_word_is_a_failure():
    async with deeds(["close"], ["answer"]) as recorder, client_session() as session:
        with pytest.raises(SourceFailed, match="closed the connection before it responded"):
            await asked(session, recorder)
    assert recorder.connections == 1


@pytest.mark.parametrize(
    "fields", [{"csp": "x" * 64_000}, {f"x-{n}": "y" * 250 for n in range(220)}], ids=["one", "many"]
)
async def test_headers_of_a_response_may_have_64_kib(fields):
    async def answered(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recorder.keep(await read_request(reader))
        writer.write(reply(200, b"{}", **fields))
        await writer.drain()

    async with serving(answered) as recorder, client_session() as session:
        assert await asked(session, recorder) == b"{}"


async def test_so_is_the_handshake_of_a_websocket():
    async with socket_upstream(saying(events())) as sockets:
        port = int(sockets.url.rpartition(":")[2])

        async def played(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """The first two connections answer one request and end at the next; the third is the WebSocket's."""
            if recorder.connections <= 2:
                recorder.keep(await read_request(reader))
                await asyncio.sleep(0.05)  # both are open before one is kept
                writer.write(OK)
                recorder.keep(await read_request(reader))
                return
            there, back = await asyncio.open_connection("127.0.0.1", port)
            with closing(back):
                back.write(await reader.read(65536))
                writer.write(await there.read(65536))
                back.write(await reader.read(65536))
                while data := await there.read(65536):
                    writer.write(data)

        async with serving(played) as recorder, client_session() as session:
            await asyncio.gather(asked(session, recorder), asked(session, recorder))
            url = f"{recorder.url}/v1"
            to = Upstream(name="up", dialect="openai-responses", base_url=url, auth="none", transport="websocket")
            started = asyncio.get_running_loop().time()
            opened = await send_over_socket(session, to, b'{"model":"m","input":"hi"}', model="m", started=started)
            assert isinstance(opened.answer, TimedSource), opened.answer
            assert TEXT.split()[0].encode() in b"".join([chunk async for chunk in opened.answer])
            await opened.answer.aclose()
        assert recorder.connections == 3
