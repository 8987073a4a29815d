"""What is wrong with a configuration: where it stands, what it is, what to do.

A value of the file is shown only where a word of ours may have been misspelt: people paste keys into the strangest places, and
what looks like one is never repeated.

Source: limits.md T6.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from attrs import frozen

from streamkit.errors import UsageError
from streamkit.text.redact import without_secrets

#: The keys that lead to a value, positions in arrays among them: ``("routes", 0, "models", 1)``.
KeyPath: TypeAlias = tuple[str | int, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Our own words, and names of upstreams, are shorter; a key is longer.
SHOWN_CHARS: Final = 30


@frozen(kw_only=True)
class Finding:
    """A fault, or a warning, at a place of the file. ``str`` of it is one line."""

    file: str
    line: int | None = None  #: from 1; None: the file as a whole
    column: int | None = None  #: from 1, in characters
    path: str = ""  #: ``upstreams.openai.dialect``
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.path, self.reason) if part)


class ConfigError(UsageError):
    """A configuration can't be used. ``findings`` are all its faults, in the order of the file; the message is a line each."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


class Refusal(ValueError):
    """A value can't be. ``at`` leads from it to the part of it that is at fault."""

    def __init__(self, reason: str, *, at: KeyPath = ()) -> None:
        super().__init__(reason)
        self.at = at


def dotted(path: KeyPath) -> str:
    """A path as TOML writes keys: ``upstreams."my own".headers``, and ``routes[0]`` for what an array holds."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f"{'.' if text else ''}{quoted(key, plain=_BARE.fullmatch(key) is not None)}"
    return text


def quoted(text: str, *, plain: bool = False) -> str:
    """A word of the file, for a message: nothing that moves a terminal, and nothing that may be a key. ``plain``: bare."""
    if without_secrets(text) != text:
        return "(what looks like a key)"
    if len(text) > SHOWN_CHARS:
        return "(a long word)"
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def meant(word: str, known: Iterable[str]) -> str:
    """``; did you mean "base_url"?`` for a word that resembles a known one, else which there are."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean {quoted(near[0])}?"
    return f"; there are {', '.join(map(quoted, known))}" if known else ""
