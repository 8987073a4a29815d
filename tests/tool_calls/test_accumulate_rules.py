"""Rules of the accumulator that meet where streams are broken: calls said again, ids that come late, doubts, failures, ends."""

from __future__ import annotations

from typing import Any

import pytest

from streamkit.errors import NeedsRepair, StreamArgumentsTooLong
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Opaque,
    ProviderFailed,
    ResponseStarted,
    StopReasonSeen,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallFinished,
    ToolCallStarted,
    ToolCallsWhole,
    UsageReported,
)
from streamkit.limits import Limits
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator


def d(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None, **rest: Any
) -> ToolCallDelta:
    return ToolCallDelta(index, id, name, arguments, **rest)


def machine_of(policy: Policy = TOLERANT) -> ToolCallAccumulator:
    report = StreamReport()
    made = iter(range(9))
    return ToolCallAccumulator(report=report, policy=policy, make_id=lambda prefix: f"{prefix}{next(made)}")


def fed(*events: Any, policy: Policy = TOLERANT) -> tuple[list[Any], dict[str, int]]:
    """What comes of events, one at a time, and the repairs."""
    machine = machine_of(policy)
    out = [event for event in events for event in machine.feed([event])] + machine.finish()
    assert machine.fault is None
    return out, dict(machine.report.repairs)


def calls(out: list[Any]) -> list[tuple[str, str, str]]:
    return [(event.id, event.name, event.arguments) for event in out if type(event) is ToolCallFinished]


ONE, END_ONE = d(0, "a", "f", '{"x":1}'), ToolCallEnded(0)
STOP = StopReasonSeen("tool_calls", "tool_calls")
FAILURE = ProviderFailed("server", "no")


# -- a call that is said again -----------------------------------------------------------------------------------------


def test_a_call_that_comes_again_in_fragments_with_its_id_is_one_call():
    again = [d(1, "a", "f"), d(1, "a", None, '{"x":'), d(1, None, None, "1}"), ToolCallEnded(1)]
    out, repairs = fed(ONE, END_ONE, *again, STOP)
    assert calls(out) == [("a", "f", '{"x":1}')]
    assert repairs == {"id_repeated": 1, "arguments_repeated": 1}


def test_a_call_that_comes_again_at_its_own_index_is_one_call():
    again = [d(0, "a", "f"), d(0, None, None, '{"x":'), d(0, None, None, "1}"), END_ONE]
    out, repairs = fed(ONE, END_ONE, *again, STOP)
    assert (calls(out), repairs) == ([("a", "f", '{"x":1}')], {"arguments_repeated": 1})


def test_a_call_that_comes_again_in_fragments_that_repeat_themselves_is_one_call():
    again = [d(1, "a", "f", '{"x"'), d(1, None, None, '{"x":1}'), ToolCallEnded(1)]
    out, repairs = fed(ONE, END_ONE, *again, STOP)
    assert calls(out) == [("a", "f", '{"x":1}')]
    assert repairs == {"arguments_cumulative": 1, "arguments_repeated": 1}


@pytest.mark.parametrize("text", ['{"x":1}', None])
def test_nothing_waits_for_a_whole_call_that_is_sent_again(text):
    whole = d(0, "a", "f", text, snapshot=True)
    machine = machine_of()
    for event in (whole, END_ONE, whole):
        machine.feed([event])
    assert [event.id for event in machine.feed([d(1, "b", "g", '{"y":')]) if type(event) is ToolCallStarted] == ["b"]
    assert machine.report.repairs == {"arguments_repeated": 1}


def test_a_whole_call_with_other_text_of_that_length_is_another_call():
    out, repairs = fed(
        d(0, "a", "f", '{"x":1}', snapshot=True), END_ONE, d(0, "a", "f", '{"x":2}', snapshot=True), STOP
    )
    assert calls(out) == [("a", "f", '{"x":1}'), ("call_0", "f", '{"x":2}')]
    assert repairs["id_duplicate"] == 1


def test_a_call_that_repeats_another_leaves_those_that_came_since_in_their_place():
    events = [ONE, END_ONE, d(1, "a", "f"), d(2, "b", "g", '{"y":2}'), d(1, None, None, '{"x":1}'), ToolCallEnded(1)]
    out, _ = fed(*events, STOP)
    assert calls(out) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_behind_a_call_that_repeats_an_open_one_text_without_an_index_is_the_open_ones():
    out, repairs = fed(ONE, d(1, "a", "f", '{"x":1}'), ToolCallEnded(1), d(None, None, None, " "), STOP)
    assert calls(out) == [("a", "f", '{"x":1} ')]
    assert "call_nameless" not in repairs


