"""Places of faults, repairs that travel with their frames, limits to the byte, and beginnings: what other tests pass by."""

from __future__ import annotations

import struct
from binascii import crc32

import pytest

from streamkit import parse_sse, pipe
from streamkit.errors import BrokenFrame, EventTooLong, LineTooLong, NeedsRepair, NotThisDialect, UsageError
from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream
from streamkit.framing.frame import BEGINNING_BYTES, BOM, Beginning, describe_beginning
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.ndjson import NDJSONParser, serialize_ndjson
from streamkit.framing.sse import SSEParser, has_comments_only, serialize_sse
from streamkit.limits import Limits
from streamkit.report import REPAIRS, StreamReport

EVENT = b"data: 0\n\n"
STRAYS = {
    "sse_error_field": b"error: no\n\n",
    "sse_field_unknown": b"what: no\ndata: 1\n\n",
    "sse_bare_json": b'{"error":\n1}\n\n',
}


def strict() -> StreamReport:
    report = StreamReport()
    report.refuse_repairs()
    return report


# -- repairs and their places ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("kind", STRAYS)
def test_a_repair_that_is_refused_is_named_explained_and_placed(kind, size):
    parser = SSEParser(report=strict(), stray_errors=True)
    whole = EVENT + STRAYS[kind]
    for at in range(0, len(whole), size):
        parser.feed(whole[at : at + size])
    fault = parser.fault
    assert isinstance(fault, NeedsRepair)
    assert (fault.kind, fault.offset) == (kind, len(EVENT))
    assert REPAIRS[kind] in str(fault)


@pytest.mark.parametrize(("kind", "last"), [("sse_error_field", b"error: no"), ("sse_bare_json", b'{"error":')])
def test_a_repair_that_is_refused_at_the_end_is_named_explained_and_placed_too(kind, last):
    parser = SSEParser(report=strict(), stray_errors=True)
    parser.feed(EVENT + last)
    assert parser.finish() == []
    fault = parser.fault
    assert isinstance(fault, NeedsRepair)
    assert (fault.kind, fault.offset) == (kind, len(EVENT))
    assert REPAIRS[kind] in str(fault)


def test_an_object_is_an_event_only_behind_an_event_and_only_where_that_is_asked_for():
    plain = SSEParser()
    assert [frame.data for frame in plain.feed(EVENT + b'{"a":1}\n\n')] == [b"0"]
    inside = SSEParser(stray_errors=True)
    assert [frame.data for frame in inside.feed(EVENT + b'data: 1\n{"a":1}\n\n')] == [b"0", b"1"]


def test_a_last_error_field_is_read_only_where_that_is_asked_for():
    for strays, expected in (True, [b"n:o"]), (False, []):
        parser = SSEParser(stray_errors=strays)
        parser.feed(EVENT + b"error: n:o")
        assert [frame.data for frame in parser.finish()] == expected
        assert bool(parser._report.repairs) is strays


@pytest.mark.parametrize("strays", [True, False])
def test_a_last_payload_is_read_without_its_line_end(strays):
    parser = SSEParser(stray_errors=strays)
    parser.feed(EVENT + b"data: 1:2")
    assert [frame.data for frame in parser.finish()] == [b"1:2"]


def test_repairs_behind_the_last_event_count_at_the_end():
    for report, fault, times in (StreamReport(), type(None), 2), (strict(), NeedsRepair, 1):
        parser = SSEParser(report=report)
        parser.feed(EVENT + b"what: no\nwhat\n")
        assert not report.repairs
        assert parser.finish() == []
        assert (dict(report.repairs), type(parser.fault)) == ({"sse_field_unknown": times}, fault)


async def source(*chunks: bytes):
    for chunk in chunks:
        yield chunk


async def test_a_body_that_is_all_there_is_is_no_event_stream_unless_that_is_asked_for():
    with pytest.raises(NotThisDialect):
        async with pipe(source(b'{"error":1}\n'), parse_sse(stray_errors=True)) as stream:
            assert [frame async for frame in stream] == []
    async with pipe(source(b'{"error":1}\n'), parse_sse(stray_errors=True, bare_body=True)) as stream:
        assert [frame.data for batch in [batch async for batch in stream] for frame in batch] == [b'{"error":1}']


# -- ids and limits ----------------------------------------------------------------------------------------------------


def test_the_boundary_passes_what_is_whole_between_events():
    parser, boundaries = SSEParser(stray_errors=True), []
    for read in (EVENT, b": c\n", b'{"error":\n', b"1}\n", b"data: 1\n", b": c\n", b"\n"):
        parser.feed(read)
        boundaries.append(parser.boundary)
    assert boundaries == [9, 13, 13, 26, 26, 26, 39]


