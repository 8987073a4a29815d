from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import EventTooLong, LineTooLong, NameTooLong, NotThisDialect, StreamError, UsageError
from streamkit.framing import sse
from streamkit.framing.frame import Frame, describe_beginning, escape_separators
from streamkit.framing.sse import SSEParser, parse_sse, serialize_comment, serialize_sse
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import pipe
from streamkit.report import StreamReport
from streamkit.testing import cuts
from tests.framing.cuts import cut_at, read, same_at_every_cut
from tests.framing.standard import events_of

BOM = b"\xef\xbb\xbf"

VECTORS = {
    "data and a blank line": (b"data: x\n\n", [Frame(b"x")]),
    "only one space goes": (b"data:  x\n\ndata:x\n\n", [Frame(b" x"), Frame(b"x", 10)]),
    "CR": (b"data: x\r\rdata: y\r\r", [Frame(b"x"), Frame(b"y", 9)]),
    "CRLF": (b"data: x\r\n\r\ndata: y\r\n\r\n", [Frame(b"x"), Frame(b"y", 11)]),
    "CRLF and LF by turns": (b"data: x\r\n\ndata: y\n\r\n", [Frame(b"x"), Frame(b"y", 10)]),
    "LF CR is two line ends": (b"data: x\n\rdata: y\n\r", [Frame(b"x"), Frame(b"y", 9)]),
    "data lines are joined by LF": (b"data: {\ndata:\ndata: }\n\n", [Frame(b"{\n\n}")]),
    "an empty data field is an event": (b"data\n\ndata:\n\n", [Frame(b""), Frame(b"", 6)]),
    "no data field is no event": (b"event: x\n\ndata: y\n\n", [Frame(b"y", 10)]),
    "the type lasts for one event": (
        b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n",
        [Frame(b"1", 0, "b"), Frame(b"2", 27)],
    ),
    "the id lasts": (b"id: 7\ndata: 1\n\ndata: 2\n\n", [Frame(b"1", 0, id="7"), Frame(b"2", 15, id="7")]),
    "an id without data lasts too": (b"id: 7\n\ndata: 2\n\n", [Frame(b"2", 7, id="7")]),
    "an empty id resets": (b"id: 7\n\nid\ndata: 2\n\n", [Frame(b"2", 7)]),
    "comments between and inside": (b": a\n\n:b\ndata: x\n:\ndata: y\n\n", [Frame(b"x\ny", 8)]),
    "a byte order mark": (BOM + b"data: x\n\n", [Frame(b"x", 3)]),
    "separators of Unicode do not end lines": (
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n\n".encode(),
        [Frame("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg".encode())],
    ),
    "bytes that are no UTF-8": (b"event: \xff\ndata: \xff\n\n", [Frame(b"\xff", 0, "\ufffd")]),
    "comment as data": (b"data: : keepalive\n\n", [Frame(b": keepalive")]),
    "no blank line": (b"data: x\n\ndata: y\n", [Frame(b"x"), Frame(b"y", 9, terminated=False)]),
    "no line end": (b"id: 1\nevent: e\ndata: x\ndata: y", [Frame(b"x\ny", 0, "e", "1", terminated=False)]),
    "half a field name": (b"data: x\nda", [Frame(b"x", terminated=False)]),
    "half an event name": (b"data: x\nevent: con", [Frame(b"x", terminated=False)]),
    "nothing": (b"", []),
    "blank": (BOM + b" \r\n\t\n", []),
    "half a mark behind data": (b"data: x\n\n\xef\xbb", [Frame(b"x")]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_gives_its_frames_at_every_cut(name):
    data, frames = VECTORS[name]
    outcome = same_at_every_cut(SSEParser, data)
    assert outcome.frames == frames
    assert outcome.fault == ""


def test_crlf_cut_between_chunks_is_one_line_end():
    parser = SSEParser()
    assert parser.feed(b"data: x\r") == []
    assert parser.feed(b"\ndata: y\r\n\r\n") == [Frame(b"x\ny")]


def test_cr_at_the_end_of_a_read_ends_the_line_at_once():
    parser = SSEParser()
    assert parser.feed(b"data: x\r\r") == [Frame(b"x")]
    assert parser.boundary == 9
    assert parser.feed(b"\n") == []
    assert parser.boundary == 10


def test_one_byte_order_mark_is_taken_off_and_a_second_is_part_of_a_name():
    outcome = same_at_every_cut(SSEParser, BOM + BOM + b"data: x\n\ndata: y\n\n")
    assert outcome.frames == [Frame(b"y", 15)]
    assert outcome.repairs == {"sse_field_unknown": 1}


def test_unknown_fields_are_passed_over_and_counted():
    data = b"Data: x\n data: x\ndata : x\nfoo\nerror: x\ndata: y\n\n"
    outcome = same_at_every_cut(SSEParser, data)
    assert outcome.frames == [Frame(b"y")]
    assert outcome.repairs == {"sse_field_unknown": 5}


def test_an_error_field_is_an_error_event_where_asked_for():
    parser = partial(SSEParser, stray_errors=True)
    outcome = same_at_every_cut(parser, b'data: 1\n\nerror: {"code":500}\n\ndata: 2\n\n')
    assert outcome.frames == [Frame(b"1"), Frame(b'{"code":500}', 9, "error"), Frame(b"2", 30)]
    assert outcome.repairs == {"sse_error_field": 1}
    last = same_at_every_cut(parser, b'error: {"code":500}')
    assert last.frames == [Frame(b'{"code":500}', 0, "error", terminated=False)]


PRETTY = b'{\n  "error": {\n    "message": "}",\n    "code": 503\n  }\n}'
BARE = {
    "on one line": (b"data: 1\n\n{}\ndata: 2\n\n", [Frame(b"1"), Frame(b"{}", 9), Frame(b"2", 12)]),
    "on many lines": (b"data: 1\n\n" + PRETTY + b"\n\ndata: 2\n\n", [Frame(b"1"), Frame(PRETTY, 9), Frame(b"2", 11 + len(PRETTY))]),
    "lines in CRLF": (
        b"data: 1\r\n\r\n" + PRETTY.replace(b"\n", b"\r\n") + b"\r\n",
        [Frame(b"1"), Frame(PRETTY, 11)],
    ),
    "no blank line behind it": (b"data: 1\n\n{\n}\ndata: 2\n\n", [Frame(b"1"), Frame(b"{\n}", 9), Frame(b"2", 13)]),
    "a blank line inside": (
        b'data: 1\n\n{"a":\n\ndata: 2\ndata: 3\n\n',
        [Frame(b"1"), Frame(b'{"a":', 9), Frame(b"2\n3", 16)],
    ),
    "no line end": (b"data: 1\n\n" + PRETTY, [Frame(b"1"), Frame(PRETTY, 9, terminated=False)]),
    "broken off": (b"data: 1\n\n" + PRETTY[:-3], [Frame(b"1"), Frame(PRETTY[:-3], 9, terminated=False)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BARE)
def test_a_bare_object_behind_an_event_is_an_event_where_asked_for(name):
    data, frames = BARE[name]
    outcome = same_at_every_cut(partial(SSEParser, stray_errors=True), data)
    assert outcome.frames == frames
    assert (outcome.repairs, outcome.fault) == ({"sse_bare_json": 1}, "")


@pytest.mark.parametrize("body", [PRETTY, PRETTY + b"\n", b"{}", b"\n{}\n\n"])
def test_a_bare_object_is_all_there_is_only_where_asked_for(body):
    found = same_at_every_cut(partial(SSEParser, stray_errors=True, bare_body=True), body)
    assert [frame.data for frame in found.frames] == [body.strip()]
    assert found.frames[0].terminated == body.endswith(b"\n")
    assert (found.repairs, found.fault) == ({"sse_bare_json": 1}, "")
    assert same_at_every_cut(partial(SSEParser, stray_errors=True), body).fault.startswith("NotThisDialect")


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"0", 0), (b"00010", 10), (b"1" + b"0" * 17, 10**17), (b"", None), (b"1_0", None), (b"+1", None), (b"-1", None),
        (b" 1", None), ("\u0663".encode(), None), (b"9" * 5000, None), (b"0" * 5000 + b"7", 7), (b"0" * 5000, 0),
    ],
)  # fmt: skip
def test_retry_takes_ascii_digits_only(value, retry):
    parser = SSEParser()
    parser.feed(b"retry: " + value + b"\n\n")
    assert parser.retry == retry


def test_the_last_event_id_is_committed_by_the_blank_line():
    parser = SSEParser()
    parser.feed(b"id: 1\ndata: x\n")
    assert parser.last_event_id == ""
    parser.feed(b"\nid: \0\n\n")
    assert parser.last_event_id == "1"
    parser.feed(b"id: 2")
    parser.finish()
    assert parser.last_event_id == "1"


def test_a_last_event_without_its_blank_line_is_dropped_as_browsers_do():
    outcome = same_at_every_cut(partial(SSEParser, last_event="drop"), b"data: x\n\ndata: y\n")
    assert outcome.frames == [Frame(b"x")]
    assert read(partial(SSEParser, last_event="drop"), [b"data: y"]) == ([], "", 0, {})


def test_abandon_gives_what_is_held_once():
    parser = SSEParser()
    parser.feed(b"data: x\n\ndata: y\ndata: z")
    assert parser.abandon() == [Frame(b"y\nz", 9, terminated=False)]
    assert parser.abandon() == parser.finish() == []
    assert parser.fault is None


@pytest.mark.parametrize(
    ("before", "line", "limits", "error"),
    [
        (b"", b"data: %b\n", {"line_bytes": 50}, LineTooLong),
        (b"", b": %b\r\n", {"line_bytes": 50}, LineTooLong),
        (b"", b"junk%b\n", {"line_bytes": 50}, LineTooLong),
        (b"", b"data: %b\n", {"event_bytes": 50}, EventTooLong),
        (b"", b"data: %b\r\n", {"line_bytes": 50, "event_bytes": 50}, LineTooLong),
        (b"data: 12345678\n: a comment is no part of it\nevent: e\n", b"data: %b\n", {"event_bytes": 72}, EventTooLong),
    ],
)
def test_a_limit_holds_at_itself_and_fails_one_byte_above(before, line, limits, error):
    used = sum(len(kept) for kept in before.splitlines() if kept[:1] != b":")
    most = min(limits.values()) - used - len(line.rstrip() % b"")
    make = partial(SSEParser, limits=Limits(**limits))
    for size in (most - 1, most):
        outcome = same_at_every_cut(make, b"data: 1\n\n" + before + line % (b"x" * size) + b"\ndata: 2\n\n")
        assert outcome.fault == ""
        assert outcome.frames[-1].data.endswith(b"2")
    outcome = same_at_every_cut(make, b"data: 1\n\n" + before + line % (b"x" * (most + 1)) + b"\ndata: 2\n\n")
    assert outcome.frames == [Frame(b"1")]
    assert outcome.fault.startswith(error.__name__)
    assert outcome.fault.endswith("(at byte 9)")
    assert outcome.boundary == 9


@pytest.mark.parametrize("field", [b"event", b"id"])
def test_names_have_a_limit(field):
    make = partial(SSEParser, limits=Limits(name_bytes=8))
    for size in (7, 8):
        outcome = same_at_every_cut(make, field + b": " + b"n" * size + b"\ndata: x\n\n")
        assert [getattr(frame, "id" if field == b"id" else "event") for frame in outcome.frames] == ["n" * size]
    outcome = same_at_every_cut(make, b"data: 1\n\n" + field + b": nnnnnnnnn\ndata: x\n\n")
    assert outcome.frames == [Frame(b"1")]
    assert outcome.fault.startswith(NameTooLong.__name__)


def test_after_a_fault_nothing_is_read():
    parser = SSEParser(limits=Limits(line_bytes=10))
    assert parser.feed(b"data: x\n\ndata: 12345\n\n") == [Frame(b"x")]
    fault = parser.fault
    assert isinstance(fault, LineTooLong)
    assert (fault.offset, fault.allowed) == (9, 10)
    assert parser.feed(b"data: y\n\n") == parser.feed(b"\ndata: y\n\n") == parser.finish() == parser.abandon() == []
    assert parser.fault is fault


@pytest.mark.parametrize(
    "body", [b": ping\n\n: ping\n\n", b":", b"retry: 100\n: ping\n", b"\xef\xbb\xbf: ping\r\n", b": ping\n" * 100]
)
def test_a_stream_of_comments_only_is_an_event_stream_that_was_cut(body):
    for reads in cuts(body, seed=1, sample=5):
        parser = SSEParser()
        assert [frame for read in reads for frame in parser.feed(read)] + parser.finish() == []
        assert parser.fault is None


def test_what_follows_comments_may_still_be_no_event_stream():
    parser = SSEParser()
    parser.feed(b": ping\n<html></html>\n")
    parser.finish()
    assert isinstance(parser.fault, NotThisDialect)


def test_comments_without_end_are_fine():
    parser = SSEParser(limits=Limits(line_bytes=20, event_bytes=20))
    parser.feed(b"data: x\n")
    for _ in range(100):
        parser.feed(b": kept alive so far\n")
    assert parser.feed(b"\n") == [Frame(b"x")]


@pytest.mark.parametrize(
    ("piece", "error"),
    [
        (b"xy", LineTooLong), (b": " + b"c" * 4096, LineTooLong), (b"\ndata:ab", EventTooLong), (b"data\n", EventTooLong),
        (b"id\n", EventTooLong), (b"\xff" * 4096, LineTooLong),
    ],
)  # fmt: skip
def test_a_line_or_event_without_end_takes_no_more_than_its_limit(piece, error):
    limit = 128 * 1024

    def peak():
        parser = SSEParser(limits=Limits(line_bytes=limit, event_bytes=limit))
        tracemalloc.start()
        try:
            for _ in range(limit):
                parser.feed(piece)
                if parser.fault is not None:
                    break
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            assert isinstance(parser.fault, error)

    found = peak()
    if found >= 3 * limit:  # threads of other tests may have allocated meanwhile
        found = min(peak(), peak())
    assert found < 3 * limit


def test_no_byte_is_searched_or_copied_out_twice(monkeypatch):
    searched: list[int] = []
    taken: list[int] = []
    cut_lines = sse.cut_lines
    monkeypatch.setattr(sse, "cut_lines", lambda chunk: (searched.append(len(chunk)), cut_lines(chunk))[1])

    class Counting(SSEParser):
        def _take(self):
            taken.append(len(self._partial))
            return super()._take()

    for size in (1, 7, 1000):
        searched.clear()
        taken.clear()
        data = (b"data: " + b"x" * 5000 + b"\n\n") * 5
        parser = Counting()
        for start in range(0, len(data), size):
            parser.feed(data[start : start + size])
        parser.finish()
        assert sum(searched) <= len(data)
        assert sum(taken) <= len(data)
        assert len(taken) <= 5 + 1 + (size != 1)


lines = st.sampled_from(
    [b"data: 12", b"data:3", b"data", b"event: e", b"event: long-name", b"id: 1", b"id: \0", b"id", b": c", b":", b"retry: 5",
     b"junk", b"error: 1", b" data: x", BOM, b"data: " + b"x" * 20, "data: \u2028\x85".encode(), b"d"]
)  # fmt: skip
ends = st.sampled_from([b"\n", b"\n", b"\n\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r", b"\r\r", b"\n\r", b""])
streams = st.one_of(
    st.lists(st.tuples(lines, ends).map(b"".join), max_size=12).map(b"".join),
    st.lists(
        st.sampled_from(
            [b"data: 12\n\n", b"data: 12\r\n\r\n", b"data: 3\n", b"event: e\n", b": c\n\n", b"{\n", b"}\n"]
        ),
        max_size=9,
    ).map(b"".join),
    st.binary(max_size=60),
)
limits = st.one_of(
    st.just(Limits()),
    st.builds(Limits, line_bytes=st.integers(5, 30), name_bytes=st.integers(1, 8)),
    st.builds(Limits, event_bytes=st.integers(10, 40)),
    st.builds(Limits, line_bytes=st.integers(1, 30), event_bytes=st.integers(1, 30)),
)
places = st.lists(st.integers(0, 200), max_size=8).map(sorted)


def pieces(data: bytes, at: list[int]) -> list[bytes]:
    return cut_at(data, [min(place, len(data)) for place in at])


@given(streams, places, limits, st.booleans(), st.booleans())
def test_the_cuts_change_nothing_not_even_a_fault(data, at, limits, stray_errors, bare_body):
    make = partial(SSEParser, limits=limits, stray_errors=stray_errors, bare_body=bare_body)
    assert read(make, pieces(data, at)) == read(make, [data])


@pytest.mark.parametrize("before", [b"", b"junk\n\n", b"event: e\n", b": c\n\n", b"data: a\r", b"\r", b"data: a\n"])
@pytest.mark.parametrize(
    "behind", [b"", b"data: d\n\n", b": c\n\n", b"event: e\ndata: d\n\n", b"data: d\r\n\r\n", b"\n"]
)
def test_an_event_that_two_reads_share_is_one_of_many(before, behind):
    data = b"data: z\n\n" + before + b"data: bc\n\n" + behind
    for at in range(len(data)):
        assert read(SSEParser, [data[:at], data[at:]]) == read(SSEParser, [data]), at


#: Reads, and what comes of them: an event's name, payloads, where the first begins, and the bytes around each of many.
TOGETHER = {
    "one after the other": ([b"data: a\n\ndata: b\n\ndata: c\n\n"], [("message", [b"a", b"b", b"c"], 0, 8)]),
    "with a name": ([b"event: e\ndata: a\n\nevent: e\ndata: b\n\n"], [("e", [b"a", b"b"], 0, 17)]),
    "CRLF": ([b"data: a\r\n\r\ndata: b\r\n\r\n"], [("message", [b"a", b"b"], 0, 10)]),
    "CRLF and a name": ([b"event: e\r\ndata: a\r\n\r\nevent: e\r\ndata: b\r\n\r\n"], [("e", [b"a", b"b"], 0, 20)]),
    "line ends of both kinds": (
        [b"data: a\r\n\r\ndata: b\n\n"],
        [("message", [b"a"], 0, None), ("message", [b"b"], 11, None)],
    ),
    "a CR in a line": (
        [b"data: a\rdata: b\n\ndata: c\n\n"],
        [("message", [b"a\nb"], 0, None), ("message", [b"c"], 17, None)],
    ),
    "a CR in a line, CRLF": (
        [b"data: a\rdata: b\r\n\r\ndata: c\r\n\r\n"],
        [("message", [b"a\nb"], 0, None), ("message", [b"c"], 19, 10)],
    ),
    "another name": (
        [b"event: e\ndata: a\n\nevent: e\ndata: b\n\nevent: f\ndata: c\n\n"],
        [("e", [b"a"], 0, 17), ("e", [b"b"], 18, None), ("f", [b"c"], 36, 17)],
    ),
    "a name and none": (
        [b"data: a\n\ndata: b\n\nevent: f\ndata: c\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"b"], 9, None), ("f", [b"c"], 18, None)],
    ),
    "two lines": (
        [b"data: a\n\ndata: b\n\ndata: c\ndata: d\n\ndata: e\n\n"],
        [("message", [b"a", b"b"], 0, 8), ("message", [b"c\nd"], 18, None), ("message", [b"e"], 35, None)],
    ),
    "no blank line yet": ([b"data: a\n\ndata: b\n\ndata: c\n"], [("message", [b"a", b"b"], 0, 8)]),
    "two reads share one": (
        [b"data: a\n\ndata: b", b"c\n\ndata: d\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc", b"d"], 9, 8)],
    ),
    "two reads share one, nothing follows": (
        [b"data: a\n\ndata: b", b"c\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc"], 9, None)],
    ),
    "two reads share one, a blank line follows": (
        [b"data: a\n\ndata: b", b"c\n\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc"], 9, 8)],
    ),
    "two reads share one, a name follows": (
        [b"data: a\n\ndata: b", b"c\n\nevent: e\ndata: d\n\nevent: e\ndata: f\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc"], 9, 8), ("e", [b"d", b"f"], 19, 17)],
    ),
    "two reads share one, CRLF": (
        [b"data: a\n\ndata: b", b"c\r\n\r\ndata: d\r\n\r\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc"], 9, None), ("message", [b"d"], 21, None)],
    ),
    "two reads share one, CRLF follows": (
        [b"data: a\n\ndata: b", b"c\n\ndata: d\r\n\r\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc"], 9, 8), ("message", [b"d"], 19, 10)],
    ),
    "two reads share one of two lines": (
        [b"data: a\n\ndata: b", b"c\ndata: d\n\ndata: e\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc\nd"], 9, None), ("message", [b"e"], 27, None)],
    ),
    "two reads share a name": (
        [b"data: a\n\nevent: e\ndata: b", b"c\n\nevent: e\ndata: d\n\n"],
        [("message", [b"a"], 0, 8), ("e", [b"bc"], 9, None), ("e", [b"d"], 28, None)],
    ),
}
#: The same with lines of eight bytes at most.
TOGETHER_IN_SHORT_LINES = {
    "as long as it may be": ([b"data: aa\n\ndata: bb\n\n"], [("message", [b"aa", b"bb"], 0, 8)]),
    "too long": ([b"data: aa\n\ndata: bbb\n\n"], [("message", [b"aa"], 0, 8), "LineTooLong"]),
    "shared and as long": (
        [b"data: a\n\ndata: b", b"c\n\ndata: d\n\n"],
        [("message", [b"a"], 0, 8), ("message", [b"bc", b"d"], 9, 8)],
    ),
    "shared and too long": ([b"data: a\n\ndata: b", b"cd\n\ndata: d\n\n"], [("message", [b"a"], 0, 8), "LineTooLong"]),
}


