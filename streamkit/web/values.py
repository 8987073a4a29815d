"""How many values a JSON text has, counted before it is parsed, in slices between which an event loop goes on.

A body of ``{}`` in a list is three bytes a value, and a value is a hundred bytes and several microseconds once it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

SLICE_BYTES: Final = 256 * 1024
#: Each value but the first of a container has a comma in front, and each container a bracket.
_OTHERS: Final = bytes(set(range(256)) - set(b",[{"))


def counted_values(text: bytes, most: int) -> Iterator[bool]:
    """Whether ``text`` has more than ``most`` values: False after each slice, and True once, as the last, if it has.

    What stands in strings is passed over, and only looked for where there is too much of it to be right.
    """
    found = 0
    for at in range(0, len(text), SLICE_BYTES):
        found += len(text[at : at + SLICE_BYTES].translate(None, _OTHERS))
        yield False
        if found > most:
            break
    if found > most:
        yield from _counted_outside(text, most)


def _counted_outside(text: bytes, most: int) -> Iterator[bool]:
    found, inside, carried = 0, 0, b""
    for at in range(0, len(text), SLICE_BYTES):
        part = carried + text[at : at + SLICE_BYTES]
        run = len(part) - len(part.rstrip(b"\\"))
        part, carried = part[: len(part) - run], b"\\" if run % 2 else b""
        outside = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += len(b"".join(outside[inside::2]).translate(None, _OTHERS))
        inside ^= (len(outside) - 1) & 1
        if found > most:
            yield True
            return
        yield False
