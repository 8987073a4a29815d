"""Calls that are said once more at the end, errors, and what a call can no longer be announced with."""

from __future__ import annotations

from typing import Any

import pytest

from streamkit.errors import MissingCallId
from streamkit.events import (
    Aside,
    LastFrameBroken,
    Opaque,
    ProviderFailed,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallFinished,
    ToolCallStarted,
    ToolCallsWhole,
    ToolCallWhole,
)
from streamkit.limits import Limits
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator, accumulate_tool_calls


def d(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None, **rest: Any
):
    return ToolCallDelta(index, id, name, arguments, **rest)


def fed(*events: Any) -> tuple[list[Any], StreamReport]:
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, make_id=lambda prefix: f"{prefix}made")
    out = [event for event in events for event in machine.feed([event])] + machine.finish()
    assert machine.fault is None
    return out, report


def calls(out: list[Any]) -> list[tuple[str, str, str]]:
    return [(event.id, event.name, event.arguments) for event in out if type(event) is ToolCallFinished]


ONE, TWO = d(0, "a", "f", '{"x":1}'), d(1, "b", "g", '{"y":2}')


@pytest.mark.parametrize(
    ("came", "again", "ended", "repairs"),
    [
        ([ONE, TWO], [d(0, "a", "f", '{"x":1}'), d(1, "b", "g", '{"y":2}')], [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], {}),
        # by its id, though indices and order are others
        ([ONE, TWO], [d(0, "b", "g", '{"y":2}'), d(1, "a", "f", '{"x":1}')], [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], {}),
        # by its text, where no id is said
        ([ONE, TWO], [d(0, None, None, '{"y":2}'), d(1, None, None, '{"x":1}')], [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], {}),
        # by its index: the rest of the text comes
        ([d(0, "a", "f", '{"x"'), TWO], [d(0, None, "f", '{"x":1}'), d(1, None, "g", '{"y":2}')],
         [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], {"fragments_missing": 1}),
        # by its name alone
        ([d(0, "a", "f", '{"x"'), d(1, "b", "g", '{"y"')], [d(4, None, "g", '{"y":2}'), d(5, None, "f", '{"x":1}')],
         [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], {"fragments_missing": 2}),
        # a name that another has is not taken for its own
        ([d(0, "a", "f", '{"x"')], [d(0, None, "g", '{"y":2}')], [("a", "f", '{"x"'), ("call_made", "g", '{"y":2}')], {"id_missing": 1}),
        # nor an id
        ([d(0, "a", "f", '{"x"')], [d(0, "b", "f", '{"x":2}')], [("a", "f", '{"x"'), ("b", "f", '{"x":2}')], {}),
        # a call that never came
        ([ONE], [d(0, "a", "f", '{"x":1}'), d(1, "c", "h", "{}")], [("a", "f", '{"x":1}'), ("c", "h", "{}")], {}),
        ([], [d(0, "a", "f", '{"x":1}')], [("a", "f", '{"x":1}')], {}),
        # its name and its id come with it
        ([d(0, None, None, '{"x":1}')], [d(0, "a", "f", '{"x":1}')], [("a", "f", '{"x":1}')], {}),
        ([d(0, "a", None, '{"x":1}')], [d(0, "a", "f", '{"x":1}')], [("a", "f", '{"x":1}')], {}),
        # text that differs from what was handed on stands aside
        ([ONE], [d(0, "a", "f", '{"x":3}')], [("a", "f", '{"x":1}')], {"whole_differs": 1}),
        ([ONE], [d(0, "a", "f", '{ "x" : 1 }')], [("a", "f", '{"x":1}')], {}),
        ([ONE], [d(0, "a", "f", "")], [("a", "f", '{"x":1}')], {}),
        ([ONE], [d(0, "a", "f", None)], [("a", "f", '{"x":1}')], {}),
    ],
)  # fmt: skip
def test_calls_that_are_said_once_more_are_those_that_came(came, again, ended, repairs):
    out, report = fed(*came, ToolCallsWhole(tuple(again)))
    assert calls(out) == ended
    assert dict(report.repairs) == repairs
    assert [event.call for event in out if type(event) is ToolCallStarted] == list(range(len(ended)))


def test_an_id_that_comes_with_the_second_saying_is_known_from_then_on():
    out, _ = fed(d(0, None, "f", None), ToolCallsWhole((d(0, "a", "f", '{"x"'),)), d(None, "a", None, ":1}"))
    assert calls(out) == [("a", "f", '{"x":1}')]


def test_calls_of_another_choice_are_not_said_again():
    out, _ = fed(ONE, ToolCallsWhole((d(0, "a", "f", '{"x":1}', choice=1),), choice=1))
    assert [(event.id, event.choice) for event in out if type(event) is ToolCallFinished] == [("a", 0), ("a", 1)]


