"""Parse and write newline-delimited JSON: one document a line, as Ollama streams it (dialects.md §0.3).

Only LF ends a line, and one CR before the LF belongs to the line end. A CR elsewhere is JSON white space, and raw U+2028,
U+2029 and U+0085 are JSON text. Blank lines and a byte order mark are ignored. A last line without a line end is emitted with
``terminated=False``. A first line that does not begin with ``{`` is a fault at once, so that an error page is not reported as
broken JSON. The JSON of a line is checked by the decoder.
"""

from __future__ import annotations

from streamkit.errors import EventTooLong, LineTooLong, NotThisDialect, UsageError
from streamkit.framing.frame import (
    BEGINNING_BYTES,
    WHITE,
    Beginning,
    Frame,
    FrameRun,
    Parser,
    describe_beginning,
    escape_separators,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted


class NDJSONParser(Parser):
    """The machine of ``parse_ndjson``: bytes to frames, one for each line that is not blank."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        super().__init__(limits, report)
        #: A line is an event here, so the lower of the two limits applies.
        self._cap = min(limits.line_bytes, limits.event_bytes)
        self._beginning = Beginning()
        self._object_seen = False
        self._at = 0

    def push(self, chunk: bytes, /) -> None:
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
        """End the input: emit a last line without line end. Raise NotThisDialect if the input is no newline-delimited JSON."""
        if self.fault is None:
            self._partial += self._beginning.release()
            self._check(self._partial, ended=True)
        self.push_rest()

    def push_rest(self) -> None:
        """Emit the incomplete line after the input failed, unless it is the first line and can't be an object."""
        line = self._take()
        if self.fault is None and self._object_seen and line and not line.isspace():
            self._report.frames += 1
            self.emit(Frame(line, self._at, "message", "", False))

    def _read(self, lines: list[bytes]) -> None:
        """Emit frames for whole lines, given without their LF."""
        at = self._at
        if lines and not self._object_seen:
            self._check(lines[0], ended=True)
        if self.emit_run is not None and len(lines) > 1 and self._are_plain(lines):
            self._at = self.boundary = at + len(lines) + sum(map(len, lines))
            self.emit_run(FrameRun(lines, at, "message", "", 1))  # ``emit_run`` counts the frames
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
        """Return whether every line is a frame unchanged: none is blank, too long, or has a CR."""
        cap = self._cap
        return (
            self._object_seen
            and max(map(len, lines)) < cap
            and all(map(bytes.strip, lines))
            and b"\r" not in b"".join(lines)
        )

    def _check(self, line: bytes | bytearray, *, ended: bool) -> None:
        """Raise if ``line``, which may be incomplete, is too long, or is the first line and no object."""
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
        """Return the start of a first line that is no object; empty while there are too few bytes to describe.

        The length of the result does not depend on how the input was split, and never exceeds the limit for a line. So the
        error message is the same for every split.
        """
        sample = min(BEGINNING_BYTES, self._cap)
        start = bytes(line[:sample]).lstrip(WHITE)
        if (
            not start and ended and len(line) - line.endswith(b"\r") <= self._cap
        ):  # a longer line is reported as too long, however the input was split
            start = bytes(line).lstrip(WHITE)[:sample]
        self._object_seen = start.startswith(b"{")
        return start if not self._object_seen and (ended or len(line) >= sample) else b""


def parse_ndjson(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """Create a stage that takes the bytes of an NDJSON stream and yields batches of frames.

    The bytes may be split at any point. If the input has a fault, the stage yields the frames before the fault, and
    then raises ``LineTooLong``, ``EventTooLong`` or ``NotThisDialect``.
    """
    return Stage(
        "parse_ndjson", lambda report: NDJSONParser(limits=limits, report=report), takes="bytes", gives="frames"
    )


def serialize_ndjson(document: bytes) -> bytes:
    """Write one line. Raise UsageError for raw CR or LF in ``document``, which would split the document in two."""
    if b"\n" in document or b"\r" in document:
        raise UsageError(f"a document of newline-delimited JSON must be one line, not {quoted(document)}")
    return escape_separators(document) + b"\n"
