"""WebSockets of Responses' clients: each message is a request like others, and whoever closes one leaves."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest
from aiohttp import ClientSession, TCPConnector, WSMsgType
from attrs import evolve

from streamkit.framing.sse import serialize_sse
from streamkit.gateway.config import Responses
from tests.gateway.agents.scripted import ScriptedModel, saying, word_in
from tests.gateway.clients.in_thread import UPSTREAMS
from tests.gateway.running import behind, config_of, gateway, upstream_at
from tests.gateway.test_cancel import WINDOWS, script
from tests.gateway.test_slow_readers import LONG, PATIENT
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, as_asked, error_midstream, good, speech, status, truncated_chunked

DIALECT = "openai-chat"
WORD = "word-0123456789ab"
LOOK_UP = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}
ASKED = {"type": "response.create", "model": "m", "input": "hi"}


@asynccontextmanager
async def connected(*plays, server=None, dialect=DIALECT):
    async with (
        behind(*plays, dialect=dialect, upstream={"timeouts": PATIENT}, server=server) as running,
        ClientSession() as session,
        session.ws_connect(f"{running.url}/v1/responses", max_msg_size=0) as ws,
    ):
        yield ws, running.evil, running


async def answered(ws, **members):
    """The events of one answer."""
    await ws.send_json({**ASKED, **members})
    return await events(ws)


async def events(ws):
    read = []
    async with asyncio.timeout(20):
        while not read or not ends(read[-1]):
            read.append(json.loads((await ws.receive()).data))
    return read


def ends(event):
    """Whether an answer ends with it."""
    return event["type"] in {"response.completed", "response.failed"} or "status" in event


@pytest.mark.parametrize("dialect", UPSTREAMS)
async def test_openai_python_runs_a_tool_loop_in_which_each_message_has_new_items_only(dialect):
    model = ScriptedModel(dialect, lambda tool: tool.name == "look_up", {"name": "it"})
    async with connected(model.play, dialect=dialect) as (_, _upstream, running):
        client = openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="k")
        async with client.responses.connect() as connection:
            await connection.response.create(model="m", input="look it up", generate=False)
            prepared = await ended(connection)
            assert prepared.output == []
            await connection.response.create(model="m", previous_response_id=prepared.id, input=[], tools=[LOOK_UP])
            first = await ended(connection)
            call = next(item for item in first.output if item.type == "function_call")
            result = {"type": "function_call_output", "call_id": call.call_id, "output": WORD}
            await connection.response.create(model="m", previous_response_id=first.id, input=[result], tools=[LOOK_UP])
            assert (await ended(connection)).output_text == saying(WORD)
    request = model.results[-1]
    assert request.turns[0].parts[0].text == "look it up"
    assert word_in(request) == WORD


async def ended(connection):
    async for event in connection:
        assert event.type != "error", event
        if event.type == "response.completed":
            return event.response
    pytest.fail("the connection ended without a response")


@pytest.mark.parametrize("kind", [{"type": "response.steer"}, {"stream_id": "a"}, {"input": 5}, {"model": ""}])
async def test_what_can_not_be_asked_is_an_error_in_a_message_and_the_socket_goes_on(kind):
    async with connected(as_asked(DIALECT)) as (ws, _, _running):
        (error,) = await answered(ws, **kind)
        assert (error["type"], error["status"], error["error"]["type"]) == ("error", 400, "invalid_request_error")
        assert (await answered(ws))[-1]["response"]["output"][0]["content"][0]["text"] == TEXT


async def test_a_response_that_is_not_kept_gets_the_code_at_which_codex_sends_all_of_it():
    async with connected(as_asked(DIALECT), server={"body_bytes": 1000}) as (ws, _, _running):
        (error,) = await answered(ws, previous_response_id="nobody's")
        assert error["error"]["code"] == "previous_response_not_found"
        response = (await answered(ws, input="x" * 900))[-1]["response"]
        (error,) = await answered(ws, previous_response_id=response["id"])
        assert "too large to keep" in error["error"]["message"]
        assert error["error"]["param"] == "previous_response_id"


async def test_an_upstreams_refusal_is_an_error_with_its_status_and_how_long_to_wait():
    busy = status(429, DIALECT, headers={"retry-after": "7"})
    async with connected(busy) as (ws, _, _running):
        (error,) = await answered(ws)
    assert (error["status"], error["headers"]["retry-after"]) == (429, "7")
    assert "x-request-id" in error["headers"]


async def test_an_answer_that_is_cut_fails_and_leaves_what_was_kept_before():
    plays = [as_asked(DIALECT), truncated_chunked(DIALECT), as_asked(DIALECT)]
    async with connected(*plays) as (ws, _, running):
        first = (await answered(ws))[-1]["response"]
        assert (await answered(ws))[-1]["type"] == "response.failed"
        calls = [item["call_id"] for item in first["output"] if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": call, "output": "4"} for call in calls]
        last = (await answered(ws, previous_response_id=first["id"], input=results))[-1]
        assert last["type"] == "response.completed"
        assert await running.outcomes() == {("one", "success"): 2, ("one", "broken"): 1}


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_a_failure_inside_an_answer_is_told_once_and_the_next_answer_is_its_own(dialect):
    async with connected(error_midstream(dialect), as_asked(dialect), dialect=dialect) as (ws, _, _running):
        failed = await answered(ws)
        told = [event["type"] for event in failed if event["type"] in {"error", "response.failed"}]
        assert told == ["error" if dialect == "openai-responses" else "response.failed"]
        assert (await answered(ws))[0]["type"] == "response.created"


async def test_an_upstreams_own_error_is_told_with_a_status():
    told = json.dumps({"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow"}})
    events_of_it = [*speech("openai-responses")[:8], serialize_sse(told.encode(), event="error")]
    async with connected(good("openai-responses", events_of_it), dialect="openai-responses") as (ws, _, _running):
        error = (await answered(ws))[-1]
    assert (error["type"], error["status"], error["error"]["message"]) == ("error", 429, "slow")


async def test_messages_that_come_meanwhile_wait_and_too_many_are_refused():
    async with connected(script("before its headers", stream=True)) as (ws, upstream, _running):
        for _ in range(6):
            await ws.send_json(ASKED)
        (error,) = await events(ws)
        assert error["status"] == 429
        await upstream.request()
        assert len(upstream.requests) == 1
    async with connected(as_asked(DIALECT)) as (ws, _, _running):
        for _ in range(3):
            await ws.send_json(ASKED)
        assert [(await events(ws))[-1]["type"] for _ in range(3)] == ["response.completed"] * 3


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("window", WINDOWS)
async def test_a_client_that_leaves_in_any_window_is_heard_of_upstream(window, how):
    async with connected(script(window, stream=True)) as (ws, upstream, running):
        await ws.send_json(ASKED)
        request = await upstream.request()
        if window == "within the response":
            await ws.receive()
        if how == "close":
            await ws.close()
        else:
            ws._response.connection.transport.abort()
        async with asyncio.timeout(2):
            await request.left()
        assert await running.outcomes() == {("one", "client_left"): 1}


async def test_a_reader_that_takes_nothing_holds_its_upstream_and_is_dropped():
    async with connected(LONG, server={"stall_s": 1.5, "unsent_bytes": 100_000}) as (ws, upstream, running):
        await ws.send_json(ASKED)
        ws._response.connection.transport.pause_reading()
        request = await upstream.request()
        async with asyncio.timeout(20):
            await request.left()
        assert sum(size for _, size in request.sent) < 20_000_000
        assert await running.outcomes() == {("one", "client_stalled"): 1}


async def test_an_idle_socket_is_closed_and_one_too_many_is_told_to_use_http():
    server = {"socket_idle_s": 0.2, "max_sockets": 1}
    async with connected(as_asked(DIALECT), server=server) as (ws, _, running):
        async with ClientSession() as session:
            answer = await session.get(f"{running.url}/v1/responses", headers={"Upgrade": "websocket"})
            assert answer.status == 426
        assert running.counted("sockets_open") == 1
        assert running.counted("streams_active") == 0
        assert (await ws.receive()).type is WSMsgType.CLOSE
        assert ws.close_code == 1000


async def test_each_message_is_counted_as_a_request():
    async with connected(as_asked(DIALECT)) as (ws, _, running):
        await answered(ws)
        await answered(ws, input=5)
        await running.outcomes()
        assert running.counted("requests_total", status="200", ending="whole") == 1
        assert running.counted("requests_total", status="400", ending="error") == 1


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_a_thousand_idle_sockets_take_little_memory():
    """Both ends are in this process, so that this is more than the gateway's own part. 33 KiB were measured for both."""
    async with (
        connected(as_asked(DIALECT)) as (ws, _, running),
        ClientSession(connector=TCPConnector(limit=0)) as session,
    ):
        await answered(ws)
        before = resident_bytes()
        sockets = [await session.ws_connect(f"{running.url}/v1/responses") for _ in range(99)]
        first = resident_bytes()
        sockets += [await session.ws_connect(f"{running.url}/v1/responses") for _ in range(900)]
        each = (resident_bytes() - first) / 900
        print(f"{each / 1024:.1f} KiB for both ends of a socket, {(first - before) / 1024:.0f} KiB for the first 99")
        assert each < 64 * 1024
        for one in sockets:
            await one.close()


async def test_a_response_of_another_connection_or_of_a_post_is_gone_on_from_where_the_gateway_keeps_state():
    model = ScriptedModel(DIALECT, lambda tool: tool.name == "look_up")
    async with EvilUpstream(model.play) as upstream:
        config = evolve(config_of([upstream_at(upstream, DIALECT, timeouts=PATIENT)]), responses=Responses(state=True))
        async with gateway(config) as running, ClientSession() as session:
            url = f"{running.url}/v1/responses"
            async with session.post(url, json={"model": "m", "input": "one"}) as posted:
                responses = [await posted.json()]
            for number in ("two", "three"):
                async with session.ws_connect(url) as ws:
                    events_of_it = await answered(ws, previous_response_id=responses[-1]["id"], input=number)
                    responses.append(events_of_it[-1]["response"])
                    (error,) = await answered(ws, previous_response_id="resp_nobodys")
                    assert error["error"]["code"] == "previous_response_not_found"
        said = [message["content"] for message in upstream.requests[-1].json()["messages"] if message["role"] == "user"]
    assert said == ["one", "two", "three"]
    assert len({response["id"] for response in responses}) == 3
