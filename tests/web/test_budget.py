"""One budget for the bodies of all requests: what is beyond it is 503, and what is held is let go."""

from __future__ import annotations

import asyncio
import gc
import threading
from io import BytesIO
from weakref import ref

import orjson
import pytest
from aiohttp import ClientSession

from streamkit.conversation.messages import Request, Turn
from streamkit.gateway import app as gateway_module
from streamkit.limits import MIB
from streamkit.web import surfaces
from streamkit.web.budget import UNCOUNTED_BYTES, Budget, Hold
from streamkit.web.heavy import in_thread
from streamkit.web.refusals import Refused
from streamkit.web.surfaces import Ask
from tests.gateway.running import asking, behind
from tests.web.evil import Hang, Rst, Script, Send
from tests.web.faults import as_asked
from tests.web.serving import eventually


def large(dialect="openai-chat", size=MIB, **values):
    path, body = asking(dialect, **values)
    body["messages"][0]["content"] = "a" * size
    return path, orjson.dumps(body)


@pytest.fixture
def budgets(monkeypatch):
    """The budgets of the gateway that a test starts: of requests' bodies, and of what sockets keep."""
    made = []

    def budget(limit_bytes):
        made.append(Budget(limit_bytes))
        return made[-1]

    monkeypatch.setattr(gateway_module, "Budget", budget)
    return made


def test_a_hold_never_exceeds_its_budget_and_gives_back_what_it_took():
    budget = Budget(100)
    one, other = Hold(budget), Hold(budget)
    one.add(UNCOUNTED_BYTES)
    assert budget.held_bytes == 0
    one.add(70)
    with pytest.raises(Refused) as refused:
        other.resize(UNCOUNTED_BYTES + 31)
    assert refused.value.failed.retry_after_s
    assert budget.held_bytes == 70
    other.resize(UNCOUNTED_BYTES + 30)
    one.shrink(0)
    other.shrink(0)
    assert budget.held_bytes == 0


async def test_bodies_beyond_the_budget_get_503_and_small_ones_an_answer(budgets):
    path, body = large(size=3 * MIB)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    server = {"bodies_bytes": 4 * MIB, "body_bytes": 4 * MIB}
    async with behind(as_asked("openai-chat"), server=server) as running, ClientSession(running.url) as client:
        port = int(running.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + body[:-1])  # and its last byte never
        await eventually(lambda: budgets[0].held_bytes > 2 * MIB)
        async with client.post(path, data=BytesIO(body)) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        small, tiny = asking("openai-chat")
        async with client.post(small, json=tiny) as answer:
            assert answer.status == 200
            await answer.read()
        writer.close()
        await eventually(lambda: budgets[0].held_bytes == 0)
        async with client.post(path, data=BytesIO(body)) as answer:
            assert answer.status == 200
            await answer.read()
        await eventually(lambda: budgets[0].held_bytes == 0)


async def test_a_body_that_falls_silent_is_given_up(budgets, monkeypatch):
    monkeypatch.setattr(surfaces, "BODY_SILENCE_S", 0.05)
    path, body = large()
    async with behind(as_asked("openai-chat")) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        writer.write(body[:-1])
        assert b" 408 " in await reader.readline()
        assert budgets[0].held_bytes == 0
        writer.close()


SPOKEN = b'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("failures", [0, 1])
async def test_an_open_stream_holds_nothing_of_its_conversation(budgets, monkeypatch, client, failures):
    """Nor what failed before it: an error has the frames in which it was raised, and all that is in them."""
    plays = [Script((Rst(),))] * failures + [Script((Send(HEADERS + SPOKEN), Hang()))]
    read, asks = surfaces.decode_request, []

    def noted(raw, dialect, **how):
        request = read(raw, dialect, **how)
        asks.append(ref(request.turns[0]))
        return request

    monkeypatch.setattr(surfaces, "decode_request", noted)
    path, body = large(client)
    async with (
        behind(*plays, retries=failures) as running,
        ClientSession(running.url) as session,
        session.post(path, data=BytesIO(body)) as answer,
    ):
        await answer.content.readany()
        assert budgets[0].held_bytes == 0
        await eventually(
            lambda: gc.collect() >= 0 and [each() for each in asks] == [None]
        )  # a thread may end after its answer


async def test_values_count_beside_bytes(budgets):
    path, body = asking("openai-chat")
    body["messages"] *= 5000
    server = {"bodies_bytes": 2 * MIB, "body_bytes": MIB}
    async with (
        behind(as_asked("openai-chat"), server=server) as running,
        ClientSession(running.url) as client,
        client.post(path, json=body) as answer,
    ):
        assert answer.status == 503
    assert budgets[0].held_bytes == 0


async def test_a_large_request_is_read_and_written_in_a_thread(monkeypatch):
    threads = []
    read = surfaces.decode_request
    monkeypatch.setattr(
        surfaces,
        "decode_request",
        lambda *body, **how: threads.append(threading.current_thread()) or read(*body, **how),
    )
    async with behind(as_asked("openai-chat")) as running, ClientSession(running.url) as client:
        for size in (10, MIB):
            path, body = large(size=size)
            async with client.post(path, data=BytesIO(body)) as answer:
                assert answer.status == 200
                await answer.read()
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


async def test_one_thing_is_done_at_a_time_and_a_cancelled_one_to_its_end():
    running, most, gate = [], [], threading.Event()

    def work():
        running.append(1)
        most.append(len(running))
        gate.wait(5)
        running.pop()

    tasks = [asyncio.create_task(in_thread(work)) for _ in range(3)]
    await eventually(lambda: bool(running))
    tasks[0].cancel()
    await asyncio.sleep(0.05)
    assert len(most) == 1
    gate.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == [1, 1, 1]


@pytest.mark.parametrize("frozen", [False, True])
async def test_no_garbage_is_collected_beside_large_work_and_what_is_frozen_stays_so(frozen):
    collected = []

    def count(phase, _info):
        collected.append(phase)

    def work():
        gc.callbacks.append(count)
        try:
            return [[] for _ in range(100_000)]
        finally:
            gc.callbacks.remove(count)

    if not frozen:
        gc.unfreeze()
    before = gc.get_freeze_count()
    made = await in_thread(work)
    count_behind = gc.get_freeze_count()
    gc.freeze()  # as conftest.py left it
    assert (len(made), collected, gc.isenabled()) == (100_000, [], True)
    assert count_behind <= before  # what an application froze stays so, and nothing else is


async def test_a_long_conversation_is_let_go_in_slices():
    turns = [Turn("user") for _ in range(3 * surfaces.FORGOTTEN_AT_ONCE)]
    request = Request("openai-chat", turns=turns)
    Ask(dialect="openai-chat", operation="generate", model="m", stream=True, request=request).let_go()
    assert (request.turns, len(turns)) == ([], 2 * surfaces.FORGOTTEN_AT_ONCE)
    await eventually(lambda: len(turns) <= surfaces.FORGOTTEN_AT_ONCE)
