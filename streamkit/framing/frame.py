"""The frame, and what every framing needs to say about bytes: how they begin, and which of them broken readers cut at.

Nothing here reads a stream. ``describe_beginning`` only names what people usually find where a stream was expected (an
error page, a whole JSON body, a compressed body); it never decides whether to go on.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

from attrs import define

BOM: Final = b"\xef\xbb\xbf"
#: ASCII white space: input of nothing else is blank.
WHITE: Final = b" \t\n\r\v\f"
#: How many first bytes a parser keeps, to say what it found when it was no stream.
BEGINNING_BYTES: Final = 256
#: What ``describe_beginning`` says of blank input.
NOTHING: Final = "nothing"
NO_HEADERS: Final[Mapping[str, Any]] = MappingProxyType({})
_SHOWN_CHARS = 60
_SHOWN_BYTES = 8
#: A message of a binary event stream begins with two lengths and their checksum (``eventstream.py``).
_PRELUDE_BYTES = 12


@define
class Frame:
    """An SSE event, an NDJSON line or a binary message.

    ``data`` is the payload as received (for SSE, data lines joined by LF). ``event`` and ``id`` are SSE's event type
    (``"message"`` if none was given) and last event ID. ``offset`` is the byte of the stream where the frame begins.
    ``terminated`` is False for what the input's end cut off: no blank line, no line end. ``headers`` are a binary message's.
    """

    data: bytes
    offset: int = 0
    event: str = "message"
    id: str = ""
    terminated: bool = True
    headers: Mapping[str, Any] = NO_HEADERS

    @property
    def text(self) -> str:
        """``data`` decoded as the standards say: UTF-8, ill-formed bytes as U+FFFD."""
        return self.data.decode("utf-8", "replace")


class FrameRun:
    """Whole events that follow one another and differ in their payload alone, without an object for each.

    It goes to a machine that has ``push_run``, which counts the frames as it reads them; no stage yields it.
    ``offset`` is the byte where the first one begins, and ``around`` how many bytes each has beside its payload.
    """

    __slots__ = ("_offsets", "around", "event", "headers", "id", "offset", "payloads")

    def __init__(
        self,
        payloads: list[bytes],
        offset: int,
        event: str,
        id: str,
        around: int,
        headers: Mapping[str, Any] = NO_HEADERS,
    ) -> None:
        self.payloads = payloads
        self.offset = offset
        self.event = event
        self.id = id
        self.around = around
        self.headers = headers
        self._offsets: list[int] | None = None

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


class Beginning:
    """The start of a stream: takes off one byte order mark, however it was cut, and keeps a sample to describe."""

    def __init__(self) -> None:
        #: False once nothing is left to do here.
        self.open = True
        #: The length of the mark that was taken off.
        self.mark = 0
        #: The first bytes, from the first that is not white space.
        self.kept = b""
        self._held: bytes | None = b""

    def take(self, chunk: bytes) -> bytes:
        """What follows the mark; nothing as long as the bytes may still turn out to be one."""
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
        """The input ended: what was held as the start of a mark was none."""
        held, self._held = self._held or b"", None
        self.kept += held
        return held


def describe_beginning(first_bytes: bytes) -> str:
    """What bytes that are no stream look like, in one line: ``an HTML page ('<!DOCTYPE html>…')``.

    Control characters, and others that a terminal would act on, are escaped; at most about 60 characters are shown.
    """
    start = first_bytes.removeprefix(BOM).lstrip(WHITE)
    if not start:
        return NOTHING
    try:
        # Not final: the sample may end within a character.
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

    JSON allows them raw, inside strings only, so the value stays the same; clients that split lines as Unicode does
    cut the payload there (quirks.md R11, §10 case 94).
    """
    if json_bytes.isascii():
        return json_bytes
    return (
        json_bytes.replace(b"\xc2\x85", b"\\u0085")
        .replace(b"\xe2\x80\xa8", b"\\u2028")
        .replace(b"\xe2\x80\xa9", b"\\u2029")
    )


def cut_lines(chunk: bytes) -> tuple[list[tuple[list[bytes], int]], bytes]:
    """Cut at CR, LF and CRLF: whole lines, in runs of one width of line end (LF and CR: 1, CRLF: 2), and the rest."""
    bare = chunk.replace(b"\r", b"")  # without a CR this is ``chunk`` itself
    lines = bare.split(b"\n")
    crs = len(chunk) - len(bare)
    # Nothing but LF, or nothing but CRLF: half the time of ``splitlines``, or two thirds.
    if not crs or crs == len(lines) - 1 == chunk.count(b"\r\n"):
        rest = lines.pop()
        return ([(lines, 2 if crs else 1)] if lines else []), rest
    # On bytes, unlike on str, this knows no other line ends.
    ended = chunk.splitlines(keepends=True)
    rest = b"" if chunk.endswith((b"\r", b"\n")) else ended.pop()
    return [([line[:-width] for line in run], width) for width, run in groupby(ended, _width_of_end)], rest


def _width_of_end(line: bytes) -> int:
    return 2 if line.endswith(b"\r\n") else 1
