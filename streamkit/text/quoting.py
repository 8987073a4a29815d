"""Quote text of a client or a provider in a message: short, in quotes, and without text that looks like a secret.

A value in an error may be megabytes long. So messages never contain it unchanged, but as ``quoted(value)`` or, for a list,
``quoted_all(values)``; a test checks this (``tests/text/test_quoting.py``). Error classes also limit their whole message
(``shortened``).

Source: limits.md T6, T12.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from reprlib import Repr
from typing import Final

from streamkit.text.redact import excerpt

#: Maximum length of a quoted word: enough to recognise it.
QUOTED_CHARS: Final = 80
#: Maximum length of a member's name in a path.
STEP_CHARS: Final = 60
#: Maximum number of quoted words in a list.
QUOTED_WORDS: Final = 8
#: Makes the short ``repr`` of a value that is no text.
_BRIEF: Final = Repr()
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
