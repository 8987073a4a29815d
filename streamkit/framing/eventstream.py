"""Binary event streams (``application/vnd.amazon.eventstream``), as Amazon Bedrock sends them (dialects.md §6.1).

A message, all numbers big-endian::

    u32 length of the message | u32 length of the headers | u32 CRC-32 of these 8 bytes | headers | payload
    | u32 CRC-32 of all before it

and a header: ``u8 length | name | u8 type | value``.

Theory: the length stands in front, so that nothing is searched. The first checksum says whether the lengths can be trusted
before anything is kept for them; the second covers every byte of the message. What a read leaves behind is one partial
message, copied once into a growing buffer and once out of it.

A message becomes a ``Frame``: ``data`` is the payload, ``headers`` are all its headers, ``event`` tells in one word what
it is: the ``:event-type`` of an event, ``exception:`` and the ``:exception-type`` of an exception, ``error:`` and the
``:error-code`` of an error (whose ``:error-message`` stays in the headers; its payload is empty). A message that the end of
the input cut off is a frame marked ``terminated=False``, whose ``data`` are its bytes from the first on: nothing in it was
checked.

It refuses to read on behind a checksum that is wrong, lengths that don't fit, or headers that can't be cut apart: there is
no line end to find the next message by. A first message whose lengths are not what their checksum says is no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias
from uuid import UUID
from zlib import crc32

from attrs import frozen

from streamkit.errors import BrokenFrame, EventTooLong, HeadersTooLong, NameTooLong, NotThisDialect, UsageError
from streamkit.framing.frame import BEGINNING_BYTES, WHITE, Frame, FrameRun, describe_beginning
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

if TYPE_CHECKING:
    from streamkit.errors import StreamkitError

PRELUDE: Final = Struct("!III")
CHECKSUM: Final = Struct("!I")
_LENGTHS: Final = Struct("!II")
_LENGTH: Final = Struct("!H")
#: The bytes of a message that are neither headers nor payload.
OVERHEAD: Final = PRELUDE.size + CHECKSUM.size
#: The numbers among the types of values, from the narrowest.
_INTEGERS: Final = {2: Struct("!b"), 3: Struct("!h"), 4: Struct("!i"), 5: Struct("!q")}
TRUE, FALSE, BYTES, STRING, TIMESTAMP, UUID_BYTES = 0, 1, 6, 7, 8, 9
_NAME_BYTES: Final = 255
_VALUE_BYTES: Final = 0xFFFF
#: A shorter message is copied for its checksum, in two thirds of the time of a view.
_COPIED: Final = 4096


@frozen
class Timestamp:
    """A point in time among the headers, in milliseconds since the epoch: any number of 64 bits, so no ``datetime``."""

    milliseconds: int


HeaderValue: TypeAlias = bool | int | bytes | str | Timestamp | UUID
"""What the ten types of header values are in Python."""


class EventStreamParser(Link):
    """The machine: bytes to frames, one for each message."""

    fault: Exception | None = None

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        #: All before this byte of the stream is whole messages.
        self.boundary = 0
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._partial = bytearray()
        self._needed = PRELUDE.size  # bytes of the message that is being read, as far as is known
        #: The headers that came last, as bytes and read: one delta has the same as the next.
        self._raw_headers = b""
        self._headers: Mapping[str, HeaderValue] = MappingProxyType({})
        self._event = "message"

    def push(self, chunk: bytes, /) -> None:
        """Read the messages that ``chunk`` completed, possibly none. After a fault nothing more is read."""
        if self.fault is not None:
            return
        self._report.bytes_in += len(chunk)
        if self.several is not None:
            self.several()
        if self._partial:
            self._partial += chunk
            if len(self._partial) < self._needed:
                return
            chunk = bytes(self._partial)
            self._partial.clear()
        self._partial += memoryview(chunk)[self._read(chunk) :]
        self._look_at_beginning(ended=False)

    push_batch = push

    def push_end(self) -> None:
        """The input ended: hand on what there was of a last message. Raises NotThisDialect for no binary event stream."""
        if self.fault is None:
            self._look_at_beginning(ended=True)
        self.push_rest()

    def push_rest(self) -> None:
        """The input failed: hand on what there was of the message that was being read."""
        torn = bytes(self._partial)
        self._partial.clear()
        if self.fault is None and torn and (self.boundary or torn.strip(WHITE)):
            self._report.frames += 1
            self.emit(Frame(torn, self.boundary, terminated=False))

    def _read(self, chunk: bytes) -> int:
        """Cut whole messages out of ``chunk``; gives the place of the one that is not whole."""
        run: list[bytes] = []  # payloads of messages with the same headers
        at, size = 0, len(chunk)
        most_headers, most_payload = self._limits.headers_bytes, self._limits.event_bytes
        self._needed = PRELUDE.size
        try:
            while size - at >= PRELUDE.size:
                length, head, checksum = PRELUDE.unpack_from(chunk, at)
                if crc32(chunk[at : at + 8]) != checksum:
                    if not self.boundary:
                        return at  # what it is instead is told once enough of it is there
                    self._broken("a message whose first checksum is wrong", chunk[at : at + PRELUDE.size])
                if length < head + OVERHEAD:
                    self._broken(f"a message of {length} bytes, {head} of them headers", chunk[at : at + PRELUDE.size])
                if head > most_headers:
                    self._stop(HeadersTooLong(most_headers, offset=self.boundary))
                if length - head - OVERHEAD > most_payload:
                    self._stop(EventTooLong(most_payload, offset=self.boundary))
                end = at + length
                if end > size:
                    self._needed = length
                    break
                begin = at + PRELUDE.size + head
                rest = chunk[at + 8 : end - 4] if length < _COPIED else memoryview(chunk)[at + 8 : end - 4]
                # the checksum of the first 8 bytes goes on
                if crc32(rest, checksum) != CHECKSUM.unpack_from(chunk, end - 4)[0]:
                    self._broken("a message whose checksum is wrong", chunk[begin : end - 4])
                headers = chunk[at + PRELUDE.size : begin]
                if headers != self._raw_headers:
                    if run:
                        self._hand_on(run)
                    self._take_headers(headers)
                run.append(chunk[begin : end - 4])
                at = end
                self.boundary += length
        finally:
            if run:
                self._hand_on(run)
        return at

    def _hand_on(self, run: list[bytes]) -> None:
        """Hand on the messages of a run, which have the same headers and end at the boundary."""
        payloads = run.copy()
        run.clear()
        around = OVERHEAD + len(self._raw_headers)
        offset = self.boundary - len(payloads) * around - sum(map(len, payloads))
        if len(payloads) > 1 and self.emit_run is not None:
            self.emit_run(FrameRun(payloads, offset, self._event, "", around, self._headers))  # which counts its frames
            return
        for payload in payloads:
            self._report.frames += 1
            self.emit(Frame(payload, offset, self._event, "", True, self._headers))
            offset += around + len(payload)

    def _broken(self, reason: str, what: bytes) -> NoReturn:
        self._stop(BrokenFrame(reason, what, offset=self.boundary))

    def _stop(self, fault: StreamkitError) -> NoReturn:
        self.fault = fault
        raise fault

    def _take_headers(self, raw: bytes) -> None:
        try:
            headers = parse_headers(raw)
        except ValueError as error:
            self._broken(f"headers that can't be read: {error}", raw)
        event = event_of(headers)
        if len(event) > self._limits.name_bytes:
            self._stop(NameTooLong(self._limits.name_bytes, offset=self.boundary))
        self._raw_headers, self._headers, self._event = raw, MappingProxyType(headers), event

    def _look_at_beginning(self, *, ended: bool) -> None:
        """Raise NotThisDialect for first bytes of no message, once there are enough to describe, whatever the cuts."""
        if self.boundary or not self._partial:
            return
        start = bytes(self._partial[:BEGINNING_BYTES])
        if is_beginning(start) or not (len(start) == BEGINNING_BYTES or (ended and start.strip(WHITE))):
            return
        self._stop(NotThisDialect("a binary event stream", describe_beginning(start)))


def is_beginning(start: bytes) -> bool:
    """Whether a stream that begins so can be one of these messages: of a few bytes only the first can tell.

    A message has at most 24 MiB of payload and 128 KiB of headers, so its length begins with 0 or 1.
    """
    if len(start) < PRELUDE.size:
        return start[:1] in (b"\0", b"\1")
    return bool(crc32(start[:8]) == CHECKSUM.unpack_from(start, 8)[0])


def event_of(headers: Mapping[str, HeaderValue]) -> str:
    """A message's kind in one word; ``"message"`` where its headers do not tell."""
    kind = headers.get(":message-type")
    if kind == "exception":
        return f"exception:{_text(headers, ':exception-type')}"
    if kind == "error":
        return f"error:{_text(headers, ':error-code')}"
    return _text(headers, ":event-type") or "message"


