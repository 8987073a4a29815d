"""L8: twice the input is at most 2.3 times the work, whatever the input looks like and whatever reads it.

The shapes are the table in ``growing.py``, where one line adds one. ``make test`` draws a seeded sample of shapes, places and
readers and counts bytecode; the exhaustive form draws many more, and counts the processor's instructions as well.
"""

from __future__ import annotations

import shutil

import pytest

from tests.laws.growing import DOCUMENTS, FACTOR, GROUPS, NO_VALGRIND, Case, grows, instructions, sampled, steps

#: Cases that are drawn of each group.
FEW, MANY, INSTRUCTED = 10, 1500, 6


@pytest.mark.parametrize("group", GROUPS)
def test_twice_the_input_is_twice_the_work(group):
    found = {str(case): grows(case, 100) for case in sampled(group, FEW)}
    assert {name: factor for name, factor in found.items() if factor > FACTOR} == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", GROUPS)
def test_twice_the_input_is_twice_the_work_in_many_more_places(group):
    found = {str(case): grows(case, 150) for case in sampled(group, MANY, 1)}
    assert {name: factor for name, factor in found.items() if factor > FACTOR} == {}


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("valgrind") is None, reason=NO_VALGRIND)
@pytest.mark.parametrize("kind", ["stream", *DOCUMENTS])
def test_twice_the_input_is_twice_the_instructions(kind):
    groups = [group for group in GROUPS if group.startswith(f"{kind} of ")]
    assert {str(case): factor for case, factor in instructions(groups, INSTRUCTED) if factor > FACTOR} == {}


def test_what_grows_with_the_square_is_found():
    def squares(size):
        return lambda: [None for one in range(size) for other in range(size)]

    def lines(size):
        return lambda: [None for one in range(size)]

    assert grows(Case("squares", squares), 50) > FACTOR
    assert grows(Case("lines", lines), 50) <= FACTOR
    assert steps(lines(100)) > steps(lines(50))
