"""The quick ways through the accumulator give what one event at a time, looked at with care, gives: text, order, limits, repairs."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.events import (
    Aside,
    Opaque,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallsWhole,
    ToolCallWhole,
    UsageReported,
)
from streamkit.limits import Limits
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.testing import joined
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.delta_run import DeltaRun

INDICES = st.integers(0, 2)
CHOICES = st.sampled_from([0, 0, 0, 1])
TEXTS = st.sampled_from(['{"a":', '{"a":1}', "{}", '"b', '"}', " ", "1", "1}", "abc", '{"a":"abcdef"}', '{"a":"'])
NAMES = st.sampled_from(["f", "f", "g"])
SIGNATURES = st.none() | st.builds(Opaque, st.just("vendor"), st.sampled_from(["x", "y"]))
FRAGMENTS = st.builds(
    lambda index, text, choice: ToolCallDelta(index, None, None, text, choice), INDICES, TEXTS, CHOICES
)
STARTS = st.builds(
    lambda index, name, text, choice, number: ToolCallDelta(index, number and f"call_{number}", name, text, choice),
    INDICES, NAMES | NAMES | st.none(), st.none() | TEXTS, CHOICES, st.none() | st.integers(1, 4),
)  # fmt: skip
SAID_AGAIN = st.builds(
    lambda index, number, name, text: ToolCallDelta(index, number and f"call_{number}", name, text, snapshot=True),
    st.none() | INDICES, st.none() | st.integers(1, 4), st.none() | NAMES, st.none() | TEXTS,
)  # fmt: skip
OTHERS = st.one_of(
    st.builds(TextDelta, st.just("text"), CHOICES),
    st.builds(ReasoningDelta, st.just("thought"), CHOICES),
    st.builds(RefusalDelta, st.just("no"), CHOICES),
    st.builds(ToolCallEnded, INDICES, CHOICES, st.booleans()),
    st.builds(ToolCallWhole, INDICES, TEXTS, CHOICES),
    st.builds(ToolCallsWhole, st.lists(SAID_AGAIN, max_size=3).map(tuple), CHOICES),
    st.builds(lambda index, name: ToolCallDelta(index, None, None, None, extras={name: 1}), INDICES, NAMES),
    st.builds(lambda index, sign: ToolCallDelta(index, None, None, "1", signature=sign), INDICES, SIGNATURES),
    st.builds(lambda index, text: ToolCallDelta(index, None, None, text, snapshot=True), INDICES, TEXTS),
    st.builds(lambda index, text: ToolCallDelta(index, None, None, text, kind="custom"), INDICES, TEXTS),
    st.builds(lambda index, number, text: ToolCallDelta(index, f"call_{number}", "f", text), INDICES, INDICES, TEXTS),
    st.builds(StopReasonSeen, st.sampled_from(["stop", "tool_calls", "length"]), CHOICES),
    st.just(ResponseStarted("id", "model", vendor="vendor")),
    st.just(UsageReported(1)),
    st.just(TerminatorSeen()),
    st.just(Aside("vendor", "server_tool", "x", {}, 0)),
    st.just(ProviderFailed("server", "broken")),
)
MANY = st.lists(st.one_of(*[FRAGMENTS] * 8, *[STARTS] * 2, OTHERS), max_size=24)
#: Batches begin at these places of the events.
SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def machine(limits: Limits, policy: Policy, report: StreamReport, *, join: bool = False) -> ToolCallAccumulator:
    made = count()
    return ToolCallAccumulator(
        limits=limits, policy=policy, report=report, join=join, make_id=lambda prefix: f"{prefix}{next(made)}"
    )


def spread(events: list[Any]) -> list[Any]:
    return [one for event in events for one in (event.deltas() if type(event) is DeltaRun else [event])]


def normal(events: list[Any]) -> tuple[Any, ...]:
    """What every call says in its own order, and everything else in the order it came."""
    calls: dict[tuple[int, int], str] = {}
    rest = []
    for event in joined(events):
        if type(event) is ToolCallArguments:
            key = event.choice, event.call
            calls[key] = calls.get(key, "") + event.fragment
        else:
            rest.append(event)
    return calls, rest


def told(report: StreamReport) -> tuple[Any, ...]:
    return (
        report.repairs, report.losses, report.withheld, report.provider_error, report.failure, report.spoken,
        report.clean, report.terminated, str(report.error),
    )  # fmt: skip


def carefully(events: list[Any], limits: Limits, policy: Policy) -> tuple[Any, ...]:
    report = StreamReport()
    one_by_one = machine(limits, policy, report)
    one_by_one._careful = True
    out: list[Any] = []
    failed_at = None
    for number, event in enumerate(events):
        one_by_one._settled.calls.clear()
        out += one_by_one.feed([event])
        if one_by_one.fault is not None:
            failed_at = number
            break
    return normal(out + one_by_one.finish()), told(report), str(one_by_one.fault), failed_at


def quickly(batches: list[list[Any]], limits: Limits, policy: Policy, *, join: bool, runs: bool) -> tuple[Any, ...]:
    report = StreamReport()
    quick = machine(limits, policy, report, join=join)
    quick.gives_runs = runs
    out: list[Any] = []
    failed_at, fed = None, 0
    for batch in batches:
        given = quick.feed(batch)
        assert runs or all(type(event) is not DeltaRun for event in given)
        assert not join or len(joined(given)) == len(given)
        out += spread(given)
        fed += sum(len(event.texts) if type(event) is DeltaRun else 1 for event in batch)
        if quick.fault is not None:
            failed_at = fed - 1 - quick.behind
            break
    return normal(out + quick.finish()), told(report), str(quick.fault), failed_at


def batched(events: list[Any], sizes: list[int]) -> list[list[Any]]:
    batches, at, turn = [], 0, 0
    while at < len(events):
        size = sizes[turn % len(sizes)]
        batches.append(events[at : at + size])
        at, turn = at + size, turn + 1
    return batches


def with_runs(batch: list[Any]) -> list[Any]:
    """Fragments beside one another as one run of the kind that decoders make; others' text, too."""
    out: list[Any] = []
    for event in batch:
        last = out[-1] if out else None
        plain = type(event) is ToolCallDelta and (event.id, event.name, event.extras, event.signature) == (None,) * 4
        if plain and not event.snapshot and event.arguments and event.index is not None:
            if type(last) is DeltaRun and (last.model.choice, last.model.kind) == (event.choice, event.kind):
                out[-1] = DeltaRun(last.model, [*last.texts, event.arguments], [*last.indices, event.index])
            else:
                out.append(DeltaRun(event, [event.arguments], [event.index]))
        else:
            out.append(event)
    for number, event in enumerate(out):
        if type(event) is DeltaRun and len(set(event.indices)) == 1:
            out[number] = DeltaRun(event.model, event.texts)
    return out


