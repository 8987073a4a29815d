"""The parts of a test's inputs are all of them, and only the first is drawn."""

from __future__ import annotations

import pytest

from tests.sampling import part_of, parts

CASES = list("abcdefg")


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize("turn", [0, 1, 8])
def test_the_parts_are_all_there_is(count, turn):
    found = [part_of(CASES, param.values[0], turn=turn) for param in parts(count)]
    assert sorted(case for part in found for case in part) == CASES
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_the_first_is_drawn_and_differs_by_turns():
    first, *others = parts(3)
    assert not first.marks
    assert all([mark.name for mark in other.marks] == ["exhaustive"] for other in others)
    assert sorted(case for turn in range(3) for case in part_of(CASES, first.values[0], turn=turn)) == CASES
