"""What the gateway answers a client of each dialect, whatever it asked: statuses, bodies, headers."""

import asyncio
import logging
from contextlib import AsyncExitStack

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.gateway.app import gateway_app, private_app
from streamkit.gateway.config import Resume, Server
from streamkit.gateway.metrics import Metrics
from streamkit.http_errors import decode_error
from streamkit.web.upstream import Secret
from streamkit.web.upstream.value import Rest
from tests.gateway.running import asking, behind, config_of, in_turn, leg, upstream_at
from tests.gateway.test_attempts import NO_CALLS
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS, as_asked, good, silence_before_headers, speech, status, whole
from tests.web.raw_client import RawClient, ask
from tests.web.serving import eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "gemini-interactions"]
#: The members of each dialect's error body, by which its clients know it.
ENVELOPES = {
    "openai-chat": {"error": {"message", "type", "param", "code"}},
    "openai-responses": {"error": {"message", "type", "param", "code"}},
    "anthropic": {"type": "error", "error": {"type", "message"}},
    "ollama": {"error": str},
    "gemini": {"error": {"code", "message", "status"}},
    "gemini-interactions": {"error": {"code", "message"}},
}
BODY_BYTES = 100_000


def told(answer, client):
    """The failure in an answer, which has the client dialect's own envelope."""
    document = answer.json()
    if client == "gemini":
        document["error"].pop("details", None)  # where Google says how long to wait
    assert {name: value if name == "type" else _shape(value) for name, value in document.items()} == ENVELOPES[client]
    assert answer.headers["content-type"].startswith("application/json")
    return decode_error(answer.status, bytes(answer.body), client, answer.headers)


def _shape(value):
    return set(value) if isinstance(value, dict) else type(value)


@pytest.fixture
async def running():
    """A gateway in front of a sound upstream."""
    async with behind(as_asked("openai-chat"), server={"body_bytes": BODY_BYTES}) as running:
        yield running


# -- what can't be asked -----------------------------------------------------------------------------------------------