def together(reads: list[bytes], limits: Limits = DEFAULT_LIMITS) -> list[Any]:
    found: list[Any] = []
    parser = SSEParser(limits=limits)
    parser.emit = lambda frame: found.append((frame.event, [frame.data], frame.offset, None))
    parser.emit_run = lambda run: found.append((run.event, run.payloads, run.offset, run.around))
    try:
        for chunk in reads:
            parser.push(chunk)
    except StreamError as error:
        found.append(type(error).__name__)
    return found


@pytest.mark.parametrize(("reads", "expected"), TOGETHER.values(), ids=TOGETHER)
def test_events_that_differ_in_their_payload_alone_come_together(reads, expected):
    assert together(reads) == expected


@pytest.mark.parametrize(("reads", "expected"), TOGETHER_IN_SHORT_LINES.values(), ids=TOGETHER_IN_SHORT_LINES)
def test_events_within_the_limits_come_together(reads, expected):
    assert together(reads, Limits(line_bytes=8)) == expected


def test_of_a_long_read_windows_come_together():
    counts = [
        len(payloads) for _, payloads, _, _ in together([b"data: x\n\n" * 20_000 + b": c\n\n" + b"data: y\n\n" * 3])
    ]
    assert counts[:2] == [7281, 7281]
    assert sum(counts) == 20_003
    assert len(counts) < 9


