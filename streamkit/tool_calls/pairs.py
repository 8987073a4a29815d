"""Match the entries of a repeated whole list with the items received before, although ids and indices may disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

E = TypeVar("E")
C = TypeVar("C")

#: Maximum number of remaining items to compare an entry with. In a correct stream the first remaining item matches.
LOOKED_AT: Final = 64


def paired(entries: Sequence[E], came: Sequence[C], *tests: Callable[[E, C], bool]) -> list[C | None]:
    """For each entry, return the item of ``came`` that the entry repeats, or None for a new entry. No item is returned twice.

    Each test is applied to all entries before the next test, so a match by id takes precedence over a match by place.
    """
    found: list[C | None] = [None] * len(entries)
    left = list(came)
    for test in tests:
        for number, entry in enumerate(entries):
            if found[number] is None and left:
                place = next((place for place, each in enumerate(left[:LOOKED_AT]) if test(entry, each)), None)
                if place is not None:
                    found[number] = left.pop(place)
    return found
