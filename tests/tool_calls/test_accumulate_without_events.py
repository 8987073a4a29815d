"""Texts, reasoning and fragments that come without events, or many together, come to what their events come to."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from streamkit.errors import StreamError
from streamkit.events import (
    Aside,
    ReasoningDelta,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    UsageReported,
)
from streamkit.report import StreamReport
from streamkit.testing import joined
from streamkit.tool_calls.accumulate import ToolCallAccumulator, says_something
from streamkit.tool_calls.call import FragmentRun
from tests.laws.running import facts_of
from tests.tool_calls.perturbed import LIMITS, POLICIES, stream

Way = Callable[[ToolCallAccumulator, list[Any]], None]


def is_fragment(event: Any) -> bool:
    if type(event) is not ToolCallDelta or event.index is None or not event.arguments:
        return False
    return event == ToolCallDelta(event.index, None, None, event.arguments, event.choice)


def by_events(machine: ToolCallAccumulator, events: list[Any]) -> None:
    for event in events:
        machine.report.frames += 1
        machine.push(event)


def by_methods(machine: ToolCallAccumulator, events: list[Any]) -> None:
    for event in events:
        machine.report.frames += 1
        if type(event) is TextDelta:
            machine.push_text(event.text, event.choice, event.block)
        elif type(event) is ReasoningDelta:
            machine.push_reasoning(event.text, event.choice, event.block, event.kind)
        elif is_fragment(event):
            machine.push_fragment(event.index, event.arguments, event.choice)
        else:
            machine.push(event)


def together(machine: ToolCallAccumulator, events: list[Any]) -> None:
    for choice, run in groupby(events, lambda event: event.choice if is_fragment(event) else None):
        found = list(run)
        if choice is None or len(found) == 1:
            by_events(machine, found)
        else:
            machine.report.frames += len(found)
            machine.push(FragmentRun([each.index for each in found], [each.arguments for each in found], choice))


def read(seed: int, way: Way, *, join: bool) -> tuple[Any, ...]:
    """What comes of a broken stream of calls, given in reads of several events, with all of the report."""
    rng = random.Random(seed)
    events = stream(rng)
    for place in range(rng.randint(0, 3)):
        events.insert(
            rng.randint(0, len(events)), (TextDelta("t"), ReasoningDelta("r", 0, place, "summary"))[place % 2]
        )
    report, made, out = StreamReport(), iter(range(100)), []
    machine = ToolCallAccumulator(
        limits=rng.choice(LIMITS),
        report=report,
        policy=rng.choice(POLICIES),
        make_id=lambda prefix: f"{prefix}{next(made)}",
        join=join,
    )
    machine.lead_to(out.append)
    fault, size = None, rng.choice((1, 2, 5, 40))
    try:
        for at in range(0, len(events), size):
            if size > 1:
                machine.hold()
            way(machine, events[at : at + size])
            machine.end_read()
        machine.push_end()
    except StreamError as error:
        fault = f"{type(error).__name__}: {error}"
    return joined(out), fault, facts_of(report), report.frames


@pytest.mark.parametrize("way", [by_methods, together])
@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("first", range(0, 400, 20))
def test_it_comes_to_the_same(first, join, way):
    for seed in range(first, first + 20):
        assert read(seed, way, join=join) == read(seed, by_events, join=join), seed


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (TextDelta("x"), True), (ToolCallArguments(0, "x"), True), (Aside("openai", "citation", "c", {}), True),
        (Aside("openai", "metadata", "m", {}), False), (ResponseStarted(), False), (UsageReported(), False),
    ],
)  # fmt: skip
def test_a_client_waits_for_what_the_model_says(event, says):
    assert says_something([event]) is says
    assert says_something([ResponseStarted(), event]) is says
    assert says_something([]) is False