def test_every_later_event_has_the_last_id_whichever_way_it_is_read():
    parser = SSEParser(stray_errors=True)
    assert parser.feed(b"id: 7\n\n") == []
    frames = parser.feed(b"data: 1\n\n" * 40 + b"event: a\ndata: 1\n\n" + b'{"error":1}\n\n')
    assert [frame.id for frame in frames] == ["7"] * 42


def test_a_whole_line_behind_many_events_waits_for_its_blank_line():
    parser = SSEParser()
    assert len(parser.feed(b"data: 1\n\n" * 40 + b"data: 2\n")) == 40
    assert [frame.data for frame in parser.feed(b"\n")] == [b"2"]


def test_the_limit_of_an_event_begins_anew_with_each():
    parser = SSEParser(limits=Limits(line_bytes=20, event_bytes=20))
    event = b"event: ab\ndata: 12345\n\n"
    assert sum(map(len, (b"event: ab", b"data: 12345"))) == 20
    assert len(parser.feed(event + event)) == 2
    bare = SSEParser(limits=Limits(line_bytes=20, event_bytes=20), stray_errors=True)
    assert len(bare.feed(event + b'{"error":1}\n' + event)) == 3
    assert parser.fault is bare.fault is None


def test_a_comment_that_comes_in_pieces_adds_nothing_to_its_event():
    parser = SSEParser(limits=Limits(line_bytes=100, event_bytes=20))
    for piece in (b"data: 1\n:", b"x" * 50, b"x\n\n"):
        parser.feed(piece)
    assert parser.fault is None


def test_of_two_equal_limits_the_lines_is_told():
    parser = NDJSONParser(limits=Limits(line_bytes=20, event_bytes=20))
    parser.feed(b'{"a":"%b"}\n' % (b"x" * 20))
    assert isinstance(parser.fault, LineTooLong)
    wide = NDJSONParser(limits=Limits(line_bytes=21, event_bytes=20))
    wide.feed(b'{"a":"%b"}\n' % (b"x" * 20))
    assert isinstance(wide.fault, EventTooLong)


def test_a_line_that_is_too_long_is_placed_where_it_begins():
    parser = NDJSONParser(limits=Limits(line_bytes=10))
    parser.feed(b'{}\n{}\n{"a":"12345678"}\n')
    assert isinstance(parser.fault, LineTooLong)
    assert parser.fault.offset == 6


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_of_a_payload_begins_a_line(end):
    assert serialize_sse(b"a" + end + b"b") == b"data: a\ndata: b\n\n"


def test_what_cannot_be_written_is_repeated():
    with pytest.raises(UsageError, match="'a"):
        serialize_ndjson(b"a\nb")
    with pytest.raises(UsageError, match=r"the header 'a' can't have the value .*3"):
        serialize_eventstream({"a": {3}}, b"")  # type: ignore[dict-item]


# -- beginnings --------------------------------------------------------------------------------------------------------


def test_a_sample_is_as_long_whatever_the_cuts():
    beginning = Beginning()
    beginning.take(b"x" * 10)
    beginning.take(b"x" * 1000)
    assert len(beginning.kept) == BEGINNING_BYTES
    assert not beginning.open


@pytest.mark.parametrize("reads", [[], [b""], [BOM]])
def test_nothing_or_a_mark_alone_is_an_empty_stream(reads):
    parser = SSEParser()
    assert [parser.feed(read) for read in reads] == [[]] * len(reads)
    assert parser.finish() == []
    assert parser.fault is None


def test_a_prelude_alone_is_a_binary_stream():
    head = struct.pack("!II", 16, 0)
    prelude = head + struct.pack("!I", crc32(head))
    assert describe_beginning(prelude) == "a binary event stream"


def test_of_binary_data_eight_bytes_are_shown_and_whether_there_are_more():
    assert describe_beginning(b"\0" * 8) == "binary data (00 00 00 00 00 00 00 00)"
    assert describe_beginning(b"\0" * 9) == "binary data (00 00 00 00 00 00 00 00 …)"


def test_of_a_whole_sample_the_last_line_may_be_torn():
    comment = b": " + b"x" * (BEGINNING_BYTES - 10) + b"\n"
    sample = comment + b"unknown"[: BEGINNING_BYTES - len(comment)]
    assert len(sample) == BEGINNING_BYTES
    assert has_comments_only(sample)
    assert not has_comments_only(sample[:-1])


def test_the_byte_that_ends_an_array_too_early_is_told():
    parser = JSONArrayParser()
    parser.feed(b"[{},x]")
    assert isinstance(parser.fault, BrokenFrame)
    assert (parser.fault.payload, parser.fault.offset) == (b"x", 4)


def test_behind_a_whole_message_nothing_is_another_stream():
    parser = EventStreamParser()
    message = serialize_eventstream({":event-type": "a"}, b"{}")
    parser.feed(message + b"<!doctype")
    assert parser.fault is None
    assert [frame.terminated for frame in parser.finish()] == [False]
    assert parser.fault is None
