"""What a request asks, read over loopback: where the model and the stream stand, and what is refused, in whose words."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import orjson
import pytest
from aiohttp import web
from attrs import asdict
from yarl import URL

from streamkit.conversation.messages import Text
from streamkit.dialects.gemini.wire import camel_case
from streamkit.web.surfaces import Ask, surfaces
from tests.web.asking import ASKS, CHAT, CONTENTS, DIALECTS, asking_app, error_in, message_of

Asked = tuple[Any, list[Ask]]


@pytest.fixture
async def asked(aiohttp_client) -> Asked:
    asks: list[Ask] = []
    return await aiohttp_client(asking_app(asks)), asks


async def ask(asked: Asked, path: str, body: Any, **options: Any) -> Ask:
    client, asks = asked
    async with client.post(URL(path, encoded=True), data=orjson.dumps(body), **options) as response:
        assert response.status == 200, await response.text()
    return asks.pop()


async def refused(asked: Asked, path: str, body: Any, **options: Any) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    async with asked[0].post(URL(path, encoded=True), data=data, **options) as response:
        told = error_in(await response.read())
    assert asked[1] == []
    return response.status, message_of(told)


#: Dialects that have neither the model nor whether to stream in a member of their own.
IN_PATH = {"gemini", "ag-ui", "ai-sdk"}


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"model": "m", "previous_interaction_id": "v1_1"}, "previous_interaction_id: this gateway is stateless"),
        ({"model": "m", "continuation_token": "t"}, "continuation_token: this gateway is stateless"),
        ({"model": "m", "background": True}, "background: this gateway is stateless"),
        ({"agent": "deep-research"}, "agent: this gateway sends requests to models and runs no agents"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/interactions", "/v1beta/interactions"])
async def test_interactions_that_need_a_store_or_an_agent_are_refused(asked, path, members, told):
    status, said = await refused(asked, path, {"input": "hi", **members})
    assert status == 400
    assert said.startswith(told)


@pytest.mark.parametrize("path", ["/v1/ag-ui/a/b", "/v1/ag-ui", "/v1/ag-ui/a%2Fb"])
async def test_a_run_is_asked_of_the_model_in_its_path_or_of_the_one_that_it_forwards(asked, path):
    got = await ask(asked, path, {"messages": [], "forwardedProps": {"model": "p", "more": 1}})
    assert (got.model, got.stream) == ("p" if path.endswith("ag-ui") else "a/b", True)
    assert got.request.extras == {"forwardedProps": {"more": 1}}


@pytest.mark.parametrize("members", [{}, {"forwardedProps": {"model": ""}}, {"forwardedProps": "p"}])
async def test_a_run_without_a_model_is_told_where_to_name_one(asked, members):
    status, told = await refused(asked, "/v1/ag-ui", {"messages": [], **members})
    assert status == 400
    assert "name one in the path, /v1/ag-ui/MODEL, or in forwardedProps" in told


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_request_of_each_dialect_is_read_with_its_model(asked, dialect):
    path, body = ASKS[dialect]
    got = await ask(asked, path, body)
    assert (got.dialect, got.operation, got.model, got.as_array) == (dialect, "generate", "m", False)
    assert (got.request.model, got.request.dialect) == ("m", dialect)
    assert [part for turn in got.request.turns for part in turn.parts] == [Text("hi")]


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect not in IN_PATH])
@pytest.mark.parametrize("said", [None, True, False])
async def test_only_ollama_streams_unless_it_is_told_not_to(asked, dialect, said):
    path, body = ASKS[dialect]
    got = await ask(asked, path, body if said is None else {**body, "stream": said})
    assert got.stream is got.request.stream is ((dialect == "ollama") if said is None else said)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize(
    ("method", "stream", "as_array"),
    [
        ("generateContent", False, False),
        ("generateContent?alt=sse", False, False),
        ("streamGenerateContent", True, True),
        ("streamGenerateContent?alt=json", True, True),
        ("streamGenerateContent?alt=sse", True, False),
        ("streamGenerateContent?%24alt=json%3Benum-encoding%3Dint&alt=sse", True, False),
    ],
)
async def test_gemini_says_in_the_url_whether_and_how_to_stream(asked, version, method, stream, as_array):
    got = await ask(asked, f"/{version}/models/m:{method}", {**CONTENTS, "stream": True, "model": "models/other"})
    assert (got.model, got.stream, got.as_array) == ("m", stream, as_array)
    assert (got.request.model, got.request.stream) == ("m", stream)


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("models/llama3:8b", "llama3:8b"),
        ("models/meta/llama3:8b", "meta/llama3:8b"),  # as google-genai writes it
        ("models/meta%2Fllama3%3A8b", "meta/llama3:8b"),
        ("models/m:generateContent", "m:generateContent"),
        ("models/models/m", "models/m"),
        ("tunedModels/t", "tunedModels/t"),
    ],
)
async def test_geminis_models_have_slashes_colons_and_prefixes(asked, path, model):
    assert (await ask(asked, f"/v1/{path}:generateContent", CONTENTS)).model == model


async def test_gemini_has_no_other_framing(asked):
    status, message = await refused(asked, "/v1/models/m:streamGenerateContent?alt=proto", CONTENTS)
    assert (status, message) == (400, "alt: must be 'sse' or 'json', not 'proto'")


# -- counts ------------------------------------------------------------------------------------------------------------


async def test_anthropics_count_needs_no_max_tokens(asked):
    got = await ask(asked, "/v1/messages/count_tokens", CHAT)
    assert (got.operation, got.model, got.stream) == ("count", "m", False)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("name", [None, "generateContentRequest", "generate_content_request"])
async def test_gemini_counts_bare_contents_or_a_whole_request(asked, version, name):
    whole = {**CONTENTS, "systemInstruction": {"parts": [{"text": "be brief"}]}, "model": "models/m"}
    got = await ask(asked, f"/{version}/models/m:countTokens", CONTENTS if name is None else {name: whole})
    assert (got.operation, got.model, got.stream) == ("count", "m", False)
    assert [turn.role for turn in got.request.turns] == (["user"] if name is None else ["system", "user"])


async def test_the_numbers_of_a_request_inside_a_request_keep_their_digits(asked):
    call = {"functionCall": {"name": "f", "args": {"x": 0}}}
    body = json.dumps({"generateContentRequest": {"contents": [{"role": "model", "parts": [call]}]}})
    client, asks = asked
    async with client.post("/v1/models/m:countTokens", data=body.replace('"x": 0', '"x": 18446744073709551616.0')):
        pass
    assert asks[0].request.turns[0].parts[0].arguments == '{"x": 18446744073709551616.0}'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"generateContentRequest": CONTENTS, **CONTENTS}, "contents: a count has either contents or"),
        ({"generateContentRequest": "x"}, "generateContentRequest: must be an object"),
        ({"generateContentRequest": {}}, "generateContentRequest.contents: is missing; must be a list"),
    ],
)
async def test_a_count_that_cant_be_is_refused_with_its_path(asked, body, message):
    status, told = await refused(asked, "/v1/models/m:countTokens", body)
    assert status == 400
    assert told.startswith(message)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"[]", "the body must be an object, not a list"),
        (b'{"model":"\xff"}', "the body is not JSON"),
        (b'{"model":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the body is not JSON"),
        (b'{"model":"m","x":' + b"[" * 300 + b"]" * 300 + b"}", "x: nested deeper than 200 levels"),
    ],
    ids=["empty", "cut", "list", "no UTF-8", "too deep to parse", "too deep to write"],
)
async def test_a_body_that_cant_be_read_is_the_clients_fault(asked, dialect, body, message):
    status, told = await refused(asked, ASKS[dialect][0], body)
    assert status == 400
    assert told.startswith(message)


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect not in IN_PATH])
@pytest.mark.parametrize("model", [None, "", 7])
async def test_a_request_without_a_model_is_refused(asked, dialect, model):
    path, body = ASKS[dialect]
    status, told = await refused(asked, path, {**body, "model": model})
    assert status == 400
    assert told.startswith("model: ")


@pytest.mark.parametrize(
    ("member", "path", "instead"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "send the whole input with each request"),
        ({"conversation": {"id": "conv_1"}}, "conversation", "without a conversation"),
        ({"background": True}, "background", "send the request without background"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]", "providerOptions.openai.store = false"),
        ({"input": [{"role": "user", "content": "a"}, {"id": "msg_1"}]}, "input[1]", "ModelSettings(store=False)"),
    ],
)
async def test_responses_that_lean_on_earlier_ones_are_told_what_to_send_instead(asked, member, path, instead):
    status, told = await refused(asked, "/v1/responses", {"model": "m", "input": "hi", **member})
    assert status == 400
    assert told.startswith(f"{path}: this gateway {'stores no conv' if path == 'conversation' else 'is stateless'}")
    assert instead in told


async def test_what_says_that_nothing_is_kept_is_fine(asked):
    body = {"model": "m", "input": "hi", "previous_response_id": None, "background": False, "store": False}
    assert (await ask(asked, "/v1/responses", body)).request.extras == {"background": False, "store": False}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_body_over_the_limit_is_too_large_in_the_dialect(aiohttp_client, dialect):
    asks: list[Ask] = []
    client = await aiohttp_client(asking_app(asks, client_max_size=400))
    path, body = ASKS[dialect]
    whole = orjson.dumps(body)
    fits = whole + b" " * (400 - len(whole))
    async with client.post(path, data=fits) as response:
        assert response.status == 200
    for data, headers in (fits + b" ", {}), (gzip.compress(fits + b" " * 10**6), {"Content-Encoding": "gzip"}):
        async with client.post(path, data=data, headers=headers) as response:
            told = message_of(error_in(await response.read()))
        assert response.status == (400 if dialect == "gemini" else 413)  # Google has no word for it
        assert "exceeds the limit of 400 bytes" in told


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_compressed_body_is_read(asked, dialect):
    path, body = ASKS[dialect]
    client, asks = asked
    data = gzip.compress(orjson.dumps(body))
    async with client.post(path, data=data, headers={"Content-Encoding": "gzip"}) as response:
        assert response.status == 200
    assert [part for turn in asks.pop().request.turns for part in turn.parts] == [Text("hi")]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("encoding", ["compress", "gzip, br", "x" * 1000])
async def test_an_encoding_that_nobody_reads_is_refused_with_those_that_are(asked, dialect, encoding):
    client, asks = asked
    path, _ = ASKS[dialect]
    async with client.post(path, data=b"?", headers={"Content-Encoding": encoding}) as response:
        told = error_in(await response.read())
    assert response.status == 415
    assert response.headers["Accept-Encoding"] == "gzip, deflate, identity"
    assert "use gzip, or none" in message_of(told)
    assert len(message_of(told)) < 400
    assert asks == []


async def test_a_body_that_is_not_what_its_encoding_says_is_the_clients_fault(asked):
    status, told = await refused(asked, "/api/chat", b"no gzip", headers={"Content-Encoding": "gzip"})
    assert (status, told) == (400, "the body was interrupted, or does not match its Content-Encoding")


async def test_a_body_that_drips_is_cut_off(aiohttp_client):
    asks: list[Ask] = []
    client = await aiohttp_client(asking_app(asks, body_s=0.05))
    reader, writer = await asyncio.open_connection(client.server.host, client.server.port)
    writer.write(b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    async with asyncio.timeout(10):
        answer = (await reader.readuntil(b"}")).decode()
    writer.close()
    assert answer.startswith("HTTP/1.1 408 ")
    assert "Connection: close" in answer
    assert answer.endswith('{"error":"the body did not arrive within 0.05 s"}')
    assert asks == []


async def test_a_client_that_leaves_with_its_body_unsent_is_no_failure_of_ours():
    """Where a server does not cancel handlers, which is aiohttp's default and not that of its test server."""
    began, answered = asyncio.Event(), asyncio.Queue()

    @web.middleware
    async def note(request: web.Request, handler: Any) -> web.StreamResponse:
        began.set()
        response = await handler(request)
        answered.put_nowait(response.status)
        return response

    app = asking_app([])
    app.middlewares.insert(0, note)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with asyncio.timeout(10):
        _, writer = await asyncio.open_connection(*runner.addresses[0])
        writer.write(b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await began.wait()
        writer.close()
        assert await answered.get() == 400  # said to nobody, but no exception for a log
    await runner.cleanup()


# -- what a body may not do --------------------------------------------------------------------------------------------

ELSEWHERE = "http://elsewhere.example"
SMUGGLED: list[dict[str, Any]] = [
    {name: value}
    for name in ("base_url", "api_base", "baseURL", "endpoint", "host", "url", "upstream", "provider", "proxy")
    for value in (ELSEWHERE, {"url": ELSEWHERE}, [ELSEWHERE])
] + [
    {"headers": {"Host": ELSEWHERE, "Authorization": "Bearer x"}},
    {"extra_headers": {"x-base-url": ELSEWHERE}},
    {"litellm_params": {"api_base": ELSEWHERE}},
    {"extra_body": {"base_url": ELSEWHERE, "model": "other"}},
    {"metadata": {"model": ELSEWHERE, "api_base": ELSEWHERE}},
]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_in_a_body_changes_where_it_goes(asked, dialect):
    """limits.md T5. What is smuggled is a member that only the dialect knows: no field of ours has it."""
    path, body = ASKS[dialect]
    plain = asdict(await ask(asked, path, body))
    for member in SMUGGLED:
        got = asdict(await ask(asked, path, {**body, **member}))
        extras = got["request"].pop("extras")
        assert {**got, "hold": None} == {**plain, "hold": None, "request": _without_extras(plain["request"])}, member
        assert set(extras) <= {*member, *map(camel_case, member), *plain["request"]["extras"]}


def _without_extras(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "extras"}


async def test_what_was_said_is_not_in_the_repr(asked):
    said = "the secret of the house"
    got = await ask(asked, "/api/chat", {"model": "m", "messages": [{"role": "user", "content": said}]})
    assert said not in repr(got)
    assert "model='m'" in repr(got)


def test_each_path_is_one_dialects():
    paths = [path for surface in surfaces().values() for path in surface.paths]
    assert len(set(paths)) == len(paths)