def _text(headers: Mapping[str, HeaderValue], name: str) -> str:
    value = headers.get(name)
    return value if isinstance(value, str) else ""


def parse_headers(raw: bytes) -> dict[str, HeaderValue]:
    """The headers of one message. Raises ValueError for what can't be cut apart, and for a name that comes twice."""
    found: dict[str, HeaderValue] = {}
    at = 0
    while at < len(raw):
        end = at + 1 + raw[at]
        name = _part(raw, at + 1, end).decode()
        if name in found:
            raise ValueError(f"{quoted(name)} twice")
        found[name], at = _value(raw, end)
    return found


def _value(raw: bytes, at: int) -> tuple[HeaderValue, int]:
    """The value whose type stands at ``at``, and where it ends."""
    kind = _part(raw, at, at + 1)[0]
    at += 1
    if kind in {TRUE, FALSE}:
        return kind == TRUE, at
    if kind in _INTEGERS:
        number = _INTEGERS[kind]
        return number.unpack(_part(raw, at, at + number.size))[0], at + number.size
    if kind in {BYTES, STRING}:
        begin = at + _LENGTH.size
        end = begin + _LENGTH.unpack(_part(raw, at, begin))[0]
        value = _part(raw, begin, end)
        return value.decode() if kind == STRING else value, end
    if kind == TIMESTAMP:
        return Timestamp(_INTEGERS[5].unpack(_part(raw, at, at + 8))[0]), at + 8
    if kind == UUID_BYTES:
        return UUID(bytes=_part(raw, at, at + 16)), at + 16
    raise ValueError(f"a value of type {kind}")


