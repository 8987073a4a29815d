"""``setup``: ready routes in an application that is somebody's own."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import openai
import orjson
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError, web

from streamkit.errors import UsageError
from streamkit.web import ModelCard, Upstream, add_inventory, setup
from streamkit.web.socket import Message
from tests.gateway.running import asking, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, answer, as_asked, error_midstream, good, refuse, reset_mid_line, status
from tests.web.raw_client import ask
from tests.web.serving import serving

CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]


@asynccontextmanager
async def ready(play, *, size=1 << 20, **how):
    """An application with the ready routes: its port, and its upstream."""
    async with EvilUpstream(play) as evil:
        app = web.Application(client_max_size=size)
        setup(app, upstream_at(evil, "openai-chat"), **how)
        async with serving(app) as port:
            yield port, evil


async def asked(port, client, *, prefix="", **how):
    path, body = asking(client, **how)
    return await ask(f"http://127.0.0.1:{port}", prefix + path, body=orjson.dumps(body))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_client_is_served_at_the_paths_that_it_asks(client, stream):
    async with ready(as_asked("openai-chat"), model="there") as (port, evil):
        answer = await asked(port, client, stream=stream)
    assert (answer.status, answer.end) == (200, "complete")
    assert TEXT.split()[0].encode() in answer.body
    assert evil.requests[0].json()["model"] == "there"


async def test_only_the_named_clients_are_served_and_under_a_prefix():
    async with EvilUpstream(as_asked("openai-chat")) as evil, EvilUpstream(as_asked("ollama")) as other:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), clients=["anthropic"], prefix="/one")
        setup(app, upstream_at(other, "ollama"), clients=["anthropic"], prefix="/two")
        async with serving(app) as port:
            assert (await asked(port, "anthropic", prefix="/one")).status == 200
            assert (await asked(port, "anthropic", prefix="/two")).status == 200
            assert (await asked(port, "openai-chat", prefix="/one")).status == 404
        assert (len(evil.requests), len(other.requests)) == (1, 1)


BROKE = "the connection to the upstream broke: Connection reset by peer"
CLOSED = "the connection to the upstream could not be opened: Connection refused"
FAILURES = [
    (refuse(), True, [f"(no response, server): {CLOSED}"]),
    (refuse(), False, [f"(no response, server): {CLOSED}"]),
    (status(503, message="about Oslo"), True, ["(status 503, unavailable)"]),
    (reset_mid_line("openai-chat"), True, [f"(status 200, server): {BROKE}"]),
    (error_midstream("openai-chat"), True, ["(status 200, unavailable)"]),
    (good("openai-chat"), True, []),
]


@pytest.mark.parametrize(("play", "stream", "told"), FAILURES)
async def test_a_failure_of_the_upstream_is_one_line_of_the_log(play, stream, told, caplog):
    async with ready(play) as (port, _):
        await asked(port, "anthropic", stream=stream)
    lines = [record.getMessage() for record in caplog.records if record.name == "streamkit.web"]
    assert lines == [f"the upstream 'one' failed {each}" for each in told]


@pytest.mark.parametrize(
    ("path", "member"), [("/v1/messages/count_tokens", "input_tokens"), ("/v1beta/models/m:countTokens", "totalTokens")]
)
async def test_counts_are_asked_of_an_upstream_that_counts(path, member):
    _, body = asking("gemini" if "v1beta" in path else "anthropic")
    async with EvilUpstream(answer(200, b'{"input_tokens":7}')) as evil, EvilUpstream(status(500)) as other:
        app = web.Application()
        setup(app, upstream_at(evil, "anthropic"), model="there")
        setup(app, upstream_at(other, "openai-chat"), prefix="/chat", count_tokens="upstream")
        setup(app, upstream_at(other, "openai-chat"), prefix="/about")
        async with serving(app) as port:
            url = f"http://127.0.0.1:{port}"
            counted = await ask(url, path, body=orjson.dumps(body))
            assert (counted.status, counted.json()) == (200, {member: 7})
            refused = await ask(url, f"/chat{path}", body=orjson.dumps(body))
            assert (refused.status, b"can count tokens" in refused.body) == (404, True)
            about = await ask(url, f"/about{path}", body=orjson.dumps(body))
            assert (about.status, "x-streamkit-count" in about.headers) == (200, True)
            assert 0 < about.json()[member] < 20
    assert evil.requests[0].json()["model"] == "there"
    assert not other.requests


async def test_models_are_listed_beside_it_under_the_same_prefix():
    app = web.Application()
    add_inventory(app.router, [ModelCard(id="m")], prefix="/llm")
    async with serving(app) as port:
        url = f"http://127.0.0.1:{port}"
        assert (await ask(url, "/llm/v1/models", method="GET")).json()["data"][0]["id"] == "m"
        assert (await ask(url, "/llm/api/tags", method="GET")).json()["models"][0]["name"] == "m"
        assert (await ask(url, "/llm/api/version", method="GET")).status == 200
        assert (await ask(url, "/v1/models", method="GET")).status == 404


async def test_it_works_in_a_sub_application():
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app, inner = web.Application(), web.Application()
        setup(inner, upstream_at(evil, "openai-chat"))
        app.add_subapp("/llm/", inner)
        async with serving(app) as port:
            assert (await asked(port, "anthropic", prefix="/llm")).status == 200


async def test_bad_requests_and_refusals_are_in_the_clients_dialect():
    async with ready(status(429)) as (port, _evil):
        answer = await ask(f"http://127.0.0.1:{port}", "/v1/messages", body=b'{"model": "m"}')
        assert (answer.status, orjson.loads(answer.body)["error"]["type"]) == (400, "invalid_request_error")
        for stream in True, False:
            answer = await asked(port, "anthropic", stream=stream)
            assert (answer.status, orjson.loads(answer.body)["error"]["type"]) == (429, "rate_limit_error")


def test_a_dialect_without_a_surface_is_refused():
    upstream = Upstream(name="a", dialect="ollama", base_url="http://host", auth="none")
    with pytest.raises(UsageError, match=r"clients: must be a list of dialects; write \['anthropic'\]"):
        setup(web.Application(), upstream, clients="anthropic")
    with pytest.raises(UsageError, match="clients of 'bedrock' are not served; the served dialects are openai-chat"):
        setup(web.Application(), upstream, clients=["bedrock"])


async def test_a_websocket_is_refused_with_426_and_any_other_get_as_aiohttp_does():
    socket = {"Connection": "Upgrade", "Upgrade": "websocket"}
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), prefix="/llm")
        async with serving(app) as port, ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/llm/v1/responses", headers=socket) as answer:
                assert (answer.status, answer.headers["Upgrade"]) == (426, "HTTP/1.1")
                assert "over HTTP" in (await answer.json())["error"]["message"]
            async with session.get(f"http://127.0.0.1:{port}/llm/v1/responses") as answer:
                assert (answer.status, answer.headers["Allow"]) == (405, "POST")


ASKED = {"type": "response.create", "model": "m", "input": "hi"}


with_sockets = partial(ready, model="there", max_sockets=1)


async def test_openai_python_is_answered_over_a_websocket_where_some_are_allowed():
    async with with_sockets(as_asked("openai-chat")) as (port, evil):
        client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
        async with client.responses.connect() as connection:
            await connection.response.create(model="m", input="hi", generate=False)
            prepared = (await last(connection)).response
            assert prepared.output == []
            await connection.response.create(model="m", previous_response_id=prepared.id, input=[])
            assert (await last(connection)).response.output_text == TEXT
        assert [request.json()["model"] for request in evil.requests] == ["there"]
        assert evil.requests[0].json()["messages"] == [{"role": "user", "content": "hi"}]


async def last(connection):
    async for event in connection:
        if event.type in {"error", "response.completed", "response.failed"}:
            return event
    return None


async def test_what_fails_on_a_websocket_is_an_error_in_a_message():
    failing = status(429, headers={"retry-after": "7"})
    async with (
        with_sockets(failing) as (port, _),
        ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}/v1/responses") as ws,
    ):
        await ws.send_json({**ASKED, "input": 5})
        assert (await ws.receive_json())["status"] == 400
        await ws.send_json(ASKED)
        error = await ws.receive_json()
        assert (error["status"], error["headers"]["retry-after"]) == (429, "7")


async def test_a_fault_that_nobody_foresaw_is_told_and_logged(monkeypatch, caplog):
    async def fail(_message):
        raise ZeroDivisionError

    monkeypatch.setattr(Message, "read", fail)

    async with (
        with_sockets(as_asked("openai-chat")) as (port, _),
        ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}/v1/responses") as ws,
    ):
        await ws.send_json(ASKED)
        assert (await ws.receive_json())["status"] == 500
    assert "the response to a message on '/v1/responses' failed" in caplog.text


async def test_more_websockets_than_allowed_are_refused_and_messages_are_bounded_as_bodies():
    async with with_sockets(as_asked("openai-chat"), size=1000) as (port, _), ClientSession() as session:
        url = f"http://127.0.0.1:{port}/v1/responses"
        async with session.ws_connect(url) as ws:
            async with session.get(url, headers={"Connection": "Upgrade", "Upgrade": "websocket"}) as answer:
                assert answer.status == 426
            await ws.send_json({**ASKED, "input": "x" * 2000})
            assert (await ws.receive()).type is WSMsgType.CLOSE
            assert ws.close_code == 1009
        async with session.ws_connect(url):
            """There is room again."""


@pytest.mark.parametrize(
    ("origin", "opens"),
    [
        (None, True),
        ("https://elsewhere.example", False),
        ("null", False),
        ("https://here.example", True),
        ("https://here.example:8443", False),
        ("http://localhost:3000", True),
        ("vscode-webview://x", True),
    ],
)
async def test_a_page_of_another_site_opens_no_websocket(origin, opens):
    async with with_sockets(as_asked("openai-chat")) as (port, _), ClientSession() as session:
        headers = {"Host": "here.example", **({"Origin": origin} if origin else {})}
        try:
            async with session.ws_connect(f"http://127.0.0.1:{port}/v1/responses", headers=headers):
                assert opens
        except WSServerHandshakeError as error:
            assert (error.status, opens) == (403, False)  # noqa: PT017 - it may open


async def test_sockets_are_closed_when_the_application_stops():
    async with ClientSession() as session:
        async with with_sockets(as_asked("openai-chat"), grace_s=5) as (port, _):
            ws = await session.ws_connect(f"http://127.0.0.1:{port}/v1/responses")
            await ws.send_json(ASKED)
            while (await ws.receive_json())["type"] != "response.completed":
                pass
            received = asyncio.create_task(ws.receive())
        assert (await received).type is WSMsgType.CLOSE
        assert ws.close_code == 1001
