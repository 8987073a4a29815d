"""Events that come whole: many alike in one read, one alone, the limits that they meet, and how they are written."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.errors import EventTooLong, LineTooLong, NameTooLong, NeedsRepair, StreamError, UsageError
from streamkit.framing import sse
from streamkit.framing.frame import BEGINNING_BYTES, Frame
from streamkit.framing.sse import SSEParser, parse_sse, serialize_comment, serialize_sse
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import STRICT
from streamkit.report import StreamReport
from streamkit.testing import cut_at
from tests.reports import refusing

SSE = b"data: {}\n\n"
#: Long enough for a parser to know what it reads.
EVENT = b"data: %b\n\n" % (b"x" * BEGINNING_BYTES)


def frames_of(reads: list[bytes], *, in_runs: bool, limits: Limits = DEFAULT_LIMITS):
    """The frames, all else that reading leaves behind, the runs if they are taken as such, and then the payloads of reads."""
    report, frames, runs, alone = StreamReport(), [], [], []
    parser = SSEParser(limits=limits, report=report, stray_errors=True)

    def take_run(run):
        runs.append(run)
        report.frames += len(run.payloads)
        frames.extend(map(run.frame, range(len(run.payloads))))

    def take_payload(*whole):
        alone.append(whole)
        frames.append(Frame(*whole))

    parser.emit = frames.append
    if in_runs:
        parser.emit_run, parser.emit_payload = take_run, take_payload
    with suppress(StreamError):
        for read in reads:
            parser.push(read)
        parser.push_end()
    fault = type(parser.fault), str(parser.fault), getattr(parser.fault, "offset", None)
    left = (parser.boundary, parser.last_event_id, parser.retry, report.bytes_in, report.frames, dict(report.repairs))
    return (frames, fault, left if parser.fault is None else None), runs, alone


NAMED = b"event: a\ndata: {}\n\n"
PIECES = st.sampled_from([
    SSE, NAMED, SSE * 20, NAMED * 20, b"event: b\ndata: [1]\n\n" * 9, b"data: \n\n" * 5, b"data:x\n\n", b": c\n\n", b"id: 7\n\n",
    b"id: 8\ndata: 1\n\n", b"retry: 5\n\n", b"data: 1\ndata: 2\n\n" * 3, b"event: \ndata: 1\n\n", b"event: a\n\n", b"data: 1\r\n\r\n" * 9,
    b"event: a\r\ndata: 1\r\n\r\n" * 9, b"data: 1\r\r" * 9, b"data: %b\n\n" % (b"x" * 40), b"event: %b\ndata: 1\n\n" % (b"n" * 30), b"\n",
    b"error: no\n\n", b"what: no\n", b'{"error": 1}\n', b"data: \xff\n\n", b"event: \xff\ndata: 1\n\n" * 3, b"data: 1\n", b"event: a\n",
])  # fmt: skip


@given(st.lists(PIECES, max_size=8), st.data())
@settings(deadline=None)
def test_events_that_are_alike_are_read_together_as_one_by_one(pieces, data):
    body = SSE + b"".join(pieces)
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=4).map(sorted))
    reads = cut_at(body, places)
    for limits in (DEFAULT_LIMITS, Limits(line_bytes=40), Limits(event_bytes=30), Limits(name_bytes=20)):
        found, runs, _ = frames_of(reads, in_runs=True, limits=limits)
        assert not frames_of(reads, in_runs=False, limits=limits)[1]
        assert found == frames_of(reads, in_runs=False, limits=limits)[0]
        assert found == frames_of([body[at : at + 1] for at in range(len(body))], in_runs=False, limits=limits)[0]
        assert all(run.payloads for run in runs)


def test_a_run_goes_as_far_as_events_are_alike():
    body = SSE + NAMED * 500 + b"event: b\ndata: {}\n\n" + NAMED * 500 + SSE * 500
    (frames, _, _), runs, _ = frames_of([body], in_runs=True)
    assert [frame.offset for frame in frames[:3]] == [0, len(SSE), len(SSE + NAMED)]
    assert len(frames) == 1502
    assert sum(len(run.payloads) for run in runs) > 1400


#: Reads, and the payload, offset, name and id of those that are one event and come without a frame.
ALONE = {
    "one and another": ([SSE, SSE, b"data: a\n\n"], {}, [(b"{}", 0, "message", ""), (b"{}", 10, "message", ""), (b"a", 20, "message", "")]),
    "another name": (
        [b"event: ab\ndata: data: a\n\n", SSE, b"event: ab\ndata: \n\n", b"event: ab\ndata: b\n\n"],
        {},
        [(b"data: a", 0, "ab", ""), (b"{}", 25, "message", ""), (b"b", 53, "ab", "")],
    ),
    "no name": ([b"event: \ndata: a\n\n"], {}, [(b"a", 0, "message", "")]),
    "a long name": ([b"event: %b\ndata: a\n\n" % (b"n" * 64)], {}, [(b"a", 0, "n" * 64, "")]),
    "a longer name": ([b"event: %b\ndata: a\n\n" % (b"n" * 65)], {}, []),
    "names that are short": ([SSE, NAMED], {"name_bytes": 1}, [(b"{}", 0, "message", ""), (b"{}", 10, "a", "")]),
    "names that are ill-formed": ([b"event: \xff\ndata: a\n\n"], {}, [(b"a", 0, "\ufffd", "")]),
    "a read as long as a line": ([SSE, b"data: {1}\n\n"], {"line_bytes": 10}, [(b"{}", 0, "message", "")]),
    "after several": ([SSE * 2, SSE], {}, [(b"{}", 20, "message", "")]),
    "with an id": ([b"id: 7\ndata: a\n\n", SSE], {}, [(b"{}", 15, "message", "7")]),
    "after a comment": ([b": c\n\n", SSE, b": c\n\n", SSE], {}, [(b"{}", 20, "message", "")]),
    "after another line": ([SSE, b"id: 7\n", SSE, b"event: a\n", SSE], {}, [(b"{}", 0, "message", "")]),
    "after half a line": ([SSE, b"da", SSE, SSE, SSE], {}, [(b"{}", 0, "message", ""), (b"{}", 32, "message", "")]),
    "after a CR": ([SSE, b"data: a\r\r", SSE, SSE], {}, [(b"{}", 0, "message", ""), (b"{}", 29, "message", "")]),
    "after a repair": ([SSE, b"what\n\n", SSE, SSE], {}, [(b"{}", 0, "message", ""), (b"{}", 26, "message", "")]),
    "with the beginning of another": ([SSE, b"data: a\n\ndata: ", b"b\n\n"], {}, [(b"{}", 0, "message", "")]),
    "two lines": ([b"data: a\ndata: b\n\n", b"data: a\rdata: b\n\n", b"data\n\n", b"xdata: a\n\n"], {}, []),
    "other line ends": ([b"data: a\r\n\r\n", b"data: a\r\n\n", b"data: a\n\r\n", b"event: e\r\ndata: a\n\n"], {}, []),
}  # fmt: skip


@pytest.mark.parametrize(("reads", "limits", "alone"), ALONE.values(), ids=ALONE)
def test_a_read_of_one_event_comes_as_its_payload(reads, limits, alone):
    found, _, payloads = frames_of(reads, in_runs=True, limits=Limits(**limits))
    assert payloads == alone
    assert found == frames_of(reads, in_runs=False, limits=Limits(**limits))[0]
    assert found == frames_of([b"".join(reads)], in_runs=False, limits=Limits(**limits))[0]


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
        ({"line_bytes": 11}, b"data: 12345\ndata: 12345\n\n"),
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


def test_names_are_told_apart_from_read_to_read_and_beyond_those_that_are_kept():
    names = [f"name-{number % 400}" for number in range(1200)] + ["n" * 100, ""]
    reads = [f"event: {name}\ndata: {{}}\n\n".encode() for name in names]
    for cut in (reads, [bytearray(read) for read in reads]):
        (frames, fault, _), _, _ = frames_of(cut, in_runs=False)
        assert [frame.event for frame in frames] == [name or "message" for name in names]
        assert fault[0] is type(None)
    assert len(sse._NAMES) == sse._MOST_NAMES


def test_a_name_that_one_stream_may_have_may_be_too_long_for_another():
    read = b"event: abcdef\ndata: {}\n\n"
    assert frames_of([read], in_runs=False)[0][0][0].event == "abcdef"
    assert frames_of([read], in_runs=False, limits=Limits(name_bytes=5))[0][1][0] is NameTooLong
