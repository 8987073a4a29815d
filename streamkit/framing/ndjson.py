"""Newline-delimited JSON: one document a line, as Ollama streams it (dialects.md §0.3).

Theory: only LF ends a line, and one CR before it belongs to the line end; a CR elsewhere is white space of the JSON,
and raw U+2028, U+2029 or U+0085 are its text. Blank lines are nothing. A read leaves behind one partial line.

Beyond that: a byte order mark is taken off; a last line without its end is handed over, marked ``terminated=False``;
a first line that does not begin with ``{`` is a fault at once, so that an error page is not reported as broken JSON.

It refuses to parse: whether a line is whole JSON, and an object, is the decoder's business.
"""

from __future__ import annotations

from streamkit.errors import EventTooLong, LineTooLong, NotThisDialect, UsageError
from streamkit.framing.frame import (
    BEGINNING_BYTES,
    WHITE,
    Beginning,
    Frame,
    FrameRun,
    describe_beginning,
    escape_separators,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted


class NDJSONParser(Link):
    """The machine: bytes to frames, one for each line that is not blank."""

    fault: Exception | None = None

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
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

    def push(self, chunk: bytes, /) -> None:
        """Read the lines that ``chunk`` completed, possibly none. After a fault nothing more is read."""
        if self.fault is not None:
            return
        self._report.bytes_in += len(chunk)
        if self._beginning.open:
            chunk = self._beginning.take(chunk)
            self._at = self._at or self._beginning.mark
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._partial:
            lines[0] = self._take() + lines[0]
        if len(lines) > 1 and self.several is not None:
            self.several()
        self._read(lines)
        if rest:
            self._partial += rest
            self._check(self._partial, ended=False)

    push_batch = push

    def push_end(self) -> None:
        """The input ended: read the last line if it lacked its line end. Raises NotThisDialect for no such stream."""
        if self.fault is None:
            self._partial += self._beginning.release()
            self._check(self._partial, ended=True)
        self.push_rest()

    def push_rest(self) -> None:
        """The input failed: read the line that was being read, unless it is the first and can't be an object."""
        line = self._take()
        if self.fault is None and self._object_seen and line and not line.isspace():
            self._report.frames += 1
            self.emit(Frame(line, self._at, "message", "", False))

    def _take(self) -> bytes:
        """The partial line, copied out once."""
        line = bytes(self._partial)
        self._partial.clear()
        return line

    def _read(self, lines: list[bytes]) -> None:
        """Whole lines, without their LF."""
        at = self._at
        if lines and not self._object_seen:
            self._check(lines[0], ended=True)
        if self.emit_run is not None and len(lines) > 1 and self._are_plain(lines):
            self._at = self.boundary = at + len(lines) + sum(map(len, lines))
            self.emit_run(FrameRun(lines, at, "message", "", 1))  # which counts its frames
            return
        for line in lines:
            width = len(line) + 1
            if width > self._cap or not self._object_seen:
                self._check(line, ended=True)
            if line[-1:] == b"\r":
                line = line[:-1]  # noqa: PLW2901 - the CR is part of the line end
            begin, at = at, at + width
            self._at = self.boundary = at
            if line and not line.isspace():
                self._report.frames += 1
                self.emit(Frame(line, begin))

    def _are_plain(self, lines: list[bytes]) -> bool:
        """Whether all lines are frames as they are: none is blank, too long, or has a CR."""
        cap = self._cap
        return (
            self._object_seen
            and max(map(len, lines)) < cap
            and all(map(bytes.strip, lines))
            and b"\r" not in b"".join(lines)
        )

    def _check(self, line: bytes | bytearray, *, ended: bool) -> None:
        """Raise if ``line``, perhaps only its beginning so far, is too long or is the first and no object."""
        offset, limits = self._at, self._limits
        if not self._object_seen and (found := self._other_beginning(line, ended=ended)):
            self.fault = NotThisDialect("newline-delimited JSON", describe_beginning(found), offset=offset)
        elif len(line) - line.endswith(b"\r") > self._cap:
            if limits.line_bytes <= limits.event_bytes:
                self.fault = LineTooLong(limits.line_bytes, offset=offset)
            else:
                self.fault = EventTooLong(limits.event_bytes, offset=offset)
        if self.fault is not None:
            raise self.fault

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
