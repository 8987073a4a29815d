"""L8: twice the input is at most 2.3 times the work, whatever the input looks like and whatever reads it.

The shapes are the table in ``growing.py``, where one line adds one; ``judging.py`` counts. ``make test`` draws a seeded sample of
shapes, places and readers and counts bytecode; the exhaustive form draws many more, and counts the processor's instructions.
Those are 3,500 cases of 0.09 s each, and a minute for each group with suspects.
"""

from __future__ import annotations

import random
import re
import shutil
from contextlib import suppress

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import StreamkitError
from tests.laws.growing import GROUPS, PAIR_READERS, Pair, fed_to, pairs, sampled
from tests.laws.judging import NO_VALGRIND, Case, grows, instructions, suspected
from tests.working import FACTOR, copied, work

#: Cases that are drawn of each group.
FEW, MANY = 2, 100
#: Pairs of kinds of events that are drawn of each dialect.
SOME_PAIRS = 12
#: The least that a text is copied for an event that is compared with all of it: eight of the long words.
HELD_BYTES = 8 * 12_000


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


def compared(pair: Pair, reader: str, size: int) -> int:
    """How many bytes are copied for events of one kind, when as many of another have made a text that is held."""
    first, other = pair.pieces(size)
    feed = fed_to(reader, pair.place.stream.dialect)
    with suppress(StreamkitError):
        for piece in first:
            feed(piece)
        return copied(feed, other)
    return 1


def grows_with_what_is_held(pair: Pair, reader: str) -> float:
    """By which factor that grows when there are twice as many of both; what is small beside the text says nothing."""
    once, twice = compared(pair, reader, 16), compared(pair, reader, 32)
    return twice / once if twice > 32 * HELD_BYTES else 1.0


@pytest.mark.parametrize("some", [SOME_PAIRS, pytest.param(None, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_event_is_not_compared_with_all_that_is_held(dialect, some):
    """Every kind of event with every other kind of its stream."""
    draw = random.Random(dialect)
    drawn = pairs(dialect) if some is None else draw.sample(pairs(dialect), min(some, len(pairs(dialect))))
    found = {}
    for pair in drawn:
        for reader in PAIR_READERS if some is None else draw.sample(PAIR_READERS, 1):
            if (factor := grows_with_what_is_held(pair, reader)) > FACTOR:
                found[f"{pair}, {reader}"] = factor
    assert found == {}


@pytest.mark.parametrize("kind", ["function_call_arguments", "custom_tool_call_input"])
@pytest.mark.parametrize("reader", ["linted", "passed", "anthropic", "openai-responses"])
def test_a_whole_text_that_is_another_is_not_compared_each_time_it_comes(kind, reader):
    first, other = (f'{{"type":"response.{kind}.{word}"' for word in ("delta", "done"))
    found = [
        pair for pair in pairs("openai-responses") if first in str(pair).split(", and then ")[0] and other in str(pair)
    ]
    assert found
    for pair in found:
        assert grows_with_what_is_held(pair, reader) <= FACTOR


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
