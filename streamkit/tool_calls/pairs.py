"""Which of the things that came each entry of a later whole list repeats, where ids and numbers may disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

E = TypeVar("E")
C = TypeVar("C")

#: So many are looked at for an entry: where all is well it is the first that is left.
LOOKED_AT: Final = 64


def paired(entries: Sequence[E], came: Sequence[C], *tests: Callable[[E, C], bool]) -> list[C | None]:
    """For each entry what it repeats of what ``came``, each at most once; None where it is new.

    Each test is asked of all entries before the next one is: what an id settles is no other entry's by its place.
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
