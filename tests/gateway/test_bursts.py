"""Many clients at once take little of each turn of the event loop, so that the answers under way go on: work a turn is counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from io import BytesIO

import orjson
from aiohttp import ClientSession
from aiohttp.web_protocol import RequestHandler

from streamkit.limits import MIB
from streamkit.web import service
from streamkit.web.heavy import AT_ONCE
from streamkit.web.listening import ACCEPTED_AT_ONCE, listening
from streamkit.web.surfaces import READ_BYTES
from tests.gateway.running import asking, behind
from tests.web.faults import as_asked
from tests.web.serving import answering, counted_turns, eventually


async def test_requests_begin_a_few_in_each_turn(monkeypatch):
    begun, path, body = Counter(), *asking("openai-chat", stream=False)
    read_ask = service.read_ask

    async with behind(as_asked("openai-chat")) as running, ClientSession(running.url) as client:
        with counted_turns() as turn:

            async def read(*given):
                begun[turn()] += 1
                return await read_ask(*given)

            async def ask():
                async with client.post(path, json=body) as answer:
                    return answer.status

            monkeypatch.setattr(service, "read_ask", read)
            statuses = await asyncio.gather(*(ask() for _ in range(60)))
    assert set(statuses) == {200}
    assert begun.total() == 60
    assert max(begun.values()) <= AT_ONCE


async def test_connections_are_accepted_a_few_in_each_turn(monkeypatch):
    made = Counter()
    connection_made = RequestHandler.connection_made

    async def said(_request):
        raise AssertionError

    async with listening(answering(said), ("127.0.0.1", 0), idle_s=5.0, connections=lambda: 1000) as (_, port):
        with counted_turns() as turn:

            def counted(self, transport):
                made[turn()] += 1
                connection_made(self, transport)

            monkeypatch.setattr(RequestHandler, "connection_made", counted)
            opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(60)))
            await eventually(lambda: made.total() == 60)
        for _, writer in opened:
            writer.close()
    assert max(made.values()) <= ACCEPTED_AT_ONCE


async def test_a_body_is_read_in_small_pieces(monkeypatch):
    sizes = []
    data_received = RequestHandler.data_received

    def noted(self, data):
        sizes.append(len(data))
        data_received(self, data)

    monkeypatch.setattr(RequestHandler, "data_received", noted)
    path, body = asking("openai-chat", stream=False)
    body["messages"][0]["content"] = "a" * 8 * MIB
    async with (
        behind(as_asked("openai-chat")) as running,
        ClientSession(running.url) as client,
        client.post(path, data=BytesIO(orjson.dumps(body))) as answer,
    ):
        assert answer.status == 200
    assert sum(size > READ_BYTES for size in sizes) <= 2  # what came before anybody knew of a body
