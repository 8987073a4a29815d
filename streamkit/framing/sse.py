"""Parse and write event streams (``text/event-stream``), exactly as WHATWG HTML §9.2 defines them.

The only line ends are CR, LF and CRLF, since U+2028, U+2029 and U+0085 may be raw inside JSON (quirks.md R10, §10 cases 94 and
95). Payloads are not decoded, and an empty data field is data. Between two reads the parser keeps one partial line and the
data of one event, and it never searches a byte twice. It never reconnects: ``retry`` and ``last_event_id`` are for callers
that do.

Beyond the standard: a last event without its blank line is emitted with ``terminated=False`` (``last_event="keep"``). If a
dialect asks for it, a field named ``error`` is an event, and so is a bare JSON object after an event, on one line or several;
both are counted as repairs. Lines, events and names have limits. Input with text but no event is no event stream.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, Literal, get_args

from streamkit.errors import (
    EventTooLong,
    LineTooLong,
    NameTooLong,
    NeedsRepair,
    NotThisDialect,
    UsageError,
    check_words,
)
from streamkit.framing.frame import BEGINNING_BYTES, Beginning, Frame, FrameRun, Parser, cut_lines, describe_beginning
from streamkit.framing.json_array import NOWHERE, ObjectScanner
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import REPAIRS, StreamReport
from streamkit.text.quoting import quoted

LastEvent = Literal["keep", "drop"]
_NONE: Final = -1
_COLON: Final = ord(":")
_LF: Final = ord("\n")
_BRACE: Final = ord("{")
_RETRY_DIGITS: Final = 18  #: 18 digits of milliseconds are 31 million years; ``int`` rejects 4,301 digits
#: Number of bytes of a read that are split together ("a window"). The first number applies if most events of the last window
#: were alike, else the second number.
_WINDOWS: Final = 64 * 1024, 16 * 1024
_MANY: Final = 512  #: after this many bytes of events that are alike, the next events are split together, too
_FEW: Final = 16  #: after fewer bytes of such events, at least these are read line by line; doubles each time
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
#: The bytes of known ``event`` lines, each with the event name in the line. Dialects use few names, so all parsers share
#: this table.
_NAMES: Final = {b"": "message"}
_MOST_NAMES: Final = 256  #: maximum number of names in ``_NAMES``
_SHORT_NAME: Final = 64  #: maximum length in bytes of a name in ``_NAMES``
_EVENT_LINE: Final = re.compile(rb"event: ([^\r\n]{0,%d})\n" % _SHORT_NAME)
#: The result of ``_alike`` if no events are alike.
_NONE_ALIKE: Final[tuple[bytes, str, int, list[bytes]]] = b"data: ", "message", 1, []
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")

KEEP_ALIVE: Final = b": keep-alive\n\n"  #: the blank line is for clients that split at blank lines only


def has_comments_only(beginning: bytes) -> bool:
    """Return whether a stream's start is an event stream without data so far: comments, and fields other than data.

    The last line may be incomplete.
    """
    lines = [line for line in beginning.splitlines() if line]
    if len(beginning) >= BEGINNING_BYTES:
        lines.pop()
    return bool(lines) and all(line.startswith((b":", b"retry:", b"id:", b"event:")) for line in lines)


class SSEParser(Parser):
    """The machine of ``parse_sse``: bytes to frames.

    Time for a 329-byte event, compared with ``orjson.loads`` of the event (CPython 3.11, two shared cores), at reads of 64
    KiB: ``data`` alone 0.35, with CRLF 0.65, with an ``event`` line 0.5; with one event a read 0.25, with CRLF 1.8.
    """

    # Defaults that rarely change are on the class: with over thirty instance attributes a parser takes 1.3 KiB more.
    #: Reconnection time in milliseconds, once the stream has sent one.
    retry: int | None = None
    last_event_id = ""  #: the last event ID at the last blank line
    _any_event = False
    _is_idle = True  # True if nothing is pending: at the beginning, and after an event
    #: For the last event that was exactly one read: the bytes before its payload, the number of bytes around the payload, and
    #: the event's name. The number -1 matches no read.
    _head, _around, _name = b"", -1, "message"
    _after_cr = False
    _window = _WINDOWS[0]  # number of bytes to split together
    _at = 0  # offset of the current line
    _begin = _NONE  #: offset of the first field of the current event
    _size = 0  # size in bytes of the current event's lines
    _data: bytes | None = None  #: the data buffer of the current event (HTML §9.2.6)
    _event = ""  #: its event type buffer
    _bare: ObjectScanner | None = None  # the scanner of the bare object in the buffers, if there is one
    _repairs: Counter[str] | None = None  #: since the last frame, and counted with the next one
    _beginning: Beginning | None = None  # created if the first read is not one whole event
    _repaired_at = 0  # offset of the first of ``_repairs``

    def __init__(
        self,
        *,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
        last_event: LastEvent = "keep",
        stray_errors: bool = False,
        bare_body: bool = False,
    ) -> None:
        super().__init__(limits, report)  # comments and blank lines, too, end at a boundary
        #: The lower of the two limits: an event of at most this many bytes breaks neither.
        self._cap = min(limits.line_bytes, limits.event_bytes)
        self._id = ""  # set on the instance, where each event reads it in a quarter of the time
        self._keep_last = last_event == "keep"
        self._stray_errors = stray_errors
        self._bare_body = bare_body  #: True if a bare object may be the whole input
        self._names = _NAMES if limits.name_bytes >= _SHORT_NAME else {b"": "message"}
        self._more = bytearray()  #: the data lines of the current event after the first, each after an LF

    def push(self, chunk: bytes, /) -> None:
        if self._is_idle:  # shortcut for a read of one whole event, as nearly every read is: takes a third of the time
            size = len(chunk)
            data = chunk.removeprefix(self._head).removesuffix(b"\n\n")
            # 10 and 13 are LF and CR: searching for an int takes a tenth of the time of searching for bytes
            if (
                (len(data) + self._around == size or (data := self._payload_of(chunk)))
                and size <= self._cap
                and 10 not in data
                and 13 not in data
            ):
                report, at = self._report, self._at
                report.bytes_in += size
                report.frames += 1
                self._at = self.boundary = at + size
                emit = self.emit_payload
                if emit is None:
                    self.emit(Frame(data, at, self._name, self._id))
                else:
                    emit(data, at, self._name, self._id)
                return
        if self.fault is not None:
            return
        self._is_idle = False
        self._report.bytes_in += len(chunk)
        if not self._any_event:  # ``_begun`` handles input before the first event
            chunk = self._begun(chunk)
        if self._after_cr and chunk:
            chunk = self._without_lf(chunk)
        if chunk:
            if self.several is not None:
                self.several()
            self._cut(chunk)
        if self.fault is not None:
            raise self.fault
        self._is_idle = (
            self._any_event and self._begin == _NONE and not (self._partial or self._after_cr or self._repairs)
        )

    push_batch = push

    def _found(self, frame: Frame) -> None:
        """Emit a whole event, and count its repairs."""
        if self._repairs is not None:
            self._count_repairs()
        self._any_event = True
        self._report.frames += 1
        self.emit(frame)

    def _payload_of(self, chunk: bytes) -> bytes:
        """Return the payload of a read that is one event but begins differently from the last one, else empty bytes."""
        if type(chunk) is bytes and chunk.endswith(b"\n\n"):
            head, begun, rest = chunk.partition(b"data: ")
            name = self._names.get(head) or self._name_in(head)
            if name and begun:
                self._head, self._around, self._name = head + begun, len(head) + 8, name
                self._any_event = True
                return rest[:-2]
        return b""

    def _name_in(self, head: bytes) -> str | None:
        """Return the name if ``head`` is exactly one ``event`` line, else None. Also return None for a long name."""
        line = _EVENT_LINE.fullmatch(head)
        if line is None or len(line[1]) > self._limits.name_bytes:
            return None
        name = line[1].decode(errors="replace") or "message"
        return self._names.setdefault(head, name) if len(self._names) < _MOST_NAMES else name

    def _begun(self, chunk: bytes) -> bytes:
        """Return the bytes to parse from a read before the first event."""
        if self._beginning is None:
            self._beginning = Beginning()
        if self._beginning.open:
            chunk = self._beginning.take(chunk)
            self._at = self._at or self._beginning.mark
        return chunk

    def push_end(self) -> None:
        """End the input: emit a last event without its blank line. Raise NotThisDialect if the input is no event stream."""
        if self._is_idle and self._any_event:
            return
        self.push_rest()
        kept = b"" if self._beginning is None else self._beginning.kept
        if self.fault is None and not self._any_event and kept and not has_comments_only(kept):
            self.fault = NotThisDialect("an event stream", describe_beginning(kept))
            raise self.fault

    def push_rest(self) -> None:
        if self.fault is not None:
            return
        frame = self._last()
        if frame is not None:
            self._found(frame)
        self._count_repairs()

    def _last(self) -> Frame | None:
        line = (b"" if self._beginning is None else self._beginning.release()) + self._take()
        # A line without its end is used only if it is data: half a name or half an id would mislead.
        if self._bare is not None and line:
            self._add_data(line)
        elif line.partition(b":")[0] in ((b"data", b"error") if self._stray_errors else (b"data",)):
            self._begin = self._offset()
            self._field(line, self._begin)
        elif line[:1] == b"{" and self._is_bare(self._offset()):
            self._begin, self._data = self._offset(), line
        if self._data is None:
            return None
        self._any_event = True
        data = self._take_data()
        return Frame(data, self._begin, self._event or "message", self._id, False) if self._keep_last else None

    def _without_lf(self, chunk: bytes) -> bytes:
        """Skip an LF at the start of a read after a CR at the end of the last read: both are one line end."""
        self._after_cr = False
        if chunk[0] != _LF:
            return chunk
        if self.boundary == self._at:
            self.boundary += 1
        self._at += 1
        return chunk[1:]

    def _cut(self, chunk: bytes) -> None:
        """Parse a chunk: events that differ only in their payload together, all other events line by line."""
        chunk = bytes(chunk)  # ``bytes`` stays as it is, and a ``bytearray`` becomes ``bytes``
        first, begin = self._begun_payload(chunk)
        few = _FEW
        while begin < len(chunk) and self.fault is None:
            if self._begin == _NONE and self._repairs is None and not self._partial:
                window = chunk[begin : begin + self._window]
                read = self._read_alike(window, first)
                begin += read
                if len(window) >= _WINDOWS[1]:
                    self._window = _WINDOWS[2 * read <= len(window)]
                if read >= _MANY or first:
                    few, first = _FEW, []
                    # splitting searches a whole window, so it pays only while many events are alike
                    continue
            blank = _BLANK_LINE.search(chunk, begin + few)
            end = blank.end() if blank else len(chunk)
            self._read_piece(chunk[begin:end])
            begin, few = end, 2 * few

    def _begun_payload(self, chunk: bytes) -> tuple[list[bytes], int]:
        """Return the payload of an event that ``chunk`` ends, and the offset after that event; else nothing, and 0.

        An earlier read must have begun the event's only line.
        """
        if self._begin == _NONE and self._repairs is None and self._partial.startswith(b"data: "):
            end = chunk.find(b"\n")
            is_whole = chunk[end : end + 2] == b"\n\n" and 13 not in chunk[:end]
            if is_whole and end + 2 < len(chunk) and len(self._partial) + end <= self._cap:
                return [self._take()[6:] + chunk[:end]], end + 2
        return [], 0

    def _read_piece(self, piece: bytes) -> None:
        """Parse lines, of which the first may have begun earlier, and the last may be incomplete."""
        runs, rest = cut_lines(piece)
        if runs and self._partial:
            self._partial += runs[0][0][0]
            runs[0][0][0] = self._take()
        for lines, width in runs:
            self._read(lines, width)
            if self.fault is not None:
                return
        self._after_cr = piece.endswith(b"\r")
        if rest:
            first = self._partial[0] if self._partial else rest[0]
            if not self._refuses(first, len(self._partial) + len(rest), self._size, self._offset()):
                self._partial += rest

    def _read_alike(self, window: bytes, first: list[bytes]) -> int:
        """Parse the events at the start of ``window`` that have one data line, and one name or none. Return their size.

        The size is in bytes. Nothing may be pending except the payload of the ``first`` event, which began in an earlier read.
        Many streams have only such events: one split separates them all.
        """
        head, name, width, payloads = self._alike(window)
        if first:
            if head != b"data: " or width != 1:
                head, name, width, payloads = _NONE_ALIKE
            payloads = first + payloads
        if not payloads:
            return 0
        run = FrameRun(payloads, self._at, name, self._id, len(head) + 2 * width + head.count(b"\n") * (width - 1))
        size = len(payloads) * run.around + sum(map(len, payloads))
        self._at = self.boundary = self._at + size
        self._any_event = True
        if self.emit_run is not None:
            self.emit_run(run)  # ``emit_run`` counts the frames
        else:
            for frame in run.frames():
                self._found(frame)
        return size - run.around - len(first[0]) if first else size

    def _alike(self, window: bytes) -> tuple[bytes, str, int, list[bytes]]:
        """Split the events at the start of ``window`` that differ only in their payload.

        Return the bytes before each payload, the event name, the width of the line ends, and the payloads.
        """
        width = 1
        if 13 in window:
            size, window, width = len(window), window.replace(b"\r\n", b"\n"), 2
            if 13 in window or size - len(window) != window.count(b"\n"):
                return _NONE_ALIKE
        before, data, _ = window.partition(b"data: ")
        name = self._names.get(before) or self._name_in(before) or ""
        whole, blank, _ = window.rpartition(b"\n\n")
        head = before + data
        if not (name and data and blank):
            return _NONE_ALIKE
        payloads = whole[len(head) :].split(b"\n\n" + head)
        most = self._cap - len(head)
        if whole.count(b"\n") != (2 + before.count(b"\n")) * len(payloads) - 2 or max(map(len, payloads)) > most:
            payloads = payloads[: next(at for at, each in enumerate(payloads) if 10 in each or len(each) > most)]
        return head, name, width, payloads

    def _read(self, lines: list[bytes], width: int) -> None:
        """Parse whole lines whose line ends are ``width`` bytes long (HTML §9.2.6)."""
        at, begin, used = self._at, self._begin, self._size
        for line in lines:
            size = len(line)
            if not size:
                at += width
                self.boundary = at
                self.last_event_id = self._id
                if self._data is not None:
                    self._found(Frame(self._take_data(), begin, self._event or "message", self._id))
                begin, used, self._event = _NONE, 0, ""
                continue
            if used + size > self._cap and self._refuses(line[0], size, used, at if begin == _NONE else begin):
                return
            if line[0] == _COLON:
                at += size + width
                if begin == _NONE:
                    self.boundary = at
                continue
            if begin == _NONE:
                begin = at
            if line[:6] == b"data: " and self._data is None:
                self._data = line[6:]
            elif self._bare is not None or (line[0] == _BRACE and self._is_bare(begin)):
                if self._ends_bare(line):
                    at += size + width
                    self._count_repairs()  # may raise NeedsRepair, before the object counts as whole
                    self.boundary = at
                    self._found(Frame(self._take_data(), begin, self._event or "message", self._id))
                    begin, used, self._event = _NONE, 0, ""
                    continue
            else:
                self._field(line, begin)
                if self.fault is not None:
                    return
            used += size
            at += size + width
        self._at, self._begin, self._size = at, begin, used

    def _repair(self, kind: str, offset: int) -> None:
        """Record a repair, to be counted with the event that begins at ``offset``."""
        if self._repairs is None:
            self._repairs, self._repaired_at = Counter(), offset
        self._repairs[kind] += 1

    def _count_repairs(self) -> None:
        repairs, self._repairs = self._repairs, None
        try:
            for kind in () if repairs is None else repairs.elements():
                self._report.repair(kind)
        except NeedsRepair as error:
            self.fault = NeedsRepair(error.kind, REPAIRS[error.kind], offset=self._repaired_at)
            raise self.fault from error

    def _is_bare(self, offset: int) -> bool:
        """Return whether a line that begins with a brace begins an event: an error body written raw into the stream.

        This is so only after an event, since a whole JSON body is no event stream (quirks.md 111). A dialect may allow it.
        """
        if not self._stray_errors or self._data is not None:
            return False
        if not (self._any_event or self._bare_body):
            return False
        self._repair("sse_bare_json", offset)
        return True

    def _ends_bare(self, line: bytes) -> bool:
        """Add a line to the bare object. Return whether it is the object's last line."""
        if self._bare is None:
            self._bare = ObjectScanner()
        self._add_data(line)
        return self._bare.end(line) != NOWHERE

    def _offset(self) -> int:
        return self._at if self._begin == _NONE else self._begin

    def _refuses(self, first: int, size: int, used: int, offset: int) -> bool:
        """Set a fault if a line of at least ``size`` bytes is too long for an event of ``used`` bytes. Return whether it is.

        If the line breaks both limits, the fault names the one that a growing line reaches first, however the input is split.
        ``first`` is the line's first byte: a comment adds nothing to its event.
        """
        line_bytes = self._limits.line_bytes
        left = size if first == _COLON else self._limits.event_bytes - used
        if line_bytes < size and line_bytes <= left:
            self.fault = LineTooLong(line_bytes, offset=offset)
        elif size > left:
            self.fault = EventTooLong(self._limits.event_bytes, offset=offset)
        return self.fault is not None

    def _field(self, line: bytes, offset: int) -> None:
        """Process any line except a blank line and a comment (HTML §9.2.6, "process the field")."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = self._short(value, offset)
        elif name == b"data":
            self._add_data(value)
        elif name == b"id":
            if b"\0" not in value:
                self._id = self._short(value, offset)
        elif name == b"retry":
            if value.isdigit() and len(value.lstrip(b"0")) <= _RETRY_DIGITS:
                self.retry = int(value[-_RETRY_DIGITS:])
        elif name == b"error" and self._stray_errors:
            self._repair("sse_error_field", offset)
            self._event = "error"
            self._add_data(value)
        else:
            self._repair("sse_field_unknown", offset)

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
        else:
            self._more += b"\n"
            self._more += value

    def _take_data(self) -> bytes:
        data, self._data = self._data or b"", None
        self._bare = None
        if self._more:
            data += self._more
            self._more.clear()
        return data

    def _short(self, value: bytes, offset: int) -> str:
        if len(value) > self._limits.name_bytes:
            self.fault = NameTooLong(self._limits.name_bytes, offset=offset)
        return value.decode(errors="replace")


def parse_sse(
    *,
    limits: Limits = DEFAULT_LIMITS,
    last_event: LastEvent = "keep",
    stray_errors: bool = False,
    bare_body: bool = False,
) -> Stage[bytes, list[Frame]]:
    """Create a stage that takes the bytes of an SSE stream and yields batches of frames.

    The bytes may be split at any point. ``last_event="drop"`` drops a last event that has no blank line after it, as
    browsers do. With ``stray_errors=True``, the stage also reads two kinds of error that the SSE format does not allow:
    a bare JSON object after an event, and an ``error: …`` field (sent by older versions of llama.cpp). With
    ``bare_body=True``, the stage also reads an input that is a single bare JSON object. If the input has a fault, the
    stage yields the frames before the fault, and then raises ``LineTooLong``, ``EventTooLong``, ``NameTooLong`` or
    ``NotThisDialect``.
    """
    check_words("parse_sse: last_event", [last_event], get_args(LastEvent))
    return Stage(
        "parse_sse",
        lambda report: SSEParser(
            limits=limits, report=report, last_event=last_event, stray_errors=stray_errors, bare_body=bare_body
        ),
        takes="bytes",
        gives="frames",
    )


def serialize_sse(data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Write one event: LF only, one space after the colon, one ``data`` line for each line of ``data`` (quirks.md R11).

    CR, LF and CRLF inside ``data`` each end a line, and a reader returns them all as LF. Empty ``data`` makes an event with
    empty data, which old clients parse as broken JSON: no encoder here writes one.

    Raise UsageError for CR, LF or NUL in ``event`` or ``id`` (limits.md T1: they would forge lines), and for a negative
    ``retry``.
    """
    head = b""
    if event is not None:
        head = b"event: %b\n" % _one_line("event", event)
    if id is not None:
        head += b"id: %b\n" % _one_line("id", id)
    if retry is not None:
        if retry < 0:
            raise UsageError(f"retry must be a whole number of milliseconds, not {quoted(retry)}")
        head += b"retry: %d\n" % retry
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    return b"%bdata: %b\n\n" % (head, data)


def serialize_comment(text: str) -> bytes:
    """Write a comment of one line, for keep-alives: ``: ping`` and one LF, without a blank line.

    A blank line after the comment would end an event for readers that dispatch without data (old openai-python does so once an
    ``id`` was seen, and fails on the empty JSON: quirks.md §10 cases 100 and 101). Write a comment only between events. Raise
    UsageError for CR, LF or NUL in ``text``.
    """
    return b": %b\n" % _one_line("comment", text)


def _one_line(what: str, text: str) -> bytes:
    if "\n" in text or "\r" in text or "\0" in text:
        raise UsageError(f"{what} must be one line without NUL, not {quoted(text)}")
    return text.encode()
