"""Choosing an upstream (S3): who is asked next, who is left alone, and when there is no more asking."""

import asyncio
import json

import orjson
import pytest

from streamkit.events import ProviderFailed
from streamkit.gateway.attempts import lacks_tools, may_do_better
from streamkit.web.source import Timeouts
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream, Received
from tests.web.faults import FAULTS, TEXT, as_asked, good, said, speech, status, whole
from tests.web.raw_client import ask

#: Of an upstream that is sound: a busy machine is no fault of its.
PATIENT = Timeouts(connect_s=20, first_byte_s=20, idle_s=20)
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
NO_TOOLS = b'{"error":{"message":"No endpoints found that support tool use","code":404}}'
NO_CALLS = orjson.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "no"}, "finish_reason": "stop"}],
    }
)


async def asked(running, dialect="anthropic", **how):
    path, body = asking(dialect, **how)
    return await ask(running.url, path, body=orjson.dumps(body), headers={"content-type": "application/json"})


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("refused", "refused"),
        ("never connects", "connect_timeout"),
        ("untrusted certificate", "refused"),
        ("status 401", "http_401"),
        ("status 404", "http_404"),
        ("status 429", "http_429"),
        ("status 500", "http_500"),
        ("200 with HTML", "not_this_dialect"),
        ("200 with an error first", "error_event"),
        ("silence before headers", "first_byte_timeout"),
        ("redirect", "http_307"),
    ],
)
async def test_what_fails_before_the_model_spoke_moves_on_to_the_next_upstream(fault, outcome, stream):
    script = FAULTS[fault]("openai-chat", whole=not stream)
    async with EvilUpstream(script) as bad, EvilUpstream(as_asked("openai-chat")) as sound:
        two = upstream_at(sound, "openai-chat", "two", timeouts=PATIENT)
        async with gateway(config_of([upstream_at(bad, "openai-chat"), two])) as running:
            answer = await asked(running, stream=stream)
            assert (answer.status, answer.end) == (200, "complete")
            assert TEXT.split()[0].encode() in answer.body
            assert await running.outcomes() == {("one", outcome): 1, ("two", "success"): 1}


async def test_a_request_that_is_wrong_is_wrong_everywhere():
    async with EvilUpstream(status(400)) as one, EvilUpstream(as_asked("openai-chat")) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")], retries=3)
        async with gateway(config) as running:
            answer = await asked(running)
    assert (answer.status, len(one.requests), len(two.requests)) == (400, 1, 0)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_what_an_upstreams_dialect_has_no_place_for_is_asked_of_one_that_has(stream):
    async with EvilUpstream(as_asked("anthropic")) as one, EvilUpstream(as_asked("openai-chat")) as two:
        config = config_of([upstream_at(one, "anthropic"), upstream_at(two, "openai-chat", "two")])
        path, body = asking("openai-chat", stream=stream)
        async with gateway(config) as running:
            answer = await ask(running.url, path, body=orjson.dumps(body | {"n": 2}))
            assert (answer.status, len(one.requests), len(two.requests)) == (200, 0, 1)
            assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "success"): 1}


async def test_what_nobody_can_be_asked_for_is_a_bad_request_that_says_what():
    async with EvilUpstream(status(500)) as one, EvilUpstream(status(500)) as two:
        config = config_of([upstream_at(one, "anthropic"), upstream_at(two, "ollama", "two")], retries=3)
        path, body = asking("openai-chat")
        async with gateway(config) as running:
            answer = await ask(running.url, path, body=orjson.dumps(body | {"n": 2}))
            assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "request_unfit"): 1}
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("n: ")


@pytest.mark.parametrize("fault", ["error mid-stream", "reset mid-line", "truncated chunked body"])
async def test_once_the_model_spoke_nobody_else_is_asked(fault):
    async with EvilUpstream(FAULTS[fault]("openai-chat")) as bad, EvilUpstream(as_asked("openai-chat")) as sound:
        config = config_of([upstream_at(bad, "openai-chat"), upstream_at(sound, "openai-chat", "two")])
        async with gateway(config) as running:
            answer = await asked(running)
    assert (answer.status, answer.end) == (200, "complete")
    assert answer.body.count(b"event: message_start") == 1
    assert b"event: error" in answer.body
    assert b"message_stop" not in answer.body
    assert not sound.requests
    ours = fault != "error mid-stream"  # else the words are the upstream's
    assert answer.body.count(b"one: ") == ours


