"""Find the end of a JSON value in growing text.

Brackets and strings are scanned, each character once; ``check_json`` validates the value later. A character that JSON never
has outside strings is a fault, since an unclosed value would otherwise take all text after it.
"""

from __future__ import annotations

from typing import Final

from streamkit.tool_calls.json_scanner import runs

_outside: Final = runs(r"[\s:,\w.+-]*")
_inside: Final = runs(r'[^"\\]*')
_scalar: Final = runs(r"[\w.+-]*")


class JSONValue:
    """Finds the end of one value, which begins with the first character fed."""

    __slots__ = ("_depth", "_escaped", "_in_string", "done", "faulty", "kind")

    def __init__(self) -> None:
        self.done = False
        self.faulty = False
        self.kind = ""  #: ``object``, ``array``, ``string`` or ``scalar``; empty before the first character
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> int:
        """Return how many characters belong to the value. If not all do, the value is ``done`` or ``faulty`` there."""
        at, size = 0, len(text)
        if not self.kind and text:
            self.kind = {"{": "object", "[": "array", '"': "string"}.get(text[0], "scalar")
            self.faulty = self.kind == "scalar" and not _scalar(text, 0).end()
        while at < size and not self.done and not self.faulty:
            if self._in_string:
                at = self._string(text, at)
            elif self.kind == "scalar":
                end = _scalar(text, at).end()
                at, self.done = end, end < size
            else:
                at = self._structure(text, at)
        return at

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        at = _inside(text, at).end()
        if at == len(text):
            return at
        if text[at] == '"':
            self._in_string = False
            self.done = not self._depth
        else:
            self._escaped = True
        return at + 1

    def _structure(self, text: str, at: int) -> int:
        at = _outside(text, at).end() if self._depth else at
        if at == len(text):
            return at
        letter = text[at]
        if letter == '"':
            self._in_string = True
        elif letter in "{[":
            self._depth += 1
        elif letter in "}]":
            self._depth -= 1
            self.done = not self._depth
        else:
            self.faulty = True
            return at
        return at + 1
