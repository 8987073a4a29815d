"""Make text of a client or a provider safe to show: quoted in a message, or escaped.

A value in an error may be megabytes long and look like a secret, so messages contain it only as ``quoted(value)`` or
``quoted_all(values)``; a test checks this (``tests/text/test_quoting.py``). Error classes also limit their whole message
(``shortened``).

``printable`` is for text that must not control a terminal, break a line or change the reading direction. All characters that
Unicode calls unprintable are escaped. The escapes are JSON's, so a JSON text keeps its meaning.

Source: limits.md T6, T12; Unicode 15 §23.2 (C1), UAX #9 (direction marks); RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from itertools import islice
from reprlib import Repr
from typing import Any, Final

from streamkit.text.redact import excerpt

QUOTED_CHARS: Final = 80  #: maximum length of a quoted word: enough to recognise it
STEP_CHARS: Final = 60  #: maximum length of a member's name in a path
QUOTED_WORDS: Final = 8  #: maximum number of quoted words in a list
_BRIEF: Final = Repr()  #: makes the short ``repr`` of a value that is no text
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother = 2, 40, 40


def quoted(value: object, chars: int = QUOTED_CHARS) -> str:
    """Quote a value for a message: a text in quotes with at most ``chars`` characters; any other value as a short ``repr``."""
    if isinstance(value, str):
        return repr(excerpt(value, chars))
    if isinstance(value, bytes | bytearray):
        return repr(excerpt(value[: 4 * chars].decode("utf-8", "backslashreplace"), chars))
    return excerpt(_BRIEF.repr(value), chars)


def quoted_all(values: Collection[object]) -> str:
    """Quote the first few of several values, and add how many more there are."""
    more = [f"{len(values) - QUOTED_WORDS:,} more"] if len(values) > QUOTED_WORDS else []
    return ", ".join([*map(quoted, islice(values, QUOTED_WORDS)), *more])


def steps(path: Iterable[str | int]) -> str:
    """Return a path as ``.messages[0].content``, with long names shortened."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shortened(step, STEP_CHARS)}" for step in path)


def shortened(text: str, chars: int) -> str:
    """Return a text shortened to at most ``chars`` characters, with ``…`` at the end if truncated. Secrets are not removed."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


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