def test_whole_text_that_differs_is_kept_once_with_its_call():
    _, report = fed(ONE, ToolCallWhole(0, '{"x":3}'), ToolCallWhole(0, '{"x":4}'))
    assert [(one.kind, one.id, one.name, one.arguments) for one in report.withheld] == [
        ("whole_differs", "a", "f", '{"x":3}')
    ]
    assert report.repairs == {"whole_differs": 1}


def test_an_ended_call_grows_no_more_by_what_is_said_once_more():
    out, report = fed(d(0, "a", "f", '{"x"'), ToolCallEnded(0), ToolCallWhole(0, '{"x":1}'))
    assert calls(out) == [("a", "f", '{"x"')]
    assert report.repairs == {"whole_differs": 1}


def test_text_set_aside_counts_among_all_arguments():
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, limits=Limits(stream_arguments_chars=13))
    machine.feed([d(0, "a", "f", '{"x":1}'), ToolCallEnded(0), d(0, None, None, "later!")])
    assert machine.fault is None
    machine.feed([d(0, None, None, "!")])
    assert "stream_arguments_chars = 13" in str(machine.fault)


def test_a_whole_call_sent_again_behind_its_end_is_told_from_late_text():
    _, report = fed(ONE, ToolCallEnded(0), d(0, None, None, '{"x":1}', snapshot=True))
    assert report.repairs == {"arguments_repeated": 1}
    _, report = fed(d(0, "a", "f"), ToolCallEnded(0), d(0, None, None, None, snapshot=True))
    assert report.repairs == {"arguments_repeated": 1}


def test_an_error_is_kept_and_each_event_behind_it_counted_by_its_name():
    failure = ProviderFailed("server", "broken")
    out, report = fed(ONE, failure, ProviderFailed("auth", "again"), d(0, None, None, "late"))
    assert report.failure is failure
    assert report.provider_error == ("server", "broken")
    assert report.repairs == {"after_error": 2}
    assert [(event.arguments, event.ended) for event in out if type(event) is ToolCallFinished] == [('{"x":1}', False)]


def test_an_end_that_says_the_call_is_not_whole_leaves_it_open_and_told():
    out, _ = fed(d(0, "a", "f"), ToolCallEnded(0, whole=False))
    started = next(event for event in out if type(event) is ToolCallStarted)
    assert started.cut
    assert not any(event.ended for event in out if type(event) is ToolCallFinished)


def test_members_and_signatures_that_come_too_late_are_told_with_their_vendor_and_choice():
    blob = Opaque("anthropic", "sealed")
    out, _ = fed(
        ResponseStarted("id", "model", vendor="anthropic"),
        d(0, "a", "f", '{"x":1}', choice=2, extras={"kept": 1}),
        d(0, None, None, None, choice=2, extras={"kept": 1, "caller": "me"}, signature=blob),
        d(0, None, None, None, choice=2, extras={"kept": 2}),
    )
    assert [event for event in out if type(event) is Aside] == [
        Aside("anthropic", "unknown_event", "late:caller", "me", 2),
        Aside("anthropic", "unknown_event", "late:signature", "sealed", 2),
        Aside("anthropic", "unknown_event", "late:kept", 2, 2),
    ]


def test_without_a_start_no_vendor_is_named():
    out, _ = fed(ONE, d(0, None, None, None, extras={"caller": "me"}))
    assert [event.vendor for event in out if type(event) is Aside] == [""]


@pytest.mark.parametrize(
    ("aside", "spoken"), [("server_tool", True), ("citation", True), ("audio", True), ("unknown_event", False)]
)
def test_only_what_the_model_says_or_does_is_spoken(aside, spoken):
    _, report = fed(Aside("vendor", aside, "x", {}, 0))
    assert report.spoken is spoken
    _, report = fed(ResponseStarted("id", "model"))
    assert not report.spoken


def test_the_stage_makes_its_machine_with_all_that_it_was_given():
    report, policy, limits = StreamReport(), Policy(), Limits(tool_calls=3)
    stage = accumulate_tool_calls(limits=limits, policy=policy, make_id=str.upper, join=True)
    machine = stage.make(report)
    assert stage.name == "accumulate_tool_calls"
    assert (machine.limits, machine.policy, machine.report, machine.make_id) == (limits, policy, report, str.upper)
    assert machine.policy is policy
    assert machine.joins
    assert not accumulate_tool_calls().make(report).joins
    assert not ToolCallAccumulator().joins


def test_the_second_of_two_equal_calls_is_dropped():
    out, report = fed(ONE, d(1, "a", "f", '{"x":1}'), ToolCallEnded(1))
    assert calls(out) == [("a", "f", '{"x":1}')]
    assert sum(type(event) is ToolCallStarted for event in out) == 1
    assert report.repairs["arguments_repeated"] == 1


