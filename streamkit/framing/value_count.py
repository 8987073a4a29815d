"""How many values a JSON text has, counted before it is parsed, in slices between which an event loop goes on.

A body of ``{}`` in a list is three bytes a value, and a value is a hundred bytes and several microseconds once it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

SLICE_BYTES: Final = 256 * 1024
#: What a value takes once it is read, at most: a turn of a conversation is four values and some 800 bytes.
VALUE_BYTES: Final = 256
#: Up to so many it does not matter whether they stand in texts.
FEW: Final = 10_000
#: Each value but the first of a container has a comma in front, and each container a bracket.
_OTHERS: Final = bytes(set(range(256)) - set(b",[{"))


def counted_values(text: bytes, few: int | None = None) -> Iterator[int]:
    """How many values ``text`` has, so far as it was looked at: the last number counts.

    What stands in texts is passed over, but where there are no more than ``few`` (``FEW``) even with it.
    """
    found = 0
    for at in range(0, len(text), SLICE_BYTES):
        found += len(text[at : at + SLICE_BYTES].translate(None, _OTHERS))
        if found > (FEW if few is None else few):
            yield from _counted_outside(text)
            return
        yield found


def has_more_values(text: bytes, most: int) -> bool:
    """Whether ``text`` has more than ``most`` values."""
    return len(text) > most and any(found > most for found in counted_values(text, min(FEW, most)))


def _counted_outside(text: bytes) -> Iterator[int]:
    found, inside, carried = 0, 0, b""
    for at in range(0, len(text), SLICE_BYTES):
        part = carried + text[at : at + SLICE_BYTES]
        run = len(part) - len(part.rstrip(b"\\"))
        part, carried = part[: len(part) - run], b"\\" if run % 2 else b""
        outside = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += len(b"".join(outside[inside::2]).translate(None, _OTHERS))
        inside ^= (len(outside) - 1) & 1
        yield found
