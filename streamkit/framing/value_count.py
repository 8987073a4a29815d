"""Count the values of a JSON text before it is parsed, in slices, so that an event loop can run between slices.

In a list of ``{}`` each value has three bytes, but takes a hundred bytes and several microseconds once it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

SLICE_BYTES: Final = 256 * 1024
#: Maximum memory of a parsed value in bytes. (A turn of a conversation has four values and takes some 800 bytes.)
VALUE_BYTES: Final = 256
#: Up to this count, values are counted without skipping strings.
FEW: Final = 10_000
#: All bytes except those that are counted: each value but a container's first follows a comma, and each container a bracket.
_OTHERS: Final = bytes(set(range(256)) - set(b",[{"))


def counted_values(text: bytes, few: int | None = None) -> Iterator[int]:
    """Yield how many values ``text`` has in the part counted so far: the last number is the result.

    Commas and brackets inside strings are skipped, unless there are no more than ``few`` (default ``FEW``) with them.
    """
    found = 0
    for at in range(0, len(text), SLICE_BYTES):
        found += len(text[at : at + SLICE_BYTES].translate(None, _OTHERS))
        if found > (FEW if few is None else few):
            yield from _counted_outside(text)
            return
        yield found


def has_more_values(text: bytes, most: int) -> bool:
    """Return whether ``text`` has more than ``most`` values."""
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