def test_a_call_that_began_to_repeat_another_and_was_not_ended_is_a_call():
    out, _ = fed(ONE, END_ONE, d(1, "a", "f", '{"x"'), STOP)
    assert calls(out) == [("a", "f", '{"x":1}'), ("call_0", "f", '{"x"')]


# -- names, extras, text -----------------------------------------------------------------------------------------------


def test_a_name_behind_text_that_is_held_is_no_piece_of_a_name():
    out, repairs = fed(d(0, "a", "f", '{"x":', snapshot=True), d(0, "a", "g"), STOP)
    assert [name for _, name, _ in calls(out)] == ["f"]
    assert repairs["name_changed"] == 1


def test_an_id_that_is_not_known_keeps_an_object_from_being_split_off():
    split = Policy(two_objects="split")
    assert len(calls(fed(ONE, d(0, None, None, '{"y":2}'), STOP, policy=split)[0])) == 2
    assert len(calls(fed(ONE, d(0, "other", None, '{"y":2}'), STOP, policy=split)[0])) == 1


@pytest.mark.parametrize("more", [0, 1, 3, 20])
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"signature": Opaque("google", "late")}, ("late:signature", "late")),
        ({"extras": {"caller": 1}}, ("late:caller", 1)),
    ],
)
def test_what_else_a_fragment_says_behind_the_start_is_kept_aside_in_reads_of_any_size(said, kept, more):
    machine = machine_of()
    machine.feed([d(0, "a", "f", '{"long":"')])
    machine.feed([d(0, None, None, "x")])
    out = machine.feed([*[d(0, None, None, "y")] * more, d(0, None, None, "z", **said)])
    assert [(event.type, event.raw) for event in out if type(event) is Aside] == [kept]


def test_text_behind_an_empty_object_is_handed_on_at_once():
    machine = machine_of()
    assert machine.feed([d(0, "a", "f", "{}")]) == []
    out = machine.feed([d(0, None, None, '{"x":')])
    assert [event.fragment for event in out if type(event) is ToolCallArguments] == ['{"x":']


@pytest.mark.parametrize(
    ("text", "whole", "repairs"),
    [("{ }", "{ }", {"arguments_repeated": 1}), ('{"":1}', '{"":1}', {"arguments_repeated": 1})],
)
def test_a_whole_text_as_a_fragment_again_adds_nothing(text, whole, repairs):
    out, counted = fed(d(0, "a", "f", text[:1]), d(0, None, None, text[1:]), d(0, None, None, text), STOP)
    assert (calls(out), counted) == ([("a", "f", whole)], repairs)


def test_an_empty_object_that_came_in_two_pieces_and_again_is_all_text_so_far():
    out, repairs = fed(d(0, "a", "f", "{"), d(0, None, None, "}"), d(0, None, None, "{}"), STOP)
    assert (calls(out), repairs) == ([("a", "f", "{}")], {"arguments_cumulative": 1})


def test_the_arguments_of_a_stream_have_one_limit_for_all_fragments():
    machine = ToolCallAccumulator(limits=Limits(stream_arguments_chars=30), report=StreamReport())
    for fragment in ('{"long":"', "x" * 10, "y" * 11):  # 30 characters
        machine.feed([d(0, "a", "f", fragment) if fragment[0] == "{" else d(0, None, None, fragment)])
        assert machine.fault is None
    machine.feed([d(0, None, None, "z")])
    assert isinstance(machine.fault, StreamArgumentsTooLong)


def test_a_doubt_is_settled_when_the_call_ends():
    out, repairs = fed(d(0, "a", "f", '{"a":'), d(0, None, None, '{"a":1}'), END_ONE, STOP)
    assert (calls(out), repairs) == ([("a", "f", '{"a":1}')], {"arguments_cumulative": 1})


def test_a_doubt_that_may_not_be_repaired_stays_as_it_came_where_the_input_failed():
    machine = machine_of(Policy(refuse_repairs=True))
    machine.feed([d(0, "a", "f", '{"a":')])
    machine.feed([d(0, None, None, '{"a":1}')])
    assert calls(machine.abandon()) == [("a", "f", '{"a":{"a":1}')]


def test_behind_a_run_of_fragments_text_without_an_index_is_the_last_ones():
    starts = [d(index, f"id{index}", "f", '{"long":"') for index in range(3)]
    machine = machine_of()
    for event in starts:
        machine.feed([event])
    machine.feed([d(0, None, None, "x"), d(1, None, None, "y"), d(2, None, None, "z")])
    machine.feed([d(index, None, None, f"w{index}") for index in (0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2)])
    out = machine.feed([d(None, None, None, "!")])
    assert [(event.call, event.fragment) for event in out] == [(2, "!")]


