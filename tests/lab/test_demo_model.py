"""What the demo model says to which request: events, before they are a server's answer."""

from __future__ import annotations

from itertools import chain

import orjson
import pytest

from streamkit.dialects import dialect_named
from streamkit.errors import BadRequest
from streamkit.events import ReasoningDelta, StopReasonSeen, TextDelta, ToolCallDelta, UsageReported
from streamkit.lab.demo_model import DELTAS, EXCERPT_CHARS, RESULTS, answer, recording
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.testing import drive_machine
from streamkit.translation.bodies import decode_request
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

NAMES = ["text", "calls", "results"]


def said(*, reasons: bool = False, **body):
    return answer(decode_request(orjson.dumps(asking(**body)), "openai-chat"), reasons=reasons)


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_in(events):
    """Name and argument text by index."""
    calls = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            name, text = calls.get(event.index, ("", ""))
            calls[event.index] = name + (event.name or ""), text + (event.arguments or "")
    return list(calls.values())


def stop_of(events):
    [seen] = [event for event in events if isinstance(event, StopReasonSeen)]
    return seen.reason


def usage_of(events):
    [usage] = [event for event in events if isinstance(event, UsageReported)]
    return usage


def prompt_tokens(**body):
    return usage_of(said(**body)).input_total


# -- recordings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_a_stream_as_it_should_be(name, request):
    path = request.config.rootpath / "streamkit" / "lab" / "demo_recordings" / f"{name}.sse"
    assert violations(path.read_bytes(), "openai-chat") == ()
    dialect, report = dialect_named("openai-chat"), StreamReport()
    machines = Chain(dialect.parser(DEFAULT_LIMITS, report), dialect.decoder(DEFAULT_LIMITS, report))
    assert [*chain(*drive_machine(machines, [path.read_bytes()]))] == list(recording(name))
    assert not report.repairs


@pytest.mark.parametrize("name", NAMES)
def test_a_recordings_own_counts_are_of_deltas(name):
    events = recording(name)
    usage = usage_of(events)
    assert usage.output_total == sum(isinstance(event, DELTAS) for event in events)
    assert usage.output_reasoning == sum(isinstance(event, ReasoningDelta) for event in events) > 0


def test_the_recorded_calls_interleave():
    order = [event.index for event in recording("calls") if isinstance(event, ToolCallDelta) and event.arguments]
    assert order[:6] == [0, 1, 0, 1, 0, 1]
    assert [name for name, _ in calls_in(recording("calls"))] == ["get_weather", "get_time"]


def test_one_delta_stands_for_the_results():
    assert [text_of([event]).strip() for event in recording("results")].count(RESULTS) == 1


# -- what is said ------------------------------------------------------------------------------------------------------

WEATHER_CALL, TIME_CALL = ("get_weather", '{"city":"Reykjavík","days":2}'), ("get_time", '{"zone":"UTC"}')
THE_TIME = {"type": "function", "function": {"name": "get_time"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [THE_TIME]}}
RESULTS_READ = [HELLO, ASSISTANT_CALLS, RESULT]
#: What is asked, and which calls are made; without one the recorded text is said.
CALLED = {
    "no tools": ({}, []),
    "text is wanted": ({"response_format": {"type": "text"}}, []),
    "one tool": ({"tools": [WEATHER]}, [WEATHER_CALL]),
    "the first two of three": ({"tools": [WEATHER, TIME, function("third", {})]}, [WEATHER_CALL, TIME_CALL]),
    "without parameters": ({"tools": [{"type": "function", "function": {"name": "now"}}]}, [("now", "{}")]),
    "no functions": ({"tools": [custom("shell")]}, []),
    "one function": ({"tools": [custom("shell"), TIME]}, [TIME_CALL]),
    "a choice of none": ({"tools": [WEATHER], "tool_choice": "none"}, []),
    "a tool that can't be called, and none": ({"tools": [function("x", {"$ref": "#/none"})], "tool_choice": "none"}, []),
    "a forced tool": ({"tools": [WEATHER, TIME], "tool_choice": THE_TIME}, [TIME_CALL]),
    "allowed tools": ({"tools": [WEATHER, TIME], "tool_choice": ALLOWED}, [TIME_CALL]),
    "one at a time": ({"tools": [WEATHER, TIME], "parallel_tool_calls": False}, [WEATHER_CALL]),
    "required behind results": (
        {"messages": RESULTS_READ, "tools": [WEATHER], "tool_choice": "required"}, [WEATHER_CALL]
    ),
    "the user goes on": (
        {"messages": [*RESULTS_READ, {"role": "assistant", "content": "12 °C."}, HELLO], "tools": [WEATHER]},
        [WEATHER_CALL],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "calls"), CALLED.values(), ids=CALLED)
def test_which_tools_are_called(body, calls):
    events = said(**body)
    assert (calls_in(events), stop_of(events)) == (calls, "tool_calls" if calls else "stop")
    assert text_of(events) == text_of(recording("calls" if calls else "text"))


def test_it_thinks_only_where_its_model_does():
    assert not [event for event in said() if isinstance(event, ReasoningDelta)]
    thought = [event for event in said(reasons=True) if isinstance(event, ReasoningDelta)]
    assert thought == [event for event in recording("text") if isinstance(event, ReasoningDelta)]


