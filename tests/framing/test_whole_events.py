"""What a reader of like events asks a parser: where an event ends, whether one may begin, and to count what was read for it."""

from __future__ import annotations

import pytest

from streamkit.errors import EventTooLong, LineTooLong, NameTooLong, NeedsRepair, UsageError
from streamkit.framing.frame import BEGINNING_BYTES
from streamkit.framing.ndjson import NDJSONParser
from streamkit.framing.sse import SSEParser, parse_sse, serialize_comment, serialize_sse
from streamkit.limits import Limits
from streamkit.policy import STRICT
from streamkit.report import StreamReport
from tests.reports import refusing

SSE = b"data: {}\n\n"
#: Long enough for a parser to know what it reads.
EVENT, LINE = b"data: %b\n\n" % (b"x" * BEGINNING_BYTES), b'{"a":"%b"}\n' % (b"x" * BEGINNING_BYTES)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (b"data: 1\n\ndata: 2\n\n", 0, 9),
        (b"data: 1\n\ndata: 2\n\n", 7, 9),
        (b"data: 1\n\ndata: 2\n\n", 8, 18),
        (b"\n\n", 0, 2),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", 0, 11),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", 9, 22),
        (b"\n\r\n", 0, 3),
        (b"data: 1\n", 0, -1),
        (b"data: 1\n\n", 8, -1),
        (b"data: 1\r\n\r\n", 9, -1),
    ],
)
def test_an_event_ends_behind_its_blank_line(text, start, end):
    assert SSEParser.end_of_event(text, start) == end


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [(b"{}\n{}\n", 0, 3), (b"{}\n{}\n", 2, 3), (b"{}\n{}\n", 3, 6), (b"{}", 0, -1), (b"\n", 0, 1)],
)
def test_a_line_ends_behind_its_lf(text, start, end):
    assert NDJSONParser.end_of_event(text, start) == end


@pytest.mark.parametrize(
    ("raw", "whole"),
    [
        (b"data: 1\n\n", True), (b"data: 1\r\n\r\n", True), (b"event: a\ndata: 1\n\n", True), (b"data:1\ndata:2\n\n", True),
        (b"event: a\r\ndata: 1\r\n\r\n", True), (b"id: 1\ndata: 1\n\n", False), (b"retry: 1\n\n", False),
        (b": c\ndata: 1\n\n", False), (b"data: 1\rdata: 2\n\n", False), (b"data: 1\n", False), (b"data: 1\n\n\n", False),
        (b"data: 1", False), (b"data: 1\n\nx", False), (b"data: 1\n\nx\n\n", False), (b"events: a\n\n", False),
        (b"data\n\n", False),
    ],
)  # fmt: skip
def test_an_event_of_a_name_and_data_alone_is_told(raw, whole):
    assert SSEParser.is_event(raw) is whole


def test_one_line_is_told():
    assert NDJSONParser.is_event(b"{}\n")
    for raw in (b"{}", b"{}\n{}\n", b"{}\n{}", b""):
        assert not NDJSONParser.is_event(raw) or raw == b""


def sse(report=None, **limits):
    parser = SSEParser(limits=Limits(**limits), report=report)
    parser.feed(EVENT)
    return parser


def lines(report=None, **limits):
    parser = NDJSONParser(limits=Limits(**limits), report=report)
    parser.feed(LINE)
    return parser


@pytest.mark.parametrize(("make", "first"), [(sse, EVENT), (lines, LINE)])
def test_what_was_read_by_somebody_else_is_counted_and_placed(make, first):
    report = StreamReport()
    parser = make(report)
    assert parser.may_pass(100)
    assert parser.pass_over(100, 7)
    assert (report.bytes_in, report.frames, parser.boundary) == (len(first) + 100, 8, len(first) + 100)
    assert [frame.offset for frame in parser.feed(first)] == [len(first) + 100]
    assert (report.bytes_in, report.frames) == (2 * len(first) + 100, 9)


@pytest.mark.parametrize("make", [sse, lines])
def test_no_more_may_pass_than_a_line_may_have(make):
    report = StreamReport()
    parser = make(report, line_bytes=500, event_bytes=500)
    assert parser.may_pass(500)
    assert not parser.may_pass(501)
    assert not parser.pass_over(501, 1)
    assert report.frames == 1
    assert parser.pass_over(500, 1)


@pytest.mark.parametrize(
    ("make", "behind"),
    [
        (sse, b"d"), (sse, b"data: 1\n"), (sse, b"data: 1\n\r"), (lines, b"{"),
        (SSEParser, b""), (NDJSONParser, b""), (SSEParser, b"\xef\xbb"), (NDJSONParser, b"\xef\xbb"),
    ],
)  # fmt: skip
def test_nothing_passes_inside_of_an_event_nor_in_front_of_the_first(make, behind):
    report = StreamReport()
    parser = make(report=report)
    parser.feed(behind)
    before = report.frames
    assert not parser.may_pass(1)
    assert not parser.pass_over(1, 1)
    assert report.frames == before


def test_nothing_passes_a_parser_whose_stray_lines_are_still_to_be_told():
    parser = SSEParser(bare_body=True)
    parser.feed(EVENT + b'{"error":')
    assert not parser.may_pass(1)
    assert not parser.pass_over(1, 1)