BROKEN = {
    "half of an object": (b'{"model":', "the body is not JSON"),
    "a number for a list": ({"tools": 7}, "tools: must be a list, not an integer"),
    "a number in a list": ({"tools": [7]}, "tools[0]: must be an object, not an integer"),
    "a number for a name": (b'{"model":7}', "model: must be a string, not an integer"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", BROKEN)
async def test_a_body_that_cant_be_is_told_what_is_wrong_and_where(case, client, running):
    """What else can be wrong with a body, and with its size and its encoding: tests/web/test_surfaces.py."""
    body, words = BROKEN[case]
    answer = await running.asked(client, body)
    failed = told(answer, client)
    assert (answer.status, failed.type) == (400, "invalid_request")
    assert words in failed.message
    assert len(failed.message) < 300


async def test_a_body_of_the_largest_size_is_read(running):
    _, usual = asking("openai-chat")
    body = orjson.dumps(usual)
    assert (await running.asked(body=body + b" " * (BODY_BYTES - len(body)))).status == 200
    assert (await running.asked(body=body + b" " * (BODY_BYTES - len(body) + 1))).status == 413


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_model_that_no_route_has_is_not_found_and_its_name_told_in_short(client):
    async with behind(as_asked("openai-chat"), models=("m",)) as running:
        for name in ("other", "o" * 5000):
            answer = await running.asked(client, model=name)
            failed = told(answer, client)
            assert (answer.status, failed.type) == (404, "not_found")
            assert failed.message.startswith("the model 'o")
            assert "the list of models shows the available ones" in failed.message
            assert len(failed.message) < 400
    assert not running.evil.requests


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"previous_response_id": "resp_1"}, "this gateway is stateless"),
        ({"conversation": "conv_1"}, "this gateway stores no conversations"),
        ({"conversation": {"id": "conv_1"}}, "this gateway stores no conversations"),
        ({"background": True, "store": False}, "store: must not be false"),
        ({"input": [{"type": "item_reference", "id": "i"}]}, "send the item itself"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
async def test_what_needs_a_state_is_refused_with_what_to_send_instead(members, words, running):
    answer = await running.asked("openai-responses", members)
    failed = told(answer, "openai-responses")
    assert (answer.status, failed.type) == (400, "invalid_request")
    assert failed.message.startswith([*members][-1])
    assert words in failed.message
    assert (
        "send" in failed.message or "ask" in failed.message or "leave" in failed.message or "remove" in failed.message
    )


async def test_a_gateway_without_a_store_refuses_the_background_and_names_the_setting():
    async with behind(as_asked("openai-chat"), resume=Resume(store="off")) as running:
        answer = await running.asked("openai-responses", {"background": True})
        assert answer.status == 400
        assert '[resume] store = "memory"' in told(answer, "openai-responses").message


async def test_a_response_in_the_background_is_one_record_under_no_id(caplog):
    caplog.set_level("INFO", "streamkit.gateway")
    async with behind(as_asked("openai-chat")) as running:
        answer = await running.asked("openai-responses", {"background": True}, stream=False)
        response_id = orjson.loads(answer.body)["id"]
        assert answer.headers["x-request-id"].startswith("req_")
        assert await running.outcomes() == {("one", "success"): 1}
        for path in (f"/v1/responses/{response_id}", f"/responses/{response_id}?stream=true"):
            assert (await running.get(path)).status == 200
        assert (await running.ask(f"/v1/responses/{response_id}/cancel")).status == 200
        assert (await running.ask(f"/v1/responses/{response_id}", method="DELETE")).status == 200
        await eventually(lambda: running.counted("requests_total") == 5)
    assert response_id not in caplog.text


@pytest.mark.parametrize("upstream", ["anthropic", "ollama", "openai-responses", "bedrock", "cohere"])
async def test_several_choices_are_refused_where_an_upstream_gives_one(upstream):
    async with behind(as_asked(upstream), dialect=upstream) as running:
        answer = await running.asked("openai-chat", {"n": 2})
        assert answer.status == 400
        assert told(answer, "openai-chat").message.startswith("n: ")
        assert not running.evil.requests
        assert (await running.asked("openai-chat", {"n": 1})).status == 200


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "ollama"])
@pytest.mark.parametrize("emulate", [False, True])
async def test_a_call_that_is_demanded_of_ollama_is_refused_unless_it_may_be_imitated(client, emulate):
    async with behind(as_asked("ollama"), dialect="ollama", upstream={"emulate": emulate}) as running:
        answer = await running.asked(client, tools=True, forced=True)
        assert (answer.status, len(running.evil.requests)) == ((200, 1) if emulate else (400, 0))
        if not emulate:
            assert told(answer, client).message.startswith("tool_choice: Ollama cannot be required to call a tool")


# -- where nobody answers ----------------------------------------------------------------------------------------------

PATHS = {
    "openai-chat": "/v1/chat/nothing",
    "openai-responses": "/v1/responses/nothing",
    "anthropic": "/v1/messages/batches",
    "ollama": "/api/pull",
    "gemini": "/v1beta/cachedContents",
    "gemini-interactions": "/v1beta/interactions/v1_1",
}