async def test_a_model_without_tools_is_remembered_and_passed_over_for_requests_with_tools_only():
    play = [status(404, body=NO_TOOLS), as_asked("openai-chat")]
    async with EvilUpstream(*play) as lacking, EvilUpstream(as_asked("openai-chat")) as able:
        config = config_of([upstream_at(lacking, "openai-chat"), upstream_at(able, "openai-chat", "two")])
        async with gateway(config) as running:
            assert (await asked(running, tools=True)).status == 200
            assert (await asked(running, tools=True)).status == 200
            assert (len(lacking.requests), len(able.requests)) == (1, 2)
            assert (await asked(running)).status == 200
            assert len(lacking.requests) == 2
            assert (await running.outcomes())["one", "http_404"] == 1


async def test_an_upstream_that_is_known_to_have_no_tools_is_never_asked_for_any():
    async with (
        EvilUpstream(as_asked("openai-chat")) as lacking,
        gateway(config_of([upstream_at(lacking, "openai-chat", tools=False)])) as running,
    ):
        answer = await asked(running, tools=True)
        assert (answer.status, len(lacking.requests)) == (400, 0)
        assert b"no upstream of this model supports tools" in answer.body
        assert (await asked(running)).status == 200


async def test_retry_after_is_waited_for_and_then_the_upstream_answers():
    times = []

    def play(request: Received):
        times.append(request.received_at)
        return status(429, headers={"Retry-After": "0.3"}) if len(times) == 1 else good("openai-chat")

    async with EvilUpstream(play) as evil, gateway(config_of([upstream_at(evil, "openai-chat")], retries=2)) as running:
        answer = await asked(running)
    assert (answer.status, len(times)) == (200, 2)
    assert times[1] - times[0] >= 0.3


async def test_a_busy_upstream_is_left_alone_while_another_is_there():
    async with (
        EvilUpstream(status(429, headers={"Retry-After": "60"})) as busy,
        EvilUpstream(as_asked("openai-chat")) as free,
    ):
        config = config_of([upstream_at(busy, "openai-chat"), upstream_at(free, "openai-chat", "two")])
        async with gateway(config) as running:
            for _ in range(3):
                assert (await asked(running)).status == 200
    assert (len(busy.requests), len(free.requests)) == (1, 3)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_longer_wait_than_the_route_allows_is_the_clients_to_know(client):
    async with (
        EvilUpstream(status(429, headers={"Retry-After": "77"})) as busy,
        gateway(config_of([upstream_at(busy, "openai-chat")], retries=2, retry_after_max_s=1)) as running,
    ):
        answer = await asked(running, client)
        assert (answer.status, answer.headers["retry-after"]) == (429, "77")


async def test_where_every_upstream_asked_to_be_left_alone_the_one_that_wakes_first_is_asked_all_the_same():
    """What was asked for 600 s ago may hold no more, and nobody but the upstream knows."""
    late = [status(429, headers={"Retry-After": "600"}), as_asked("openai-chat")]
    early = [status(429, headers={"Retry-After": "300"}), as_asked("openai-chat")]
    async with EvilUpstream(*late) as one, EvilUpstream(*early) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")])
        async with gateway(config) as running:
            assert (await asked(running)).status == 429
            assert (await asked(running)).status == 200
    assert (len(one.requests), len(two.requests)) == (1, 2)


async def test_what_one_model_said_is_remembered_of_that_model_only():
    def play(request: Received):
        model = request.json()["model"]
        if model == "small":
            return status(400, message="small does not support tools")
        return status(429, headers={"Retry-After": "60"}) if model == "busy" else good("openai-chat")

    async with EvilUpstream(play) as local, EvilUpstream(as_asked("openai-chat")) as cloud:
        config = config_of([upstream_at(local, "openai-chat"), upstream_at(cloud, "openai-chat", "two")])
        async with gateway(config) as running:
            for model in ("small", "busy", "big", "small", "busy", "big"):
                assert (await asked(running, tools=True, model=model)).status == 200
    assert [request.json()["model"] for request in local.requests] == ["small", "busy", "big", "big"]