class PlainParser(SSEParser):
    """Without the path for streams of nothing but data."""

    def _begun_payload(self, chunk):
        return [], 0

    def _read_alike(self, window, first):
        return 0


@given(streams, places, limits)
def test_the_path_for_data_only_agrees_with_the_plain_one(data, at, limits):
    fast, plain = SSEParser(limits=limits), PlainParser(limits=limits)
    for chunk in pieces(data, at):
        assert fast.feed(chunk) == plain.feed(chunk)
        assert (fast.boundary, fast.last_event_id, str(fast.fault)) == (
            plain.boundary,
            plain.last_event_id,
            str(plain.fault),
        )
    assert fast.finish() == plain.finish()


def test_the_path_for_data_only_is_taken_and_left_at_the_first_other_line():
    read_by: list[int] = []

    class Noting(SSEParser):
        def _read(self, lines, width):
            read_by.append(len(lines))
            super()._read(lines, width)

    frames = Noting().feed(b"data: x\n\n" * 20 + b": ping\n" + b"data: y\n\n" * 2)
    assert [frame.data for frame in frames] == [b"x"] * 20 + [b"y"] * 2
    assert read_by == [5]


@given(streams, places)
def test_the_parser_agrees_with_the_standard_read_line_by_line(data, at):
    frames = read(partial(SSEParser, last_event="drop"), pieces(data, at)).frames
    assert [(frame.event, frame.text, frame.id) for frame in frames] == events_of(data)


