"""Escape text from outside, so that it can't control a terminal, break a line or change the reading direction.

All characters that Unicode calls unprintable are escaped: control characters (C0, DEL, C1), line ends, direction marks and
other invisible marks, white space other than the space, and halves of surrogate pairs. The escapes are JSON's, so a JSON text
keeps its meaning.

Source: limits.md T12; Unicode 15 §23.2 (C1), UAX #9 (direction marks); RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_HALVES: Final = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return ``text`` with ``\uXXXX`` for each unprintable character; two escapes for one beyond U+FFFF."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def writable(text: str) -> str:
    """Return ``text`` with U+FFFD for each half of a surrogate pair, which JSON can escape and UTF-8 can't encode."""
    return _HALVES.sub("\ufffd", text)


def printable_json(value: Any) -> str:
    """Return a value as JSON on one line with readable text. Raise TypeError for a value that JSON can't represent."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