@pytest.mark.parametrize("client", CLIENTS)
async def test_another_method_is_told_in_the_dialect_with_the_one_that_is_served(client, running):
    path, _ = asking(client)
    for method in ("PUT", "DELETE"):
        answer = await running.ask(path, method=method)
        # below Gemini's models each may be looked up, and Responses' clients may open a WebSocket
        allowed = {"gemini": "GET, HEAD, POST", "openai-responses": "GET, POST"}.get(client, "POST")
        assert (answer.status, answer.headers["allow"]) == (405, allowed), method
        assert f"use {allowed}" in told(answer, client).message


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_an_operation_that_a_model_does_not_have_is_not_found_with_those_that_it_has(version, running):
    answer = await running.ask(f"/{version}/models/m:embedContent", body=b"{}", headers={"x-goog-api-key": "k"})
    failed = told(answer, "gemini")
    assert (answer.status, failed.type) == (404, "not_found")
    assert ":generateContent, :streamGenerateContent or :countTokens" in failed.message


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/responses/nothing"), ("POST", "/v1/embeddings"), ("GET", "/nothing")]
)
async def test_a_path_that_is_not_served_is_no_model_that_is_not_found(method, path, running):
    answer = await running.ask(path, method=method, body=b"{}")
    assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")


MISSPELT = {
    "openai-chat": ["/chat/completions", "/v1/v1/chat/completions", "//v1/chat/completions"],
    "openai-responses": ["/responses", "/v1/v1/responses", "//v1/responses"],
    "anthropic": ["/messages", "/v1/v1/messages", "//v1/messages"],
    "ollama": ["/api/api/chat", "//api/chat"],
    "gemini-interactions": ["/interactions", "/v1beta/v1beta/interactions", "//v1/interactions"],
    "gemini": ["/models/m:generateContent", "/v1beta/v1beta/models/m:generateContent", "//v1/models/m:generateContent"],
}


@pytest.mark.parametrize(("client", "path"), [(client, path) for client in MISSPELT for path in MISSPELT[client]])
async def test_a_base_url_that_is_written_otherwise_is_served_all_the_same(client, path, running):
    answer = await running.asked(client, path=path, stream=False)
    assert answer.status == 200
    assert bytes(answer.body).startswith(b"{")
    spoilt = await running.asked(client, b"{", path=path)
    assert told(spoilt, client).type == "invalid_request"
    wrong = await running.ask(path, method="PUT")
    assert (wrong.status, told(wrong, client).type) == (405, "invalid_request")


@pytest.mark.parametrize("path", ["/models", "/models/m", "/v1/v1/models", "/v1/v1/models/m", "//v1/models"])
@pytest.mark.parametrize("headers", [{}, {"anthropic-version": "2023-06-01"}], ids=["openai", "anthropic"])
async def test_so_are_lists_of_models(path, headers, running):
    answer = await running.get(path, headers=headers)
    assert answer.status == 200
    assert b'"m"' in answer.body


SOCKET = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "eA=="}


@pytest.mark.parametrize(
    ("path", "client"),
    [
        ("/v1/responses", "openai-responses"),
        ("/responses", "openai-responses"),
        ("/v1/chat/completions", "openai-chat"),
    ],
)
async def test_a_websocket_is_refused_with_426_at_which_codex_goes_on_over_http(path, client):
    """At 405 it tries seven times first (openai/codex#19821)."""
    async with behind(as_asked("openai-chat"), server={"max_sockets": 0}) as running:
        answer = await running.get(path, headers=SOCKET)
        failed = told(answer, client)
        assert (answer.status, failed.type) == (426, "invalid_request")
        assert "over HTTP" in failed.message
        assert answer.headers["upgrade"] == "HTTP/1.1"
        assert answer.headers["connection"] == "Upgrade"
        assert (await running.asked("openai-responses")).status == 200


@pytest.mark.parametrize(
    "headers", [{}, {"connection": "Upgrade", "upgrade": "h2c"}], ids=["plain", "another protocol"]
)
async def test_without_a_websocket_the_method_is_what_is_wrong(headers, running):
    answer = await running.get("/v1/responses", headers=headers)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_a_model_that_a_pattern_serves_is_there_for_whoever_looks_it_up():
    async with behind(as_asked("openai-chat"), models=("m", "gpt-*")) as running:
        for path, headers, name in (
            ("/v1/models/gpt-x", {}, "id"),
            ("/v1/models/gpt-x", {"anthropic-version": "2023-06-01"}, "id"),
            ("/v1beta/models/gpt-x", {}, "name"),
        ):
            found = await running.get(path, headers=headers)
            assert (found.status, found.json()[name].removeprefix("models/")) == (200, "gpt-x")
        assert (await running.ask("/api/show", body=b'{"model":"gpt-x"}')).status == 200
        assert (await running.get("/v1/models/other")).status == 404
        listed = (await running.get("/v1/models")).json()["data"]
        assert [card["id"] for card in listed] == ["m"]