@given(streams, places, limits)
def test_what_precedes_the_boundary_is_whole(data, at, limits):
    parser = SSEParser(limits=limits)
    frames = []
    received = 0
    for chunk in pieces(data, at):
        frames += parser.feed(chunk)
        received += len(chunk)
        again = SSEParser(limits=limits)
        assert again.feed(data[: parser.boundary]) == frames
        assert again.abandon() == []
        assert again.boundary == parser.boundary <= received
        assert again.last_event_id == parser.last_event_id


def test_the_boundary_passes_comments_and_stops_at_an_open_event():
    data = BOM + b": c\r\n\r\ndata: x\n: inside\n\n:d\ndata: y\n"
    assert same_at_every_cut(SSEParser, data).boundary == len(BOM + b": c\r\n\r\ndata: x\n: inside\n\n:d\n")


@given(st.text(), st.none() | st.text(), st.none() | st.text(), st.none() | st.integers(0, 10**17), places)
def test_what_is_serialized_is_read_back_by_us_and_by_the_standard(data, event, id_, retry, at):
    forging = any(char in name for name in (event or "", id_ or "") for char in "\r\n\0")
    if forging:
        with pytest.raises(UsageError):
            serialize_sse(data.encode(), event=event, id=id_, retry=retry)
        return
    raw = serialize_sse(data.encode(), event=event, id=id_, retry=retry)
    parser = SSEParser(limits=Limits(name_bytes=10_000))
    frames = [frame for chunk in pieces(raw, at) for frame in parser.feed(chunk)]
    payload = data.replace("\r\n", "\n").replace("\r", "\n")
    assert frames == [Frame(payload.encode(), 0, event or "message", id_ or "")]
    assert events_of(raw) == [(event or "message", payload, id_ or "")]
    assert parser.retry == retry
    assert parser.boundary == len(raw)