@pytest.mark.parametrize(
    ("limits", "data", "error", "text"),
    [
        ({"line_bytes": 10}, b"data: 12345\n\n", LineTooLong, "(limit line_bytes = 10) (at byte 10)"),
        ({"event_bytes": 20}, b"data: 1\ndata: 2\ndata: 3\n\n", EventTooLong, "(limit event_bytes = 20) (at byte 10)"),
        ({"name_bytes": 3}, b"event: four\ndata: 1\n\n", NameTooLong, "(limit name_bytes = 3) (at byte 10)"),
        ({"name_bytes": 3}, b"id: four\ndata: 1\n\n", NameTooLong, "(limit name_bytes = 3) (at byte 10)"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_limit_of_sse_is_told_with_the_place_of_its_event(limits, data, error, text, size):
    parser = SSEParser(limits=Limits(**limits))
    frames = []
    whole = SSE + data
    for at in range(0, len(whole), size):
        frames += parser.feed(whole[at : at + size])
    assert len(frames) == 1
    assert isinstance(parser.fault, error)
    assert str(parser.fault).endswith(text)


def test_a_limit_of_sse_is_the_most_that_is_taken():
    for limits, data in (
        ({"line_bytes": 11}, b"data: 12345\n\n"),
        ({"event_bytes": 21}, b"data: 1\ndata: 2\ndata: 3\n\n"),
        ({"name_bytes": 4}, b"event: four\nid: four\ndata: 1\n\n"),
    ):
        parser = SSEParser(limits=Limits(**limits))
        assert [frame.data[:1] for frame in parser.feed(data)] == [b"1"]
        assert parser.fault is None


def test_comments_do_not_count_into_an_event():
    parser = SSEParser(limits=Limits(line_bytes=30, event_bytes=20))
    assert (
        len(parser.feed(b"data: 1\n: a comment of many bytes\ndata: 2\n\n"[:8] + b": a comment of bytes\ndata: 2\n\n"))
        == 1
    )
    parser.feed(b": " + b"x" * 40)
    assert isinstance(parser.fault, LineTooLong)


@pytest.mark.parametrize(
    ("kind", "data", "place"),
    [
        ("sse_field_unknown", b"data: 1\nfoo: bar\n\n", 18),
        ("sse_error_field", b"error: broken\n\n", 10),
        ("sse_bare_json", b'{"error":1}\n', 10),
    ],
)
def test_a_mended_field_is_told_with_its_place_where_repairs_are_refused(kind, data, place):
    report = refusing()
    parser = SSEParser(report=report, stray_errors=True)
    try:
        parser.feed(SSE + data)
        parser.finish()
        error = parser.fault
    except NeedsRepair as raised:
        error = raised
    assert isinstance(error, NeedsRepair)
    assert error.kind == kind
    assert STRICT.refuse_repairs


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: serialize_comment("a\nb"), r"comment must be one line without NUL, not 'a\nb'"),
        (lambda: serialize_sse(b"{}", event="a\nb"), r"event must be one line without NUL, not 'a\nb'"),
        (lambda: serialize_sse(b"{}", event="a", id="a\rb"), r"id must be one line without NUL, not 'a\rb'"),
        (lambda: serialize_sse(b"{}", retry=-1), "retry must be a whole number of milliseconds, not -1"),
    ],
)
def test_what_can_not_be_written_is_named(call, said):
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == said


def test_data_is_cut_at_each_kind_of_line_end():
    assert serialize_sse(b"a\rb\nc\r\nd") == b"data: a\ndata: b\ndata: c\ndata: d\n\n"
    assert serialize_sse(b"plain") == b"data: plain\n\n"


def test_the_stage_hands_its_parser_all_that_it_was_given():
    data = b"data: 1\n\ndata: 2"
    assert len(parse_sse(last_event="drop").make(StreamReport()).feed(data)) == 1
    for last_event, frames in (("keep", 1), ("drop", 0)):
        parser = parse_sse(last_event=last_event).make(StreamReport())
        parser.feed(data)
        assert len(parser.finish()) == frames
    parser = parse_sse().make(StreamReport())
    parser.feed(data)
    assert len(parser.finish()) == 1
    for bare in (True, False):
        report = StreamReport()
        parser = parse_sse(stray_errors=True, bare_body=bare).make(report)
        found = parser.feed(b'{\n"error": 1\n}\n') + parser.finish()
        assert (b"".join(frame.data for frame in found).replace(b"\n", b"") == b'{"error": 1}') is bare
    for stray in (True, False):
        report = StreamReport()
        parser = parse_sse(stray_errors=stray).make(report)
        parser.feed(SSE + b"error: broken\n\n")
        parser.finish()
        assert ("sse_error_field" in report.repairs) is stray
    report = StreamReport()
    parse_sse().make(report).feed(SSE + b"error: broken\n\n")
    assert "sse_error_field" not in report.repairs


def test_fields_that_are_no_data_do_not_make_a_first_event():
    for field in (b"id: 1\n", b"event: a\n", b"retry: 1\n", b": c\n"):
        parser = SSEParser()
        parser.feed(field)
        parser.finish()
        assert parser.fault is None
    parser = SSEParser()
    parser.feed(b"nonsense\n" + b"x" * BEGINNING_BYTES)
    parser.finish()
    assert parser.fault is not None


def test_an_id_stays_until_another_comes():
    parser = SSEParser()
    found = parser.feed(b"id: 7\ndata: 1\n\n" + b"data: 2\n\n" * 30 + b"event: e\ndata: 3\n\nid\ndata: 4\n\n")
    assert [frame.id for frame in found] == ["7"] * 32 + [""]
    assert [frame.event for frame in found[-2:]] == ["e", "message"]
    assert found[1].offset == 15
