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
    assert [text_of([event]).strip() for event in recording("results") if text_of([event]).strip() == RESULTS] == [
        RESULTS
    ]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_without_tools_it_is_the_recorded_text():
    assert text_of(said()) == text_of(recording("text"))
    assert stop_of(said()) == "stop"


def test_it_thinks_only_where_its_model_does():
    assert not [event for event in said() if isinstance(event, ReasoningDelta)]
    thought = [event for event in said(reasons=True) if isinstance(event, ReasoningDelta)]
    assert thought == [event for event in recording("text") if isinstance(event, ReasoningDelta)]


def test_one_tool_is_called_once():
    events = said(tools=[WEATHER])
    assert calls_in(events) == [("get_weather", '{"city":"Reykjavík","days":2}')]
    assert stop_of(events) == "tool_calls"
    assert text_of(events)


def test_the_first_two_tools_are_called_at_once():
    events = said(tools=[WEATHER, TIME, function("third", {})])
    assert calls_in(events) == [("get_weather", '{"city":"Reykjavík","days":2}'), ("get_time", '{"zone":"UTC"}')]
    fragments = [event.index for event in events if isinstance(event, ToolCallDelta) and event.arguments]
    assert fragments[:4] == [0, 1, 0, 1]


def test_a_tool_without_parameters_is_called_with_an_empty_object():
    events = said(tools=[{"type": "function", "function": {"name": "now"}}])
    assert calls_in(events) == [("now", "{}")]
    assert [event.arguments for event in events if isinstance(event, ToolCallDelta)] == ["", "{", "}"]


def test_calls_have_ids_that_no_other_answer_has():
    def ids():
        return [event.id for event in said(tools=[WEATHER, TIME]) if isinstance(event, ToolCallDelta) and event.id]

    first, second = ids(), ids()
    assert len({*first, *second}) == 4
    assert all(made.startswith("call_") for made in first)


def test_tools_that_are_no_functions_are_not_called():
    assert text_of(said(tools=[custom("shell")])) == text_of(recording("text"))
    assert [name for name, _ in calls_in(said(tools=[custom("shell"), TIME]))] == ["get_time"]


# -- the choice among tools --------------------------------------------------------------------------------------------


def test_a_choice_of_none_gets_text():
    assert text_of(said(tools=[WEATHER], tool_choice="none")) == text_of(recording("text"))


def test_a_forced_tool_is_the_only_one_called():
    forced = {"type": "function", "function": {"name": "get_time"}}
    assert [name for name, _ in calls_in(said(tools=[WEATHER, TIME], tool_choice=forced))] == ["get_time"]


def test_allowed_tools_are_the_only_ones_called():
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_time"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    assert [name for name, _ in calls_in(said(tools=[WEATHER, TIME], tool_choice=choice))] == ["get_time"]


def test_without_parallel_calls_there_is_one():
    assert len(calls_in(said(tools=[WEATHER, TIME], parallel_tool_calls=False))) == 1


def test_a_required_call_comes_after_results_too():
    events = said(messages=[HELLO, ASSISTANT_CALLS, RESULT], tools=[WEATHER], tool_choice="required")
    assert [name for name, _ in calls_in(events)] == ["get_weather"]


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_are_read_back_with_the_names_of_their_tools():
    messages = [HELLO, ASSISTANT_CALLS, RESULT, result_of("call_2", "Sunday")]
    events = said(messages=messages, tools=[WEATHER, TIME])
    assert "get_weather said “12 °C, rain”, get_time said “Sunday”." in text_of(events)
    assert RESULTS not in text_of(events)
    assert stop_of(events) == "stop"


def test_results_with_a_users_words_behind_them_are_read_back_too():
    """Claude Code sends reminders behind its results; who calls tools again then loops for ever."""
    messages = [HELLO, ASSISTANT_CALLS, RESULT, {"role": "user", "content": "A reminder."}]
    assert "12 °C" in text_of(said(messages=messages, tools=[WEATHER]))


def test_tools_are_called_again_when_the_user_goes_on():
    messages = [HELLO, ASSISTANT_CALLS, RESULT, {"role": "assistant", "content": "12 °C."}, HELLO]
    assert calls_in(said(messages=messages, tools=[WEATHER]))


def test_of_a_long_result_the_beginning_is_read_back():
    text = text_of(said(messages=[HELLO, ASSISTANT_CALLS, result_of("call_1", "rain \n" * 10_000)], tools=[WEATHER]))
    [excerpt] = [part.partition("”")[0] for part in text.split("“")[1:]]
    assert excerpt.startswith("rain rain")
    assert len(excerpt) <= EXCERPT_CHARS


def test_a_result_of_no_call_and_without_text_is_read_back_as_such():
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    text = text_of(said(messages=[HELLO, ASSISTANT_CALLS, {**result_of("call_9", ""), "content": [image]}]))
    assert "a tool said nothing that is text." in text


# -- documents ---------------------------------------------------------------------------------------------------------


def test_an_answer_of_a_schema_matches_it():
    schema = {"type": "object", "required": ["steps"], "properties": {"steps": {"type": "integer", "minimum": 3}}}
    form = {"type": "json_schema", "json_schema": {"name": "plan", "schema": schema}}
    assert orjson.loads(text_of(said(response_format=form))) == {"steps": 3}


def test_an_answer_that_shall_be_json_is_an_object():
    assert isinstance(orjson.loads(text_of(said(response_format={"type": "json_object"}))), dict)


def test_an_answer_that_shall_be_text_is_the_recording():
    assert text_of(said(response_format={"type": "text"})) == text_of(recording("text"))


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
    assert (
        text_of(events)
        == "".join(event.text for event in recording("text") if isinstance(event, TextDelta))[: len(text_of(events))]
    )
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
    "no model": ({"model": None}, "model: the name of a model is needed"),
    "several choices": ({"n": 2}, "n: the demo model gives one choice, not 2"),
    "no tokens": ({"max_tokens": 0}, "max_tokens: at least 1 is needed, not 0"),
    "no tokens, by the newer name": ({"max_completion_tokens": -1}, "max_completion_tokens: at least 1"),
    "a call without tools": (
        {"tool_choice": "required"},
        "tool_choice: a call is required, and no function is offered",
    ),
    "an unknown tool": (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "tool_choice: no function that is offered is called 'x'",
    ),
    "a tool that can't be called": (
        {"tools": [WEATHER, function("x", {"$ref": "#/none"})]},
        r"tools\[1\].function.parameters: no call can be made up: the reference '#/none' leads to nothing",
    ),
    "a document that can't be": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": 1}}}},
        "response_format.json_schema.schema: no answer can be made up",
    ),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cant_be_is_an_error_with_its_place(body, why):
    with pytest.raises(BadRequest, match=why):
        said(**body)


def test_a_tool_that_cant_be_called_hinders_no_answer_without_calls():
    tools = [function("x", {"$ref": "#/none"})]
    assert text_of(said(tools=tools, tool_choice="none")) == text_of(recording("text"))
