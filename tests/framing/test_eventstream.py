from __future__ import annotations

import tracemalloc
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import BrokenFrame, EventTooLong, HeadersTooLong, NameTooLong, NotThisDialect, UsageError
from streamkit.framing.eventstream import (
    EventStreamParser,
    Timestamp,
    parse_eventstream,
    parse_headers,
    serialize_eventstream,
    serialize_headers,
)
from streamkit.framing.frame import Frame, describe_beginning
from streamkit.limits import Limits
from streamkit.pipeline import pipe
from tests.framing.binary import error, event, exception, header, message, prelude, string
from tests.framing.cuts import cut_at, read, same_at_every_cut
from tests.sampling import marks

WORD = {":event-type": "word", ":content-type": "application/json", ":message-type": "event"}
GONE = {":exception-type": "gone", ":content-type": "application/json", ":message-type": "exception"}
WRONG = {":message-type": "error", ":error-code": "E", ":error-message": "no"}
ONE, TWO = event("word", b"{}"), event("word", b'{"a":1}')

VECTORS = {
    "two messages": (ONE + TWO, [Frame(b"{}", 0, "word", headers=WORD), Frame(b'{"a":1}', len(ONE), "word", headers=WORD)]),
    "more with the same headers, and one with others": (
        ONE + TWO + ONE + message(b"", b"x"),
        [
            *(Frame(data, at, "word", headers=WORD) for data, at in ((b"{}", 0), (b'{"a":1}', len(ONE)), (b"{}", len(ONE + TWO)))),
            Frame(b"x", len(ONE + TWO + ONE)),
        ],
    ),
    "an exception": (exception("gone", b"{}"), [Frame(b"{}", 0, "exception:gone", headers=GONE)]),
    "an error": (error("E", "no"), [Frame(b"", 0, "error:E", headers=WRONG)]),
    "no payload": (event("word", b""), [Frame(b"", 0, "word", headers=WORD)]),
    "no headers": (message(b"", b"x"), [Frame(b"x")]),
    "other headers behind them": (ONE + message(b"", b""), [Frame(b"{}", 0, "word", headers=WORD), Frame(b"", len(ONE))]),
    "a type that is no text": (message(header(":message-type", 0), b""), [Frame(b"", headers={":message-type": True})]),
    "a torn message": (ONE + TWO[:-1], [Frame(b"{}", 0, "word", headers=WORD), Frame(TWO[:-1], len(ONE), terminated=False)]),
    "a torn length": (ONE[:3], [Frame(ONE[:3], terminated=False)]),
    "nothing": (b"", []),
    "blank": (b" \r\n", []),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_gives_its_frames_at_every_cut(name):
    data, frames = VECTORS[name]
    outcome = same_at_every_cut(EventStreamParser, data)
    assert outcome.frames == frames
    assert (outcome.fault, outcome.repairs) == ("", {})
    torn = [frame.offset for frame in frames if not frame.terminated]
    assert outcome.boundary == (torn[0] if torn else len(data.strip()))


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


#: The prelude, a byte of headers and of the payload, and the checksum of the whole; all of them are tried in `make test-all`.
FLIPPED = {
    *range(0, 12, 2),
    11,
    14,
    len(TWO) - 5,
    len(TWO) - 4,
    len(TWO) - 1,
    len(TWO) // 2,
    len(TWO) // 3,
    2 * len(TWO) // 3,
}


@pytest.mark.parametrize("place", [pytest.param(n, marks=marks(n in FLIPPED)) for n in range(len(TWO))])
def test_a_bit_that_flips_is_seen_wherever_it_is(place):
    outcome = same_at_every_cut(EventStreamParser, ONE + flipped(TWO, place))
    assert outcome.frames == [Frame(b"{}", 0, "word", headers=WORD)]
    which = "a wrong checksum of the message lengths" if place < 12 else "a wrong message checksum"
    assert outcome.fault.startswith(f"BrokenFrame: {which}: ")
    assert outcome.fault.endswith(f"(at byte {len(ONE)})")
    assert outcome.boundary == len(ONE)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<!DOCTYPE html>\n<html>", "an HTML page ('<!DOCTYPE html> <html>')"),
        (b'data: {"id":1}\n\n', "text ('data: {\"id\":1}')"),
        (b"x" * 400, f"text ('{'x' * 60}…')"),
        (b" " * 400, "nothing"),
        (b"no", "text ('no')"),
        (flipped(ONE, 0), "binary data (01 00 00 5c 00 00 00 4a …)"),
        (b"\x1f\x8b\x08\0", "binary data (1f 8b 08 00)"),
    ],
)
def test_what_does_not_begin_as_a_message_is_no_event_stream(data, found):
    outcome = same_at_every_cut(EventStreamParser, data)
    assert outcome.frames == []
    assert outcome.fault.replace("\\n", " ") == f"NotThisDialect: not a binary event stream: found {found} (at byte 0)"


