"""O33 against servers of every dialect, which are clean, and against the gateway in front of its demo."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from streamkit.conversation.messages import ToolCall
from streamkit.gateway.app import gateway_app
from streamkit.gateway.demo import demo_config, start_demo
from streamkit.gateway.metrics import Metrics
from streamkit.lab.doctor import plan
from streamkit.lab.doctor.reporting import line_of, status_of
from streamkit.report import Status
from tests.lab.doctor.servers import EXAMINED, examination, examined, model_server, served_at
from tests.vectors.openai_chat import CALLED, DONE, ROLE, call, calls, said
from tests.vectors.vector import sse
from tests.web.serving import answering, serving


def complaints(judged):
    """What is found, but for how fast it came: a server of a test is faster than its network."""
    found = [
        (name, finding.rule) for name, each in judged.items() for finding in each.findings if finding.rule != "buffered"
    ]
    return found + [(name, each.check.found) for name, each in judged.items() if each.check and each.check.found]


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_a_server_that_speaks_its_dialect_well_is_clean(dialect):
    judged = await examined(model_server(dialect), dialect)
    assert complaints(judged) == []
    assert status_of(list(judged.values())) is Status.DONE
    assert len(judged) >= 8


@pytest.mark.parametrize("dialect", [name for name in EXAMINED if served_at(name)])
async def test_the_gateway_in_front_of_its_demo_is_clean(dialect):
    runner, url = await start_demo(speed=0)
    judged = await examined(gateway_app(demo_config(url), Metrics()), dialect)
    await runner.cleanup()
    assert complaints(judged) == []
    assert status_of(list(judged.values())) is Status.DONE


async def test_the_result_is_of_the_call_that_the_server_made():
    requests = []

    def watch(asked, response):
        requests.append(asked)
        return response

    judged = await examined(model_server("openai-chat", watch), "openai-chat", "tool", "result")
    call = judged["tool"].response.tool_calls[0]
    (made,) = (part for part in requests[1].turns[1].parts if isinstance(part, ToolCall))
    (result,) = requests[1].turns[2].parts
    assert (made.id, made.name, made.arguments) == (call.id, call.name, call.arguments)
    assert result.call_id == call.id


async def test_a_turn_of_the_server_that_is_long_is_not_repeated():
    requests = []

    def change(asked, usual):
        requests.append(asked)
        spoken = sse(ROLE, said("and " * 400), calls(call(0, "call_9", "get_weather", '{"city":"Rome"}')), CALLED, DONE)
        return web.Response(body=spoken, content_type="text/event-stream")

    judged = await examined(model_server("openai-chat", change), "openai-chat", "tool", "result")
    assert len(judged["tool"].response.text) == 1600
    assert requests[1].turns[1].parts[-1].id == "call_1"


async def test_a_redirect_to_another_host_is_not_followed():
    reached = []

    async def elsewhere(request):
        reached.append(request.path)
        return web.Response(text="{}")

    async with serving(answering(elsewhere)) as port:

        async def handle(_request):
            raise web.HTTPTemporaryRedirect(f"http://localhost:{port}/v1/chat/completions")

        judged = await examined(answering(handle), "openai-chat")
    assert reached == []
    (found,) = judged.values()
    assert (found.ends, found.status) == (True, Status.FAILED)
    assert "not followed" in found.findings[0].advice


@pytest.mark.parametrize("status", [401, 404, 429, 500])
async def test_nothing_more_is_sent_where_the_first_request_is_refused(status):
    paths = []

    async def handle(request):
        paths.append(request.path)
        return web.json_response({"error": {"message": "no", "type": "x"}}, status=status)

    judged = await examined(answering(handle), "openai-chat")
    assert len(paths) == 1
    assert judged["text"].status is Status.FAILED
    assert f"status {status}" in judged["text"].findings[0].message


@pytest.mark.parametrize(("status", "goes_on"), [(401, False), (403, False), (404, False), (429, False), (500, True)])
async def test_what_ends_it_later_is_what_the_other_requests_would_come_to_as_well(status, goes_on):
    def change(asked, usual):
        return web.json_response({"error": {"message": "no", "type": "x"}}, status=status) if asked.tools else usual

    judged = await examined(model_server("openai-chat", change), "openai-chat")
    assert ("cancel" in judged) is goes_on
    assert judged["tool"].status is Status.FAILED


async def test_the_request_that_is_left_is_closed_at_its_first_read():
    left = asyncio.Event()

    async def handle(request):
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        try:
            while True:
                await stream.write(b": still here\n\n")
                await asyncio.sleep(0.01)
        finally:
            left.set()

    async with examination(answering(handle), "openai-chat") as asked:
        found = await asked.examine(next(probe for probe in plan("openai-chat", "demo").probes if probe.way == "left"))
        await asyncio.wait_for(left.wait(), 5)
    assert (found.recording.ending, found.timing.reads, found.status) == ("client_left", 1, Status.DONE)
    assert "visible only in its own metrics" in line_of(found)
