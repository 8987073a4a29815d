"""The mock over HTTP: every dialect at its own paths, frames and ends as they stand in the answer, and always the same."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import aiohttp
import orjson
import pytest
from aiohttp import web

from streamkit.conversation.messages import Text, ToolResult
from streamkit.conversation.messages import Turn as Message
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.http_errors import decode_error
from streamkit.lab.mock import Call, Cut, ErrorStatus, Mock, Raw, Reset, Say, Script, Stall, Think, Timing, Wait
from streamkit.recipes import collect
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from tests.lab.mock.asking import ASKED, WEATHER, chat, request, said, url_for, user

CHAT = "/v1/chat/completions"
HOW = [True, False]


@pytest.fixture
async def serve(aiohttp_server):
    """Serves a mock: a function from it to the server's URL."""

    async def start(mock: Mock) -> str:
        server = await aiohttp_server(mock.app())
        return str(server.make_url("")).rstrip("/")

    return start


async def post(url: str, body: bytes) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as response:
        return response.status, await response.read()


async def read(dialect: str, body: bytes, *, stream: bool):
    return await collect(source_of([body]), dialect) if stream else decode_response(body, dialect)


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/verdict", "/v1/models"])
@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"Host": "evil.example"}, 421, b"the mock does not serve the host name 'evil.example'"),
        ({"Origin": "https://evil.example"}, 403, b"web pages may not use the mock"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, b"web pages may not use the mock"),
        ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"}, 200, b""),
    ],
)
async def test_other_names_and_pages_of_the_web_are_refused(serve, path, headers, status, message):
    method = "GET" if path in ("/verdict", "/v1/models") else "POST"
    body = (
        chat(user("Hi"))
        if path == CHAT
        else b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'
    )
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, await serve(Mock()) + path, data=body if method == "POST" else None, headers=headers
        ) as response,
    ):
        assert response.status == status
        assert message in await response.read()


# -- the dialects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", HOW)
@pytest.mark.parametrize("dialect", ASKED)
async def test_each_dialect_is_answered_at_its_own_path(serve, dialect, stream):
    mock = Mock(Script([Say("Hello you"), Call("weather", {"city": "Berlin"})]))
    asked = request(dialect=dialect, stream=stream, tools=[WEATHER])
    status, body = await post(url_for(mock, await serve(mock), asked), said(asked))
    response = await read(dialect, body, stream=stream)
    assert (status, response.clean, response.text) == (200, True, "Hello you")
    assert [orjson.loads(call.arguments) for call in response.tool_calls] == [{"city": "Berlin"}]


@pytest.mark.parametrize("stream", HOW)
@pytest.mark.parametrize("dialect", ASKED)
async def test_without_a_script_a_tool_loop_runs(serve, dialect, stream):
    mock = Mock()
    url, asked = await serve(mock), request(dialect=dialect, stream=stream, tools=[WEATHER])
    _, body = await post(url_for(mock, url, asked), said(asked))
    (call,) = (await read(dialect, body, stream=stream)).tool_calls
    assert call.name == "weather"
    asked.turns += [
        Message("assistant", [call]),
        Message("user", [ToolResult(call.id, [Text("rain")], name="weather")]),
    ]
    _, body = await post(url_for(mock, url, asked), said(asked))
    assert "weather said “rain”" in (await read(dialect, body, stream=stream)).text
    assert mock.verdict.clean


async def test_what_the_dialect_cannot_carry_is_logged(serve, caplog):
    mock = Mock(Script([Think("Hm"), Say("Hello")]))
    asked = request(dialect="bedrock")
    with caplog.at_level("INFO", "streamkit.mock"):
        _, body = await post(url_for(mock, await serve(mock), asked), said(asked))
    (line,) = caplog.messages
    assert line == f"request 1: bedrock, status 200, {len(body)} bytes, whole; lost: usage_detail"


async def test_one_dialect_alone_is_served(serve):
    mock = Mock(Script([Say("x")]), dialect="anthropic")
    url = await serve(mock)
    assert mock.urls(url) == {"anthropic": url}
    assert (await post(url + CHAT, chat(user())))[0] == 404


def test_a_dialect_that_there_is_not_is_refused():
    with pytest.raises(UsageError, match="no dialect is called 'opnai'"):
        Mock(dialect="opnai")


