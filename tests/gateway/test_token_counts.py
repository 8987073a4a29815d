"""How many tokens a request has: asked of an upstream that counts, else estimated and marked so, or refused."""

import asyncio
import logging

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.gateway.routing import Target
from streamkit.http_errors import decode_error
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.running import asking, gateway, upstream_at
from tests.gateway.running import config_of as usual_config
from tests.web.evil import Delay, EvilUpstream, Script, Send
from tests.web.faults import FAULTS, answer, refuse, status
from tests.web.raw_client import ask
from tests.web.upstream.conftest import aws

__all__ = ["aws"]
pytestmark = pytest.mark.usefixtures("no_leaks")
#: By client, where it asks, and the member in which it reads the count.
CLIENTS = {
    "anthropic": ("/v1/messages/count_tokens", "input_tokens"),
    "openai-responses": ("/v1/responses/input_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/m:countTokens", "totalTokens"),
}
#: No estimate hides what is tested.
STRICT = {"server": {"count_tokens": "upstream"}}
#: By upstream, where it is asked, and what it answers for 1,234.
UPSTREAMS = {
    "anthropic": ("/v1/messages/count_tokens", {"input_tokens": 1234}),
    "openai-responses": ("/v1/responses/input_tokens", {"object": "response.input_tokens", "input_tokens": 1234}),
    "gemini": ("/v1beta/models/m:countTokens", {"totalTokens": 1234, "promptTokensDetails": []}),
    "bedrock": ("/model/m/count-tokens", {"inputTokens": 1234}),
}
NOT_COUNTING = [dialect for dialect in DIALECTS if dialect not in UPSTREAMS]
#: A member of the request that is counted, as each upstream calls it.
SAID = {"anthropic": "messages", "openai-responses": "input", "gemini": "contents", "bedrock": "messages"}


def config_of(upstreams, **values):
    return usual_config(upstreams, **{**STRICT, **values})


def answered(client, tokens=1234):
    """What a client reads as that count."""
    beside = {"object": "response.input_tokens"} if client == "openai-responses" else {}
    return {**beside, CLIENTS[client][1]: tokens}


def counts(dialect, number=1234, **headers):
    body = orjson.dumps(UPSTREAMS[dialect][1]).replace(b"1234", str(number).encode())
    return answer(200, body, {"Content-Type": "application/json", **headers})


async def counted(running, client, *, headers=None, **members):
    path, _ = CLIENTS[client]
    _, body = asking(client, tools=True)
    body.pop("stream", None)
    return await ask(running.url, path, body=orjson.dumps({**body, **members}), headers=headers)


def told(answer, client):
    return decode_error(answer.status, bytes(answer.body), client, answer.headers)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_upstream_that_counts_is_asked_in_its_dialect_and_answers_in_the_clients(client, upstream):
    async with EvilUpstream(counts(upstream)) as evil, gateway(config_of([upstream_at(evil, upstream)])) as running:
        found = await counted(running, client)
        assert (found.status, found.json()) == (200, answered(client))
        assert found.headers["content-type"] == "application/json"
        assert found.headers["x-request-id"].startswith("req_")
    [request] = evil.requests
    assert request.path == UPSTREAMS[upstream][0]
    assert SAID[upstream] in orjson.dumps(request.json()).decode()
    assert "weather" in request.body.decode()  # the tools are counted too
    assert "stream" not in request.json()


@pytest.mark.parametrize("upstream", NOT_COUNTING)
@pytest.mark.parametrize("client", CLIENTS)
async def test_where_no_upstream_counts_there_is_no_count_and_nobody_is_asked(client, upstream):
    async with EvilUpstream(status(500)) as evil, gateway(config_of([upstream_at(evil, upstream)])) as running:
        found = await counted(running, client)
        failed = told(found, client)
    assert (found.status, failed.type) == (404, "not_found")
    assert failed.message == "no upstream of the model 'm' counts tokens; leave the count out"
    assert not evil.requests