def test_arguments_come_in_fragments_that_interleave():
    events = said(tools=[WEATHER, TIME])
    fragments = [event.index for event in events if isinstance(event, ToolCallDelta) and event.arguments]
    assert fragments[:4] == [0, 1, 0, 1]
    events = said(tools=[{"type": "function", "function": {"name": "now"}}])
    assert [event.arguments for event in events if isinstance(event, ToolCallDelta)] == ["", "{", "}"]


def test_calls_have_ids_that_no_other_answer_has():
    def ids():
        return [event.id for event in said(tools=[WEATHER, TIME]) if isinstance(event, ToolCallDelta) and event.id]

    first, second = ids(), ids()
    assert len({*first, *second}) == 4
    assert all(made.startswith("call_") for made in first)


# -- results -----------------------------------------------------------------------------------------------------------

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
#: What stands behind the user's question, and what is said of it.
READ_BACK = {
    "two results": (
        [ASSISTANT_CALLS, RESULT, result_of("call_2", "Sunday")], "get_weather said “12 °C, rain”, get_time said “Sunday”."
    ),
    # Claude Code sends reminders behind its results; who calls tools again then loops for ever.
    "with a user's words behind": ([ASSISTANT_CALLS, RESULT, {"role": "user", "content": "A reminder."}], "12 °C"),
    "of no call and without text": (
        [ASSISTANT_CALLS, {**result_of("call_9", ""), "content": [IMAGE]}], "a tool said nothing that is text."
    ),
}  # fmt: skip


@pytest.mark.parametrize(("messages", "words"), READ_BACK.values(), ids=READ_BACK)
def test_results_are_read_back_with_the_names_of_their_tools(messages, words):
    events = said(messages=[HELLO, *messages], tools=[WEATHER, TIME])
    assert words in text_of(events)
    assert RESULTS not in text_of(events)
    assert (stop_of(events), calls_in(events)) == ("stop", [])


def test_of_a_long_result_the_beginning_is_read_back():
    text = text_of(said(messages=[HELLO, ASSISTANT_CALLS, result_of("call_1", "rain \n" * 10_000)], tools=[WEATHER]))
    [excerpt] = [part.partition("”")[0] for part in text.split("“")[1:]]
    assert excerpt.startswith("rain rain")
    assert len(excerpt) <= EXCERPT_CHARS


# -- documents ---------------------------------------------------------------------------------------------------------


def test_an_answer_that_shall_be_json_is_an_object_and_matches_its_schema():
    schema = {"type": "object", "required": ["steps"], "properties": {"steps": {"type": "integer", "minimum": 3}}}
    form = {"type": "json_schema", "json_schema": {"name": "plan", "schema": schema}}
    assert orjson.loads(text_of(said(response_format=form))) == {"steps": 3}
    assert isinstance(orjson.loads(text_of(said(response_format={"type": "json_object"}))), dict)


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_counts_are_of_words_and_deltas():
    events = said(reasons=True, messages=[HELLO, ASSISTANT_CALLS, RESULT])
    usage = usage_of(events)
    assert usage.output_total == sum(isinstance(event, DELTAS) for event in events)
    assert usage.output_reasoning == sum(isinstance(event, ReasoningDelta) for event in events)
    assert usage.total == usage.input_total + usage.output_total
    assert prompt_tokens() == len(HELLO["content"].split())
    assert prompt_tokens(messages=[HELLO, HELLO]) == 2 * prompt_tokens()


@pytest.mark.parametrize("most", [1, 5, 59])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_bound_on_tokens_cuts_the_answer_there(most, name):
    events = said(**{name: most})
    assert text_of(recording("text")).startswith(text_of(events))
    assert usage_of(events).output_total == most
    assert stop_of(events) == "length"


@pytest.mark.parametrize("most", [60, 1000])
def test_an_answer_within_its_bound_is_whole(most):
    assert stop_of(said(max_tokens=most)) == "stop"
    assert text_of(said(max_tokens=most)) == text_of(recording("text"))


def test_a_call_is_cut_inside_its_arguments_but_never_before_them():
    whole = calls_in(said(tools=[WEATHER, TIME]))
    for most in range(1, usage_of(said(tools=[WEATHER, TIME])).output_total):
        events = said(tools=[WEATHER, TIME], max_tokens=most)
        assert stop_of(events) == "length"
        assert usage_of(events).output_total <= most
        for (name, arguments), (_, all_of_them) in zip(calls_in(events), whole, strict=False):
            assert name
            assert arguments
            assert all_of_them.startswith(arguments)


# -- requests that can't be --------------------------------------------------------------------------------------------

REFUSED = {
    "no model": ({"model": None}, "model: must be the name of a model"),
    "several choices": ({"n": 2}, "n: must be 1 for the demo model, not 2"),
    "no tokens": ({"max_tokens": 0}, "max_tokens: must be at least 1, not 0"),
    "no tokens, by the newer name": ({"max_completion_tokens": -1}, "max_completion_tokens: must be at least 1"),
    "a call without tools": ({"tool_choice": "required"}, "tool_choice: requires a call, but no function is offered"),
    "an unknown tool": (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "tool_choice: must name an offered function, not 'x'",
    ),
    "a tool that can't be called": (
        {"tools": [WEATHER, function("x", {"$ref": "#/none"})]},
        r"tools\[1\].function.parameters: no call can be made: the reference '#/none' is not in the schema",
    ),
    "a document that can't be": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": 1}}}},
        "response_format.json_schema.schema: no value can be made",
    ),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cant_be_is_an_error_with_its_place(body, why):
    with pytest.raises(BadRequest, match=why):
        said(**body)
