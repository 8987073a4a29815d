"""How many tokens a request has: asked of an upstream that counts, else estimated and marked so, or refused."""

import asyncio
import logging
from functools import partial

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.gateway.routing import Target
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from streamkit.web.upstream.value import Rest
from tests.gateway.running import asking, behind, config_of, gateway, in_turn, leg, told, upstream_at
from tests.web.evil import Delay, EvilUpstream, Script, Send
from tests.web.faults import FAULTS, answer, good, refuse, status
from tests.web.upstream.conftest import aws

__all__ = ["aws"]
pytestmark = pytest.mark.usefixtures("no_leaks")
#: By client, where it asks, and the member in which it reads the count.
CLIENTS = {
    "anthropic": ("/v1/messages/count_tokens", "input_tokens"),
    "openai-responses": ("/v1/responses/input_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/m:countTokens", "totalTokens"),
}
#: A gateway that estimates nothing, so that no estimate hides what is tested.
strict = partial(in_turn, server={"count_tokens": "upstream"})
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
    return await running.ask(path, body=orjson.dumps({**body, **members}), headers=headers)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_upstream_that_counts_is_asked_in_its_dialect_and_answers_in_the_clients(client, upstream):
    async with strict(leg(counts(upstream), dialect=upstream)) as running:
        found = await counted(running, client)
        assert (found.status, found.json()) == (200, answered(client))
        assert found.headers["content-type"] == "application/json"
        assert found.headers["x-request-id"].startswith("req_")
    [request] = running.evil.requests
    assert request.path == UPSTREAMS[upstream][0]
    assert SAID[upstream] in orjson.dumps(request.json()).decode()
    assert "weather" in request.body.decode()  # the tools are counted too
    assert "stream" not in request.json()


@pytest.mark.parametrize("upstream", NOT_COUNTING)
@pytest.mark.parametrize("client", CLIENTS)
async def test_where_no_upstream_counts_there_is_no_count_and_nobody_is_asked(client, upstream):
    async with strict(leg(status(500), dialect=upstream)) as running:
        found = await counted(running, client)
        failed = told(found, client)
    assert (found.status, failed.type, running.seen) == (404, "not_found", [0])
    assert failed.message == "no upstream of the model 'm' can count tokens; omit the count"


@pytest.mark.parametrize("client", CLIENTS)
async def test_those_that_cant_count_are_passed_over_and_the_model_has_the_name_it_has_there(client):
    async with EvilUpstream(status(500)) as chat, EvilUpstream(counts("anthropic")) as claude:
        upstreams = [upstream_at(chat, "openai-chat"), upstream_at(claude, "anthropic", "two")]
        targets = Target(upstream=upstreams[0]), Target(upstream=upstreams[1], model="claude-there")
        async with gateway(config_of(upstreams, targets=targets)) as running:
            assert (await counted(running, client)).status == 200
    assert not chat.requests
    assert claude.requests[0].json()["model"] == "claude-there"


@pytest.mark.parametrize(("mode", "seen"), [("upstream", [2, 1]), ("estimate", [1, 1])])
async def test_one_that_rests_is_asked_last_and_not_at_all_if_an_estimate_will_do(mode, seen):
    def play(request):
        return status(500, "anthropic") if "/count" not in request.path else counts("anthropic")

    one = leg(play, dialect="anthropic", rest=Rest(failures=1))
    two = leg(lambda request: status(500) if "/count" in request.path else good("gemini"), dialect="gemini")
    async with in_turn(one, two, server={"count_tokens": mode}) as running:
        assert (await running.asked("anthropic")).status == 200
        running.evils[1].requests.clear()
        assert (await counted(running, "anthropic")).status == 200
        assert running.seen == seen


