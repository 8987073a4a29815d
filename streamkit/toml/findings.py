"""Faults of a configuration: the position, the fault and the remedy.

A value of the file is shown only if it may be a misspelt keyword: people paste API keys into the strangest places, and text
that looks like a key is never repeated.

Source: limits.md T6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from attrs import frozen

from streamkit.errors import UsageError
from streamkit.text import quoting

#: The keys that lead to a value, including indices of arrays: ``("routes", 0, "models", 1)``.
KeyPath: TypeAlias = tuple[str | int, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
SHOWN_CHARS: Final = 30  #: longest word shown: keywords and names of upstreams are shorter, API keys are longer


@frozen(kw_only=True)
class Finding:
    """A fault or a warning at a position of the file. ``str(finding)`` is one line."""

    file: str
    line: int | None = None  #: from 1; None: the file as a whole
    column: int | None = None  #: from 1, in characters
    path: str = ""  #: ``upstreams.openai.dialect``
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.path, self.reason) if part)


class ConfigError(UsageError):
    """A configuration is invalid. ``findings`` are all faults in the order of the file; the message has one line for each."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


class Refusal(ValueError):
    """A value is invalid. ``at`` is the path within the value to the invalid part."""

    def __init__(self, reason: str, *, at: KeyPath = ()) -> None:
        super().__init__(reason)
        self.at = at


def refuse_all(refusals: Iterable[Refusal]) -> None:
    """Raise all refusals together, if there are any: a user corrects them at once."""
    if found := [*refusals]:
        raise ExceptionGroup("refused", found)


def dotted(path: KeyPath) -> str:
    """Return a path in TOML's notation: ``upstreams."my own".headers``, with ``routes[0]`` for an item of an array."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f"{'.' if text else ''}{quoted(key, plain=_BARE.fullmatch(key) is not None)}"
    return text


def quoted(text: str, *, plain: bool = False) -> str:
    """Quote a word of the file for a message, escaped, and never anything that may be a key. ``plain``: without quotes."""
    if quoting.without_secrets(text) != text:
        return "(what looks like a key)"
    if len(text) > SHOWN_CHARS:
        return "(a long word)"
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def meant(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "base_url"?`` if ``word`` resembles a known word, else a list of the known words."""
    known = list(known)
    near = quoting.meant(word, known, quoted)
    return near or (f"; known: {', '.join(map(quoted, known))}" if known else "")
