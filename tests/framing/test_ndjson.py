from __future__ import annotations

import tracemalloc
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamkit.errors import EventTooLong, LineTooLong, NotThisDialect, UsageError
from streamkit.framing.frame import Frame
from streamkit.framing.ndjson import NDJSONParser, parse_ndjson, serialize_ndjson
from streamkit.limits import Limits
from streamkit.pipeline import pipe
from tests.framing.cuts import cut_at, read, same_at_every_cut

BOM = b"\xef\xbb\xbf"

VECTORS = {
    "two lines": (b'{"a":1}\n{"b":2}\n', [Frame(b'{"a":1}'), Frame(b'{"b":2}', 8)]),
    "CRLF": (b"{}\r\n{}\r\n", [Frame(b"{}"), Frame(b"{}", 4)]),
    "one CR belongs to the line end": (b"{}\r\r\n", [Frame(b"{}\r")]),
    "a bare CR ends nothing": (b'{"a":\r1}\n', [Frame(b'{"a":\r1}')]),
    "blank lines": (b"\n\r\n \t\n{}\n\n\n{}\n\n", [Frame(b"{}", 6), Frame(b"{}", 11)]),
    "white space before the object": (b"  {}\n", [Frame(b"  {}")]),
    "a byte order mark": (BOM + b"{}\n", [Frame(b"{}", 3)]),
    "no last line end": (b'{"a":1}\n{"b"', [Frame(b'{"a":1}'), Frame(b'{"b"', 8, terminated=False)]),
    "separators of Unicode end nothing": (
        '{"a":"\u2028\u2029\x85"}\n'.encode(),
        [Frame('{"a":"\u2028\u2029\x85"}'.encode())],
    ),
    "a later line that is no object is the decoder's": (b"{}\nno\n", [Frame(b"{}"), Frame(b"no", 3)]),
    "more white space than a sample": (b" " * 300 + b"{}\n", [Frame(b" " * 300 + b"{}")]),
    "nothing": (b"", []),
    "blank": (BOM + b" \r\n\n ", []),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_gives_its_frames_at_every_cut(name):
    data, frames = VECTORS[name]
    outcome = same_at_every_cut(NDJSONParser, data)
    assert outcome.frames == frames
    assert outcome.fault == ""
    assert outcome.repairs == {}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<!DOCTYPE html>\n<html>", "an HTML page ('<!DOCTYPE html>')"),
        (b"data: {}\n\n", "text ('data: {}')"),
        (b'[{"a":1}]', "a JSON body ('[{\"a\":1}]')"),
        (b"\n\n  no\n{}\n", "text ('no')"),
        (b"\x1f\x8b\x08\0", "binary data (1f 8b 08 00)"),
        (b"\xef\xbb", "binary data (ef bb)"),
        (BOM + b"x" * 400, f"text ('{'x' * 60}…')"),
        (b" " * 300 + b"no\n", "text ('no')"),
    ],
)
def test_a_first_line_that_is_no_object_is_a_fault(data, found):
    outcome = same_at_every_cut(NDJSONParser, data)
    assert outcome.frames == []
    assert outcome.fault.startswith(f"{NotThisDialect.__name__}: not newline-delimited JSON: found {found} (at byte ")


def test_the_fault_of_a_first_line_does_not_wait_for_the_end():
    parser = NDJSONParser()
    parser.feed(b"<html>\n")
    assert isinstance(parser.fault, NotThisDialect)
    endless = NDJSONParser()
    for _ in range(256):
        endless.feed(b"x")
    assert isinstance(endless.fault, NotThisDialect)


def test_abandon_gives_the_partial_line_once_and_none_that_is_no_object():
    parser = NDJSONParser()
    parser.feed(b'{}\n{"a')
    assert parser.abandon() == [Frame(b'{"a', 3, terminated=False)]
    assert parser.abandon() == parser.finish() == []
    page = NDJSONParser()
    page.feed(b"<html")
    assert page.abandon() == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"line_bytes": 40}, LineTooLong),
        ({"event_bytes": 40}, EventTooLong),
        ({"line_bytes": 40, "event_bytes": 50}, LineTooLong),
        ({"line_bytes": 50, "event_bytes": 40}, EventTooLong),
    ],
)
def test_a_limit_holds_at_itself_and_fails_one_byte_above(limits, error, end):
    make = partial(NDJSONParser, limits=Limits(**limits))
    for size in (39, 40):
        outcome = same_at_every_cut(make, b"{}\n{" + b"x" * (size - 1) + end + b"{}\n")
        assert outcome.fault == ""
        assert [len(frame.data) for frame in outcome.frames] == [2, size, 2]
    outcome = same_at_every_cut(make, b"{}\n{" + b"x" * 40 + end + b"{}\n")
    assert outcome.frames == [Frame(b"{}")]
    assert outcome.fault.startswith(error.__name__)
    assert outcome.fault.endswith("(at byte 3)")
    assert outcome.boundary == 3