def test_a_call_with_the_same_id_and_other_arguments_is_another():
    out, report = fed(ONE, d(1, "a", "f", '{"x":2}'))
    assert [arguments for _, _, arguments in calls(out)] == ['{"x":1}', '{"x":2}']
    assert len({id for id, _, _ in calls(out)}) == 2
    assert sum(report.repairs.values()) == 1


def test_a_fragment_of_one_batch_is_one_event_and_keeps_its_call():
    out, _ = fed(ONE, TWO, d(0, None, None, " "), d(1, None, None, " "))
    assert [(event.call, event.fragment) for event in out if type(event) is ToolCallArguments] == [
        (0, '{"x":1}'), (1, '{"y":2}'), (0, " "), (1, " "),
    ]  # fmt: skip


def test_a_start_that_says_a_call_again_gives_its_members_to_the_first():
    out, report = fed(
        ResponseStarted("id", "model", vendor="anthropic"),
        d(0, "a", "f", '{"x":1}', choice=1),
        d(2, "b", "g", None, choice=1),
        d(1, "a", "f", '{"x":1}', choice=1, extras={"caller": "me"}, signature=Opaque("anthropic", "sealed")),
        ToolCallEnded(1, 1),
        d(1, None, None, " ", choice=1),
        d(2, None, None, "{}", choice=1),
    )
    assert calls(out) == [("a", "f", '{"x":1} '), ("b", "g", "{}")]
    assert [event for event in out if type(event) is Aside] == [
        Aside("anthropic", "unknown_event", "late:caller", "me", 1),
        Aside("anthropic", "unknown_event", "late:signature", "sealed", 1),
    ]
    assert report.repairs["arguments_repeated"] == 1


@pytest.mark.parametrize("second", ['{"x":2}', '{"x":1}1', '{"x":', ""])
def test_a_start_with_the_same_id_at_the_end_is_another_call_where_its_text_is_another(second):
    out, _ = fed(ONE, d(1, "a", "f", second))
    assert len(calls(out)) == 2


def test_a_mere_start_repeats_a_call_that_is_over_if_the_stream_ends_well():
    for terminated, number in ((True, 1), (False, 2)):
        events = [ONE, ToolCallEnded(0), d(1, "a", "f", None)]
        if terminated:
            events += [StopReasonSeen("tool_calls", "tool_calls"), TerminatorSeen()]
        out, _ = fed(*events)
        assert len(calls(out)) == number


def test_a_policy_refuses_a_call_without_an_id_by_its_name():
    for name, said in (("f", "the call of f has no id"), (None, "the call of a function without a name has no id")):
        machine = ToolCallAccumulator(report=StreamReport(), policy=Policy(missing_id="refuse"))
        machine.feed([d(0, None, name, "{}"), ToolCallEnded(0)])
        assert isinstance(machine.fault, MissingCallId)
        assert str(machine.fault) == said


def test_an_id_that_is_made_is_told_as_such():
    out, _ = fed(d(0, None, "f", "{}"), d(1, "b", "g", "{}"))
    assert [event.id_made for event in out if type(event) is ToolCallStarted] == [True, False]


def test_the_end_is_told_with_its_reason():
    out, report = fed(TextDelta("a"), StopReasonSeen("stop", "stop"), TerminatorSeen())
    assert report.terminated
    assert out[-1].clean
    out, report = fed(TextDelta("a"), LastFrameBroken(b"{"))
    assert report.broken_frame == b"{"
    assert out[-1].reason.endswith(" (cut inside a frame)")
    out, _ = fed(ProviderFailed("server", "broken"))
    assert out[-1].reason == "the provider reported an error"
    assert not report.clean


def test_what_is_left_unread_ends_unclean_and_in_doubt_as_it_came():
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, policy=Policy(missing_id="refuse"))
    machine.feed([d(0, None, "f", None)])
    out = machine.abandon()
    assert machine.fault is None
    assert report.clean is False
    assert report.failing
    assert [event.ended for event in out if type(event) is ToolCallFinished] == [False]


def test_text_as_long_as_the_call_is_said_again_only_if_it_is_a_whole_object():
    for fragments, text, repairs in (
        (["{}", "{}"], "{}", {"empty_object_prefix": 1}),
        (['{"a":1}', '{"a":1}'], '{"a":1}', {"arguments_repeated": 1}),
        (['{"a":', '{"a":'], '{"a":{"a":', {}),
        (["{} ", '{"a":1}'], '{"a":1}', {"empty_object_prefix": 1}),
        (["{}", ' {"a":1}'], ' {"a":1}', {"empty_object_prefix": 1}),
    ):
        out, report = fed(d(0, "a", "f", None), *(d(0, None, None, one) for one in fragments))
        assert (calls(out)[0][2], dict(report.repairs)) == (text, repairs)
