"""Words of others in a message: what a client or a provider wrote, short, in quotes, without what looks like a secret.

The value in a refusal may be megabytes long. So a message never has it as it came, but ``quoted(value)``, or
``quoted_all(values)`` of a list, which a test holds (``tests/text/test_quoting.py``). The errors bound themselves besides
(``shortened``).

Source: limits.md T6, T12.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from reprlib import Repr
from typing import Final

from streamkit.text.redact import excerpt

#: Of a word that is no name of anything here, so much tells which it was.
QUOTED_CHARS: Final = 80
#: Of a member's name, in the path to it.
STEP_CHARS: Final = 60
#: Of a list of words so many are said.
QUOTED_WORDS: Final = 8
#: What is said of a value that is no text.
_BRIEF: Final = Repr()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother = 2, 40, 40


def quoted(value: object, chars: int = QUOTED_CHARS) -> str:
    """A value for a message: a text in quotes, of at most so many characters; of another value its ``repr``, shortened."""
    if isinstance(value, str):
        return repr(excerpt(value, chars))
    if isinstance(value, bytes | bytearray):
        return repr(excerpt(value[: 4 * chars].decode("utf-8", "backslashreplace"), chars))
    return excerpt(_BRIEF.repr(value), chars)


def quoted_all(values: Collection[object]) -> str:
    """The first of several values, each as ``quoted``, and how many more there are."""
    more = [f"{len(values) - QUOTED_WORDS:,} more"] if len(values) > QUOTED_WORDS else []
    return ", ".join([*map(quoted, islice(values, QUOTED_WORDS)), *more])


def steps(path: Iterable[str | int]) -> str:
    """The steps to a value, ``.messages[0].content``; long names are shortened."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shortened(step, STEP_CHARS)}" for step in path)


def shortened(text: str, chars: int) -> str:
    """A text of ours in at most so many characters; ``…`` ends one that is cut."""
    return text if len(text) <= chars else text[: chars - 1] + "…"
