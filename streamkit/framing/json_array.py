"""A JSON array that is streamed element by element, as Gemini sends it unless asked for events (dialects.md §0.3, §5.1).

Theory: the array is the stream and its elements are the frames. An element is over at its own closing brace, without a
look at the comma, which may come with the next one. What a read leaves behind is one partial element.

Beyond that: a byte order mark is taken off; an element that the input's end cut off is handed over, marked
``terminated=False``; a missing bracket at the end is counted (``array_unclosed``). Input that begins otherwise is no such
array, and what stands between elements but is neither comma nor white space is a fault, as is anything behind the array.

It refuses elements that are no objects, which nobody streams, and to parse those that are: that is the decoder's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, cast

from streamkit.errors import BrokenFrame, EventTooLong, NeedsRepair, NotThisDialect
from streamkit.framing.frame import Beginning, Frame, describe_beginning
from streamkit.framing.json_object import NOWHERE, ObjectScanner
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.report import StreamReport

Place: TypeAlias = Literal["start", "first", "element", "behind", "next", "end", "strange"]
#: Where each byte leads that may stand outside the elements.
_TURNS: Final[Mapping[Place, Mapping[int, Place]]] = {
    "start": {ord("["): "first"},
    "first": {ord("{"): "element", ord("]"): "end"},
    "behind": {ord(","): "next", ord("]"): "end"},
    "next": {ord("{"): "element"},
    "end": {},
}
_OBJECTIONS: Final[Mapping[Place, str]] = {
    "behind": "no comma behind an element of the array",
    "next": "an element of the array that is no object",
    "end": "text behind the array",
}
_white: Final = cast("Callable[[bytes, int], re.Match[bytes]]", re.compile(rb"[ \t\n\r]*+").match)


class JSONArrayParser(Link):
    """The machine: bytes to frames, one for each element."""

    fault: Exception | None = None

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        #: Where the last whole element ends. The closing bracket is not behind it: it stays to be put elsewhere.
        self.boundary = 0
        self._limit = limits.event_bytes
        self._report = report if report is not None else StreamReport()
        self._beginning = Beginning()
        self._place: Place = "start"
        self._scanner = ObjectScanner()
        self._partial = bytearray()  # not a list of fragments: see SSEParser
        #: Where the read begins, and the element that is being read.
        self._at = 0
        self._element_at = 0

    def push(self, chunk: bytes, /) -> None:
        """Read the elements that ``chunk`` completed, possibly none. After a fault nothing more is read."""
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
        """The input ended: read the element that was being read. Raises NotThisDialect if this was no such array."""
        if self.fault is None and (self._beginning.release() or self._place == "strange"):
            self.fault = self._no_array()
            raise self.fault
        if self.fault is None and self._place in {"behind", "next"}:
            try:
                self._report.repair("array_unclosed")
            except NeedsRepair as error:
                self.fault = error
                raise
        self.push_rest()

    def push_rest(self) -> None:
        """The input failed: read the element that was being read."""
        if self.fault is None and self._place == "element":
            self._place = "behind"
            self._report.frames += 1
            self.emit(Frame(self._take(), self._element_at, "message", "", False))

    def _take(self) -> bytes:
        """The partial element, copied out once."""
        element = bytes(self._partial)
        self._partial.clear()
        return element

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
                at, self._place = end, "behind"
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
        """Go on to the place that ``byte`` leads to: how many bytes that takes; None where nothing may be read on."""
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
        self._place = "strange"  # how it begins is told once there is enough of it, so that the cuts do not matter
        if not self._beginning.open:
            self.fault = self._no_array()
        return None

    def _no_array(self) -> NotThisDialect:
        return NotThisDialect("a streamed JSON array of objects", describe_beginning(self._beginning.kept))


def parse_json_array(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """A stage from bytes, cut anyhow, to batches of frames: the objects in one streamed JSON array.

    Raises what ``JSONArrayParser.fault`` holds, after the frames before it: ``EventTooLong``, ``NotThisDialect``,
    ``BrokenFrame`` for what stands between the elements or behind the array.
    """
    return Stage(
        "parse_json_array", lambda report: JSONArrayParser(limits=limits, report=report), takes="bytes", gives="frames"
    )