@settings(max_examples=400)
@given(
    events=MANY,
    sizes=SIZES,
    join=st.booleans(),
    runs=st.booleans(),
    arguments=st.integers(5, 40),
    stream=st.integers(8, 60),
)
def test_the_quick_ways_give_what_care_gives(events, sizes, join, runs, arguments, stream):
    limits = Limits(arguments_chars=arguments, stream_arguments_chars=stream, tool_calls=6)
    expected = carefully(events, limits, Policy())
    batches = batched(events, sizes)
    assert quickly(batches, limits, Policy(), join=join, runs=runs) == expected
    assert quickly([with_runs(batch) for batch in batches], limits, Policy(), join=join, runs=runs) == expected


@settings(max_examples=200)
@given(texts=st.lists(st.tuples(INDICES, TEXTS), min_size=1, max_size=16), over=st.integers(-1, 1), sizes=SIZES)
def test_a_limit_cuts_at_the_same_character_in_runs(texts, over, sizes):
    """Limits that the last fragments just reach, just miss or just pass, in one run and in two."""
    starts = [ToolCallDelta(index, f"call_{index}", "f", '{"k":"') for index in range(3)]
    events = [*starts, *(ToolCallDelta(index, None, None, text) for index, text in texts)]
    half = 3 + len(texts) // 2
    longest = max(6 + sum(len(text) for index, text in texts if index == each) for each in range(3))
    total = 18 + sum(len(text) for _, text in texts)
    for limits in (Limits(arguments_chars=longest + over), Limits(stream_arguments_chars=total + over)):
        expected = carefully(events, limits, Policy())
        for batches in (
            [starts, events[3:]],
            [starts, with_runs(events[3:])],
            [starts, with_runs(events[3:half]), with_runs(events[half:])],
            [[one] for one in events],
            batched(events, sizes),
        ):
            assert quickly(batches, limits, Policy(), join=True, runs=False) == expected
            assert quickly(batches, limits, Policy(), join=False, runs=True) == expected


