"""A TOML file as a document: its values, and findings with line and column for invalid values."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from attrs import frozen

from streamkit.toml.findings import ConfigError, Finding, KeyPath, dotted
from streamkit.toml.lines import TOMLLines, position_at


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
    if found := re.match(r"line (\d+), column (\d+)", place):
        return Finding(file=name, line=int(found[1]), column=int(found[2]), reason=reason)
    if place:  # at end of document
        end = position_at(text, len(text))
        return Finding(file=name, line=end.line, column=end.column, reason=f"{reason}, but the file ends")
    return Finding(file=name, reason=reason)
