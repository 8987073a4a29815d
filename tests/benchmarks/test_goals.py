"""A goal says held only of what was measured and is within its limit."""

from __future__ import annotations

import pytest

from benchmarks import tables
from benchmarks.goals import GOALS, Goal, Judged, judged


@pytest.mark.parametrize(("measured", "at_least", "held"), [
    (1.0, False, True), (1.01, False, False), (None, False, False),
    (1.0, True, True), (0.99, True, False), (None, True, False),
])  # fmt: skip
def test_a_goal_is_held_up_to_its_limit(measured, at_least, held):
    assert Judged(Goal("a", "ms", 1.0, lambda _: 0.0, at_least), measured).held is held


def test_nothing_measured_is_nothing_held():
    needed = [goal for goal in GOALS if not goal.optional]
    assert [one.goal for one in judged({})] == needed
    assert not any(one.held for one in judged({}))
    assert tables.goals({}).count("not measured") == len(needed)


def test_a_goal_finds_its_figure():
    row = {"input": "text", "cut": "64 KiB", "mode": "joined", "times_floor": {"median": 1.05, "low": 1, "high": 1.1}}
    found = {one.goal.name: one for one in judged({"stages": {"recipe": [row]}})}
    one = found["Chat to Anthropic at 64 KiB reads: text, joined"]
    assert (one.measured, one.held) == (1.05, True)
    assert not found["Chat to Anthropic at 64 KiB reads: text, unjoined"].held