def test_runs_are_handed_on_as_runs_where_they_are_taken_and_as_deltas_or_one_where_not():
    events: list[Any] = [
        ToolCallDelta(index, f"call_{index}", "f", '{"k":"long enough', choice=1) for index in range(2)
    ]
    run = DeltaRun(ToolCallDelta(0, None, None, "a", choice=1), ["a", "b", "c"], [0, 1, 0])
    alone = DeltaRun(ToolCallDelta(0, None, None, "a", choice=1), ["a", "b"])
    kinds: dict[tuple[bool, bool], list[Any]] = {}
    for join, gives in ((False, True), (False, False), (True, False), (True, True)):
        accumulator = machine(Limits(), Policy(), StreamReport(), join=join)
        accumulator.gives_runs = gives
        accumulator.feed(events)
        kinds[join, gives] = [accumulator.feed([one]) for one in (run, alone, DeltaRun(TextDelta("x"), ["x", "y"]))]
        assert accumulator._choices[1].last is accumulator._choices[1].by_index[0]
    (first, second, text) = (given[0] for given in kinds[False, True])
    assert (first.by_call(), first.indices, first.model.fragment, first.choice) == (
        {0: ["a", "c"], 1: ["b"]},
        [0, 1, 0],
        "",
        1,
    )
    assert (second.by_call(), second.indices, second.choice) == ({0: ["a", "b"]}, None, 1)
    assert text.texts == ["x", "y"]
    a, b, c = ToolCallArguments(0, "a", 1), ToolCallArguments(1, "b", 1), ToolCallArguments(0, "c", 1)
    assert kinds[False, False] == [[a, b, c], [a, ToolCallArguments(0, "b", 1)], [TextDelta("x"), TextDelta("y")]]
    for gives in (False, True):
        assert kinds[True, gives] == [
            [ToolCallArguments(0, "ac", 1), b], [ToolCallArguments(0, "ab", 1)], [TextDelta("xy")],
        ]  # fmt: skip


def test_a_fault_tells_how_many_deltas_stand_behind_it_those_of_runs_too():
    start = ToolCallDelta(0, "call_0", "f", '{"k":"')
    fragment = ToolCallDelta(0, None, None, "x" * 20)
    run = DeltaRun(fragment, ["x", "y" * 20, "z"])
    for batch, behind in (
        ([start, fragment, TextDelta("a"), DeltaRun(TextDelta("x"), ["x", "y", "z"])], 4),
        ([start, run, TextDelta("a"), DeltaRun(TextDelta("x"), ["x", "y"])], 4),
        ([start, fragment], 0),
    ):
        accumulator = machine(Limits(arguments_chars=10), Policy(), StreamReport())
        accumulator.feed(batch)
        assert accumulator.fault is not None
        assert accumulator.behind == behind


def test_a_run_behind_an_error_is_counted_delta_by_delta():
    report = StreamReport()
    accumulator = machine(Limits(), Policy(), report)
    accumulator.feed([ProviderFailed("server", "broken")])
    assert accumulator.feed([DeltaRun(TextDelta("x"), ["x", "y", "z"]), TextDelta("a")]) == []
    assert report.repairs == {"after_error": 4}
    assert accumulator.feed([TextDelta("b")]) == []
    assert report.repairs == {"after_error": 5}
