"""Parse and write binary event streams (``application/vnd.amazon.eventstream``) of Amazon Bedrock (dialects.md §6.1).

A message, all numbers big-endian::

    u32 length of the message | u32 length of the headers | u32 CRC-32 of these 8 bytes | headers | payload
    | u32 CRC-32 of all before it

and a header: ``u8 length | name | u8 type | value``.

The first checksum shows whether the lengths can be trusted before any memory is used for them; the second covers every byte of
the message. A message becomes a ``Frame``: ``data`` is the payload, ``headers`` are all its headers, and ``event`` is its
kind: the ``:event-type`` of an event, ``exception:`` and the ``:exception-type`` of an exception, or ``error:`` and the
``:error-code`` of an error. A message truncated by the end of the input becomes a frame with ``terminated=False``, whose
``data`` are the message's unchecked bytes.

The parser stops at a wrong checksum, at inconsistent lengths and at malformed headers, because nothing marks the start of the
next message. A stream whose first lengths don't match their checksum is no event stream.
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
from streamkit.framing.frame import BEGINNING_BYTES, WHITE, Frame, FrameRun, Parser, describe_beginning
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

if TYPE_CHECKING:
    from streamkit.errors import StreamkitError

PRELUDE: Final = Struct("!III")
CHECKSUM: Final = Struct("!I")
_LENGTHS: Final = Struct("!II")
_LENGTH: Final = Struct("!H")
OVERHEAD: Final = PRELUDE.size + CHECKSUM.size  #: the bytes of a message that are neither headers nor payload
_INTEGERS: Final = {2: Struct("!b"), 3: Struct("!h"), 4: Struct("!i"), 5: Struct("!q")}  #: the narrowest first
TRUE, FALSE, BYTES, STRING, TIMESTAMP, UUID_BYTES = 0, 1, 6, 7, 8, 9
_NAME_BYTES: Final = 255
_VALUE_BYTES: Final = 0xFFFF
_COPIED: Final = 4096  #: a shorter message is copied for its checksum: two thirds of the time of a ``memoryview``


@frozen
class Timestamp:
    """A time in a header, in milliseconds since the epoch. It may be any 64-bit number, so it is no ``datetime``."""

    milliseconds: int


HeaderValue: TypeAlias = bool | int | bytes | str | Timestamp | UUID
"""The Python types for the ten types of header values."""


class EventStreamParser(Parser):
    """The machine of ``parse_eventstream``: bytes to frames, one for each message."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        super().__init__(limits, report)
        self._needed = PRELUDE.size  # known length of the current message in bytes
        #: The headers of the latest message, kept because consecutive deltas have equal headers.
        self._raw_headers = b""
        self._headers: Mapping[str, HeaderValue] = MappingProxyType({})  #: the same headers, parsed
        self._event = "message"

    def push(self, chunk: bytes, /) -> None:
        if self.fault is not None:
            return
        self._report.bytes_in += len(chunk)
        if self.several is not None:
            self.several()
        if self._partial:
            self._partial += chunk
            if len(self._partial) < self._needed:
                return
            chunk = self._take()
        self._partial += memoryview(chunk)[self._read(chunk) :]
        self._look_at_beginning(ended=False)

    push_batch = push

    def push_end(self) -> None:
        """End the input: emit an incomplete last message. Raise NotThisDialect if the input is no binary event stream."""
        if self.fault is None:
            self._look_at_beginning(ended=True)
        self.push_rest()

    def push_rest(self) -> None:
        torn = self._take()
        if self.fault is None and torn and (self.boundary or torn.strip(WHITE)):
            self._report.frames += 1
            self.emit(Frame(torn, self.boundary, terminated=False))

    def _read(self, chunk: bytes) -> int:
        """Read the complete messages in ``chunk``. Return the offset of the incomplete message after them."""
        run: list[bytes] = []  # payloads of messages with the same headers
        at, size = 0, len(chunk)
        most_headers, most_payload = self._limits.headers_bytes, self._limits.event_bytes
        self._needed = PRELUDE.size
        try:
            while size - at >= PRELUDE.size:
                length, head, checksum = PRELUDE.unpack_from(chunk, at)
                if crc32(chunk[at : at + 8]) != checksum:
                    if not self.boundary:
                        return at  # the fault is reported later, once there are enough bytes to describe
                    self._broken("a wrong checksum of the message lengths", chunk[at : at + PRELUDE.size])
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
                # continues from the checksum of the first 8 bytes
                if crc32(rest, checksum) != CHECKSUM.unpack_from(chunk, end - 4)[0]:
                    self._broken("a wrong message checksum", chunk[begin : end - 4])
                headers = chunk[at + PRELUDE.size : begin]
                if headers != self._raw_headers:
                    if run:
                        self._emit_messages(run)
                    self._take_headers(headers)
                run.append(chunk[begin : end - 4])
                at = end
                self.boundary += length
        finally:
            if run:
                self._emit_messages(run)
        return at

    def _emit_messages(self, run: list[bytes]) -> None:
        """Emit the messages of a run, which have the same headers and end at ``boundary``."""
        payloads = run.copy()
        run.clear()
        around = OVERHEAD + len(self._raw_headers)
        offset = self.boundary - len(payloads) * around - sum(map(len, payloads))
        if len(payloads) > 1 and self.emit_run is not None:
            # ``emit_run`` counts the frames
            self.emit_run(FrameRun(payloads, offset, self._event, "", around, self._headers))
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
            self._broken(f"invalid headers: {error}", raw)
        event = event_of(headers)
        if len(event) > self._limits.name_bytes:
            self._stop(NameTooLong(self._limits.name_bytes, offset=self.boundary))
        self._raw_headers, self._headers, self._event = raw, MappingProxyType(headers), event

    def _look_at_beginning(self, *, ended: bool) -> None:
        """Raise NotThisDialect if the first bytes are no message. Wait until there are enough bytes to describe."""
        if self.boundary or not self._partial:
            return
        start = bytes(self._partial[:BEGINNING_BYTES])
        if is_beginning(start) or not (len(start) == BEGINNING_BYTES or (ended and start.strip(WHITE))):
            return
        self._stop(NotThisDialect("a binary event stream", describe_beginning(start)))


