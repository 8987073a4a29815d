"""What rows of deltas do not show: when events leave, what is set aside, doubts, failures, limits, and how the stage is made."""

from __future__ import annotations

import pytest

from streamkit.errors import MissingCallId, NeedsRepair, StreamArgumentsTooLong
from streamkit.events import (
    Aside,
    ChoiceStarted,
    LastFrameBroken,
    Opaque,
    ProviderFailed,
    ResponseStarted,
    StopReasonSeen,
    StreamEnded,
    TerminatorSeen,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    ToolCallsWhole,
    ToolCallWhole,
    UsageReported,
)
from streamkit.limits import Limits
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator, accumulate_tool_calls
from tests.tool_calls.deltas import END, ONE, TWO, calls, d, fed, machine_of

STOP = StopReasonSeen("tool_calls", "tool_calls")
FAILURE = ProviderFailed("server", "no")


def test_calls_of_another_choice_are_not_said_again():
    out, _ = fed(ONE, ToolCallsWhole((d(0, "a", "f", '{"x":1}', choice=1),), choice=1))
    assert [(event.id, event.choice) for event in out if type(event) is ToolCallFinished] == [("a", 0), ("a", 1)]


def test_whole_text_that_differs_is_kept_once_with_its_call():
    _, report = fed(ONE, ToolCallWhole(0, '{"x":3}'), ToolCallWhole(0, '{"x":4}'))
    assert [(one.kind, one.id, one.name, one.arguments) for one in report.withheld] == [
        ("whole_differs", "a", "f", '{"x":3}')
    ]
    assert report.repairs == {"whole_differs": 1}


def test_text_set_aside_counts_among_all_arguments():
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, limits=Limits(stream_arguments_chars=13))
    machine.feed([d(0, "a", "f", '{"x":1}'), END(0), d(0, None, None, "later!")])
    assert machine.fault is None
    machine.feed([d(0, None, None, "!")])
    assert "stream_arguments_chars = 13" in str(machine.fault)


def test_an_error_is_kept_and_each_event_behind_it_counted_by_its_name():
    failure = ProviderFailed("server", "broken")
    out, report = fed(ONE, failure, ProviderFailed("auth", "again"), d(0, None, None, "late"))
    assert report.failure is failure
    assert report.provider_error == ("server", "broken")
    assert report.repairs == {"after_error": 2}
    assert [(event.arguments, event.ended) for event in out if type(event) is ToolCallFinished] == [('{"x":1}', False)]


def test_an_end_that_says_the_call_is_not_whole_leaves_it_open_and_told():
    out, _ = fed(d(0, "a", "f"), END(0, whole=False))
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
        END(1, 1),
        d(1, None, None, " ", choice=1),
        d(2, None, None, "{}", choice=1),
    )
    assert calls(out) == [("a", "f", '{"x":1} '), ("b", "g", "{}")]
    assert [event for event in out if type(event) is Aside] == [
        Aside("anthropic", "unknown_event", "late:caller", "me", 1),
        Aside("anthropic", "unknown_event", "late:signature", "sealed", 1),
    ]
    assert report.repairs["arguments_repeated"] == 1


def test_a_mere_start_repeats_a_call_that_is_over_if_the_stream_ends_well():
    for terminated, number in ((True, 1), (False, 2)):
        events = [ONE, END(0), d(1, "a", "f", None)]
        if terminated:
            events += [StopReasonSeen("tool_calls", "tool_calls"), TerminatorSeen()]
        out, _ = fed(*events)
        assert len(calls(out)) == number


def test_a_policy_refuses_a_call_without_an_id_by_its_name():
    for name, said in (("f", "the call of f has no id"), (None, "the call of a function without a name has no id")):
        machine = ToolCallAccumulator(report=StreamReport(), policy=Policy(missing_id="refuse"))
        machine.feed([d(0, None, name, "{}"), END(0)])
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


@pytest.mark.parametrize("text", ['{"x":1}', None])
def test_nothing_waits_for_a_whole_call_that_is_sent_again(text):
    whole = d(0, "a", "f", text, snapshot=True)
    machine = machine_of()
    events = [whole, END(0), whole, d(1, "b", "g", '{"y":')]
    out = [event for each in events for event in machine.feed([each])]
    assert [event.id for event in out if type(event) is ToolCallStarted] == ["a", "b"]
    assert machine.report.repairs == {"arguments_repeated": 1}


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


def test_the_arguments_of_a_stream_have_one_limit_for_all_fragments():
    machine = ToolCallAccumulator(limits=Limits(stream_arguments_chars=30), report=StreamReport())
    for fragment in ('{"long":"', "x" * 10, "y" * 11):  # 30 characters
        machine.feed([d(0, "a", "f", fragment) if fragment[0] == "{" else d(0, None, None, fragment)])
        assert machine.fault is None
    machine.feed([d(0, None, None, "z")])
    assert isinstance(machine.fault, StreamArgumentsTooLong)


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
