"""The frame, and helpers for bytes that all framings share: describing a stream's start, escaping separators, counting values.

Nothing here reads a stream. ``describe_beginning`` only names what is often found instead of a stream (an error page, a whole
JSON body, a compressed body); it never decides whether to continue. ``counted_values`` counts before parsing: in a list of
``{}`` each value has three bytes, but takes a hundred bytes and several microseconds once it is parsed.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

from attrs import define, field

from streamkit.limits import Limits
from streamkit.machines import Link
from streamkit.report import StreamReport

BOM: Final = b"\xef\xbb\xbf"
WHITE: Final = b" \t\n\r\v\f"  #: ASCII white space. Input of white space alone is blank.
BEGINNING_BYTES: Final = 256  #: number of first bytes that a parser keeps, to describe the input if it is no stream
NOTHING: Final = "nothing"  #: the result of ``describe_beginning`` for blank input
NO_HEADERS: Final[Mapping[str, Any]] = MappingProxyType({})  #: the headers of frames in framings without headers
_SHOWN_CHARS = 60
_SHOWN_BYTES = 8
_PRELUDE_BYTES = 12  #: length of the start of a binary message: two lengths and their checksum (``eventstream.py``)


@define
class Frame:
    """An SSE event, an NDJSON line, an element of a JSON array, or a binary message.

    ``data`` is the payload as received (for SSE, the data lines joined by LF). For SSE, ``event`` is the event type
    (``"message"`` if the event has none), and ``id`` is the last event ID. ``offset`` is the position in the stream, in
    bytes, at which the frame begins. ``terminated`` is False if the input ended before the blank line or line end that
    ends the frame. ``headers`` are the headers of a binary message.
    """

    data: bytes
    offset: int = 0
    event: str = "message"
    id: str = ""
    terminated: bool = True
    headers: Mapping[str, Any] = NO_HEADERS

    @property
    def text(self) -> str:
        """``data`` decoded as UTF-8. Invalid bytes become U+FFFD, as the standards require."""
        return self.data.decode("utf-8", "replace")


@define(eq=False)
class FrameRun:
    """Consecutive whole events that differ only in their payload, without an object for each.

    A parser sends a run to the ``push_run`` of the next machine, which counts the frames as it reads them; no stage yields a
    run. ``offset`` is the byte where the first event begins, and ``around`` the number of bytes of each event outside its
    payload.
    """

    payloads: list[bytes]
    offset: int
    event: str
    id: str
    around: int
    headers: Mapping[str, Any] = NO_HEADERS
    _offsets: list[int] | None = field(default=None, init=False)

    def frame(self, number: int) -> Frame:
        return Frame(self.payloads[number], self.offset_of(number), self.event, self.id, True, self.headers)

    def frames(self) -> Iterator[Frame]:
        offset, around, event, last_id, headers = self.offset, self.around, self.event, self.id, self.headers
        for payload in self.payloads:
            yield Frame(payload, offset, event, last_id, True, headers)
            offset += len(payload) + around

    def offset_of(self, number: int) -> int:
        if self._offsets is None:
            self._offsets = [*accumulate(map(len, self.payloads), initial=self.offset)]
        return self._offsets[number] + number * self.around


class Parser(Link):
    """The base of the parsers: bytes to frames. ``push`` takes a read and emits the frames that it completes, possibly none.

    After a fault nothing is read.
    """

    def __init__(self, limits: Limits, report: StreamReport | None) -> None:
        self.boundary = 0  #: offset in the stream: all bytes before it belong to complete frames
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        #: The partial frame or line from earlier reads. In a list, fragments of two bytes would take 43 bytes each, and the
        #: limits would mean little.
        self._partial = bytearray()

    def _take(self) -> bytes:
        """Return the partial frame or line and empty the buffer."""
        partial = bytes(self._partial)
        self._partial.clear()
        return partial


class Beginning:
    """Removes one byte order mark from the start of a stream, however it is split, and keeps the first bytes."""

    def __init__(self) -> None:
        self.open = True  #: False once the beginning is read: the mark is removed and ``kept`` is full
        self.mark = 0  #: the length of the byte order mark that was removed
        self.kept = b""  #: the first bytes, without leading white space
        self._held: bytes | None = b""

    def take(self, chunk: bytes) -> bytes:
        """Return the bytes after the byte order mark; empty while the bytes may still become a mark."""
        if self._held is not None:
            chunk = self._held + chunk
            if len(chunk) < len(BOM) and BOM.startswith(chunk):
                self._held = chunk
                return b""
            self._held = None
            if chunk.startswith(BOM):
                self.mark = len(BOM)
                chunk = chunk[len(BOM) :]
        self.kept += (chunk if self.kept else chunk.lstrip(WHITE))[: BEGINNING_BYTES - len(self.kept)]
        self.open = len(self.kept) < BEGINNING_BYTES
        return chunk

    def release(self) -> bytes:
        """End the input: return bytes that were held as the start of a byte order mark."""
        held, self._held = self._held or b"", None
        self.kept += held
        return held


def describe_beginning(first_bytes: bytes) -> str:
    """Describe in one line what non-stream bytes look like: ``an HTML page ('<!DOCTYPE html>…')``.

    Control characters, and others that a terminal would act on, are escaped; about 60 characters are shown at most.
    """
    start = first_bytes.removeprefix(BOM).lstrip(WHITE)
    if not start:
        return NOTHING
    try:
        # not final: the kept bytes may end within a character
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        text = ""
    if len(start) >= _PRELUDE_BYTES and crc32(start[:8]) == int.from_bytes(start[8:_PRELUDE_BYTES], "big"):
        return "a binary event stream"
    if not text or any(char < " " and char not in "\t\n\r\v\f\x1b" for char in text):
        return f"binary data ({start[:_SHOWN_BYTES].hex(' ')}{' …' if len(start) > _SHOWN_BYTES else ''})"
    head = text[:16].lower()
    if head.startswith(("<!doctype html", "<html", "<head", "<body")):
        kind = "an HTML page"
    elif head.startswith("<?xml"):
        kind = "an XML document"
    elif head.startswith(("{", "[")):
        kind = "a JSON body"
    else:
        kind = "text"
    return f"{kind} ('{_shown(text)}')"


def _shown(text: str) -> str:
    shown = ""
    for char in text.rstrip():
        if len(shown) >= _SHOWN_CHARS:
            return shown + "…"
        shown += char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
    return shown


def escape_separators(json_bytes: bytes) -> bytes:
    r"""Write raw U+0085, U+2028 and U+2029 of a JSON text as ``\u`` escapes.

    JSON allows these characters raw, and only inside strings, so the value stays the same. Clients that split lines as Unicode
    does would split the payload there (quirks.md R11, §10 case 94).
    """
    if json_bytes.isascii():
        return json_bytes
    return (
        json_bytes.replace(b"\xc2\x85", b"\\u0085")
        .replace(b"\xe2\x80\xa8", b"\\u2028")
        .replace(b"\xe2\x80\xa9", b"\\u2029")
    )


def cut_lines(chunk: bytes) -> tuple[list[tuple[list[bytes], int]], bytes]:
    """Split at CR, LF and CRLF. Return whole lines, grouped by the width of their ends (1 or 2 bytes), and the rest."""
    bare = chunk.replace(b"\r", b"")  # equal to ``chunk`` if there is no CR
    lines = bare.split(b"\n")
    crs = len(chunk) - len(bare)
    # LF alone or CRLF alone: takes half to two thirds of the time of ``splitlines``.
    if not crs or crs == len(lines) - 1 == chunk.count(b"\r\n"):
        rest = lines.pop()
        return ([(lines, 2 if crs else 1)] if lines else []), rest
    # Unlike ``str.splitlines``, ``bytes.splitlines`` has no other line ends.
    ended = chunk.splitlines(keepends=True)
    rest = b"" if chunk.endswith((b"\r", b"\n")) else ended.pop()
    runs = groupby(ended, lambda line: 2 if line.endswith(b"\r\n") else 1)
    return [([line[:-width] for line in run], width) for width, run in runs], rest


SLICE_BYTES: Final = 256 * 1024
VALUE_BYTES: Final = 256  #: maximum memory of a parsed value; the four of a turn of a conversation take some 800 bytes
FEW: Final = 10_000  #: up to this count, values are counted without skipping strings
_OTHERS: Final = bytes(
    set(range(256)) - set(b",[{")
)  #: all bytes but commas and brackets, of which one is before each value


def counted_values(text: bytes, few: int | None = None) -> Iterator[int]:
    """Yield how many values ``text`` has in the part counted so far: the last number is the result.

    Commas and brackets inside strings are skipped, unless there are no more than ``few`` (default ``FEW``) with them.
    """
    found = 0
    for at in range(0, len(text), SLICE_BYTES):
        found += len(text[at : at + SLICE_BYTES].translate(None, _OTHERS))
        if found > (FEW if few is None else few):
            yield from _counted_outside(text)
            return
        yield found


def has_more_values(text: bytes, most: int) -> bool:
    """Return whether ``text`` has more than ``most`` values."""
    return len(text) > most and any(found > most for found in counted_values(text, min(FEW, most)))


def _counted_outside(text: bytes) -> Iterator[int]:
    found, inside, carried = 0, 0, b""
    for at in range(0, len(text), SLICE_BYTES):
        part = carried + text[at : at + SLICE_BYTES]
        run = len(part) - len(part.rstrip(b"\\"))
        part, carried = part[: len(part) - run], b"\\" if run % 2 else b""
        outside = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += len(b"".join(outside[inside::2]).translate(None, _OTHERS))
        inside ^= (len(outside) - 1) & 1
        yield found
