"""Text from elsewhere, as a line that moves no terminal, ends no line and reads in the order in which it is written.

Escaped is whatever Unicode calls unprintable: control characters (C0, DEL, C1), line ends, marks of direction and other marks
that show nothing, blanks but the space, halves of surrogate pairs. The escapes are JSON's, so that a JSON text means the same.

Source: limits.md T12; Unicode 15 §23.2 (C1), UAX #9 (marks of direction); RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_HALVES: Final = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""``text`` with ``\uXXXX`` for each character that can't be seen; two of them beyond U+FFFF."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def writable(text: str) -> str:
    """``text`` with U+FFFD for each half of a surrogate pair, which JSON's escapes can spell and UTF-8 can't."""
    return _HALVES.sub("\ufffd", text)


def printable_json(value: Any) -> str:
    """A value as JSON on one line, in which text stays readable. Raises TypeError for what is no JSON."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