async def test_what_a_deployment_takes_is_what_the_model_takes_that_it_is_like():
    async with behind(as_asked("openai-chat"), upstream={"model_like": "gpt-4o"}) as running:
        answer = await running.asked("anthropic", {"max_tokens": 32_000, "thinking": {"type": "adaptive"}})
        assert answer.status == 200
        [sent] = [request.json() for request in running.evil.requests]
        assert (sent["model"], sent["max_completion_tokens"], "reasoning_effort" in sent) == ("m", 16_384, False)
        [card] = (await running.get("/v1/models")).json()["data"]
        assert (card["context_length"], card["max_completion_tokens"]) == (128_000, 16_384)


@pytest.mark.parametrize("models", [("m",), ("m", "*"), ("?",)], ids=["a name", "a name and a pattern", "a pattern"])
async def test_for_clients_of_ollama_a_model_is_called_so_with_latest_behind_it_too(models):
    async with behind(as_asked("openai-chat"), models=models) as running:
        assert (await running.asked("ollama", model="m:latest")).status == 200
        assert running.evil.requests[0].json()["model"] == "m"
        assert (await running.ask("/api/show", body=b'{"model":"m:latest"}')).status == 200
        other = await running.asked("openai-chat", model="m:latest")  # Ollama's way alone
        assert other.status == (200 if "*" in models else 404)


async def test_a_name_that_a_route_has_with_latest_is_asked_for_as_it_stands():
    async with behind(as_asked("ollama"), dialect="ollama", models=("m:latest", "llama*")) as running:
        for model in ("m:latest", "llama3:latest"):
            assert (await running.asked("ollama", model=model)).status == 200
    assert [request.json()["model"] for request in running.evil.requests] == ["m:latest", "llama3:latest"]


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/v1/metrics"])
async def test_metrics_are_not_for_clients(path, running):
    assert (await running.get(path)).status == 404


async def test_the_operators_listener_has_metrics_and_nothing_of_the_clients():
    async with serving(private_app(Metrics())) as port:
        url = f"http://127.0.0.1:{port}"
        answer = await ask(url, "/metrics", method="GET")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b"# TYPE streamkit_requests_total counter" in answer.body
        assert (await ask(url, "/healthz", method="GET")).status == 200
        assert (await ask(url, "/v1/models", method="GET")).status == 404


async def test_only_the_operators_listener_names_upstreams_that_rest_and_a_stop():
    stop, one = asyncio.Event(), Rest(failures=1)
    async with (
        in_turn(leg(status(500), rest=one), good("openai-chat")) as running,
        serving(private_app(running.metrics, stopping=stop.is_set)) as port,
    ):
        url = f"http://127.0.0.1:{port}"
        for model in ("m", "m2"):
            assert (await running.asked(model=model)).status == 200
        await eventually(lambda: running.counted("upstreams_resting", upstream="one", why="http_500") == 2)
        assert running.counted("upstream_rests_total", upstream="one") == 2
        answer = await ask(url, "/readyz", method="GET")
        assert (answer.status, answer.body) == (200, b"ready\none rests: http_500 (2)\n")
        assert (await running.get("/readyz")).body == b"ready\n"
        stop.set()
        assert (await ask(url, "/readyz", method="GET")).status == 503


def test_the_operators_listener_is_on_loopback_unless_somebody_says_otherwise():
    assert Server().private_address == ("127.0.0.1", 8081)
    assert Server(host="0.0.0.0", port=80).private_address == ("127.0.0.1", 81)
    assert Server().host == "127.0.0.1"