def _part(raw: bytes, begin: int, end: int) -> bytes:
    if end > len(raw):
        raise ValueError("they end inside a header")
    return raw[begin:end]


def parse_eventstream(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """A stage from bytes, cut anyhow, to batches of frames.

    Raises what ``EventStreamParser.fault`` holds, after the frames before it: ``BrokenFrame`` for a checksum, lengths or
    headers that are wrong, ``HeadersTooLong``, ``EventTooLong``, ``NameTooLong``, ``NotThisDialect``.
    """
    return Stage(
        "parse_eventstream",
        lambda report: EventStreamParser(limits=limits, report=report),
        takes="bytes",
        gives="frames",
    )


def serialize_eventstream(headers: Mapping[str, HeaderValue], payload: bytes) -> bytes:
    """One message. A whole number is written in the narrowest of the four types that holds it.

    Raises UsageError for a name or value that is too long for its header, and a number of more than 64 bits.
    """
    return serialize_message(serialize_headers(headers), payload)


def serialize_message(headers: bytes, payload: bytes) -> bytes:
    """One message whose headers are written already: most messages of a stream share them."""
    head, checksum = _head(headers, len(payload))
    return b"%b%b%b" % (head, payload, CHECKSUM.pack(crc32(payload, checksum)))


@lru_cache(maxsize=256)  # deltas have few lengths and one set of headers: a third of the time of writing one
def _head(headers: bytes, size: int) -> tuple[bytes, int]:
    """What stands before a payload of ``size`` bytes, and its checksum, with which that of the message begins."""
    lengths = _LENGTHS.pack(len(headers) + size + OVERHEAD, len(headers))
    head = lengths + CHECKSUM.pack(crc32(lengths)) + headers
    return head, crc32(head)


def serialize_headers(headers: Mapping[str, HeaderValue]) -> bytes:
    """The headers of a message. Raises UsageError as ``serialize_eventstream`` does."""
    return b"".join(_header(name, value) for name, value in headers.items())


def _header(name: str, value: HeaderValue) -> bytes:
    raw = name.encode()
    if not raw or len(raw) > _NAME_BYTES:
        raise UsageError(f"the name of a header has 1 to {_NAME_BYTES} bytes, not {len(raw)}: {quoted(name)}")
    return b"%c%b%b" % (len(raw), raw, _typed(name, value))


def _typed(name: str, value: Any) -> bytes:
    """A value behind the byte of its type."""
    match value:
        case bool():
            return b"%c" % (TRUE if value else FALSE)
        case int():
            for kind, number in _INTEGERS.items():
                if -(1 << (8 * number.size - 1)) <= value < 1 << (8 * number.size - 1):
                    return b"%c%b" % (kind, number.pack(value))
            raise UsageError(f"the header {quoted(name)} has a number of more than 64 bits")
        case bytes() | str():
            raw = value.encode() if isinstance(value, str) else value
            if len(raw) > _VALUE_BYTES:
                raise UsageError(f"the header {quoted(name)} has {len(raw)} bytes, and {_VALUE_BYTES} is the most")
            return b"%c%b%b" % (STRING if isinstance(value, str) else BYTES, _LENGTH.pack(len(raw)), raw)
        case Timestamp():
            return b"%c%b" % (TIMESTAMP, _INTEGERS[5].pack(value.milliseconds))
        case UUID():
            return b"%c%b" % (UUID_BYTES, value.bytes)
    raise UsageError(f"the header {quoted(name)} can't have the value {quoted(value)}")
