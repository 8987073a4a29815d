"""Readers that stall or trickle cost themselves only: nobody else waits, memory is bounded, the upstream is let go (limits.md C11, T8).

Orders are compared, not times: who has ended while somebody else has not.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import pytest
from aiohttp import ClientSession, TraceConfig

from streamkit import collect
from streamkit.gateway.app import gateway_app
from streamkit.gateway.metrics import Metrics
from streamkit.testing import source_of
from streamkit.web.reply import LIVE
from streamkit.web.source import Timeouts
from tests.gateway.fault_matrix import CLIENTS
from tests.gateway.running import Running, asking, config_of, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, good, speech, status, whole
from tests.web.raw_client import RawClient
from tests.web.serving import eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
UPSTREAM = "openai-chat"
PATIENT = Timeouts(first_byte_s=60, idle_s=60)
#: A client that has room for next to nothing, as one that does not read has sooner or later.
ROOM_BYTES = 4096
UNSENT_BYTES = 100_000
#: What one read of an upstream can bring, translated: it is written in one piece.
BATCH_BYTES = 1024 * 1024
#: More than fits anywhere on the way.
LONG_BYTES = 24_000_000


def filled(size: int):
    """A stream that says so many bytes more."""
    chunks = speech(UPSTREAM)
    first = next(index for index, data in enumerate(chunks) if b'"It "' in data)
    filler = chunks[first].replace(b"It ", b"x" * 40_000)
    return good(UPSTREAM, [*chunks[:first], *[filler] * (size // 40_000), *chunks[first:]])


LONG = filled(LONG_BYTES)
NORMAL = good(UPSTREAM, delay_s=0.005)


class LittleUpstream(EvilUpstream):
    """The system holds little of what it sends, so that hundreds of answers fit."""

    async def __aenter__(self):
        await super().__aenter__()
        for listening in self._sockets:  # what is accepted inherits it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        return self


@asynccontextmanager
async def gateway_for(*scripts, **server):
    """A gateway whose answers under way can be looked at, and its upstream, which answers as the model is called."""
    plays = {"long": LONG, "normal": NORMAL}
    upstream = LittleUpstream(*(scripts or [lambda request: plays[request.json()["model"]]]))
    async with upstream:
        settings = {"unsent_bytes": UNSENT_BYTES, "keep_alive_s": 300, **server}
        metrics = Metrics()
        app = gateway_app(config_of([upstream_at(upstream, UPSTREAM, timeouts=PATIENT)], server=settings), metrics)
        async with serving(app, handler_cancellation=True) as port:
            yield Running(f"http://127.0.0.1:{port}", metrics), app[LIVE], upstream


async def begin(
    stack: AsyncExitStack, url: str, client: str, *, stream: bool = True, room_bytes: int = ROOM_BYTES
) -> RawClient:
    """A client with little room that asked, got the headers, and reads no further by itself."""
    reader = await stack.enter_async_context(RawClient(url, receive_buffer_bytes=room_bytes))
    path, body = asking(client, stream=stream, model="long")
    await reader.send("POST", path, body=orjson.dumps(body))
    await reader.read_headers()
    return reader


async def end(tasks: list[asyncio.Task]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def unsent(reply) -> int:
    """Bytes of an answer that wait in this process."""
    transport = reply._request.transport
    return 0 if transport is None else transport.get_write_buffer_size()


@pytest.mark.parametrize(
    ("stalled", "trickling", "normal"), [(6, 4, 10), pytest.param(150, 50, 50, marks=pytest.mark.exhaustive)]
)
async def test_others_are_undisturbed_and_what_waits_is_bounded(stalled, trickling, normal):
    async with gateway_for(stall_s=300) as (running, live, upstream), AsyncExitStack() as stack:
        slow = [
            await begin(stack, running.url, CLIENTS[number % len(CLIENTS)]) for number in range(stalled + trickling)
        ]
        reading = [asyncio.create_task(client.read_to_end(pace_bytes_s=1024)) for client in slow[stalled:]]
        stack.push_async_callback(end, reading)
        await eventually(lambda: sum(unsent(reply) > UNSENT_BYTES for reply in live) == len(slow), within_s=60)

        asked = [asking(CLIENTS[number % len(CLIENTS)], model="normal") for number in range(normal)]
        answers = await asyncio.gather(*(running.ask(path, body=orjson.dumps(body)) for path, body in asked))
        for number, answer in enumerate(answers):
            read = await collect(source_of([bytes(answer.body)]), CLIENTS[number % len(CLIENTS)])
            assert (read.clean, read.text, answer.end) == (True, TEXT, "complete")

        assert len(live) == len(slow)  # none of the slow ones has ended meanwhile
        assert not any(task.done() for task in reading)
        assert max(map(unsent, live)) <= UNSENT_BYTES + BATCH_BYTES
        for reply in live:  # the system's share is no more: it would take megabytes by itself
            assert reply._watch.written - unsent(reply) < 4 * 64 * 1024
        long = [request for request in upstream.requests if request.json()["model"] == "long"]
        assert all(request.played_at is None for request in long)  # it waits, since nothing more is read from it
        await end(reading)
        for client in slow:
            client.leave("rst")
        await asyncio.gather(*(request.left() for request in long))
        await eventually(lambda: not live)


async def test_those_that_stall_are_dropped_without_a_terminator_and_their_upstreams_are_let_go():
    async with gateway_for(stall_s=0.5) as (running, live, upstream), AsyncExitStack() as stack:
        readers = [await begin(stack, running.url, client) for client in CLIENTS]
        await eventually(lambda: running.counted("requests_total", ending="client stalled") == len(CLIENTS))
        for client, reader in zip(CLIENTS, readers, strict=True):
            answer = await reader.read_to_end()  # what is left in the system
            assert answer.end in {"reset", "cut"}, client
            read = await collect(source_of([bytes(answer.body)]), client)
            assert (read.clean, read.report.provider_error) == (False, None), client
        await asyncio.gather(*(request.left() for request in upstream.requests))
        assert await running.outcomes() == {("one", "client_stalled"): len(CLIENTS)}
        assert not live


async def test_a_whole_answer_that_nobody_takes_is_dropped_too():
    body = b"".join(speech(UPSTREAM, whole=True)).replace(b"It is", b"x" * 8_000_000)
    async with gateway_for(whole(UPSTREAM, body), stall_s=0.5) as (running, live, _), AsyncExitStack() as stack:
        reader = await begin(stack, running.url, "ollama", stream=False)
        await eventually(lambda: running.counted("requests_total", ending="client stalled") == 1)
        assert (await reader.read_to_end()).end in {"reset", "cut"}
        assert not live


async def test_one_that_is_slow_but_alive_gets_everything():
    """It takes seconds for each part that the system would take at once by itself, and 1.2 s are allowed."""
    async with gateway_for(filled(4_800_000), stall_s=1.2) as (running, _, _), AsyncExitStack() as stack:
        reader = await begin(stack, running.url, "anthropic", room_bytes=64 * 1024)
        answer = await reader.read_to_end(pace_bytes_s=800_000)
        assert answer.end == "complete"
        read = await collect(source_of([bytes(answer.body)]), "anthropic")
        assert (read.clean, read.text.endswith(TEXT), len(read.text)) == (True, True, 4_800_000 + len(TEXT))
        assert await running.outcomes() == {("one", "success"): 1}
        assert running.counted("requests_total", ending="whole") == 1


# -- the connection behind a stream ------------------------------------------------------------------------------------


async def test_a_clients_connection_is_used_again_after_a_stream_and_after_an_error():
    opened = []
    trace = TraceConfig()

    async def note(*_about):
        opened.append(1)

    trace.on_connection_create_end.append(note)
    scripts = NORMAL, status(400), whole(UPSTREAM), NORMAL
    async with gateway_for(*scripts) as (running, _, _), ClientSession(trace_configs=[trace]) as session:
        for stream, expected in ((True, 200), (True, 400), (False, 200), (True, 200)):
            path, body = asking("anthropic", stream=stream)
            async with session.post(running.url + path, json=body) as response:
                assert response.status == expected
                await response.read()
    assert len(opened) == 1


async def test_requests_that_are_sent_at_once_are_answered_in_their_order():
    sent, clients = b"", ("anthropic", "openai-chat", "ollama")
    for client in clients:
        path, body = asking(client)
        data = orjson.dumps(body)
        sent += f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    async with gateway_for(NORMAL) as (running, _, upstream):
        host, _, port = running.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        answers = [await reader.readuntil(b"\r\n0\r\n\r\n") for _ in clients]
        writer.close()
        await writer.wait_closed()
        assert len(upstream.requests) == len(clients)
    ends = b'data: {"type":"message_stop"}\n\n', b"data: [DONE]\n\n", b'"done":true'
    for answer, end in zip(answers, ends, strict=True):
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert end in answer