def test_the_fault_of_the_first_bytes_does_not_wait_for_the_end():
    parser = EventStreamParser()
    for _ in range(256):
        parser.feed(b"\n")
    assert isinstance(parser.fault, NotThisDialect)


@pytest.mark.parametrize("length", [0, 15, 16 + 7, 2**20])
def test_lengths_that_do_not_fit_are_told_at_once(length):
    parser = EventStreamParser()
    assert parser.feed(ONE + prelude(length, length)) == [Frame(b"{}", 0, "word", headers=WORD)]
    assert isinstance(parser.fault, BrokenFrame | HeadersTooLong)
    assert parser.fault.offset == len(ONE)


BROKEN_HEADERS = {
    "a name that breaks off": b"\5nam",
    "an empty name is one": b"\0",
    "no value": b"\4name",
    "a number that breaks off": b"\4name\4\0\0",
    "a text that breaks off": string("name", "abc")[:-1],
    "a length that breaks off": b"\4name\7\0",
    "a text that is no UTF-8": string("name", b"\xff"),
    "a name that is no UTF-8": b"\1\xff\0",
    "a type of the future": header("name", 10),
    "a name twice": header("name", 0) + header("name", 1),
}


@pytest.mark.parametrize("what", BROKEN_HEADERS)
def test_headers_that_cannot_be_cut_apart_are_a_fault(what):
    outcome = same_at_every_cut(EventStreamParser, ONE + message(BROKEN_HEADERS[what], b"{}"))
    assert len(outcome.frames) == 1
    assert outcome.fault.startswith("BrokenFrame: invalid headers: ")


# -- header values -----------------------------------------------------------------------------------------------------

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
VALUES = {
    "true": (True, header("v", 0)),
    "false": (False, header("v", 1)),
    "i8": (-128, header("v", 2, b"\x80")),
    "i16": (-129, header("v", 3, b"\xff\x7f")),
    "i32": (32_768, header("v", 4, b"\0\0\x80\0")),
    "i64": (-(2**63), header("v", 5, b"\x80" + bytes(7))),
    "bytes": (b"\0\xff", header("v", 6, b"\0\2\0\xff")),
    "text": ("é\n", string("v", "é\n")),
    "no text": ("", string("v", "")),
    "timestamp": (Timestamp(-(2**63)), header("v", 8, b"\x80" + bytes(7))),
    "uuid": (ID, header("v", 9, ID.bytes)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_of_each_type_is_read_and_written(name):
    value, raw = VALUES[name]
    (found,) = parse_headers(raw).values()
    assert (found, type(found)) == (value, type(value))
    assert serialize_headers({"v": value}) == raw


@pytest.mark.parametrize(("kind", "size"), [(2, 1), (3, 2), (4, 4), (5, 8)])
def test_whole_numbers_of_every_width_are_read(kind, size):
    for value in (0, -1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1))):
        assert parse_headers(header("v", kind, value.to_bytes(size, "big", signed=True))) == {"v": value}


@pytest.mark.parametrize(
    "headers",
    [{"": True}, {"n" * 256: True}, {"é" * 128: True}, {"v": "x" * 65_536}, {"v": 2**63}, {"v": 1.5}, {"v": None}],
)
def test_what_no_header_can_hold_is_refused(headers):
    with pytest.raises(UsageError):
        serialize_eventstream(headers, b"")


@pytest.mark.parametrize("size", [254, 255])
def test_the_longest_name_and_value_fit(size):
    headers = {"n" * size: "x" * (65_280 + size)}
    assert EventStreamParser().feed(serialize_eventstream(headers, b"p")) == [Frame(b"p", headers=headers)]