async def test_for_a_request_with_tools_one_that_rests_is_asked_rather_than_one_that_has_none():
    rested = [status(429, headers={"Retry-After": "60"}), as_asked("openai-chat")]
    async with EvilUpstream(*rested) as able, EvilUpstream(status(404, body=NO_TOOLS)) as lacking:
        config = config_of([upstream_at(able, "openai-chat"), upstream_at(lacking, "openai-chat", "two")])
        async with gateway(config) as running:
            await asked(running, tools=True)
            assert (await asked(running, tools=True)).status == 200
    assert (len(able.requests), len(lacking.requests)) == (2, 1)


async def test_rounds_are_bounded_and_the_last_failure_is_told():
    async with EvilUpstream(status(503, message="busy here")) as one, EvilUpstream(status(404)) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")], retries=2)
        async with gateway(config) as running:
            answer = await asked(running, "openai-chat")
            assert (answer.status, len(one.requests), len(two.requests)) == (503, 3, 3)
            assert b"busy here" in answer.body  # the one that may pass, not the one that will not
            assert await running.outcomes() == {("one", "http_503"): 3, ("two", "http_404"): 3}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("refused", [400, 413, 422])
async def test_what_a_fallback_refuses_does_not_hide_that_the_first_was_only_busy(client, refused):
    busy = status(429, message="busy here", headers={"Retry-After": "77"})
    async with EvilUpstream(busy) as one, EvilUpstream(status(refused)) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")])
        async with gateway(config) as running:
            for _ in range(2):  # the second time it rests, and is asked since nobody else can say
                answer = await asked(running, client)
                assert (answer.status, answer.headers["retry-after"]) == (429, "77")
                assert b"busy here" in answer.body
            assert (len(one.requests), len(two.requests)) == (2, 2)


async def test_what_a_fallback_refuses_may_be_right_for_the_first_when_it_has_rested():
    async with EvilUpstream(status(503), as_asked("openai-chat")) as one, EvilUpstream(status(400)) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")], retries=1)
        async with gateway(config) as running:
            answer = await asked(running)
    assert (answer.status, len(one.requests), len(two.requests)) == (200, 2, 1)


async def test_an_upstream_that_rests_is_asked_what_only_a_fallback_refuses():
    busy = status(429, headers={"Retry-After": "60"})
    async with (
        EvilUpstream(busy, as_asked("openai-chat")) as one,
        EvilUpstream(as_asked("openai-chat"), status(400)) as two,
    ):
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")])
        async with gateway(config) as running:
            for _ in range(2):
                assert (await asked(running)).status == 200
    assert (len(one.requests), len(two.requests)) == (2, 2)


