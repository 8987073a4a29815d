"""Find the end of one JSON object in bytes that arrive in pieces, for framings without line ends.

Outside strings only brackets matter, inside strings only the quote and the backslash. Regular expressions skip the bytes
between, each byte once. Between two pieces, the state is the depth, and whether the piece ended inside a string or an escape.

Nothing is validated: brackets of different kinds count the same, and the decoder checks whether the text is JSON.

Source: RFC 8259 §2, §7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast

Matcher: TypeAlias = Callable[[bytes, int], re.Match[bytes]]

#: Matches up to a bracket or the end, including whole strings; the group ``string`` is set if the end truncates a string.
_plain: Final = cast(
    "Matcher",
    re.compile(
        rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|(?P<escape>\\)?\Z(?P<string>))[^"\[\]{}]*+)*+', re.DOTALL
    ).match,
)
#: Matches from inside a string to its quote, to a backslash at the end of the piece, or to the end.
_in_string: Final = cast("Matcher", re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL).match)
_BACKSLASH: Final = ord("\\")
_OPENERS: Final = frozenset(b"[{")
#: The result of ``end`` if the object does not end in this piece.
NOWHERE: Final = -1


class ObjectScanner:
    """Finds the bracket that closes the first bracket of the input."""

    __slots__ = ("_depth", "_escape", "_string")

    def __init__(self) -> None:
        self._depth = 0
        self._string = False
        self._escape = False

    def end(self, piece: bytes, at: int = 0) -> int:
        """Return the index after the closing bracket, or ``NOWHERE`` if ``piece`` ends before it. Read from ``at``."""
        size = len(piece)
        if self._string:
            at = self._leave_string(piece, at, size)
            if self._string:
                return NOWHERE
        while True:
            match = _plain(piece, at)
            at = match.end()
            if at == size:
                self._string = match["string"] is not None
                self._escape = match["escape"] is not None
                return NOWHERE
            self._depth += 1 if piece[at] in _OPENERS else -1
            at += 1
            if self._depth <= 0:
                return at

    def _leave_string(self, piece: bytes, at: int, size: int) -> int:
        """Return the index after the closing quote; the string stays open if ``piece`` ends before that quote."""
        if self._escape and at < size:
            at += 1
            self._escape = False
        at = _in_string(piece, at).end()
        if at < size:
            self._escape = piece[at] == _BACKSLASH  # otherwise the byte is the quote
            self._string = self._escape
        return at + 1