# -- limits, memory, driver --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "make", "kind"),
    [
        (Limits(event_bytes=40), lambda n: event("word", b"x" * n), EventTooLong),
        (Limits(headers_bytes=40), lambda n: message(string("v", "x" * (n - 5)), b""), HeadersTooLong),
        (Limits(name_bytes=40), lambda n: event("x" * n, b""), NameTooLong),
    ],
)
def test_limits_hold_to_the_last_byte(limits, make, kind):
    for size in (39, 40, 41):
        outcome = same_at_every_cut(partial(EventStreamParser, limits=limits), ONE[:0] + make(size))
        assert len(outcome.frames) == (size <= 40)
        assert outcome.fault.startswith(kind.__name__) == (size > 40)


def test_a_message_that_is_too_long_is_refused_at_its_lengths():
    parser = EventStreamParser()
    parser.feed(prelude(17 * 1024 * 1024, 0))
    assert isinstance(parser.fault, EventTooLong)


def test_a_message_in_many_reads_is_kept_once():
    size = 4 * 1024 * 1024
    data = event("word", bytes(size))
    parser = EventStreamParser()
    tracemalloc.start()
    try:
        frames = [frame for at in range(0, len(data), 1000) for frame in parser.feed(data[at : at + 1000])]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(frame.data) for frame in frames] == [size]
    assert peak < 4 * size


def test_messages_with_the_same_headers_share_them():
    one, two = EventStreamParser().feed(ONE + TWO)
    assert one.headers is two.headers
    with pytest.raises(TypeError):
        one.headers["x"] = 1


def test_abandon_gives_the_partial_message_once_and_nothing_is_read_after_a_fault():
    parser = EventStreamParser()
    parser.feed(ONE + TWO[:20])
    assert parser.abandon() == [Frame(TWO[:20], len(ONE), terminated=False)]
    assert parser.abandon() == []
    parser = EventStreamParser()
    parser.feed(ONE + flipped(TWO, 20))
    assert parser.feed(ONE) == parser.finish() == parser.abandon() == []


async def test_the_stage_yields_what_precedes_a_fault():
    async def source():
        yield ONE
        yield TWO + flipped(TWO, 30) + ONE

    batches = []
    with pytest.raises(BrokenFrame):
        async with pipe(source(), parse_eventstream()) as stream:
            async for batch in stream:
                batches.append(batch)
    assert [len(batch) for batch in batches] == [1, 1]


def test_an_event_stream_is_known_by_its_first_bytes():
    assert describe_beginning(ONE[:100]) == "a binary event stream"
    assert describe_beginning(ONE[:11]).startswith("binary data")


# -- beside botocore ---------------------------------------------------------------------------------------------------

VALUE = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.binary(max_size=40)
    | st.text(max_size=20)
    | st.integers(-(2**63), 2**63 - 1).map(Timestamp)
    | st.uuids()
)
MESSAGES = st.lists(
    st.tuples(st.dictionaries(st.text(min_size=1, max_size=20), VALUE, max_size=4), st.binary(max_size=60)), max_size=5
)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=5))
def test_what_is_written_is_read_by_botocore_and_by_us(messages, places):
    botocore = pytest.importorskip("botocore.eventstream")
    data = b"".join(serialize_eventstream(headers, payload) for headers, payload in messages)
    reads = cut_at(data, sorted(min(place, len(data)) for place in places))
    assert [(frame.headers, frame.data) for frame in read(EventStreamParser, reads).frames] == messages
    buffer, found = botocore.EventStreamBuffer(), []
    for piece in reads:
        buffer.add_data(piece)
        found += [(one.headers, one.payload) for one in buffer]
    assert found == [({name: plain(value) for name, value in headers.items()}, body) for headers, body in messages]


def plain(value):
    """A value as botocore has it."""
    if isinstance(value, Timestamp):
        return value.milliseconds
    return value.bytes if isinstance(value, UUID) else value


@given(st.binary(max_size=80))
def test_botocore_and_we_agree_on_which_headers_can_be_read(raw):
    botocore = pytest.importorskip("botocore.eventstream")
    try:
        found = parse_headers(raw)
    except ValueError:
        return  # botocore does not look whether a value breaks off
    assert {name: plain(value) for name, value in found.items()} == botocore.EventStreamHeaderParser().parse(raw)