@pytest.mark.parametrize("wanted_s", [30, 600], ids=["more than the backoff", "more than the route allows"])
async def test_one_that_wants_to_be_left_alone_does_not_hold_up_another_that_may_answer(wanted_s):
    limited = status(429, headers={"Retry-After": str(wanted_s)})
    async with EvilUpstream(limited) as one, EvilUpstream(status(503), as_asked("openai-chat")) as two:
        config = config_of([upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")], retries=1)
        async with gateway(config) as running, asyncio.timeout(20):
            answer = await asked(running)
    assert (answer.status, len(one.requests), len(two.requests)) == (200, 1, 2)


@pytest.mark.parametrize(("choice", "texts"), [("report", 1), ("next", 2)])
async def test_an_ignored_tool_choice_is_counted_and_the_next_may_be_asked(choice, texts):
    heedless, heeding = whole("openai-chat", NO_CALLS), as_asked("openai-chat")
    async with EvilUpstream(heedless) as one, EvilUpstream(heeding) as two:
        upstreams = [upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")]
        async with gateway(config_of(upstreams, on_tool_choice_ignored=choice)) as running:
            answer = await asked(running, "openai-chat", stream=False, tools=True, forced=True)
            assert answer.status == 200
            assert (await running.outcomes())["one", "tool_choice_ignored"] == 1
            assert len(await running.outcomes()) == texts
            calls = json.loads(answer.body)["choices"][0]["message"].get("tool_calls")
            assert bool(calls) == (choice == "next")


@pytest.mark.parametrize("code", [500, 400, 413])
async def test_an_answer_that_ignored_the_tool_choice_is_better_than_none(code):
    async with EvilUpstream(whole("openai-chat", NO_CALLS)) as one, EvilUpstream(status(code)) as two:
        upstreams = [upstream_at(one, "openai-chat"), upstream_at(two, "openai-chat", "two")]
        async with gateway(config_of(upstreams, on_tool_choice_ignored="next")) as running:
            answer = await asked(running, "openai-chat", stream=False, tools=True, forced=True)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "no"
    assert (len(one.requests), len(two.requests)) == (1, 1)


async def test_five_models_two_calls_two_texts_a_404_and_a_429_are_each_counted():
    text = whole("openai-chat", NO_CALLS)
    call = whole("openai-chat")
    refused, busy = status(404, body=NO_TOOLS), status(429)
    async with (
        EvilUpstream(call, text, call, text, refused, busy) as evil,
        gateway(config_of([upstream_at(evil, "openai-chat")])) as running,
    ):
        answers = [await asked(running, stream=False, tools=True, model=f"m{n}") for n in range(6)]
        assert [answer.status for answer in answers] == [200, 200, 200, 200, 404, 429]
        assert {outcome: times for (_, outcome), times in (await running.outcomes()).items()} == {
            "success": 2,
            "answered": 2,
            "http_404": 1,
            "http_429": 1,
        }
        assert running.counted("tool_calls_total", verdict="complete") == 2


async def test_keep_alives_go_out_while_upstreams_are_tried_and_the_next_one_still_answers():
    async with (
        EvilUpstream(FAULTS["silence before headers"]("openai-chat")) as silent,
        EvilUpstream(as_asked("openai-chat")) as sound,
    ):
        upstreams = [upstream_at(silent, "openai-chat"), upstream_at(sound, "openai-chat", "two")]
        async with gateway(config_of(upstreams, server={"keep_alive_s": 0.1})) as running:
            answer = await asked(running)
    assert answer.body.startswith(b"event: ping\n")
    assert answer.body.endswith(b'data: {"type":"message_stop"}\n\n')
    assert answer.body.count(b"message_start") == 2  # the event's name and its type


async def test_a_client_that_leaves_while_upstreams_are_tried_ends_the_trying():
    async with (
        EvilUpstream(FAULTS["silence before headers"]("openai-chat")) as silent,
        gateway(config_of([upstream_at(silent, "openai-chat")], retries=5)) as running,
    ):
        asking_task = asyncio.create_task(asked(running))
        request = await silent.request(0)
        asking_task.cancel()
        await request.left()
        await asyncio.gather(asking_task, return_exceptions=True)
    assert len(silent.requests) == 1


@pytest.mark.parametrize(
    ("kind", "message", "lacking"),
    [
        ("not_found", "No endpoints found that support tool use", True),
        ("invalid_request", "registry.ollama.ai/library/gemma:2b does not support tools", True),
        ("invalid_request", "`tools` is not supported with this model", True),
        ("invalid_request", "Function calling is not enabled for models/x", True),
        ("not_found", "The model `x` does not exist", False),
        ("invalid_request", "tool_choice is not supported with this model", False),
        ("invalid_request", "the tool 'x' has no description", False),
        ("invalid_request", "tools[0].function.name: required", False),
        ("server", "does not support tools", False),
    ],
)
def test_what_upstreams_say_who_have_no_tools(kind, message, lacking):
    assert lacks_tools(ProviderFailed(kind, message)) is lacking


def test_what_is_the_upstreams_own_may_go_better_elsewhere():
    better = {
        "auth",
        "billing",
        "permission",
        "not_found",
        "rate_limit",
        "server",
        "unavailable",
        "timeout",
        "truncated",
    }
    for kind in (*better, "invalid_request", "too_large"):
        assert may_do_better(ProviderFailed(kind, "no")) is (kind in better)


def test_the_scripts_speak_as_they_should():
    assert said("openai-chat").text in b"".join(speech("openai-chat", whole=True)).decode()