def is_beginning(start: bytes) -> bool:
    """Return whether a stream with this start can be an event stream. With few bytes, only the first one is checked.

    A message has at most 24 MiB of payload and 128 KiB of headers, so its length begins with the byte 0 or 1.
    """
    if len(start) < PRELUDE.size:
        return start[:1] in (b"\0", b"\1")
    return bool(crc32(start[:8]) == CHECKSUM.unpack_from(start, 8)[0])


def event_of(headers: Mapping[str, HeaderValue]) -> str:
    """Return a message's kind as one word, or ``"message"`` if its headers have none."""
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
    """Parse the headers of one message. Raise ValueError for malformed headers and for a repeated name."""
    found: dict[str, HeaderValue] = {}
    at = 0
    while at < len(raw):
        end = at + 1 + raw[at]
        name = _part(raw, at + 1, end).decode()
        if name in found:
            raise ValueError(f"the header {quoted(name)} is repeated")
        found[name], at = _value(raw, end)
    return found


def _value(raw: bytes, at: int) -> tuple[HeaderValue, int]:
    """Return the value whose type byte is at ``at``, and the offset of its end."""
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
    raise ValueError(f"unknown value type {kind}")


def _part(raw: bytes, begin: int, end: int) -> bytes:
    if end > len(raw):
        raise ValueError("they are truncated")
    return raw[begin:end]


def parse_eventstream(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """Create a stage that takes the bytes of an AWS event stream and yields batches of frames.

    The bytes may be split at any point. If the input has a fault, the stage yields the frames before the fault, and
    then raises ``BrokenFrame`` (a wrong checksum, length or header), ``HeadersTooLong``, ``EventTooLong``,
    ``NameTooLong`` or ``NotThisDialect``.
    """
    return Stage(
        "parse_eventstream",
        lambda report: EventStreamParser(limits=limits, report=report),
        takes="bytes",
        gives="frames",
    )


def serialize_eventstream(headers: Mapping[str, HeaderValue], payload: bytes) -> bytes:
    """Write one message. A whole number is written in the narrowest of the four integer types that holds it.

    Raise UsageError for a name or value that is too long for a header, and for a number of more than 64 bits.
    """
    return serialize_message(serialize_headers(headers), payload)


def serialize_message(headers: bytes, payload: bytes) -> bytes:
    """Write one message with already serialized headers: most messages of a stream share their headers."""
    head, checksum = _head(headers, len(payload))
    return b"%b%b%b" % (head, payload, CHECKSUM.pack(crc32(payload, checksum)))


@lru_cache(maxsize=256)  # deltas have few lengths and one set of headers: the cache saves two thirds of the time
def _head(headers: bytes, size: int) -> tuple[bytes, int]:
    """Return the bytes before a payload of ``size`` bytes, and their checksum, from which the message's checksum continues."""
    lengths = _LENGTHS.pack(len(headers) + size + OVERHEAD, len(headers))
    head = lengths + CHECKSUM.pack(crc32(lengths)) + headers
    return head, crc32(head)


def serialize_headers(headers: Mapping[str, HeaderValue]) -> bytes:
    """Serialize the headers of a message. Raise UsageError as ``serialize_eventstream`` does."""
    return b"".join(_header(name, value) for name, value in headers.items())


def _header(name: str, value: HeaderValue) -> bytes:
    raw = name.encode()
    if not raw or len(raw) > _NAME_BYTES:
        raise UsageError(f"a header name must have 1 to {_NAME_BYTES} bytes, not {len(raw)}: {quoted(name)}")
    return b"%c%b%b" % (len(raw), raw, _typed(name, value))


def _typed(name: str, value: Any) -> bytes:
    match value:
        case bool():
            return b"%c" % (TRUE if value else FALSE)
        case int():
            for kind, number in _INTEGERS.items():
                if -(1 << (8 * number.size - 1)) <= value < 1 << (8 * number.size - 1):
                    return b"%c%b" % (kind, number.pack(value))
            raise UsageError(f"the integer in the header {quoted(name)} must have at most 64 bits")
        case bytes() | str():
            raw = value.encode() if isinstance(value, str) else value
            if len(raw) > _VALUE_BYTES:
                raise UsageError(f"the header {quoted(name)} must have at most {_VALUE_BYTES} bytes, not {len(raw)}")
            return b"%c%b%b" % (STRING if isinstance(value, str) else BYTES, _LENGTH.pack(len(raw)), raw)
        case Timestamp():
            return b"%c%b" % (TIMESTAMP, _INTEGERS[5].pack(value.milliseconds))
        case UUID():
            return b"%c%b" % (UUID_BYTES, value.bytes)
    raise UsageError(f"the header {quoted(name)} can't have the value {quoted(value)}")