def test_serialize_writes_one_space_and_lf_only():
    assert serialize_sse(b"{}") == b"data: {}\n\n"
    assert serialize_sse(b"a\r\nb\rc\n", event="e", id="1", retry=5) == (
        b"event: e\nid: 1\nretry: 5\ndata: a\ndata: b\ndata: c\ndata: \n\n"
    )
    assert serialize_sse(b"") == b"data: \n\n"


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b", "a\r\ndata: forged\r\n\r\n"])
def test_a_name_or_comment_that_forges_lines_is_refused(bad):
    for write in (
        partial(serialize_sse, b"", event=bad),
        partial(serialize_sse, b"", id=bad),
        partial(serialize_comment, bad),
    ):
        with pytest.raises(UsageError):
            write()


@pytest.mark.parametrize("bad", [-1, "1\ndata: x"])
def test_retry_must_be_milliseconds(bad):
    with pytest.raises((UsageError, TypeError)):
        serialize_sse(b"x", retry=bad)


def test_a_comment_is_one_line_and_never_an_event():
    assert serialize_comment("ping") == b": ping\n"
    assert same_at_every_cut(SSEParser, b"data: x\n\n" + serialize_comment("ping") + b"data: y\n\n").frames == [
        Frame(b"x"),
        Frame(b"y", 16),
    ]