@pytest.mark.parametrize("dialect", ["ag-ui", "ai-sdk"])
async def test_user_interfaces_are_answered(serve, dialect):
    mock = Mock(Script([Say("Hello")]))
    message = {"id": "1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]}
    body = {
        "threadId": "t",
        "runId": "r",
        "state": {},
        "messages": [message],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    url = await serve(mock)
    status, answer = await post(f"{mock.urls(url)[dialect]}/m", orjson.dumps(body))
    assert (status, (await read(dialect, answer, stream=True)).text) == (200, "Hello")


async def test_an_array_is_streamed_where_it_is_asked_for(serve):
    mock = Mock(Script([Say("Hello you")]))
    asked = request(dialect="gemini")
    url = url_for(mock, await serve(mock), asked).partition("?")[0]
    _, body = await post(url, said(asked))
    assert "".join(part["candidates"][0]["content"]["parts"][0]["text"] for part in orjson.loads(body)) == "Hello you"


# -- what is no answer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ASKED)
async def test_a_bad_request_is_refused_in_the_dialect(serve, dialect):
    mock = Mock(Script([Say("x")]))
    asked = request(dialect=dialect)
    status, body = await post(url_for(mock, await serve(mock), asked), b"{")
    assert status == 400
    assert decode_error(status, body, dialect).type == "invalid_request"
    assert mock.verdict.requests == 0


async def test_what_leans_on_an_answer_that_is_not_kept_is_refused(serve):
    body = orjson.dumps({"model": "m", "input": "Hi", "previous_response_id": "resp_1"})
    status, answer = await post(await serve(Mock(Script([Say("x")]))) + "/v1/responses", body)
    assert (status, b"previous_response_id" in answer) == (400, True)


async def test_a_status_is_sent_with_its_retry_after(serve):
    mock = Mock(Script([ErrorStatus(429, message="slow down", retry_after=3)]))
    async with (
        aiohttp.ClientSession() as session,
        session.post(await serve(mock) + CHAT, data=chat(user())) as response,
    ):
        assert (response.status, response.headers["retry-after"]) == (429, "3")
        assert int(response.headers["content-length"]) == len(await response.read())
        assert (await response.json())["error"]["message"] == "slow down"


async def test_what_the_demo_model_cannot_do_is_refused(serve):
    status, body = await post(await serve(Mock()) + CHAT, chat(user(), n=2))
    assert (status, b"must be 1 for the demo model" in body) == (400, True)


async def test_models_are_listed_and_tokens_counted(serve):
    mock = Mock()
    url = await serve(mock)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/v1/models") as response:
            assert [each["id"] for each in (await response.json())["data"]] == ["mock"]
        asked = request("three words here", dialect="anthropic")
        async with session.post(f"{url}/v1/messages/count_tokens", data=said(asked)) as response:
            assert await response.json() == {"input_tokens": 3}
        async with session.post(f"{url}/v1/messages/count_tokens", data=b"[]") as response:
            assert response.status == 400


# -- how it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Cut(), aiohttp.ClientPayloadError),
        (Reset(), (aiohttp.ClientPayloadError, aiohttp.ClientOSError, ConnectionResetError)),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", HOW)
async def test_what_breaks_off_is_no_whole_body(serve, step, error, stream):
    with pytest.raises(error):
        await post(await serve(Mock(Script([Say("Hello"), step]))) + CHAT, chat(user(), stream=stream))


async def test_a_body_that_is_cut_ends_as_http_says(serve):
    status, body = await post(await serve(Mock(Script([Say("Hello"), Cut("body")]))) + CHAT, chat(user()))
    assert (status, b"Hello" in body, b"[DONE]" in body) == (200, True, False)


@pytest.mark.parametrize("step", [Cut(), Reset()], ids=str)
async def test_an_answer_may_break_off_before_its_headers(serve, step):
    with pytest.raises((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
        await post(await serve(Mock(Script([step]))) + CHAT, chat(user()))


async def test_a_stall_ends_when_its_client_leaves(serve):
    mock = Mock(Script([Say("x"), Stall(30)]))
    url = await serve(mock)
    async with aiohttp.ClientSession() as session, session.post(url + CHAT, data=chat(user())) as response:
        assert b"data" in await response.content.readany()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                while await response.content.readany():
                    pass
    assert mock.verdict.clean


@pytest.fixture
async def bare(request):
    """Serves a mock by a runner that need not cancel handlers, as the parameter says: a function as ``serve``."""
    runners = []

    async def start(mock: Mock) -> str:
        runner = web.AppRunner(mock.app(), handler_cancellation=request.param, access_log=None)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        return f"http://{host}:{port}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("bare", [False], indirect=True)
async def test_a_client_that_left_is_not_there_for_runners_that_cancel_no_handlers(bare):
    mock = Mock(Script([Say("x"), Stall(0.05)]))
    url = await bare(mock) + CHAT
    async with aiohttp.ClientSession() as session, session.post(url, data=chat(user())) as response:
        await response.content.readany()
    await asyncio.sleep(0.15)
    assert mock.verdict.clean


@pytest.mark.parametrize("bare", HOW, indirect=True)
async def test_a_client_that_leaves_early_is_a_line_of_the_log(bare, caplog):
    mock = Mock(Script([Raw("data: 1\n\n"), Wait(0.05), Raw("data: 2\n\n")]))
    url = await bare(mock) + CHAT
    with caplog.at_level("INFO"):
        async with aiohttp.ClientSession() as session, session.post(url, data=chat(user())) as response:
            await response.content.readany()
        await asyncio.sleep(0.1)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "request 1: openai-chat, status 200, 18 bytes, whole"),
        ("INFO", "request 1: the connection closed after 9 of 18 bytes"),
    ]
    assert mock.verdict.clean


# -- quirks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "kind"),
    [
        ("openai-chat", "index_missing"),
        ("openai-responses", "event_type_missing"),
        ("anthropic", "block_unclosed"),
        ("ollama", "arguments_not_object"),
        ("bedrock", "block_unclosed"),
        ("gemini", "array_unclosed"),
    ],
)
async def test_a_quirk_needs_its_repair(serve, dialect, kind):
    mock = Mock(Script([Say("Hello you"), Call("weather", {"city": "Berlin"}), Call("time", {})]), quirks=[kind])
    asked = request(dialect=dialect)
    _, body = await post(url_for(mock, await serve(mock), asked), said(asked))
    response = await read(dialect, body, stream=True)
    assert response.report.repairs[kind]
    assert [call.name for call in response.tool_calls] == ["weather", "time"]


async def test_a_quirk_may_change_the_form_of_an_answer(serve):
    mock = Mock(Script([Say("Hello you")], repeat=True), dialect="openai-chat", quirks=["body_for_stream"])
    _, body = await post(await serve(mock) + CHAT, chat(user()))
    assert decode_response(body, "openai-chat").text == "Hello you"


@pytest.mark.parametrize("steps", [[Raw("{x\n"), Cut()], [ErrorStatus(429)], [Raw(b"\xff")]], ids=str)
async def test_an_answer_that_is_none_of_the_dialect_has_no_quirks(serve, steps, caplog):
    with caplog.at_level("INFO", "streamkit.mock"):
        mock = Mock(Script(steps), dialect="openai-chat", quirks=["call_nameless", "body_for_stream"])
        url = await serve(mock) + CHAT
        with suppress(aiohttp.ClientPayloadError):
            await post(url, chat(user()))
    assert "call_nameless changes nothing, because it needs stream, call" in caplog.text


@pytest.mark.parametrize(
    ("dialect", "reason"),
    [
        ("any", "there is no quirk 'index_mising'; did you mean 'index_missing'"),
        ("ollama", "ollama has no quirk 'index_mising'; did you mean 'list_missing'"),
    ],
)
def test_a_quirk_that_there_is_not_is_refused(dialect, reason):
    with pytest.raises(UsageError, match=reason):
        Mock(dialect=dialect, quirks=["index_mising"])


# -- time, and the seed ------------------------------------------------------------------------------------------------


async def test_what_is_to_be_waited_for_comes_later(serve):
    url = await serve(Mock(Script([Raw("data: 1\n\n"), Wait(0.2), Raw("data: 2\n\n")])))
    async with aiohttp.ClientSession() as session, session.post(url + CHAT, data=chat(user())) as response:
        assert await response.content.readany() == b"data: 1\n\n"
        first = time.monotonic()
        assert await response.content.readany() == b"data: 2\n\n"
        assert time.monotonic() - first > 0.1


async def test_the_same_seed_and_requests_give_the_same_bytes(serve):
    def mock(seed: int) -> Mock:
        return Mock(Script([Say("a b"), Call("f", {})], repeat=True), seed=seed, timing=Timing(tokens_per_s=1e5))

    asked = [chat(user(text), stream=stream) for text in ("one", "two", "one") for stream in HOW]
    same, again, other = [
        [await post(url + CHAT, body) for body in asked] for url in [await serve(mock(seed)) for seed in (1, 1, 2)]
    ]
    assert same == again
    assert all(first != second for first, second in zip(same, other, strict=True))
    assert same[0] != same[4], "the same request twice gets other ids"


def test_every_dialect_has_a_place():
    assert set(Mock().urls("")) == set(DIALECTS)
