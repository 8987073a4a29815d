"""Recognise what a provider sends again: argument text repeated in each fragment or at the end, and items of whole lists.

A fragment that begins with all earlier text is a repetition if it can't follow that text as JSON. If it could follow
(``{"not":`` and then ``{"not":{``), the decision waits for the next fragment.

Source: quirks.md §3; field failure 277.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from streamkit.tool_calls.object_scanner import scanned

#: Splits JSON into strings, of which the last may be open, and the text between strings without white space.
_PIECES: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[^\s"]++', re.DOTALL)


def may_repeat(fragment: str, chars: int) -> bool:
    """Return whether a fragment is long enough to repeat ``chars`` characters, and begins an object as all arguments do."""
    return len(fragment) >= chars > 0 and fragment.lstrip()[:1] == "{"


def rest_of(fragment: str, before: str, depth: int) -> str | None:
    """Return the text after ``before`` in ``fragment``, or None if no repeat. In a whole object, white space may differ."""
    if fragment.startswith(before):
        return fragment[len(before) :]
    if not is_object(fragment, depth):
        return None
    compact = "".join(_PIECES.findall(before))
    read = 0
    for piece in _PIECES.finditer(fragment):
        size = min(len(piece[0]), len(compact) - read)
        if piece[0][:size] != compact[read : read + size]:
            return None
        read += size
        if read == len(compact):
            return fragment[piece.start() + size :]
    return None


def may_follow(fragment: str, before: str, depth: int) -> bool:
    """Return whether ``before`` followed by ``fragment`` may be the beginning of one JSON value."""
    scanner = scanned(before, depth)
    scanner.feed(fragment)
    return not scanner.malformed


def is_object(text: str, depth: int) -> bool:
    """Return whether a text is one complete JSON object, nested no deeper than ``depth``."""
    return scanned(text, depth).complete_object


def is_object_or_part(text: str, depth: int) -> bool:
    """Return whether a text is a JSON object or the beginning of one."""
    return not scanned(text, depth).malformed


E = TypeVar("E")
C = TypeVar("C")

LOOKED_AT: Final = 64  #: remaining items to compare an entry with; in a correct stream the first one matches


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