@pytest.mark.parametrize("client", CLIENTS)
async def test_those_that_cant_count_are_passed_over_and_the_model_has_the_name_it_has_there(client):
    async with EvilUpstream(status(500)) as chat, EvilUpstream(counts("anthropic")) as claude:
        config = config_of([upstream_at(chat, "openai-chat"), upstream_at(claude, "anthropic", "two")])
        targets = (config.routes[0].targets[0], Target(upstream=config.upstreams["two"], model="claude-there"))
        config = config_of(config.upstreams.values(), targets=targets)
        async with gateway(config) as running:
            assert (await counted(running, client)).status == 200
    assert not chat.requests
    assert claude.requests[0].json()["model"] == "claude-there"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        (status(429, "anthropic", message="slow down", headers={"Retry-After": "9"}), (429, "rate_limit")),
        (status(404, "anthropic", message="no such path"), (404, "not_found")),
        (status(400, "anthropic", message="too many tools"), (400, "invalid_request")),
        (answer(200, b"1234"), (502, "server")),
        (answer(200, b'{"input_tokens":"1234"}'), (502, "server")),
        (answer(200, b'{"input_tokens":-1}'), (502, "server")),
        (answer(200, b'{"input_tokens":true}'), (502, "server")),
        (answer(200, b'{"input_tokens":1' + b" " * 70_000 + b"}"), (502, "server")),
        (FAULTS["200 with HTML"]("anthropic"), (502, "server")),
        (FAULTS["silence before headers"]("anthropic"), (504, "timeout")),
        (FAULTS["redirect"]("anthropic"), (502, "server")),
        (refuse(), (502, "server")),
    ],
    ids=[
        "429",
        "404",
        "400",
        "a number",
        "text",
        "negative",
        "true",
        "too long",
        "a page",
        "silence",
        "redirect",
        "no",
    ],
)
async def test_a_count_that_fails_is_the_clients_error_and_another_upstream_may_count(client, script, outcome):
    async with EvilUpstream(script) as bad, EvilUpstream(counts("gemini")) as sound:
        async with gateway(config_of([upstream_at(bad, "anthropic")])) as running:
            found = await counted(running, client)
            assert (found.status, told(found, client).type) == outcome
            assert found.headers.get("retry-after") == ("9" if outcome[0] == 429 else None)
        two = [upstream_at(bad, "anthropic"), upstream_at(sound, "gemini", "two")]
        async with gateway(config_of(two)) as running:
            found = await counted(running, client)
            assert (found.status, found.json()) == (200, answered(client))


@pytest.mark.parametrize("client", CLIENTS)
async def test_rate_limits_and_ids_are_those_of_the_upstream_that_counted(client):
    def tells(name):
        return {"X-Request-Id": name, "x-ratelimit-remaining-requests": name, "Set-Cookie": name}

    async with (
        EvilUpstream(status(500, "anthropic", headers=tells("one"))) as one,
        EvilUpstream(counts("gemini", **tells("two"))) as two,
    ):
        upstreams = [upstream_at(one, "anthropic"), upstream_at(two, "gemini", "two")]
        async with gateway(config_of(upstreams)) as running:
            found = await counted(running, client)
        assert found.headers["x-upstream-request-id"] == found.headers["x-ratelimit-remaining-requests"] == "two"
        assert "set-cookie" not in found.headers
        async with gateway(config_of(upstreams[:1])) as running:
            found = await counted(running, client)
        assert (found.status, found.headers["x-upstream-request-id"]) == (500, "one")


@pytest.mark.parametrize("wrapped", [False, True], ids=["contents", "a whole request"])
async def test_both_forms_of_geminis_request_are_counted(wrapped):
    _, usual = asking("gemini")
    body = {"generateContentRequest": {**usual, "model": "models/other"}} if wrapped else usual
    async with (
        EvilUpstream(counts("anthropic")) as evil,
        gateway(config_of([upstream_at(evil, "anthropic")])) as running,
    ):
        found = await ask(running.url, CLIENTS["gemini"][0], body=orjson.dumps(body))
    assert found.json() == {"totalTokens": 1234}
    assert evil.requests[0].json()["model"] == "m"  # the one of the path
    assert "hi" in str(evil.requests[0].json()["messages"])


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_request_that_cant_be_counted_is_refused_before_anybody_is_asked(client):
    async with (
        EvilUpstream(counts("anthropic")) as evil,
        gateway(config_of([upstream_at(evil, "anthropic")], models=("m",))) as running,
    ):
        found = await counted(running, client, tools=7)
        assert (found.status, told(found, client).message) == (400, "tools: a list is needed, not a whole number")
        found = await ask(running.url, "/v1beta/models/other:countTokens", body=orjson.dumps(asking("gemini")[1]))
        assert (found.status, told(found, "gemini").type) == (404, "not_found")
        assert not evil.requests


async def test_each_upstream_that_is_asked_for_a_count_is_a_leg_of_the_request():
    async with EvilUpstream(status(500, "anthropic")) as one, EvilUpstream(counts("gemini")) as two:
        upstreams = [upstream_at(one, "anthropic"), upstream_at(two, "gemini", "two")]
        async with gateway(config_of(upstreams)) as running:
            await counted(running, "anthropic")
            assert await running.outcomes() == {("one", "http_500"): 1, ("two", "counted"): 1}


async def test_a_count_that_the_gateways_own_end_cuts_is_no_clients_departure():
    patient = Timeouts(first_byte_s=20)
    async with EvilUpstream(FAULTS["silence before headers"]("anthropic")) as evil:
        async with gateway(config_of([upstream_at(evil, "anthropic", timeouts=patient)])) as running:
            asking_task = asyncio.create_task(counted(running, "anthropic"))
            await evil.request(0)
        await asyncio.gather(asking_task, return_exceptions=True)
        assert await running.outcomes() == {("one", "shut_down"): 1}


async def test_the_clocks_of_a_count_begin_when_it_is_asked():
    whole = counts("anthropic").steps[0].data
    head, _, body = whole.partition(b"\r\n\r\n")
    slow = Script((Delay(0.4), Send(head + b"\r\n\r\n"), Delay(0.4), Send(body)))
    async with EvilUpstream(slow) as evil:
        upstream = upstream_at(evil, "anthropic", timeouts=Timeouts(total_s=0.6))
        async with gateway(config_of([upstream])) as running:
            assert (await counted(running, "anthropic")).status == 504
            assert await running.outcomes() == {("one", "total_timeout"): 1}