# -- ids ---------------------------------------------------------------------------------------------------------------


def lines(caplog):
    """The log's lines of requests."""
    return [
        record.fields for record in caplog.records if record.name == "streamkit.gateway" and record.msg == "request"
    ]


@pytest.mark.parametrize("client", CLIENTS)
async def test_every_answer_has_the_id_of_its_line_in_the_log(client, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    keys = {"server": {"keys": [Secret("client-key-1")]}}
    known = {"x-api-key": "client-key-1"}
    path, _ = asking(client)
    scripts = [as_asked("openai-chat"), as_asked("openai-chat"), status(400), FAULTS["error mid-stream"]("openai-chat")]
    async with behind(*scripts, **keys) as running:
        answers = [
            await running.asked(client, headers=known),
            await running.asked(client, headers=known, stream=False),
            await running.asked(client, headers=known),
            await running.asked(client, headers=known),
            await running.asked(client, b"{", headers=known),
            await running.asked(client),
            await running.ask(PATHS[client], headers=known),
            await running.ask(path, method="PUT", headers=known),
            await running.get("/v1/models", headers=known),
            await running.get("/nothing", headers=known),
        ]
    assert [answer.status for answer in answers] == [200, 200, 400, 200, 400, 401, 404, 405, 200, 404]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("req_") and len(name) >= 20 for name in ids)
    assert [line["request_id"] for line in lines(caplog)] == ids
    assert [line["status"] for line in lines(caplog)] == [answer.status for answer in answers]


async def test_a_clients_own_request_id_is_not_taken_for_the_gateways(running):
    answer = await running.asked(headers={"x-request-id": "mine"})
    assert answer.headers["x-request-id"].startswith("req_")


# -- what an upstream tells beside its answer --------------------------------------------------------------------------


def tells(name):
    """Headers of an upstream: those that are a client's to know, and others."""
    return {
        "X-Request-Id": f"id-{name}",
        "x-ratelimit-remaining-tokens": f"rest-{name}",
        "anthropic-ratelimit-requests-reset": f"reset-{name}",
        "Set-Cookie": f"cookie-{name}",
        "Server": f"server-{name}",
        "Access-Control-Allow-Origin": "*",
    }


def passed(answer):
    names = "x-upstream-request-id", "x-ratelimit-remaining-tokens", "anthropic-ratelimit-requests-reset"
    return [answer.headers.get(name, "").rpartition("-")[2] for name in names]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_rate_limits_and_ids_of_the_upstream_that_answered_are_passed_on_and_of_no_other(client, stream):
    speak = good if stream else whole
    async with in_turn(status(500, headers=tells("one")), speak("openai-chat", headers=tells("two"))) as running:
        answer = await running.asked(client, stream=stream)
    assert (answer.status, passed(answer)) == (200, ["two", "two", "two"])
    assert not {"set-cookie", "access-control-allow-origin"} & answer.headers.keys()
    assert "server-" not in answer.headers["server"]
    assert "one" not in str(answer.headers)


@pytest.mark.parametrize("second", ["status 404", "refused", "200 with an error first"])
async def test_a_failure_comes_with_the_headers_of_the_upstream_that_it_is_of(second):
    async with in_turn(
        status(503, message="no room", headers=tells("one")), FAULTS[second]("openai-chat"), retries=1
    ) as running:
        answer = await running.asked()
    assert (answer.status, passed(answer)) == (503, ["one", "one", "one"])
    assert b"no room" in answer.body


async def test_an_answer_that_was_kept_while_another_was_asked_has_its_own_headers():
    async with in_turn(
        whole("openai-chat", NO_CALLS, headers=tells("one")),
        status(500, headers=tells("two")),
        next_on=("tool_choice_ignored",),
    ) as running:
        answer = await running.asked(stream=False, tools=True, forced=True)
    assert (answer.status, passed(answer)) == (200, ["one", "one", "one"])