FAILURES = {
    "429": (status(429, "anthropic", message="slow down", headers={"Retry-After": "9"}), 429, "rate_limit"),
    "404": (status(404, "anthropic", message="no such path"), 404, "not_found"),
    "400": (status(400, "anthropic", message="too many tools"), 400, "invalid_request"),
    "a number": (answer(200, b"1234"), 502, "server"),
    "text": (answer(200, b'{"input_tokens":"1234"}'), 502, "server"),
    "negative": (answer(200, b'{"input_tokens":-1}'), 502, "server"),
    "true": (answer(200, b'{"input_tokens":true}'), 502, "server"),
    "too long": (answer(200, b'{"input_tokens":1' + b" " * 70_000 + b"}"), 502, "server"),
    "a page": (FAULTS["200 with HTML"]("anthropic"), 502, "server"),
    "silence": (FAULTS["silence before headers"]("anthropic"), 504, "timeout"),
    "redirect": (FAULTS["redirect"]("anthropic"), 502, "server"),
    "no": (refuse(), 502, "server"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("script", "code", "kind"), FAILURES.values(), ids=FAILURES)
async def test_a_count_that_fails_is_the_clients_error_and_another_upstream_may_count(client, script, code, kind):
    bad = leg(script, dialect="anthropic")
    async with strict(bad) as running:
        found = await counted(running, client)
        assert (found.status, told(found, client).type) == (code, kind)
        assert found.headers.get("retry-after") == ("9" if code == 429 else None)
    async with strict(bad, leg(counts("gemini"), dialect="gemini")) as running:
        found = await counted(running, client)
        assert (found.status, found.json()) == (200, answered(client))
        assert (await running.outcomes())["two", "counted"] == 1


@pytest.mark.parametrize("client", CLIENTS)
async def test_rate_limits_and_ids_are_those_of_the_upstream_that_counted(client):
    def tells(name):
        return {"X-Request-Id": name, "x-ratelimit-remaining-requests": name, "Set-Cookie": name}

    failing = leg(status(500, "anthropic", headers=tells("one")), dialect="anthropic")
    async with strict(failing, leg(counts("gemini", **tells("two")), dialect="gemini")) as running:
        found = await counted(running, client)
        assert await running.outcomes() == {("one", "http_500"): 1, ("two", "counted"): 1}
    assert found.headers["x-upstream-request-id"] == found.headers["x-ratelimit-remaining-requests"] == "two"
    assert "set-cookie" not in found.headers
    async with strict(failing) as running:
        found = await counted(running, client)
    assert (found.status, found.headers["x-upstream-request-id"]) == (500, "one")


@pytest.mark.parametrize("wrapped", [False, True], ids=["contents", "a whole request"])
async def test_both_forms_of_geminis_request_are_counted(wrapped):
    _, usual = asking("gemini")
    body = {"generateContentRequest": {**usual, "model": "models/other"}} if wrapped else usual
    async with behind(counts("anthropic"), dialect="anthropic") as running:
        found = await running.ask(CLIENTS["gemini"][0], body=orjson.dumps(body))
    assert found.json() == {"totalTokens": 1234}
    assert running.evil.requests[0].json()["model"] == "m"  # the one of the path
    assert "hi" in str(running.evil.requests[0].json()["messages"])


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_request_that_cant_be_counted_is_refused_before_anybody_is_asked(client):
    async with strict(leg(counts("anthropic"), dialect="anthropic"), models=("m",)) as running:
        found = await counted(running, client, tools=7)
        assert (found.status, told(found, client).message) == (400, "tools: must be a list, not an integer")
        found = await running.ask("/v1beta/models/other:countTokens", body=orjson.dumps(asking("gemini")[1]))
        assert (found.status, told(found, "gemini").type) == (404, "not_found")
        assert running.seen == [0]


async def test_a_count_that_the_gateways_own_end_cuts_is_no_clients_departure():
    silent = leg(FAULTS["silence before headers"]("anthropic"), dialect="anthropic", timeouts=Timeouts(first_byte_s=20))
    async with strict(silent) as running:
        asking_task = asyncio.create_task(counted(running, "anthropic"))
        await running.evil.request(0)
    await asyncio.gather(asking_task, return_exceptions=True)
    assert await running.outcomes() == {("one", "shut_down"): 1}


async def test_the_clocks_of_a_count_begin_when_it_is_asked():
    whole = counts("anthropic").steps[0].data
    head, _, body = whole.partition(b"\r\n\r\n")
    slow = Script((Delay(0.4), Send(head + b"\r\n\r\n"), Delay(0.4), Send(body)))
    async with strict(leg(slow, dialect="anthropic", timeouts=Timeouts(total_s=0.6))) as running:
        assert (await counted(running, "anthropic")).status == 504
        assert await running.outcomes() == {("one", "total_timeout"): 1}


KEY = "canary-0123456789"


@pytest.mark.parametrize("code", [200, 400])
async def test_an_upstream_that_repeats_the_sessions_token_does_not_tell_it(code, aws):
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "secret", "SESSION_TOKEN": KEY}.items():
        aws.setenv(f"AWS_{name}", value)
    asks_who = answer(code, f"who are you, {KEY}?".encode(), {"x-request-id": KEY})
    async with strict(leg(asks_who, dialect="bedrock", auth="sigv4", region="eu-west-1")) as running:
        found = await counted(running, "anthropic")
    assert running.evil.requests[0].header("x-amz-security-token") == KEY
    assert found.status >= 400
    assert KEY.encode() not in found.body
    assert KEY not in str(found.headers)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("code", [200, 401])