@pytest.mark.parametrize("code", [200, 400])
async def test_an_upstream_that_repeats_the_sessions_token_does_not_tell_it(code, aws):
    token = "canary-0123456789"
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "secret", "SESSION_TOKEN": token}.items():
        aws.setenv(f"AWS_{name}", value)
    async with (
        EvilUpstream(answer(code, f"who are you, {token}?".encode(), {"x-request-id": token})) as evil,
        gateway(config_of([upstream_at(evil, "bedrock", auth="sigv4", region="eu-west-1")])) as running,
    ):
        found = await counted(running, "anthropic")
    assert evil.requests[0].header("x-amz-security-token") == token
    assert found.status >= 400
    assert token.encode() not in found.body
    assert token not in str(found.headers)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("code", [200, 401])
async def test_an_upstream_that_repeats_its_key_in_place_of_a_count_does_not_tell_it(client, code):
    key = "canary-0123456789"
    async with (
        EvilUpstream(answer(code, f"who are you, {key}?".encode())) as evil,
        gateway(config_of([upstream_at(evil, "anthropic", auth="x-api-key", key=Secret(key))])) as running,
    ):
        found = await counted(running, client, headers={"x-api-key": "a client's"})
    assert evil.requests[0].header("x-api-key") == key
    assert (
        b"who are you" not in found.body
    )  # its credentials are no business of the client's, and of what can't be read nothing is told
    assert key.encode() not in found.body


# -- where nobody counts -----------------------------------------------------------------------------------------------

NO_COUNT = {
    "no such path": status(404, "anthropic", message="no such path"),
    "busy": status(429, "anthropic", message="slow down"),
    "broken": answer(200, b"1234"),
    "silent": FAULTS["silence before headers"]("anthropic"),
    "away": refuse(),
}


@pytest.mark.parametrize("upstream", NOT_COUNTING)
@pytest.mark.parametrize("client", CLIENTS)
async def test_where_no_upstream_counts_it_is_estimated_marked_so_and_nobody_is_asked(client, upstream):
    """Claude Code's ``/context`` asks nineteen times, and for a completion each time that it is refused."""
    async with EvilUpstream(status(500)) as evil, gateway(usual_config([upstream_at(evil, upstream)])) as running:
        found = await counted(running, client)
        tokens = found.json()[CLIENTS[client][1]]
        assert (found.status, found.json()) == (200, answered(client, tokens))
        assert 20 < tokens < 100
        assert found.headers["x-streamkit-count"].startswith("estimate; method=")
    assert not evil.requests


@pytest.mark.parametrize("script", NO_COUNT.values(), ids=NO_COUNT)
async def test_where_the_count_fails_it_is_estimated_too(script, caplog):
    caplog.set_level(logging.INFO)
    async with EvilUpstream(script) as evil, gateway(usual_config([upstream_at(evil, "anthropic")])) as running:
        found = await counted(running, "anthropic")
        assert (found.status, "x-streamkit-count" in found.headers) == (200, True)
        assert ("one", "counted") not in await running.outcomes()
    [line] = [record.fields for record in caplog.records if record.name == "streamkit.gateway"]
    assert line["estimated"] is True
    assert len(line["attempts"]) == 1


async def test_an_upstreams_count_is_no_estimate():
    async with (
        EvilUpstream(counts("anthropic")) as evil,
        gateway(usual_config([upstream_at(evil, "anthropic")])) as running,
    ):
        found = await counted(running, "anthropic")
    assert found.json() == {"input_tokens": 1234}
    assert "x-streamkit-count" not in found.headers


async def test_a_request_that_an_upstream_finds_wrong_is_not_estimated():
    async with (
        EvilUpstream(status(400, "anthropic", message="too many tools")) as evil,
        gateway(usual_config([upstream_at(evil, "anthropic")])) as running,
    ):
        assert (await counted(running, "anthropic")).status == 400


@pytest.mark.parametrize("client", CLIENTS)
async def test_counts_may_be_off(client):
    async with (
        EvilUpstream(counts("anthropic")) as evil,
        gateway(usual_config([upstream_at(evil, "anthropic")], server={"count_tokens": "off"})) as running,
    ):
        found = await counted(running, client)
        assert (found.status, told(found, client).type) == (404, "not_found")
    assert not evil.requests


@pytest.mark.parametrize(("mode", "listed"), [("estimate", True), ("upstream", False), ("off", False)])
async def test_gemini_is_told_that_a_model_counts_where_it_does(mode, listed):
    async with (
        EvilUpstream(status(500)) as evil,
        gateway(usual_config([upstream_at(evil, "openai-chat")], server={"count_tokens": mode})) as running,
    ):
        found = await ask(running.url, "/v1beta/models/m", method="GET")
    assert ("countTokens" in found.json()["supportedGenerationMethods"]) is listed
