"""The demo upstream over TCP: well-formed in every answer, at the pace of a model, and failing where it says so."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil

import orjson
import pytest
from aiohttp import ClientPayloadError, ClientSession, web

from streamkit.errors import UsageError
from streamkit.gateway import demo
from streamkit.gateway.app import gateway_app
from streamkit.gateway.demo import (
    FIRST_TOKEN_S,
    MODELS,
    SILENCE_S,
    commands,
    demo_app,
    demo_config,
    start_demo,
    welcome,
)
from streamkit.gateway.metrics import Metrics
from streamkit.gateway.routing import Routes
from streamkit.http_errors import decode_error
from streamkit.lab.demo_model import DELTAS, recording
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import Status
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from tests.clients.recipes import violations
from tests.gateway.demo_requests import (
    ASSISTANT_CALLS,
    HELLO,
    RESULT,
    TIME,
    WEATHER,
    asking,
    custom,
    function,
    result_of,
)

PATH = "/v1/chat/completions"
FORCED = {"type": "function", "function": {"name": "get_time"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": ["a"], "properties": {"a": {}}}}}
RESULTS = [HELLO, ASSISTANT_CALLS, RESULT, result_of("call_2", "12:00")]
#: What is asked, each with and without thinking, streamed and whole.
ASKED = {
    "text": {},
    "one tool": {"tools": [WEATHER]},
    "two tools": {"tools": [WEATHER, TIME]},
    "many tools": {"tools": [WEATHER, TIME, *(function(f"more_{number}", {}) for number in range(20))]},
    "a tool without parameters": {"tools": [function("now", {})]},
    "a forced tool": {"tools": [WEATHER, TIME], "tool_choice": FORCED},
    "no tool": {"tools": [WEATHER, TIME], "tool_choice": "none"},
    "one at a time": {"tools": [WEATHER, TIME], "parallel_tool_calls": False},
    "a custom tool": {"tools": [custom("shell")]},
    "results": {"messages": RESULTS, "tools": [WEATHER, TIME]},
    "results and words": {"messages": [*RESULTS, HELLO], "tools": [WEATHER]},
    "a required call": {"messages": RESULTS, "tools": [WEATHER], "tool_choice": "required"},
    "a document": {"response_format": SCHEMA},
    "any document": {"response_format": {"type": "json_object"}},
    "an escape": {"messages": [HELLO, ASSISTANT_CALLS, result_of("call_1", 'a "b"\r\n\u2028 c\\ 🌧')]},
}
CASES = [
    pytest.param({"model": model, **body}, id=f"{name}-{model}")
    for model in ("demo", "demo-reasoning")
    for name, body in ASKED.items()
]


@pytest.fixture
async def fast(aiohttp_client):
    """A client of the demo that is never made to wait."""
    return await aiohttp_client(demo_app(speed=0))


async def posted(client, **body):
    async with client.post(PATH, json=asking(**body)) as response:
        return response.status, await response.read()


async def streamed(client, **body):
    status, stream = await posted(client, stream=True, **body)
    assert status == 200, stream
    return stream


def verdicts(response):
    return [call.verdict.kind for call in response.tool_calls]


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", CASES)
async def test_a_stream_is_without_fault_and_its_calls_match_their_schemas(body, fast):
    stream = await streamed(fast, **body)
    assert violations(stream, "openai-chat") == ()
    tools = [tool for tool in body.get("tools", []) if tool["type"] == "function"]
    response = await collect(source_of([stream]), "openai-chat", ReadOptions(tools=tools or None))
    assert response.report.status is Status.DONE
    assert not response.report.repairs
    assert set(verdicts(response)) <= {"complete"}
    assert response.model == body["model"]
    assert bool(response.choices[0].reasoning) == (body["model"] == "demo-reasoning")


@pytest.mark.parametrize("body", CASES)
async def test_a_whole_answer_says_the_same_as_the_stream(body, fast):
    stream = await collect(
        source_of([await streamed(fast, stream_options={"include_usage": True}, **body)]), "openai-chat"
    )
    status, document = await posted(fast, **body)
    assert status == 200
    whole = decode_response(document, "openai-chat")
    assert not whole.report.repairs
    [told], [said] = stream.choices, whole.choices
    assert (said.text, said.reasoning, said.stop_reason) == (told.text, told.reasoning, told.stop_reason)
    assert [(c.name, c.arguments, c.verdict) for c in said.tool_calls] == [
        (c.name, c.arguments, c.verdict) for c in told.tool_calls
    ]
    assert (whole.usage.input_total, whole.usage.output_total) == (stream.usage.input_total, stream.usage.output_total)


async def test_a_bounded_answer_ends_with_the_reason_length(fast):
    asked = {"model": "demo-reasoning", "tools": [WEATHER, TIME], "stream_options": {"include_usage": True}}
    whole = await collect(source_of([await streamed(fast, **asked)]), "openai-chat")
    total = whole.usage.output_total
    for most in range(1, total + 1):
        stream = await streamed(fast, max_tokens=most, **asked)
        response = await collect(source_of([stream]), "openai-chat")
        assert response.clean
        assert response.choices[0].stop_reason == ("length" if most < total else "tool_calls")
        assert response.usage.output_total <= most
        assert violations(stream, "openai-chat") == ()
        assert set(verdicts(response)) <= {"truncated", "complete"}  # never an empty one, which would mean {}


@pytest.mark.parametrize(
    ("options", "expected"), [({}, False), ({"include_usage": False}, False), ({"include_usage": True}, True)]
)
async def test_a_stream_has_usage_if_it_was_asked_for(options, expected, fast):
    stream = await streamed(fast, **({"stream_options": options} if options else {}))
    assert (b'"usage":{' in stream) is expected


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"model":"demo"}', "messages"),
        (orjson.dumps(asking(n=2)), "n: must be 1 for the demo model"),
        (orjson.dumps(asking(tools=[function("x", {"type": "string"})])), r"tools[0].function.parameters: no call"),
    ],
)
async def test_a_bad_request_gets_the_dialects_error(body, message, fast):
    async with fast.post(PATH, data=body) as response:
        failed = decode_error(response.status, await response.read(), "openai-chat", response.headers)
    assert response.status == 400
    assert failed.type == "invalid_request"
    assert message in failed.message


@pytest.mark.parametrize("stream", [True, False])
async def test_the_model_that_fails_answers_with_status_500(stream, fast):
    status, body = await posted(fast, model="demo-error", stream=stream)
    assert status == 500
    failed = decode_error(status, body, "openai-chat", {})
    assert failed.type == "server"
    assert "demo-error always fails" in failed.message


async def test_the_model_that_breaks_off_leaves_a_stream_without_its_end(fast, caplog):
    caplog.set_level(logging.WARNING)
    arrived = bytearray()
    async with fast.post(PATH, json=asking(model="demo-cut", stream=True)) as response:
        assert response.status == 200
        with pytest.raises(ClientPayloadError):
            async for chunk in response.content.iter_any():
                arrived += chunk
    read = await collect(source_of([bytes(arrived)]), "openai-chat")
    assert not read.clean
    assert read.report.broken_frame
    assert read.text  # it had begun
    assert not caplog.records  # and that is no fault of the server's


async def test_the_model_that_breaks_off_leaves_half_of_a_whole_answer(fast, caplog):
    caplog.set_level(logging.WARNING)
    async with fast.post(PATH, json=asking(model="demo-cut")) as response:
        assert response.status == 200
        with pytest.raises(ClientPayloadError):
            await response.read()
    assert not caplog.records


# -- time --------------------------------------------------------------------------------------------------------------


class Clock:
    """Stands in for ``asyncio.sleep``: it notes what was waited for, and does not wait."""

    def __init__(self):
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(demo, "sleep", clock.sleep)
    return clock


async def waits(clock, speed=1.0):
    """What stands between the tokens of the recorded text at that speed, in seconds and in order."""
    clock.waits.clear()
    paced = demo._Demo(speed, random.Random(0))
    said = [event async for [event] in paced.spoken(list(recording("text")), FIRST_TOKEN_S)]
    assert said == list(recording("text"))
    return list(clock.waits)


async def test_tokens_come_at_the_pace_of_a_model(clock):
    first, *others = await waits(clock)
    assert first == FIRST_TOKEN_S
    assert all(1 / 60 <= wait <= 1 / 30 for wait in others)
    assert len(set(others)) == len(others) == sum(isinstance(event, DELTAS) for event in recording("text")) - 1


async def test_the_pace_is_that_of_the_seed(clock, aiohttp_client):
    paces = []
    for seed in (3, 3, 4):
        clock.waits.clear()
        await streamed(await aiohttp_client(demo_app(seed=seed)))
        paces.append(list(clock.waits))
    assert paces[0] == paces[1] != paces[2]


async def test_the_speed_is_a_factor(clock):
    normal = await waits(clock)
    assert await waits(clock, speed=4) == pytest.approx([wait / 4 for wait in normal])
    assert await waits(clock, speed=0) == []


async def test_the_slow_model_is_silent_for_a_minute_before_its_first_token(clock, aiohttp_client):
    client = await aiohttp_client(demo_app())
    await streamed(client, model="demo-slow")
    assert clock.waits[0] == SILENCE_S
    assert max(clock.waits[1:]) < 1


def test_a_speed_below_0_is_refused():
    with pytest.raises(UsageError, match="a factor above 0, or 0 for no waiting, not -1"):
        demo_app(speed=-1)


# -- the server --------------------------------------------------------------------------------------------------------


async def test_it_listens_on_a_port_of_loopback_that_was_free():
    (one, url), (other, another) = await start_demo(speed=0), await start_demo(speed=0)
    try:
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/v1")
        assert url != another
        async with ClientSession() as session, session.post(f"{url}/chat/completions", json=asking()) as response:
            assert response.status == 200
    finally:
        await one.cleanup()
        await other.cleanup()


async def test_a_server_that_could_not_start_leaves_nothing(monkeypatch):
    cleaned = []

    async def fail(_site):
        raise OSError(98, "Address already in use")

    async def clean(runner):
        cleaned.append(runner)

    monkeypatch.setattr(web.TCPSite, "start", fail)
    monkeypatch.setattr(web.AppRunner, "cleanup", clean)
    with pytest.raises(OSError, match="already in use"):
        await start_demo()
    assert len(cleaned) == 1


async def test_a_client_that_leaves_ends_the_silence(monkeypatch):
    began, ended = asyncio.Event(), asyncio.Event()

    async def silence(_seconds):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(demo, "sleep", silence)
    runner, url = await start_demo()
    async with ClientSession() as session:
        body = asking(model="demo-slow", stream=True)
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 200  # the headers come at once
            await began.wait()
            response.close()
        async with asyncio.timeout(10):
            await ended.wait()
    await runner.cleanup()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_gateway_in_front_of_it_has_every_model():
    config = demo_config("http://127.0.0.1:1/v1")
    routes = Routes(config.routes)
    assert config.routes[0].models == (*MODELS, "*")  # names are listed to clients, patterns are not
    for model in (*MODELS, "gpt-6", "models/gemini-4"):
        [target] = routes.find(model).targets
        assert target.upstream.base_url == "http://127.0.0.1:1/v1"
        assert target.model is None
        assert target.upstream.auth == "none"


# -- clients -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def official():
    openai = pytest.importorskip("openai", reason="install streamkit-llm[clients]")
    runner, url = await start_demo(speed=0)
    transport = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=transport) as client:
        yield client
    await runner.cleanup()


async def test_the_official_client_reads_a_whole_answer(official):
    answer = await official.chat.completions.create(model="demo-reasoning", messages=[HELLO])
    [choice] = answer.choices
    assert choice.message.content
    assert choice.message.model_extra["reasoning_content"]
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("whole", [True, False])
async def test_the_official_client_goes_through_a_tool_loop(whole, official):
    messages = [HELLO]
    for turn in range(2):
        if whole:
            answer = await official.chat.completions.create(model="demo", messages=messages, tools=[WEATHER, TIME])
        else:
            async with official.chat.completions.stream(
                model="demo", messages=messages, tools=[WEATHER, TIME]
            ) as stream:
                answer = await stream.get_final_completion()
        message = answer.choices[0].message
        if turn == 0:
            assert answer.choices[0].finish_reason == "tool_calls"
            assert [call.function.name for call in message.tool_calls] == ["get_weather", "get_time"]
            messages.append(message.model_dump(include={"role", "content", "tool_calls"}))
            for call in message.tool_calls:
                arguments = orjson.loads(call.function.arguments)
                messages.append(result_of(call.id, f"asked with {', '.join(arguments)}"))
    assert answer.choices[0].finish_reason == "stop"
    assert "get_weather said “asked with city, days”, get_time said “asked with zone”." in message.content


async def test_the_official_client_is_told_of_a_failure(official):
    import openai  # noqa: PLC0415 - the fixture skips without it

    with pytest.raises(openai.InternalServerError, match="always fails"):
        await official.chat.completions.create(model="demo-error", messages=[HELLO])
    with pytest.raises(openai.LengthFinishReasonError):
        async with official.chat.completions.stream(model="demo", messages=[HELLO], max_tokens=3) as stream:
            await stream.get_final_completion()


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_the_welcome_tells_the_address_the_models_and_three_commands():
    text = welcome("http://127.0.0.1:4444")
    assert all(name in text for name in MODELS)
    printed = list(commands("http://127.0.0.1:4444").values())
    assert len(printed) == text.count("\ncurl ") == 3
    assert all(command in text for command in printed)
    assert "http://127.0.0.1:4444/v1/messages" in text


async def shell(command):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    process = await asyncio.create_subprocess_shell(
        command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "no_proxy": "*"},
    )
    written, complaints = await process.communicate()
    assert process.returncode == 0, complaints
    return written


@pytest.fixture
async def gateway(aiohttp_server):
    """The URL of a gateway in front of a demo that is never made to wait."""
    runner, url = await start_demo(speed=0)
    server = await aiohttp_server(gateway_app(demo_config(url), Metrics()))
    yield str(server.make_url("")).rstrip("/")
    await runner.cleanup()


#: By its title, what a command's answer is: a dialect, and whether it is a stream.
ANSWERS = {
    "Anthropic Messages, streamed, with a tool": ("anthropic", True),
    "OpenAI Chat Completions, streamed, with reasoning": ("openai-chat", True),
    "Ollama, not streamed": ("ollama", False),
}


@pytest.mark.parametrize("title", list(commands("")))
async def test_a_command_works_at_the_gateway_when_pasted(title, gateway):
    dialect, is_stream = ANSWERS[title]
    written = await shell(commands(gateway)[title])
    if is_stream:
        assert violations(written, dialect) == ()
        response = await collect(source_of([written]), dialect)
    else:
        response = decode_response(written, dialect)
    assert response.clean
    assert not response.report.repairs
    if "tool" in title:
        assert [(call.name, call.arguments) for call in response.tool_calls] == [
            ("get_weather", '{"city":"Reykjavik"}')
        ]
    else:
        assert "I am the demo model" in response.text
    assert bool(response.choices[0].reasoning) == ("reasoning" in title)
