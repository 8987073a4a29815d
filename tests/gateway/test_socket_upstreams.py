"""An upstream that is asked over a WebSocket, behind a gateway: to clients it is like any other."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit.translation.bodies import decode_response
from streamkit.web.source import Timeouts
from tests.gateway.running import end_of, in_turn, leg, read, upstream_at
from tests.web.faults import CALL, TEXT, as_asked
from tests.web.serving import counted_turns
from tests.web.socket_upstream import events, saying, socket_upstream

pytestmark = pytest.mark.usefixtures("no_leaks")
DIALECT = "openai-responses"
CLIENTS = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini")
PATIENT = Timeouts(first_byte_s=60, idle_s=60)
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@asynccontextmanager
async def in_front_of(play, **values):
    async with socket_upstream(play) as sockets:
        upstream = upstream_at(sockets, DIALECT, transport="websocket", timeouts=PATIENT)
        async with in_turn(upstream, **values) as running:
            yield running, sockets


async def read_in(answer, client, *, stream):
    if not stream:
        assert answer.status == 200, answer.body
        return decode_response(bytes(answer.body), client)
    response = await read(answer, client)
    assert answer.end == end_of(client, clean=response.clean)
    return response


@BOTH
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("policy", ["tolerant", "strict"])
async def test_clients_of_every_dialect_get_the_answer_in_either_form(client, stream, policy):
    async with in_front_of(saying(events()), server={"policy": policy}) as (running, sockets):
        response = await read_in(await running.asked(client, stream=stream, tools=True), client, stream=stream)
        assert await running.outcomes() == {("one", "success"): 1}
        assert running.counted("repairs_total") == 0
    assert response.clean
    assert response.choices[0].text == TEXT
    assert [(call.name, json.loads(call.arguments)) for call in response.choices[0].tool_calls] == [
        (CALL[0], json.loads(CALL[1]))
    ]
    assert sockets.asked[0]["type"] == "response.create"
    assert "stream" not in sockets.asked[0]
    assert sockets.open == 0


async def test_within_the_dialect_the_events_pass_as_they_came():
    async with in_front_of(saying(events())) as (running, _sockets):
        answer = await running.asked(DIALECT)
    payloads = [line[6:] for line in bytes(answer.body).decode().splitlines() if line.startswith("data: ")]
    assert payloads == events()


FAILS = json.dumps({"type": "error", "status": 500, "error": {"message": "no"}})


@BOTH
@pytest.mark.parametrize("code", [500, 426])
async def test_what_fails_before_the_model_spoke_moves_on_to_the_next_upstream(code, stream):
    """As a message, and where no socket is opened."""
    refusal = web.Response(status=code)
    async with socket_upstream(saying([FAILS]), handshake=lambda _: refusal if code == 426 else None) as bad:
        first = upstream_at(bad, DIALECT, transport="websocket")
        async with in_turn(first, leg(as_asked("anthropic"), dialect="anthropic")) as running:
            response = await read_in(await running.asked("ollama", stream=stream), "ollama", stream=stream)
            assert await running.outcomes() == {("one", f"http_{code}"): 1, ("two", "success"): 1}
    assert response.choices[0].text == TEXT


@BOTH
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", ["closed", "closed with a code", "broken"])
async def test_an_upstream_that_is_cut_is_never_a_success(client, how, stream):
    async def cut(socket, _asked):
        for message in events()[:8]:
            await socket.send_str(message)
        await asyncio.sleep(0.05)
        if how == "broken":
            socket._req.transport.abort()
        await socket.close(code=1000 if how == "closed" else 1011)

    async with in_front_of(cut) as (running, _sockets):
        answer = await running.asked(client, stream=stream)
        assert await running.outcomes() == {("one", "cut" if how == "closed" else "broken"): 1}
    if not stream:
        assert answer.status >= 500
        return
    response = await read_in(answer, client, stream=True)
    assert not response.clean
    assert response.report.provider_error is not None


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("said", [0, 1, 8], ids=["before a response", "before the model spoke", "within the response"])
async def test_a_client_that_leaves_is_heard_of_upstream(said, how):
    async with in_front_of(saying(events()[:said])) as (running, sockets):
        async with running.client("anthropic") as leaver:
            async with asyncio.timeout(5):
                await sockets.came.wait()
            await asyncio.sleep(0.05)
            loop = asyncio.get_running_loop()
            left = loop.time()
            leaver.leave(how)
            await sockets.gone()
            assert loop.time() - left < 1
        assert await running.outcomes() == {("one", "client_left"): 1}


async def test_a_reader_that_takes_nothing_holds_its_upstream_and_is_dropped():
    sent = 0

    async def flood(socket, _asked):
        nonlocal sent
        beginning, delta = events()[:3], next(event for event in events() if ".delta" in event)
        for message in beginning:
            await socket.send_str(message)
        for _ in range(2000):
            await socket.send_str(delta.replace('"delta":"It "', f'"delta":"{"x" * 40_000}"'))
            sent += 40_000

    async with in_front_of(flood, server={"stall_s": 1.5, "unsent_bytes": 100_000}) as (running, sockets):
        async with running.client("anthropic", receive_buffer_bytes=4096) as reader:
            await reader.read_headers()
            async with asyncio.timeout(20):
                await sockets.left.wait()
        assert sent < 20_000_000
        assert await running.outcomes() == {("one", "client_stalled"): 1}


async def test_tokens_are_counted_over_http():
    async with in_front_of(saying([])) as (running, sockets):
        path = "/v1/responses/input_tokens"
        answer = await running.ask(path, body=orjson.dumps({"model": "m", "input": "hi"}))
    assert answer.json()["input_tokens"] == 7
    assert len(sockets.posts) == 1
    assert not sockets.asked


async def test_a_client_over_a_websocket_may_be_answered_by_an_upstream_over_one():
    async with (
        in_front_of(saying(events())) as (running, sockets),
        ClientSession() as session,
        session.ws_connect(f"{running.url}/v1/responses") as client,
    ):
        await client.send_json({"type": "response.create", "model": "m", "input": "hi"})
        got = [await client.receive_str() for _ in events()]
        assert got == events()
        last = json.loads(got[-1])["response"]
        asked_next = {"model": "m", "previous_response_id": last["id"], "input": []}
        await client.send_json({"type": "response.create", **asked_next})
        await client.receive_str()
    assert len(sockets.asked[1]["input"]) == 1 + len(last["output"])
    assert "previous_response_id" not in sockets.asked[1]


@pytest.mark.parametrize("flood", ["pings", "pongs", "empty messages"])
async def test_others_have_their_turn_between_messages_that_say_nothing(flood):
    async def play(socket, _asked):
        for _ in range(2000):
            await {"pings": socket.ping, "pongs": socket.pong, "empty messages": partial(socket.send_str, "")}[flood]()
        for message in events():
            await socket.send_str(message)

    async with in_front_of(play) as (running, _):
        with counted_turns() as turn:
            found = await read_in(await running.asked("openai-chat", stream=True), "openai-chat", stream=True)
    assert found.text == TEXT
    assert turn() > 2000
