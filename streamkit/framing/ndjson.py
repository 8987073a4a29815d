"""Newline-delimited JSON: one document a line, as Ollama streams it (dialects.md §0.3).

Theory: only LF ends a line, and one CR before it belongs to the line end; a CR elsewhere is white space of the JSON,
and raw U+2028, U+2029 or U+0085 are its text. Blank lines are nothing. A read leaves behind one partial line.

Beyond that: a byte order mark is taken off; a last line without its end is handed over, marked ``terminated=False``;
a first line that does not begin with ``{`` is a fault at once, so that an error page is not reported as broken JSON.

It refuses to parse: whether a line is whole JSON, and an object, is the decoder's business.
"""

from __future__ import annotations

from streamkit.errors import EventTooLong, LineTooLong, NotThisDialect, StreamkitError, UsageError
from streamkit.framing.frame import BEGINNING_BYTES, WHITE, Beginning, Frame, describe_beginning, escape_separators
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted


class NDJSONParser:
    """The machine: bytes to frames, one for each line that is not blank."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        self.fault: StreamkitError | None = None
        #: All before this byte of the stream is whole lines.
        self.boundary = 0
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        #: A line is an event here, so the lower of the two limits holds.
        self._cap = min(limits.line_bytes, limits.event_bytes)
        self._beginning = Beginning()
        self._object_seen = False
        self._partial = bytearray()  # not a list of fragments: see SSEParser
        self._at = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """The lines that ``chunk`` completed, possibly none. After a fault nothing more is read."""
        frames: list[Frame] = []
        if self.fault is not None:
            return frames
        self._report.bytes_in += len(chunk)
        if self._beginning.open:
            chunk = self._beginning.take(chunk)
            self._at = self._at or self._beginning.mark
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._partial:
            lines[0] = self._take() + lines[0]
        self._read(lines, frames)
        if rest and self.fault is None:
            self._partial += rest
            self._refuses(self._partial, ended=False)
        self._report.frames += len(frames)
        return frames

    def finish(self) -> list[Frame]:
        """The input ended: the last line if it lacked its line end. Sets a fault if this was no such stream."""
        if self.fault is None:
            self._partial += self._beginning.release()
            self._refuses(self._partial, ended=True)
        return self.abandon()

    def abandon(self) -> list[Frame]:
        """The input failed: the line that was being read, unless it is the first and can't be an object."""
        line = self._take()
        if self.fault is not None or not self._object_seen or not line or line.isspace():
            return []
        self._report.frames += 1
        return [Frame(line, self._at, "message", "", False)]

    def _take(self) -> bytes:
        """The partial line, copied out once."""
        line = bytes(self._partial)
        self._partial.clear()
        return line

    def _read(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Whole lines, without their LF."""
        at = self._at
        for line in lines:
            width = len(line) + 1
            if (width > self._cap or not self._object_seen) and self._refuses(line, ended=True, offset=at):
                return
            if line[-1:] == b"\r":
                line = line[:-1]  # noqa: PLW2901 - the CR is part of the line end
            if line and not line.isspace():
                frames.append(Frame(line, at))
            at += width
            self._at = self.boundary = at

    def _refuses(self, line: bytes | bytearray, *, ended: bool, offset: int | None = None) -> bool:
        """Set a fault if ``line``, perhaps only its beginning so far, is too long or is the first and no object."""
        offset = self._at if offset is None else offset
        if not self._object_seen and (found := self._other_beginning(line, ended=ended)):
            self.fault = NotThisDialect("newline-delimited JSON", describe_beginning(found), offset=offset)
        elif len(line) - line.endswith(b"\r") > self._cap:
            limits = self._limits
            if limits.line_bytes <= limits.event_bytes:
                self.fault = LineTooLong(limits.line_bytes, offset=offset)
            else:
                self.fault = EventTooLong(limits.event_bytes, offset=offset)
        return self.fault is not None

    def _other_beginning(self, line: bytes | bytearray, *, ended: bool) -> bytes:
        """What a first line begins with if not with ``{``; nothing as long as too little of it is there to describe.

        The sample is as long whatever the cuts, and no longer than a line may be: so is the error's text.
        """
        sample = min(BEGINNING_BYTES, self._cap)
        start = bytes(line[:sample]).lstrip(WHITE)
        if (
            not start and ended and len(line) - line.endswith(b"\r") <= self._cap
        ):  # a longer one is too long, however it was cut
            start = bytes(line).lstrip(WHITE)[:sample]
        self._object_seen = start.startswith(b"{")
        return start if not self._object_seen and (ended or len(line) >= sample) else b""


def parse_ndjson(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """A stage from bytes, cut anyhow, to batches of frames.

    Raises what ``NDJSONParser.fault`` holds, after the frames before it: ``LineTooLong``, ``EventTooLong``,
    ``NotThisDialect``.
    """
    return Stage(
        "parse_ndjson", lambda report: NDJSONParser(limits=limits, report=report), takes="bytes", gives="frames"
    )


def serialize_ndjson(document: bytes) -> bytes:
    """One line. Raises UsageError for raw CR or LF in ``document``: between tokens they would cut it in two."""
    if b"\n" in document or b"\r" in document:
        raise UsageError(f"a document of newline-delimited JSON must be one line, not {quoted(document)}")
    return escape_separators(document) + b"\n"
