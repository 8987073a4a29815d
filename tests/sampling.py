"""What ``make test`` draws of cases that ask the same thing of many inputs. The others bear ``exhaustive``: `make test-all` runs them.

A draw is seeded by a name, the same in every run; laws with names of their own draw other cases, so that together they see nearly all.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest
from attrs import frozen

from streamkit.dialects import DIALECTS

Case = TypeVar("Case")


def name_of(case: Any) -> str:
    return f"{case.dialect}-{case.name}".replace(" ", "-")


def kind_of(stream: Any) -> Hashable:
    """Streams that are alike: of one dialect, and if they are recorded, of one collection of recordings."""
    return stream.dialect, stream.name.partition("/")[0] if "/" in stream.name else ""


def drawn(cases: Iterable[Case], each: int, seed: str, kind: Callable[[Case], Hashable] = kind_of) -> list[Case]:
    """``each`` cases of every kind, or all of a kind that has no more, in their order."""
    kinds: dict[Hashable, list[tuple[int, Case]]] = {}
    for place, case in enumerate(cases):
        kinds.setdefault(kind(case), []).append((place, case))
    chosen = [
        pair
        for name, some in kinds.items()
        for pair in random.Random(f"{seed} {name}").sample(some, min(each, len(some)))
    ]
    return [case for _, case in sorted(chosen, key=lambda pair: pair[0])]


def few(
    cases: Iterable[Case],
    each: int,
    seed: str,
    *,
    kind: Callable[[Case], Hashable] = kind_of,
    name: Callable[[Case], str] = str,
) -> list[Any]:
    """Parameters for all cases; those that are not drawn are exhaustive."""
    cases = list(cases)
    chosen = {id(case) for case in drawn(cases, each, seed, kind)}
    return [pytest.param(case, id=name(case), marks=marks(id(case) in chosen)) for case in cases]


def few_pairs(
    cases: Iterable[Case],
    seed: str,
    *,
    each: int = 1,
    others: Collection[str] = tuple(DIALECTS.built_in),
    name: Callable[[Case], str] = name_of,
    always: Callable[[Case, str], bool] = lambda _case, _other: False,
) -> list[Any]:
    """Parameters for each case with each other dialect; those not drawn, ``each`` others by turns, are exhaustive.

    Others take turns among the cases of a dialect, so that every pair of dialects is drawn about equally often.
    """
    others, turns = list(others), {}
    found = []
    for case in cases:
        if case.dialect not in turns:
            turns[case.dialect] = random.Random(f"{seed} {case.dialect}").randrange(len(others))
        first = turns[case.dialect]
        turns[case.dialect] += each
        now = {others[turn % len(others)] for turn in range(first, first + each)}
        found += [
            pytest.param(case, other, id=f"{name(case)}-{other}", marks=marks(other in now or always(case, other)))
            for other in others
        ]
    return found


def by_turns(cases: Iterable[Any], others: Iterable[Any], each: int, seed: str) -> list[Any]:
    """Parameters for each case with each other; ``each`` others of a case, by turns, are drawn, the rest are exhaustive."""
    others = list(others)
    first = random.Random(seed).randrange(len(others))
    return [
        pytest.param(case, other, marks=marks((turn - number * each - first) % len(others) < each))
        for number, case in enumerate(cases)
        for turn, other in enumerate(others)
    ]


@frozen
class Part:
    """One part of several of the inputs of a test that asks of many in one case."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"part-{self.number + 1}-of-{self.of}"


def parts(count: int) -> list[Any]:
    """Parameters for so many parts of a test's inputs; all but the first are exhaustive."""
    return [
        pytest.param(Part(number, count), id=str(Part(number, count)), marks=marks(not number))
        for number in range(count)
    ]


def part_of(cases: Sequence[Case], part: Part, *, turn: int = 0) -> Sequence[Case]:
    """Every so manieth case; the parts are all of them. Tests with other turns begin at another one, so that the first parts differ."""
    return cases[(part.number + turn) % part.of :: part.of]


def marks(is_drawn: bool) -> list[Any]:
    return [] if is_drawn else [pytest.mark.exhaustive]


#: What the cases of a test may take, in seconds, that are asked so that each dialect is.
EACH_DIALECT_S = 0.25


def too_long(test: str, cases: Sequence[str], seconds: float, durations: Mapping[str, float]) -> set[str]:
    """The ids of a test's cases that are not drawn: beyond ``seconds``, and those of dialects that are asked by another case.

    Where a case of each dialect takes more than ``EACH_DIALECT_S``, other dialects are left out in each test. ``durations`` are the seconds of a case by the name of its test; of a test that is not there all cases are drawn.
    """
    most = max(1, int(seconds / durations[test])) if test in durations else len(cases)
    if len(cases) <= most:
        return set()
    cases = [*cases]
    random.Random(test).shuffle(cases)
    named: set[str] = set()
    first: list[str] = []
    for case in cases:
        new = dialects_in(case) - named
        if new:
            named |= new
            first.append(case)
    first = first[: max(most, math.ceil(EACH_DIALECT_S / durations[test]))]
    rest = [case for case in cases if case not in set(first)]
    return {*[*first, *rest][max(most, len(first)) :]}


#: The longer names come first: some begin with another.
NAMED = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(DIALECTS.built_in, reverse=True))})(?![a-z])")


def dialects_in(case: str) -> set[str]:
    """The dialects that the id of a case names."""
    return set(NAMED.findall(case))
