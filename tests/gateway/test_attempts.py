"""Choosing an upstream (S3): who is asked next, who is left alone, and when there is no more asking."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from attrs import frozen

from streamkit.events import ProviderFailed
from streamkit.gateway.reasons import DEFAULT_REASONS, lacks_tools, reasons_of
from streamkit.web.source import Timeouts
from tests.gateway.running import Leg, behind, in_turn, leg
from tests.web.evil import Play, Received
from tests.web.faults import FAULTS, TEXT, as_asked, good, refuse, status, whole

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
SOUND = as_asked("openai-chat")


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
    async with in_turn(script, leg(SOUND, timeouts=PATIENT)) as running:
        answer = await running.asked("anthropic", stream=stream)
        assert (answer.status, answer.end) == (200, "complete")
        assert TEXT.split()[0].encode() in answer.body
        assert await running.outcomes() == {("one", outcome): 1, ("two", "success"): 1}


async def test_an_answer_of_the_older_completions_api_is_an_error_that_names_it():
    """Its chunks look like Chat's, but their text is where Chat has none."""
    choice = {"index": 0, "text": "Hi", "finish_reason": "stop"}
    body = orjson.dumps({"id": "c", "object": "text_completion", "choices": [choice]})
    stream = good("openai-chat", [b"data: %b\n\n" % body, b"data: [DONE]\n\n"])
    for is_stream, script in ((True, stream), (False, whole("openai-chat", body))):
        async with in_turn(script) as running:
            answer = await running.asked("anthropic", stream=is_stream)
            assert answer.status == 502
            assert b"older Completions API" in answer.body
            assert await running.outcomes() == {("one", "not_this_dialect"): 1}


def busy(after_s: float, **values: Any) -> Play:
    return status(429, headers={"Retry-After": str(after_s)}, **values)


@frozen(kw_only=True)
class Order:
    """Upstreams, requests one after another, their statuses, and how many requests each upstream got."""

    legs: Sequence[Leg | Play]
    seen: Sequence[int]
    statuses: Sequence[int] = (200,)
    client: str = "anthropic"
    body: Mapping[str, Any] = {}
    how: Mapping[str, Any] = {}
    route: Mapping[str, Any] = {}
    outcomes: Mapping[tuple[str, str], int] | None = None
    #: Words and headers of the last answer.
    words: bytes = b""
    headers: Mapping[str, str] = {}