async def test_keep_alives_go_out_without_the_headers_of_an_upstream_that_failed():
    play = [status(429, headers={"retry-after": "0.4", **tells("one")}), as_asked("openai-chat")]
    async with behind(*play, retries=1, server={"keep_alive_s": 0.1}) as running:
        answer = await running.asked()
    assert answer.status == 200
    assert answer.body.startswith(b": ")
    assert passed(answer) == ["", "", ""]
    assert "retry-after" not in answer.headers


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "headers",
    [{"authorization": "Bearer client-key-2"}, {"x-api-key": "client-key-2"}, {"x-goog-api-key": "client-key-2"}],
    ids=lambda headers: next(iter(headers)),
)
async def test_a_client_is_let_in_by_a_key_in_any_of_three_headers(client, headers):
    keys = {"keys": [Secret("client-key-1"), Secret("client-key-2")]}
    async with behind(as_asked("openai-chat"), server=keys) as running:
        for wrong in ({}, {name: value[:-1] for name, value in headers.items()}):
            answer = await running.asked(client, headers=wrong)
            failed = told(answer, client)
            assert (answer.status, failed.type) == (401, "auth")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert ("send one as Authorization: Bearer" if not wrong else "not valid here") in failed.message
        assert not running.evil.requests
        assert (await running.asked(client, headers=headers)).status == 200
        assert (await running.get("/v1/models", headers=headers)).status == 200
        assert (await running.get("/v1/models")).status == 401
        assert (await running.get("/healthz")).status == 200  # probes have no keys


# -- alive, ready, busy ------------------------------------------------------------------------------------------------


async def test_it_is_alive_and_ready_and_stops_being_ready_when_it_stops():
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = gateway_app(config_of([upstream_at(evil, "openai-chat")], server={"grace_s": 0}), Metrics())
        async with serving(app) as port:
            url = f"http://127.0.0.1:{port}"
            assert [(await ask(url, path, method="GET")).status for path in ("/healthz", "/readyz")] == [200, 200]
            await app.shutdown()
            assert [(await ask(url, path, method="GET")).status for path in ("/healthz", "/readyz")] == [200, 503]


@pytest.mark.parametrize("client", CLIENTS)
async def test_beyond_its_bound_on_streams_it_says_when_to_ask_again(client):
    async with behind(silence_before_headers(), server={"max_streams": 2}) as running:
        path, body = asking(client)
        async with RawClient(running.url) as first, RawClient(running.url) as second:
            for number, waiting in enumerate((first, second)):
                await waiting.send("POST", path, body=orjson.dumps(body))
                await running.evil.request(number)
            answer = await running.asked(client)
            failed = told(answer, client)
            assert (answer.status, failed.type) == (529 if client == "anthropic" else 503, "unavailable")
            assert answer.headers["retry-after"] == "1"
            assert "x-should-retry" not in answer.headers
            assert "retry later" in failed.message
    assert len(running.evil.requests) == 2


async def test_the_bound_on_streams_holds_for_requests_whose_bodies_come_at_once():
    path, body = asking("openai-chat")
    data = orjson.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n".encode()
    async with behind(silence_before_headers(), server={"max_streams": 3}) as running, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(running.url)) for _ in range(12)]
        for client in clients:
            await client.send_bytes(head)
        await eventually(lambda: running.counted("streams_active") == 12)
        for client in clients:
            await client.send_bytes(data)
        answers = [asyncio.create_task(client.read_headers()) for client in clients]
        await eventually(lambda: sum(answer.done() for answer in answers) == 9)
        assert {answer.result().status for answer in answers if answer.done()} == {503}
        await running.evil.request(2)
        assert running.seen == [3]
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_stream_is_told_to_pass_through_proxies_as_it_is(client, running):
    headers = {"accept-encoding": "gzip, deflate, br, zstd"}
    answer = await running.asked(client, headers=headers)
    assert answer.status == 200
    assert answer.headers["x-accel-buffering"] == "no"
    assert "no-transform" in answer.headers["cache-control"]
    assert "content-encoding" not in answer.headers
    assert "content-length" not in answer.headers
    assert answer.headers["content-type"].startswith(DIALECTS[client].media_type)
    whole_answer = await running.asked(client, headers=headers, stream=False)
    assert (whole_answer.status, whole_answer.headers["content-type"]) == (200, "application/json")
    assert "content-encoding" not in whole_answer.headers
    assert int(whole_answer.headers["content-length"]) == len(whole_answer.body)


