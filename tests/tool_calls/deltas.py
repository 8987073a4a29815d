"""Deltas of calls, and what the accumulator makes of them: shared by the tests of the accumulator."""

from __future__ import annotations

from itertools import count
from typing import Any

from streamkit.events import ToolCallDelta, ToolCallEnded, ToolCallFinished, ToolCallsWhole, ToolCallWhole
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator


def d(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None, **rest: Any
) -> ToolCallDelta:
    return ToolCallDelta(index, id, name, arguments, **rest)


def whole(arguments: str | None, **rest: Any) -> ToolCallDelta:
    """A delta whose arguments are one whole value."""
    return ToolCallDelta(arguments=arguments, snapshot=True, **rest)


def again(*calls: ToolCallDelta) -> ToolCallsWhole:
    """All calls of a response, said once more."""
    return ToolCallsWhole(calls)


END = ToolCallEnded
ALL = ToolCallWhole
X, Y = '{"x":1}', '{"y":2}'
ONE, TWO = d(0, "a", "f", X), d(1, "b", "g", Y)


def machine_of(policy: Policy = TOLERANT) -> ToolCallAccumulator:
    made = count()
    return ToolCallAccumulator(report=StreamReport(), policy=policy, make_id=lambda prefix: f"{prefix}{next(made)}")


def fed(*events: Any, policy: Policy = TOLERANT) -> tuple[list[Any], StreamReport]:
    """What comes of events, one at a time, and the report."""
    machine = machine_of(policy)
    out = [event for event in events for event in machine.feed([event])] + machine.finish()
    assert machine.fault is None
    return out, machine.report


def calls(out: list[Any]) -> list[tuple[str, str, str]]:
    return [(event.id, event.name, event.arguments) for event in out if type(event) is ToolCallFinished]
