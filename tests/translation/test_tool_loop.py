"""The request with results: the model's turn as it was, a result for each call, and no request built on what was not said (seeds S3)."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.conversation.checks import check_pairing
from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import (
    Choice,
    Media,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Response,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.errors import UsageError
from streamkit.events import Aside, Opaque, ProviderFailed, Verdict
from streamkit.report import StreamReport
from streamkit.tool_calls.check import error_text
from streamkit.translation.tool_loop import mend_result, request_with_results
from tests.laws.running import every_stream
from tests.laws.running import read as read_stream

GOOD = Verdict("complete")
BAD = Verdict("malformed", "a comma without a key", 8)
ASKED = Turn("user", [Text("what is the weather?")])


def call(index, id, name="get_weather", arguments='{"city": "Oslo"}', verdict=GOOD, **rest):
    return ToolCall(index, id, name, arguments, verdict=verdict, **rest)


def first_leg(**rest):
    return Request("openai-chat", "m", [ASKED], [Tool("get_weather")], ToolChoice("auto"), **rest)


def response(*parts, dialect="openai-chat", clean=True, **rest):
    return Response(dialect, choices=[Choice(parts=list(parts), stop_reason="tool_calls")], clean=clean, **rest)


def test_the_model_s_turn_stays_as_it_was_and_the_results_follow():
    said = [
        Reasoning("so", "summary", Opaque("anthropic", "sig")),
        RedactedReasoning(Opaque("anthropic", "blob")),
        Text("I look.", signature=Opaque("google", "s")),
        call(0, "a", signature=Opaque("google", "t"), extras={"caller": 1}),
        Aside("anthropic", "server_tool", "server_tool_use", {"id": "s"}),
        call(1, "b", name="add", kind="custom", arguments="1 + 1"),
    ]
    request, answer = first_leg(), response(*said)
    before = deepcopy((request, answer))
    leg = request_with_results(request, answer, {"b": "2", "a": [Text("rain"), Media("image", data="AA==")]})
    assert (request, answer) == before
    assert leg.turns == [
        ASKED,
        Turn("assistant", said),
        Turn("user", [
            ToolResult("a", [Text("rain"), Media("image", data="AA==")], "get_weather"),
            ToolResult("b", [Text("2")], "add", kind="custom"),
        ]),
    ]  # fmt: skip
    assert (leg.model, leg.tools, leg.tool_choice) == (request.model, request.tools, request.tool_choice)
    check_pairing(leg)


def test_results_may_come_as_results():
    given_ = [ToolResult("b", [Text("2")], is_error=True, cache="short"), ToolResult("a", [], "other")]
    leg = request_with_results(first_leg(), response(call(0, "a"), call(1, "b")), given_)
    assert leg.turns[-1].parts == [
        ToolResult("a", [], "other"),
        ToolResult("b", [Text("2")], "get_weather", is_error=True, cache="short"),
    ]


def test_calls_are_answered_in_the_order_in_which_they_were_mentioned():
    leg = request_with_results(first_leg(), response(call(1, "b"), call(0, "a")), {"a": "1", "b": "2"})
    assert [part.id for part in leg.turns[1].parts] == ["b", "a"]
    assert [part.call_id for part in leg.turns[2].parts] == ["a", "b"]


def test_what_is_about_the_response_stays_behind():
    said = [
        Aside("openai", "logprobs", "logprobs", {}), Text(""), Refusal("no"), Aside("openai", "metadata", "timings", {}), call(0, "a"),
        Text("", signature=Opaque("google", "s")), Aside("openai", "citation", "annotation", {}),
    ]  # fmt: skip
    leg = request_with_results(first_leg(), response(*said), {"a": "1"})
    assert leg.turns[1].parts == [said[2], said[4], said[5], said[6]]


def test_a_bad_call_keeps_its_text_and_gets_an_error_that_says_what_to_mend():
    bad = call(1, "b", arguments='{"city":,}', verdict=BAD)
    leg = request_with_results(first_leg(), response(call(0, "a"), bad), {"a": "rain"})
    assert leg.turns[1].parts[1] is bad
    result = leg.turns[2].parts[1]
    assert result == mend_result(bad) == ToolResult("b", [Text(error_text(bad))], "get_weather", is_error=True)
    assert "not valid JSON: a comma without a key, at character 8" in result.text


def test_a_bad_call_s_own_result_stands():
    leg = request_with_results(first_leg(), response(call(0, "b", verdict=BAD)), {"b": "guessed"})
    assert leg.turns[2].parts == [ToolResult("b", [Text("guessed")], "get_weather")]


@pytest.mark.parametrize(
    ("answer", "results", "words"),
    [
        (response(call(0, "a"), call(1, "b"), call(2, "c")), {"b": ""}, "the results of the calls 'a', 'c' are missing"),
        (response(call(0, "a", verdict=None)), {}, "the results of the calls 'a' are missing"),
        (response(call(0, "a", verdict=Verdict("empty"))), [], "the results of the calls 'a' are missing"),
        (response(call(0, "a"), call(1, "b")), {"z": ""}, "there is no call 'z' for a result; the calls are 'a', 'b'"),
        (response(call(0, "a")), [ToolResult("a"), ToolResult("a")], "the call 'a' has two results"),
        (response(Text("no tools")), {}, "has no tool calls"),
        (response(call(0, "a"), clean=False), {"a": ""}, "incomplete, .* must not be run: it was truncated"),
        (response(call(0, "a"), clean=False, error=ProviderFailed("server", "out of memory")), {"a": ""}, "out of memory"),
        (Response("openai-chat", clean=True), {}, "no choice 0"),
    ],
)  # fmt: skip
def test_what_can_not_be_answered_is_the_caller_s_mistake(answer, results, words):
    with pytest.raises(UsageError, match=words):
        request_with_results(first_leg(), answer, results)


def test_another_choice_can_be_taken():
    answer = response(call(0, "a"))
    answer.choices.append(Choice(2, parts=[call(0, "z")]))
    assert request_with_results(first_leg(), answer, {"z": "1"}, choice=2).turns[1].parts == [call(0, "z")]
    with pytest.raises(UsageError, match="no choice 1"):
        request_with_results(first_leg(), answer, {"z": "1"}, choice=1)


def test_fields_of_another_dialect_than_the_request_s_are_a_counted_loss():
    aside = Aside("anthropic", "server_tool", "x", {})
    said = [
        Text("so", extras={"citations": []}),
        Refusal("no"),
        aside,
        call(0, "a", extras={"caller": 1, "toolset": 2}),
    ]
    report = StreamReport()
    leg = request_with_results(first_leg(), response(*said, dialect="anthropic"), {"a": "1"}, report=report)
    assert leg.turns[1].parts == [Text("so"), Refusal("no"), aside, call(0, "a")]
    assert report.lost == [("metadata", "citations"), ("metadata", "caller"), ("metadata", "toolset")]
    assert request_with_results(first_leg(), response(*said, dialect="anthropic"), {"a": "1"}) == leg


@given(
    st.lists(st.sampled_from([GOOD, BAD, Verdict("truncated"), Verdict("empty")]), min_size=1, max_size=5),
    st.booleans(),
)
def test_a_request_with_results_is_well_paired_and_so_is_the_next(verdicts, answered):
    request = first_leg()
    for leg in range(2):
        calls = [call(n, f"{leg}_{n}", verdict=verdict) for n, verdict in enumerate(verdicts)]
        good = {c.id: "1" for c in calls if answered or c.verdict.kind in {"complete", "empty"}}
        request = request_with_results(request, response(*calls), good)
        check_pairing(request)
    assert len(request.turns) == 5


@pytest.mark.parametrize("stream", every_stream("tool loop", ours=24))
def test_every_stream_with_calls_goes_on_with_results(stream):
    answer = collected(stream)
    request = Request(stream.dialect, turns=[ASKED])
    if not answer.tool_calls or not answer.clean:
        with pytest.raises(UsageError):
            request_with_results(request, answer, {})
        return
    leg = request_with_results(request, answer, {c.id: "ok" for c in answer.tool_calls})
    check_pairing(leg)
    said = leg.turns[1].parts
    assert [part for part in said if isinstance(part, ToolCall)] == [
        p for p in answer.choices[0].parts if isinstance(p, ToolCall)
    ]
    assert [part for part in answer.choices[0].parts if part in said] == said


def collected(stream):
    collector = Collector(stream.dialect, StreamReport())
    collector.feed(read_stream(stream.dialect, [stream.body]).events)
    return collector.finish()