NO_STREAMS = {
    b"<!DOCTYPE html>\n<html>": "an HTML page ('<!DOCTYPE html>\\n<html>')",
    BOM + b"\r\n <HTML lang=en>": "an HTML page ('<HTML lang=en>')",
    b"<?xml version='1.0'?><Error/>": "an XML document ('<?xml version='1.0'?><Error/>')",
    b'{"error":"no"}': 'a JSON body (\'{"error":"no"}\')',
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03": "binary data (1f 8b 08 00 00 00 00 00 …)",
    b"\xef\xbb": "binary data (ef bb)",
    b"\xff\xfed\0a\0": "binary data (ff fe 64 00 61 00)",
    b"Internal Server Error": "text ('Internal Server Error')",
    b"\x1b[31mred\xe2\x80\xae": "text ('\\x1b[31mred\\u202e')",
    b"x" * 300: f"text ('{'x' * 60}…')",
    "\u00e9".encode() * 200: f"text ('{chr(0xE9) * 60}…')",
    b"": "nothing",
}


@pytest.mark.parametrize("start", [start for start in NO_STREAMS if start])
def test_input_without_one_event_is_named_for_what_it_is(start):
    outcome = same_at_every_cut(SSEParser, start)
    assert outcome.frames == []
    assert outcome.fault == f"{NotThisDialect.__name__}: not an event stream: found {NO_STREAMS[start]} (at byte 0)"


