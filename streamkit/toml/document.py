"""A TOML file as a document: its values, and findings with line and column for invalid values.

tomllib returns only the values, so ``TOMLLines`` finds the line and column of each key in a text that tomllib has accepted.
A path is the keys that lead to a value, including indices of arrays. The position of a table is its header, or the first key
that leads into the table. The position of an array's item is its beginning.

Source: TOML 1.0, "Keys", "Array", "Table", "Inline Table", "Array of Tables".
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from streamkit.toml.findings import ConfigError, Finding, KeyPath, dotted


@frozen
class TOMLDocument:
    """The values of a file. Messages call the file ``name``."""

    name: str
    values: dict[str, Any]
    lines: TOMLLines
    options: frozenset[str] = frozenset()  #: keys of the table [server] that were set on the command line

    def finding(self, path: KeyPath, reason: str) -> Finding:
        if path[:1] == ("server",) and path[1:2] and path[1] in self.options:
            return Finding(file=f"--{path[1]}", reason=reason)
        place = self.lines.position(path)
        return Finding(file=self.name, line=place.line, column=place.column, path=dotted(path), reason=reason)


def read_toml(path: Path) -> str:
    """Return the text of a file. Raise ConfigError if the file can't be read or is not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError([Finding(file=str(path), reason=f"can't be read: {error.strerror}")]) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([Finding(file=str(path), line=line, reason="not UTF-8; save the file as UTF-8")]) from None


def parse_toml(text: str, name: str) -> TOMLDocument:
    """Parse the text of the file ``name``. Raise ConfigError for invalid TOML."""
    try:
        return TOMLDocument(name, tomllib.loads(text), TOMLLines(text))
    except RecursionError:
        fault = Finding(file=name, reason="its arrays or tables are nested too deeply")
    except ValueError as error:
        fault = _syntax_fault(text, name, str(error))
    raise ConfigError([fault])


def _syntax_fault(text: str, name: str, message: str) -> Finding:
    """Return tomllib's error as a finding. The position at the end of its message becomes the finding's position."""
    reason, _, place = message.partition(" (at ")
    if reason == "Invalid value":
        reason = 'invalid value; write text in quotes ("text"), and true and false in lower case'
    if found := re.match(r"line (\d+), column (\d+)", place):
        return Finding(file=name, line=int(found[1]), column=int(found[2]), reason=reason)
    if place:  # at end of document
        end = position_at(text, len(text))
        return Finding(file=name, line=end.line, column=end.column, reason=f"{reason}, but the file ends")
    return Finding(file=name, reason=reason)


# -- positions ---------------------------------------------------------------------------------------------------------


_SPACE: Final = re.compile(r"[ \t]*")
_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
#: A string in three quotes may end with two more quotes, which belong to the string.
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Numbers, booleans and times, which may contain a space.
_WORD: Final = re.compile(r"[^,\]}#\n]+")


@frozen
class Position:
    """A position in a text. Both numbers start at 1; columns count characters."""

    line: int
    column: int


class TOMLLines:
    """The positions of all keys of ``text``, which tomllib must have accepted."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")  # as tomllib does
        self._offsets = _Reader(self._text).read()

    def position(self, path: KeyPath) -> Position:
        """Return the position of ``path``, or of the innermost existing table around it if the key does not exist."""
        while path and path not in self._offsets:
            path = path[:-1]
        return position_at(self._text, self._offsets.get(path, 0))


def position_at(text: str, offset: int) -> Position:
    """Return the line and column of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[KeyPath, int] = {}
        self.last: dict[KeyPath, int] = {}  # for each array of tables, the index of the current table

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
        """Read a dotted key. Return its names and the offset of each."""
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
        """Move past a match of ``pattern`` at the current place, and return the matched text."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]


def _unquoted(key: str) -> str:
    """Return the name in a quoted key; tomllib decodes the escapes."""
    (name,) = tomllib.loads(f"{key} = 0")
    return name