def test_after_a_fault_nothing_is_read():
    parser = NDJSONParser(limits=Limits(line_bytes=10))
    assert parser.feed(b'{}\n{"a":12345}\n') == [Frame(b"{}")]
    fault = parser.fault
    assert isinstance(fault, LineTooLong)
    assert parser.feed(b"\n{}\n") == parser.finish() == parser.abandon() == []
    assert parser.fault is fault


@pytest.mark.parametrize("piece", [b"xy", b"x" * 4096])
def test_a_line_without_end_takes_no_more_than_its_limit(piece):
    limit = 128 * 1024

    def peak():
        parser = NDJSONParser(limits=Limits(line_bytes=limit))
        tracemalloc.start()
        try:
            parser.feed(b"{")
            while parser.fault is None:
                parser.feed(piece)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            assert isinstance(parser.fault, LineTooLong)

    found = peak()
    if found >= 3 * limit:  # threads of other tests may have allocated meanwhile
        found = min(peak(), peak())
    assert found < 3 * limit


def test_a_partial_line_is_copied_out_once():
    taken: list[int] = []

    class Counting(NDJSONParser):
        def _take(self):
            taken.append(len(self._partial))
            return super()._take()

    data = (b"{" + b"x" * 5000 + b"}\n") * 5
    parser = Counting()
    for start in range(0, len(data), 7):
        parser.feed(data[start : start + 7])
    assert len(taken) == 5
    assert sum(taken) <= len(data)


streams = st.lists(
    st.sampled_from(
        [b"{}", b'{"a":1}', b" ", b"\n", b"\n", b"\r\n", b"\r", b"x", BOM, "\u2028".encode(), b"{" + b"y" * 20]
    ),
    max_size=14,
).map(b"".join) | st.binary(max_size=40)
places = st.lists(st.integers(0, 100), max_size=8).map(sorted)
limits = st.just(Limits()) | st.builds(Limits, line_bytes=st.integers(1, 30), event_bytes=st.integers(1, 30))


def pieces(data: bytes, at: list[int]) -> list[bytes]:
    return cut_at(data, [min(place, len(data)) for place in at])


@example(b" x\n", [2], Limits(line_bytes=1, event_bytes=1))
@given(streams, places, limits)
def test_the_cuts_change_nothing_not_even_a_fault(data, at, limits):
    make = partial(NDJSONParser, limits=limits)
    assert read(make, pieces(data, at)) == read(make, [data])


@given(streams, places, limits)
def test_what_precedes_the_boundary_is_whole(data, at, limits):
    parser = NDJSONParser(limits=limits)
    frames = []
    for chunk in pieces(data, at):
        frames += parser.feed(chunk)
        again = NDJSONParser(limits=limits)
        assert again.feed(data[: parser.boundary]) == frames
        assert again.abandon() == []
        assert again.boundary == parser.boundary


@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), places)
def test_what_is_serialized_is_read_back_as_one_line(text, at):
    raw = serialize_ndjson(b"{" + text.encode() + b"}")
    assert not set("\u2028\u2029\x85") & set(raw.decode())
    outcome = read(NDJSONParser, pieces(raw, at))
    assert [frame.data for frame in outcome.frames] == [raw[:-1]]
    assert outcome.boundary == len(raw)


def test_separators_of_unicode_are_written_as_escapes():
    assert serialize_ndjson('{"a":"\u2028\x85"}'.encode()) == b'{"a":"\\u2028\\u0085"}\n'


@pytest.mark.parametrize("document", [b"{\n}", b"{\r}", b"{}\n"])
def test_a_document_of_several_lines_is_refused(document):
    with pytest.raises(UsageError):
        serialize_ndjson(document)


async def test_the_stage_gives_batches_and_counts_into_the_pipes_report():
    async def source():
        for chunk in (b"{}\n{", b"}", b'\n{"a"'):
            yield chunk

    async with pipe(source(), parse_ndjson()) as stream:
        batches = [batch async for batch in stream]
    assert batches == [[Frame(b"{}")], [Frame(b"{}", 3)], [Frame(b'{"a"', 6, terminated=False)]]
    assert (stream.report.bytes_in, stream.report.frames) == (10, 3)