@pytest.mark.parametrize("start", NO_STREAMS)
def test_the_beginning_is_described_in_one_line(start):
    assert describe_beginning(start) == NO_STREAMS[start]


def test_separators_are_escaped_and_other_bytes_stay():
    text = '{"a":"\u2028\u2029\x85","b":"\u2019\xa5"}'
    assert escape_separators(text.encode()) == '{"a":"\\u2028\\u2029\\u0085","b":"\u2019\xa5"}'.encode()
    ascii_only = b'{"a":"\\u2028"}'
    assert escape_separators(ascii_only) is ascii_only


async def test_the_stage_gives_batches_and_counts_into_the_pipes_report():
    async def source():
        for chunk in (b"data: 1\n\nda", b"ta: 2", b"\n\nerror: 3\n\n"):
            yield chunk

    async with pipe(source(), parse_sse(stray_errors=True)) as stream:
        batches = [batch async for batch in stream]
    assert batches == [[Frame(b"1")], [Frame(b"2", 9), Frame(b"3", 18, "error")]]
    assert stream.report == StreamReport(bytes_in=28, frames=3, repairs=stream.report.repairs)
    assert stream.report.repairs == {"sse_error_field": 1}


async def test_the_stage_hands_over_what_precedes_a_fault():
    async def source():
        yield b"data: 1\n\ndata: 12345\n\n"

    async with pipe(source(), parse_sse(limits=Limits(line_bytes=10))) as stream:
        assert await anext(stream) == [Frame(b"1")]
        with pytest.raises(LineTooLong):
            await anext(stream)