CLOSED = b"the connection to the upstream could not be opened: Connection refused"
TWO, FORCED = {"n": 2}, {"stream": False, "tools": True, "forced": True}
ORDERS = {
    "a request that is wrong is wrong everywhere": Order(
        legs=[status(400), SOUND], route={"retries": 3}, statuses=[400], seen=[1, 0]
    ),
    "a known lack of tools is not asked about": Order(
        legs=[leg(SOUND, tools=False)], how={"tools": True}, statuses=[400], seen=[0],
        words=b"no upstream of this model supports tools",
    ),
    "and is none for a request without": Order(legs=[leg(SOUND, tools=False)], seen=[1]),
    "a busy one is left alone while another is there": Order(legs=[busy(60), SOUND], statuses=[200] * 3, seen=[1, 3]),
    # What was asked for 600 s ago may hold no more, and nobody but the upstream knows.
    "where all rest, the one that wakes first is asked": Order(
        legs=[leg(busy(600), SOUND), leg(busy(300), SOUND)], statuses=[429, 200], seen=[1, 2]
    ),
    "for tools, one that rests rather than one that has none": Order(
        legs=[leg(busy(60), SOUND), status(404, body=NO_TOOLS)], how={"tools": True}, statuses=[429, 200], seen=[2, 1]
    ),
    # The one that may pass is told, not the one that will not.
    "rounds are bounded and the last failure is told": Order(
        legs=[status(503, message="busy here"), status(404)], client="openai-chat", route={"retries": 2},
        statuses=[503], seen=[3, 3], words=b"busy here", outcomes={("one", "http_503"): 3, ("two", "http_404"): 3},
    ),
    "what a fallback refuses may be right for the first when it has rested": Order(
        legs=[leg(status(503), SOUND), status(400)], route={"retries": 1}, seen=[2, 1]
    ),
    "each of several dead ones is named": Order(
        legs=[refuse(), status(404), refuse()], statuses=[502], seen=[0, 1, 0],
        words=b'one: %b; two: status 404; three: %b"' % (CLOSED, CLOSED),
    ),
    "a provider's own message stays alone": Order(legs=[status(503, message="busy here"), refuse()], client="openai-chat", statuses=[503], seen=[1, 0], words=b'says: busy here"'),
    "one that rests is asked what only a fallback refuses": Order(
        legs=[leg(busy(60), SOUND), leg(SOUND, status(400))], statuses=[200, 200], seen=[2, 2]
    ),
    "a long rest does not hold up another": Order(
        legs=[busy(30), leg(status(503), SOUND)], route={"retries": 1}, seen=[1, 2]
    ),
    "nor one beyond what the route allows": Order(
        legs=[busy(600), leg(status(503), SOUND)], route={"retries": 1}, seen=[1, 2]
    ),
    **{
        f"what a dialect has no place for, {'streamed' if stream else 'whole'}": Order(
            legs=[leg(SOUND, dialect="anthropic"), SOUND], client="openai-chat", body=TWO, how={"stream": stream},
            seen=[0, 1], outcomes={("one", "request_unfit"): 1, ("two", "success"): 1},
        )
        for stream in (True, False)
    },
    "what nobody has a place for": Order(
        legs=[leg(SOUND, dialect="anthropic"), leg(SOUND, dialect="ollama")], client="openai-chat", body=TWO,
        route={"retries": 3}, statuses=[400], seen=[0, 0], words=b'"message":"n: ',
        outcomes={("one", "request_unfit"): 1, ("two", "request_unfit"): 1},
    ),
    **{
        f"an ignored tool choice is better than {code}": Order(
            legs=[whole("openai-chat", NO_CALLS), status(code)], client="openai-chat", how=FORCED,
            route={"next_on": ("tool_choice_ignored",)}, seen=[1, 1], words=b'"content":"no"',
        )
        for code in (500, 400, 413)
    },
    **{
        f"a longer wait than the route allows is {client}'s to know": Order(
            legs=[busy(77)], client=client, route={"retries": 2, "retry_after_max_s": 1}, statuses=[429], seen=[1],
            headers={"retry-after": "77"},
        )
        for client in CLIENTS
    },
    # The second time the first rests, and is asked since nobody else can say.
    **{
        f"a fallback's {code} does not hide from {client} that the first was only busy": Order(
            legs=[busy(77, message="busy here"), status(code)], client=client, statuses=[429, 429], seen=[2, 2],
            words=b"busy here", headers={"retry-after": "77"},
        )
        for client in CLIENTS
        for code in (400, 413, 422)
    },
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_who_is_asked(order):
    async with in_turn(*order.legs, **order.route) as running, asyncio.timeout(20):
        answers = [await running.asked(order.client, order.body, **order.how) for _ in order.statuses]
        assert ([answer.status for answer in answers], running.seen) == ([*order.statuses], order.seen)
        if order.outcomes is not None:
            assert await running.outcomes() == order.outcomes
    assert order.words in answers[-1].body
    assert order.headers.items() <= answers[-1].headers.items()


@pytest.mark.parametrize("fault", ["error mid-stream", "reset mid-line", "truncated chunked body"])
async def test_once_the_model_spoke_nobody_else_is_asked(fault):
    async with in_turn(FAULTS[fault]("openai-chat"), SOUND) as running:
        answer = await running.asked("anthropic")
    assert (answer.status, answer.end, running.seen) == (200, "complete", [1, 0])
    assert answer.body.count(b"event: message_start") == 1
    assert b"event: error" in answer.body
    assert b"message_stop" not in answer.body
    ours = fault != "error mid-stream"  # else the words are the upstream's
    assert answer.body.count(b"one: ") == ours


async def test_a_model_without_tools_is_remembered_and_passed_over_for_requests_with_tools_only():
    async with in_turn(leg(status(404, body=NO_TOOLS), SOUND), SOUND) as running:
        for tools, seen in (True, [1, 1]), (True, [1, 2]), (False, [2, 2]):
            assert (await running.asked("anthropic", tools=tools)).status == 200
            assert running.seen == seen
        assert (await running.outcomes())["one", "http_404"] == 1


async def test_retry_after_is_waited_for_and_then_the_upstream_answers():
    async with behind(busy(0.3), good("openai-chat"), retries=2) as running:
        answer = await running.asked("anthropic")
        first, second = running.evil.requests
    assert answer.status == 200
    assert second.received_at - first.received_at >= 0.3


async def test_what_one_model_said_is_remembered_of_that_model_only():
    def play(request: Received):
        model = request.json()["model"]
        if model == "small":
            return status(400, message="small does not support tools")
        return busy(60) if model == "busy" else good("openai-chat")

    async with in_turn(play, SOUND) as running:
        for model in ("small", "busy", "big", "small", "busy", "big"):
            assert (await running.asked("anthropic", tools=True, model=model)).status == 200
        assert [request.json()["model"] for request in running.evils[0].requests] == ["small", "busy", "big", "big"]


@pytest.mark.parametrize(("choice", "texts"), [("default", 1), ("tool_choice_ignored", 2)])
async def test_an_ignored_tool_choice_is_counted_and_the_next_may_be_asked(choice, texts):
    async with in_turn(whole("openai-chat", NO_CALLS), SOUND, next_on=(choice,)) as running:
        answer = await running.asked(**FORCED)
        assert answer.status == 200
        assert (await running.outcomes())["one", "tool_choice_ignored"] == 1
        assert len(await running.outcomes()) == texts
        calls = json.loads(answer.body)["choices"][0]["message"].get("tool_calls")
        assert bool(calls) == (choice != "default")


async def test_five_models_two_calls_two_texts_a_404_and_a_429_are_each_counted():
    text, call = whole("openai-chat", NO_CALLS), whole("openai-chat")
    async with behind(call, text, call, text, status(404, body=NO_TOOLS), status(429)) as running:
        answers = [await running.asked("anthropic", stream=False, tools=True, model=f"m{n}") for n in range(6)]
        assert [answer.status for answer in answers] == [200, 200, 200, 200, 404, 429]
        counts = {"success": 2, "answered": 2, "http_404": 1, "http_429": 1}
        assert await running.outcomes() == {("one", outcome): times for outcome, times in counts.items()}
        assert running.counted("tool_calls_total", verdict="complete") == 2


async def test_keep_alives_go_out_while_upstreams_are_tried_and_the_next_one_still_answers():
    silent = FAULTS["silence before headers"]("openai-chat")
    async with in_turn(silent, SOUND, server={"keep_alive_s": 0.1}) as running:
        answer = await running.asked("anthropic")
    assert answer.body.startswith(b"event: ping\n")
    assert answer.body.endswith(b'data: {"type":"message_stop"}\n\n')
    assert answer.body.count(b"message_start") == 2  # the event's name and its type


async def test_a_client_that_leaves_while_upstreams_are_tried_ends_the_trying():
    async with behind(FAULTS["silence before headers"]("openai-chat"), retries=5) as running:
        asking_task = asyncio.create_task(running.asked("anthropic"))
        request = await running.evil.request(0)
        asking_task.cancel()
        await request.left()
        await asyncio.gather(asking_task, return_exceptions=True)
    assert running.seen == [1]


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
        *["auth", "billing", "permission", "not_found", "rate_limit", "server", "unavailable", "timeout", "truncated"]
    }
    for kind in (*better, "invalid_request", "too_large"):
        reasons = reasons_of(ProviderFailed(kind, "no"))
        assert DEFAULT_REASONS.isdisjoint(reasons) == (kind not in better)
