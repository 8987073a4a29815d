"""Where one JSON object ends, in bytes that come in pieces: what a framing needs to know of JSON that no line end marks.

Theory: outside strings only brackets count, and inside them only the quote and the backslash. Runs between those are
skipped by regular expression, each byte once; a read leaves behind a depth and whether it ended inside a string or an
escape.

It refuses to judge: brackets of different kinds are not told apart, and whether the text is JSON is the decoder's business.

Source: RFC 8259 §2, §7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast

Matcher: TypeAlias = Callable[[bytes, int], re.Match[bytes]]

#: Up to a bracket or the end, whole strings on the way included; a string that the end cut off sets a group.
_plain: Final = cast(
    "Matcher",
    re.compile(
        rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|(?P<escape>\\)?\Z(?P<string>))[^"\[\]{}]*+)*+', re.DOTALL
    ).match,
)
#: From inside a string to its quote, to a backslash that ends the piece, or to the end.
_in_string: Final = cast("Matcher", re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL).match)
_BACKSLASH: Final = ord("\\")
_OPENERS: Final = frozenset(b"[{")
#: The object does not end in this piece.
NOWHERE: Final = -1


class ObjectScanner:
    """Finds the bracket that closes the first one it sees."""

    __slots__ = ("_depth", "_escape", "_string")

    def __init__(self) -> None:
        self._depth = 0
        self._string = False
        self._escape = False

    def end(self, piece: bytes, at: int = 0) -> int:
        """The index behind the closing bracket, or ``NOWHERE`` if ``piece`` ends before it. Reads from ``at`` on."""
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
        """The index behind the quote; still inside the string if ``piece`` ends before it."""
        if self._escape and at < size:
            at += 1
            self._escape = False
        at = _in_string(piece, at).end()
        if at < size:
            self._escape = piece[at] == _BACKSLASH  # else it is the quote
            self._string = self._escape
        return at + 1