# -- all calls once more -----------------------------------------------------------------------------------------------


def test_calls_said_once_more_are_found_by_ids_that_came_late():
    begun = [d(0, None, "f", "{"), d(1, None, "f", "{"), d(0, "x"), d(1, "y")]
    whole = ToolCallsWhole((d(0, "y", "f", '{"b":2}'), d(1, "x", "f", '{"a":1}')))
    assert [text for _, _, text in calls(fed(*begun, whole, STOP)[0])] == ['{"a":1}', '{"b":2}']


def test_calls_said_once_more_are_found_by_their_index():
    begun = [d(0, None, "f", "{"), d(1, None, "f", "{")]
    whole = ToolCallsWhole((d(1, None, "f", '{"b":2}'), d(0, None, "f", '{"a":1}')))
    assert [text for _, _, text in calls(fed(*begun, whole, STOP)[0])] == ['{"a":1}', '{"b":2}']


def test_a_call_without_text_is_found_by_having_none():
    begun = [d(0, "", "f"), d(1, "", "f", '{"c"')]
    whole = ToolCallsWhole((d(0, None, "f", '{"c":3}'), d(1, None, "f", None)))
    assert [text for _, _, text in calls(fed(*begun, whole, STOP)[0])] == ["", '{"c":3}']


def test_each_call_that_is_only_said_at_the_end_is_a_call():
    wholes = [d(n, name, "f", f'{{"n":{n}}}') for n, name in enumerate("abcd")]
    begun = [d(0, "a", "f", '{"n":0}'), d(1, "b", "f", '{"n":1}')]
    out, repairs = fed(*begun, ToolCallsWhole(tuple(wholes)), STOP)
    assert calls(out) == [(name, "f", f'{{"n":{n}}}') for n, name in enumerate("abcd")]
    assert repairs == {}


def test_a_call_said_once_more_keeps_the_name_and_the_id_with_which_it_began():
    out, _ = fed(d(0, "a", "f", '{"x":'), ToolCallsWhole((d(0, "a", "other", '{"x":1}'),)), STOP)
    assert calls(out) == [("a", "f", '{"x":1}')]
    out, _ = fed(d(0, None, "f", '{"x":'), ToolCallsWhole((d(0, "real", "f", '{"x":1}'),)), STOP)
    assert calls(out) == [("call_0", "f", '{"x":1}')]


# -- failures and ends -------------------------------------------------------------------------------------------------


def test_fragments_behind_a_failure_are_counted_and_not_handed_on():
    machine = machine_of()
    machine.feed([d(0, "a", "f", '{"long":"'), FAILURE])
    assert machine.feed([d(0, None, None, f"x{n}") for n in range(12)]) == []
    assert machine.report.repairs == {"after_error": 12}


def test_a_choice_behind_a_failure_is_none():
    machine = machine_of()
    machine.feed([FAILURE])
    assert machine.feed([ChoiceStarted(1)]) == []


def test_a_repair_that_is_refused_at_the_end_is_a_fault_but_where_the_input_failed():
    for fails in False, True:
        machine = machine_of(Policy(refuse_repairs=True))
        machine.feed([d(0, "a", None, '{"x":1}')])
        if fails:
            machine.abandon()
            assert machine.fault is None
        else:
            machine.finish()
            assert isinstance(machine.fault, NeedsRepair)


@pytest.mark.parametrize("behind", [[d(0, "a", None, '{"x":1}')], [FAILURE]])
def test_an_input_that_fails_behind_the_stop_reason_of_a_failed_turn_has_no_end(behind):
    machine = machine_of()
    for event in (*behind, STOP):
        machine.feed([event])
    assert not any(isinstance(event, StreamEnded) for event in machine.abandon())
    assert not machine.report.clean


def test_the_model_has_spoken_with_its_first_text_and_not_before():
    machine = machine_of()
    machine.feed([ResponseStarted("r")])
    assert not machine.report.spoken
    machine.feed([ResponseStarted("r"), TextDelta("a")])
    assert machine.report.spoken


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([TextDelta("a")], True),
        ([TextDelta("a"), STOP], True),
        ([d(0, "a", "name", "{")], True),
        ([STOP], None),
        ([UsageReported(1)], None),
    ],
)
def test_a_report_says_whether_the_model_said_something_since_it_was_asked_last(events, said):
    machine = machine_of()
    machine.feed([TextDelta("before")])
    machine.report.has_output = None
    machine.feed(events)
    assert machine.report.has_output is said
