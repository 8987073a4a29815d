"""Where the keys of a TOML text stand: tomllib gives the values, this the lines and columns.

It finds its way through text that tomllib has accepted, and checks nothing: whatever is read here is known to be well formed.
A path is the keys that lead to a value, positions in arrays among them. A table's place is its header, or else the first key
that leads into it; that of an array's element is where it begins.

Source: TOML 1.0, "Keys", "Array", "Table", "Inline Table", "Array of Tables".
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

from attrs import frozen

from streamkit.toml.findings import KeyPath

_SPACE: Final = re.compile(r"[ \t]*")
_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
#: A text in three quotes may end with two more of them, which belong to it.
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Numbers, booleans and times, which may have a space in them.
_WORD: Final = re.compile(r"[^,\]}#\n]+")


@frozen
class Position:
    """A place in a text, both numbers from 1; columns count characters."""

    line: int
    column: int


class TOMLLines:
    """The places of all keys of ``text``, which tomllib has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")  # as tomllib does
        self._offsets = _Reader(self._text).read()

    def position(self, path: KeyPath) -> Position:
        """Where ``path`` stands; for one that is not there, where the innermost table that should have it does."""
        while path and path not in self._offsets:
            path = path[:-1]
        return position_at(self._text, self._offsets.get(path, 0))


def position_at(text: str, offset: int) -> Position:
    """The line and column of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[KeyPath, int] = {}
        self.last: dict[KeyPath, int] = {}  # of each array of tables, the position of the table that is being filled

    def read(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)
        return self.found

    def header(self) -> KeyPath:
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        *outer, (name, offset) = self.key()
        self.at += brackets
        path: KeyPath = ()
        for part, place in outer:
            path = (*path, part)
            self.found.setdefault(path, place)
            if path in self.last:
                path = (*path, self.last[path])
        path = (*path, name)
        if brackets == 2:
            self.found.setdefault(path, offset)
            self.last[path] = self.last.get(path, -1) + 1
            path = (*path, self.last[path])
        self.found[path] = offset
        return path

    def pair(self, table: KeyPath) -> None:
        path = table
        for name, offset in self.key():
            path = (*path, name)
            self.found.setdefault(path, offset)
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def key(self) -> list[tuple[str, int]]:
        """The names of a dotted key and where each begins; what follows it is next."""
        names = []
        while True:
            self.skip(_SPACE)
            start = self.at
            bare = self.skip(_BARE_KEY)
            names.append((bare or _unquoted(self.skip(_STRING)), start))
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def value(self, path: KeyPath) -> None:
        if self.text[self.at] == "[":
            self.array(path)
        elif self.text[self.at] == "{":
            self.inline_table(path)
        elif not self.skip(_STRING):
            self.skip(_WORD)

    def array(self, path: KeyPath) -> None:
        index = 0
        self.at += 1
        self.skip(_BLANK)
        while self.text[self.at] != "]":
            self.found[(*path, index)] = self.at
            self.value((*path, index))
            self.separator()
            index += 1
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        self.skip(_BLANK)
        while self.text[self.at] != "}":
            self.pair(path)
            self.separator()
        self.at += 1

    def separator(self) -> None:
        self.skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self.skip(_BLANK)

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Go past what matches here; returns it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]


def _unquoted(key: str) -> str:
    """A key in quotes; tomllib knows the escapes."""
    (name,) = tomllib.loads(f"{key} = 0")
    return name