@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_within_one_dialect_a_conforming_answer_passes_byte_for_byte(dialect, stream):
    members = {"stream_options": {"include_usage": True}} if (dialect, stream) == ("openai-chat", True) else {}
    async with behind(as_asked(dialect), dialect=dialect) as running:
        answer = await running.asked(dialect, members, stream=stream)
    assert (answer.status, answer.end) == (200, "complete")
    assert bytes(answer.body) == b"".join(speech(dialect, whole=not stream))


async def test_a_whole_answers_own_spelling_and_unknown_members_pass_byte_for_byte():
    body = (
        b'{ "id":"c1","object":"chat.completion","created":1,"model":"m","x":1e21,\n "big":123456789012345678901234567890,'
        b'"choices":[{"index":0,"message":{"role":"assistant","content":"\\u00e9\\/"},"finish_reason":"stop"}]}\n'
    )
    async with behind(whole("openai-chat", body)) as running:
        answer = await running.asked(stream=False)
    assert bytes(answer.body) == body


# -- the gateway's own faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("where", ["streamkit.web.service.read_ask", "streamkit.web.opening.encode_request"])
async def test_a_fault_of_the_gateways_own_is_told_in_the_dialect_and_only_the_log_has_the_rest(
    where, client, running, monkeypatch, caplog
):
    def fail(*_args, **_kw):
        raise RuntimeError("something within")

    monkeypatch.setattr(where, fail)
    answer = await running.asked(client)
    failed = told(answer, client)
    assert (answer.status, failed.type) == (500, "server")
    assert b"something within" not in answer.body
    assert "something within" in caplog.text
    [line] = lines(caplog)
    assert (line["status"], line["ending"]) == (500, "error")


IMAGE = {"type": "image_url", "image_url": {"url": "https://127.0.0.1/a.png"}}


@pytest.mark.parametrize(
    ("linked_media", "words"),
    [("refuse", "ollama does not accept image input at a URL"), ("fetch", "it has no public address"), ("drop", None)],
)
async def test_an_image_at_a_url_is_refused_fetched_or_dropped(linked_media, words):
    async with behind(as_asked("ollama"), dialect="ollama", upstream={"linked_media": linked_media}) as running:
        content = [{"type": "text", "text": "What is it?"}, IMAGE]
        answer = await running.asked("openai-chat", {"messages": [{"role": "user", "content": content}]})
        assert (answer.status, len(running.evil.requests)) == ((200, 1) if words is None else (400, 0))
        if words is not None:
            failed = told(answer, "openai-chat")
            assert failed.message.startswith("messages[0].content[1]: ")
            assert words in failed.message


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic"])
async def test_a_part_that_nobody_knows_is_refused_in_the_clients_dialect_with_its_path(client):
    async with behind(as_asked("ollama"), dialect="ollama") as running:
        said = [{"role": "user", "content": [{"type": "hologram", "hologram": {}}]}]
        member = "input" if client == "openai-responses" else "messages"
        answer = await running.asked(client, {member: said})
        assert (answer.status, len(running.evil.requests)) == (400, 0)
        message = told(answer, client).message
        assert message.startswith(f"{member}[0].content[0]: ")
        assert "'hologram'" in message
