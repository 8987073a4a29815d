"""L8: twice the input is at most 2.3 times the work, whatever the input looks like and whatever reads it.

The shapes are the table in ``growing.py``, where one line adds one; ``judging.py`` counts. ``make test`` draws a seeded sample of
shapes, places and readers and counts bytecode; the exhaustive form draws many more, and counts the processor's instructions.
Those are 3,500 cases of 0.09 s each, and a minute for each group with suspects.
"""

from __future__ import annotations

import re
import shutil

import pytest

from tests.laws.growing import GROUPS, sampled
from tests.laws.judging import NO_VALGRIND, Case, grows, instructions, suspected
from tests.working import FACTOR, work

#: Cases that are drawn of each group.
FEW, MANY = 2, 100


@pytest.mark.parametrize("group", GROUPS)
def test_twice_the_input_is_twice_the_work(group):
    found = {str(case): grows(case, 100) for case in sampled(group, FEW)}
    assert {name: factor for name, factor in found.items() if factor > FACTOR} == {}


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("valgrind") is None, reason=NO_VALGRIND)
@pytest.mark.parametrize("group", GROUPS)
def test_twice_the_input_is_twice_the_instructions(group):
    looked = ((case, suspected(case)) for case in sampled(group, MANY, 1))
    odd = [(case, size) for case, size in looked if size is not None]
    found = {str(case): factor for case, factor in (instructions(odd) if odd else ())}
    assert {name: factor for name, factor in found.items() if factor > FACTOR} == {}


def test_what_grows_with_the_square_is_found():
    def squares(size):
        return lambda: [None for one in range(size) for other in range(size)]

    def lines(size):
        return lambda: [None for one in range(size)]

    assert grows(Case("squares", lambda size: squares(size // 4)), 64) > FACTOR
    assert grows(Case("lines", lines), 50) <= FACTOR
    assert work(lines(100)) > work(lines(50))


def test_a_limit_that_is_met_is_no_find():
    def step(size):
        return lambda: [None for one in range(size if size < 1000 else 10 * size)]

    assert grows(Case("a step", step), 500) <= FACTOR


@pytest.mark.exhaustive
def test_the_square_that_c_takes_is_suspected():
    pattern = re.compile("a+b")
    assert suspected(Case("goes back", lambda size: lambda: pattern.search("a" * 4 * size))) is not None
    assert (
        suspected(Case("searches", lambda size: lambda: [-1 in given for given in [list(range(size))] * size]))
        is not None
    )
    assert suspected(Case("lines", lambda size: lambda: [None for one in range(100 * size)])) is None
