"""What is said of a binary event stream that can't be read: what, where and by which limit; and what is counted of it."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from streamkit.errors import EventTooLong, HeadersTooLong, NameTooLong, UsageError
from streamkit.framing.eventstream import EventStreamParser, Timestamp, event_of, parse_headers, serialize_headers
from streamkit.limits import Limits
from streamkit.report import StreamReport
from tests.framing.binary import event, header, message, string

GOOD = event("chunk", b"{}")
PLACE = f" (at byte {2 * len(GOOD)})"
LENGTHS = struct.pack(">II", 20, 100)
FAULTS = {
    "a wrong message checksum: '{}'": GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
    r"a wrong checksum of the message lengths: '\x00\x00\x00]\x00\x00\x00K\x00\x00\x00\x00'": GOOD[:8]
    + bytes(4)
    + GOOD[12:],
    r"invalid headers: the header 'a' is repeated: '\x01a\x07\x00\x011\x01a\x07\x00\x012'": message(
        string("a", "1") + string("a", "2"), b""
    ),
    r"invalid headers: they are truncated: '\x05ab'": message(b"\x05ab", b""),
    r"invalid headers: unknown value type 12: '\x01a\x0c'": message(header("a", 12), b""),
    r"a message of 20 bytes, 100 of them headers: '\x00\x00\x00\x14\x00\x00\x00d\\xba\\x9dKj'": (
        LENGTHS + struct.pack(">I", crc32(LENGTHS)) + bytes(4)
    ),
}


def parsed(data: bytes, size: int, **limits: int) -> tuple[EventStreamParser, StreamReport, int]:
    report = StreamReport()
    parser = EventStreamParser(limits=Limits(**limits), report=report)
    frames = sum(len(parser.feed(data[at : at + size])) for at in range(0, len(data), size))
    return parser, report, frames + len(parser.finish())


@pytest.mark.parametrize("size", [1, 50, 10_000])
@pytest.mark.parametrize("said", FAULTS)
def test_a_broken_message_is_shown_with_its_place(said, size):
    parser, report, frames = parsed(GOOD + GOOD + FAULTS[said], size)
    assert str(parser.fault) == said + PLACE
    assert frames == report.frames == 2


@pytest.mark.parametrize("size", [7, 10_000])
def test_bytes_and_messages_are_counted_the_torn_one_too(size):
    data = GOOD + GOOD + GOOD[:30]
    parser, report, frames = parsed(data, size)
    assert parser.fault is None
    assert (report.bytes_in, report.frames, frames, parser.boundary) == (len(data), 3, 3, 2 * len(GOOD))


@pytest.mark.parametrize(
    ("limit", "size", "error", "data"),
    [
        ("event_bytes", 40, EventTooLong, event("chunk", b"x" * 40)),
        ("event_bytes", 40, EventTooLong, message(b"", b"x" * 40)),
        ("headers_bytes", 90, HeadersTooLong, message(string("name", "x" * 82), b"{}")),
        ("name_bytes", 30, NameTooLong, message(string(":event-type", "e" * 30), b"")),
    ],
)
def test_a_limit_is_the_most_that_is_taken(limit, size, error, data):
    assert parsed(GOOD + data, 64, **{limit: size})[0].fault is None
    parser, _, frames = parsed(GOOD + data, 64, **{limit: size - 1})
    assert isinstance(parser.fault, error)
    assert frames == 1
    assert str(parser.fault).endswith(f"(limit {limit} = {size - 1}) (at byte {len(GOOD)})")


def test_headers_that_can_not_be_written_are_named():
    bad = {
        "a header name must have 1 to 255 bytes, not 0: ''": {"": "x"},
        "the integer in the header 'key' must have at most 64 bits": {"key": 1 << 63},
        "the header 'key' must have at most 65535 bytes, not 65536": {"key": "x" * 65_536},
        "the header 'key' can't have the value None": {"key": None},
    }
    for said, headers in bad.items():
        with pytest.raises(UsageError) as caught:
            serialize_headers(headers)
        assert str(caught.value) == said


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_number_is_written_in_the_narrowest_type_that_holds_it(bits):
    most, least = (1 << (bits - 1)) - 1, -(1 << (bits - 1))
    for number in (most, least, most // 2 + 1, 0):
        assert parse_headers(serialize_headers({"n": number})) == {"n": number}
    assert {len(serialize_headers({"n": number})) for number in (most, least, most // 2 + 1)} == {3 + bits // 8}


def test_a_kind_that_is_no_text_is_no_kind():
    assert event_of({":event-type": 3}) == "message"
    assert event_of({":message-type": "exception", ":exception-type": Timestamp(1)}) == "exception:"


def test_twelve_bytes_tell_whether_it_is_a_message():
    for data in (GOOD[:12], GOOD[:11], b"\1" + GOOD[1:11]):
        assert parsed(data, 100)[0].fault is None
    assert parsed(b"\1" + GOOD[1:12], 100)[0].fault is not None