async def test_an_upstream_that_repeats_its_key_in_place_of_a_count_does_not_tell_it(client, code):
    """Its credentials are no business of the client's, and of what can't be read nothing is told."""
    asks_who = answer(code, f"who are you, {KEY}?".encode())
    async with strict(leg(asks_who, dialect="anthropic", auth="x-api-key", key=Secret(KEY))) as running:
        found = await counted(running, client, headers={"x-api-key": "a client's"})
    assert running.evil.requests[0].header("x-api-key") == KEY
    assert b"who are you" not in found.body
    assert KEY.encode() not in found.body


# -- where nobody counts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", NOT_COUNTING)
@pytest.mark.parametrize("client", CLIENTS)
async def test_where_no_upstream_counts_it_is_estimated_marked_so_and_nobody_is_asked(client, upstream):
    """Claude Code's ``/context`` asks nineteen times, and for a completion each time that it is refused."""
    async with behind(status(500), dialect=upstream) as running:
        found = await counted(running, client)
        tokens = found.json()[CLIENTS[client][1]]
        assert (found.status, found.json(), running.seen) == (200, answered(client, tokens), [0])
        assert 20 < tokens < 100
        assert found.headers["x-streamkit-count"].startswith("estimate; method=")


@pytest.mark.parametrize("failure", ["404", "429", "a number", "silence", "no"])
async def test_where_the_count_fails_it_is_estimated_too(failure, caplog):
    caplog.set_level(logging.INFO)
    async with behind(FAILURES[failure][0], dialect="anthropic") as running:
        found = await counted(running, "anthropic")
        assert (found.status, "x-streamkit-count" in found.headers) == (200, True)
        assert ("one", "counted") not in await running.outcomes()
    [line] = [record.fields for record in caplog.records if record.name == "streamkit.gateway"]
    assert line["estimated"] is True
    assert len(line["attempts"]) == 1


async def test_an_upstreams_count_is_no_estimate_nor_is_its_refusal():
    async with behind(counts("anthropic"), status(400, "anthropic"), dialect="anthropic") as running:
        found = await counted(running, "anthropic")
        assert found.json() == {"input_tokens": 1234}
        assert "x-streamkit-count" not in found.headers
        assert (await counted(running, "anthropic")).status == 400


@pytest.mark.parametrize("client", CLIENTS)
async def test_counts_may_be_off(client):
    async with behind(counts("anthropic"), dialect="anthropic", server={"count_tokens": "off"}) as running:
        found = await counted(running, client)
        assert (found.status, told(found, client).type, running.seen) == (404, "not_found", [0])


@pytest.mark.parametrize(("mode", "listed"), [("estimate", True), ("upstream", False), ("off", False)])
async def test_gemini_is_told_that_a_model_counts_where_it_does(mode, listed):
    async with behind(status(500), server={"count_tokens": mode}) as running:
        found = await running.get("/v1beta/models/m")
    assert ("countTokens" in found.json()["supportedGenerationMethods"]) is listed
