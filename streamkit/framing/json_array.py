"""Parse a JSON array that is streamed element by element, as Gemini sends it by default (dialects.md §0.3, §5.1).

The elements, which must be objects, are the frames. An element ends at its closing brace; the parser does not wait for the
comma, which may arrive with the next element. Between two reads it keeps one partial element. The JSON of an element is
checked by the decoder.

An element truncated by the end of the input is emitted with ``terminated=False``, and a missing closing bracket is counted
(``array_unclosed``). Anything but a comma and white space between elements, and any text after the array, is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, cast

from streamkit.errors import BrokenFrame, EventTooLong, NeedsRepair, NotThisDialect
from streamkit.framing.frame import Beginning, Frame, Parser, describe_beginning
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport

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
NOWHERE: Final = -1  #: the result of ``end`` if the object does not end in this piece


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


Place: TypeAlias = Literal["start", "first", "element", "after", "next", "end", "strange"]
#: For each place outside the elements, the allowed bytes and the place that each leads to.
_TURNS: Final[Mapping[Place, Mapping[int, Place]]] = {
    "start": {ord("["): "first"},
    "first": {ord("{"): "element", ord("]"): "end"},
    "after": {ord(","): "next", ord("]"): "end"},
    "next": {ord("{"): "element"},
    "end": {},
}
_OBJECTIONS: Final[Mapping[Place, str]] = {
    "after": "a missing comma after an element of the array",
    "next": "an element of the array that is not an object",
    "end": "text after the array",
}
_white: Final = cast("Callable[[bytes, int], re.Match[bytes]]", re.compile(rb"[ \t\n\r]*+").match)


class JSONArrayParser(Parser):
    """The machine of ``parse_json_array``: bytes to frames, one for each element."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        super().__init__(
            limits, report
        )  # no boundary is after the closing bracket, so more elements can be written there
        self._limit = limits.event_bytes
        self._beginning = Beginning()
        self._place: Place = "start"
        self._scanner = ObjectScanner()
        self._at = 0  #: offset of the current read in the stream
        self._element_at = 0  #: offset of the current element in the stream

    def push(self, chunk: bytes, /) -> None:
        if self.fault is not None:
            return
        self._report.bytes_in += len(chunk)
        if self.several is not None:
            self.several()
        if self._beginning.open:
            chunk = self._beginning.take(chunk)
            self._at = self._at or self._beginning.mark
        self._read(chunk)
        self._at += len(chunk)
        if self.fault is not None:
            raise self.fault

    push_batch = push

    def push_end(self) -> None:
        """End the input: emit an incomplete last element. Raise NotThisDialect if the input is no array of objects."""
        if self.fault is None and (self._beginning.release() or self._place == "strange"):
            self.fault = self._no_array()
            raise self.fault
        if self.fault is None and self._place in {"after", "next"}:
            try:
                self._report.repair("array_unclosed")
            except NeedsRepair as error:
                self.fault = error
                raise
        self.push_rest()

    def push_rest(self) -> None:
        if self.fault is None and self._place == "element":
            self._place = "after"
            self._report.frames += 1
            self.emit(Frame(self._take(), self._element_at, "message", "", False))

    def _read(self, chunk: bytes) -> None:
        at = 0
        while self.fault is None:
            if self._place == "element":
                end = self._scanner.end(chunk, at)
                whole = end != NOWHERE
                piece = chunk[at : end if whole else len(chunk)]
                if len(self._partial) + len(piece) > self._limit:
                    self.fault = EventTooLong(self._limit, offset=self._element_at)
                    return
                if not whole:
                    self._partial += piece
                    return
                at, self._place = end, "after"
                self.boundary = self._at + at
                self._report.frames += 1
                self.emit(Frame(self._take() + piece, self._element_at))
                continue
            at = _white(chunk, at).end()
            if at == len(chunk):
                return
            taken = self._turn(chunk[at], self._at + at)
            if taken is None:
                return
            at += taken

    def _turn(self, byte: int, offset: int) -> int | None:
        """Go to the place that ``byte`` leads to. Return how many bytes to skip, or None if reading must stop."""
        place = _TURNS.get(self._place, {}).get(byte)
        if place is not None:
            self._place = place
            if place != "element":
                return 1
            self._scanner, self._element_at = ObjectScanner(), offset
            return 0
        if self._place in _OBJECTIONS:
            self.fault = BrokenFrame(_OBJECTIONS[self._place], bytes([byte]), offset=offset)
            return None
        # the fault is reported later, with enough bytes to describe, so that any split of the input gives one message
        self._place = "strange"
        if not self._beginning.open:
            self.fault = self._no_array()
        return None

    def _no_array(self) -> NotThisDialect:
        return NotThisDialect("a streamed JSON array of objects", describe_beginning(self._beginning.kept))


def parse_json_array(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """Create a stage that takes the bytes of a streamed JSON array and yields batches of frames.

    The bytes may be split at any point. The elements of the array must be objects. If the input has a fault, the stage
    yields the frames before the fault, and then raises ``EventTooLong``, ``NotThisDialect`` or ``BrokenFrame``.
    ``BrokenFrame`` means that there is unexpected text between the elements or after the array.
    """
    return Stage(
        "parse_json_array", lambda report: JSONArrayParser(limits=limits, report=report), takes="bytes", gives="frames"
    )
