from __future__ import annotations

import json
import tracemalloc
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import BrokenFrame, EventTooLong, NeedsRepair, NotThisDialect
from streamkit.framing import json_array
from streamkit.framing.frame import Frame
from streamkit.framing.json_array import NOWHERE, JSONArrayParser, ObjectScanner, parse_json_array
from streamkit.limits import Limits
from streamkit.pipeline import pipe
from tests.framing.cuts import cut_at, read, same_at_every_cut
from tests.reports import refusing

BOM = b"\xef\xbb\xbf"
UNCLOSED = {"array_unclosed": 1}

VECTORS = {
    "two elements": (b'[{"a":1},{"b":2}]', [Frame(b'{"a":1}', 1), Frame(b'{"b":2}', 9)]),
    "white space everywhere": (b' \r\n[ {"a": 1\n}\t,\r\n{} \n] \n', [Frame(b'{"a": 1\n}', 5), Frame(b"{}", 18)]),
    "a byte order mark": (BOM + b"[{}]", [Frame(b"{}", 4)]),
    "brackets inside": (b'[{"a":[{},[1]],"b":{}},{}]', [Frame(b'{"a":[{},[1]],"b":{}}', 1), Frame(b"{}", 23)]),
    "brackets, commas and escapes in strings": (
        rb'[{"]}":"[{\"}\\"},{"a":"\\\\\"]"}]',
        [Frame(rb'{"]}":"[{\"}\\"}', 1), Frame(rb'{"a":"\\\\\"]"}', 18)],
    ),
    "what is no JSON is the decoder's": (b"[{oops},{1}]", [Frame(b"{oops}", 1), Frame(b"{1}", 8)]),
    "bytes that are no UTF-8": (b'[{"\xff":"\xe2\x80\xa8"}]', [Frame(b'{"\xff":"\xe2\x80\xa8"}', 1)]),
    "no element": (b"[ ]", []),
    "nothing": (b"", []),
    "blank": (BOM + b" \r\n\n ", []),
    "only its beginning": (b"[ ", []),
}  # fmt: skip
UNTERMINATED = {
    "no bracket at the end": (b"[{}", [Frame(b"{}", 1)], UNCLOSED),
    "nothing behind a comma": (b"[{},\n", [Frame(b"{}", 1)], UNCLOSED),
    "inside an element": (b'[{},{"a":[1', [Frame(b"{}", 1), Frame(b'{"a":[1', 4, terminated=False)], {}),
    "inside a string": (b'[{"a]}', [Frame(b'{"a]}', 1, terminated=False)], {}),
    "inside an escape": (b'[{"a\\', [Frame(b'{"a\\', 1, terminated=False)], {}),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_gives_its_frames_at_every_cut(name):
    data, frames = VECTORS[name]
    outcome = same_at_every_cut(JSONArrayParser, data)
    assert outcome.frames == frames
    assert (outcome.fault, outcome.repairs) == ("", {})
    assert all(data[frame.offset :].startswith(frame.data) for frame in frames)


@pytest.mark.parametrize("name", UNTERMINATED)
def test_an_array_that_breaks_off_gives_what_there_was(name):
    data, frames, repairs = UNTERMINATED[name]
    outcome = same_at_every_cut(JSONArrayParser, data)
    assert (outcome.frames, outcome.repairs, outcome.fault) == (frames, repairs, "")
    assert outcome.boundary == max((f.offset + len(f.data) for f in frames if f.terminated), default=0)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<!DOCTYPE html>", "an HTML page ('<!DOCTYPE html>')"),
        (b"data: {}\n\n", "text ('data: {}')"),
        (b'{"a":1}', "a JSON body ('{\"a\":1}')"),
        (b"\n[1,2]", "a JSON body ('[1,2]')"),
        (b'["{}"]', "a JSON body ('[\"{}\"]')"),
        (b"[[{}]]", "a JSON body ('[[{}]]')"),
        (b"[,{}]", "a JSON body ('[,{}]')"),
        (b"\x1f\x8b\x08\0", "binary data (1f 8b 08 00)"),
        (b"\xef\xbb", "binary data (ef bb)"),
    ],
)
def test_input_that_begins_otherwise_is_a_fault(data, found):
    outcome = same_at_every_cut(JSONArrayParser, data)
    assert outcome.frames == []
    assert (
        outcome.fault == f"{NotThisDialect.__name__}: not a streamed JSON array of objects: found {found} (at byte 0)"
    )


def test_the_fault_of_another_beginning_does_not_wait_for_the_end():
    parser = JSONArrayParser()
    for _ in range(256):
        assert parser.fault is None
        parser.feed(b"x")
    assert isinstance(parser.fault, NotThisDialect)


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"[{}{}]", 3, "a missing comma after an element"),
        (b"[{} x]", 4, "a missing comma after an element"),
        (b"[{},,{}]", 4, "an element of the array that is not an object"),
        (b"[{},]", 4, "an element of the array that is not an object"),
        (b"[{},7]", 4, "an element of the array that is not an object"),
        (b"[{}]\n{}", 5, "text after the array"),
        (b"[{}]]", 4, "text after the array"),
    ],
)
def test_what_stands_between_elements_or_behind_the_array_is_a_fault(data, offset, reason):
    outcome = same_at_every_cut(JSONArrayParser, data)
    assert outcome.frames == [Frame(b"{}", 1)]
    assert outcome.boundary == 3
    assert outcome.fault.startswith(f"{BrokenFrame.__name__}: {reason}")
    assert outcome.fault.endswith(f"(at byte {offset})")


def test_abandon_gives_the_partial_element_once():
    parser = JSONArrayParser()
    parser.feed(b'[{},{"a')
    assert parser.abandon() == [Frame(b'{"a', 4, terminated=False)]
    assert parser.abandon() == parser.finish() == []


def test_an_element_does_not_wait_for_its_comma():
    parser = JSONArrayParser()
    assert parser.feed(b"[{}") == [Frame(b"{}", 1)]
    assert parser.boundary == 3
    assert parser.feed(b"\n,\n{") == []
    assert parser.boundary == 3
    assert parser.feed(b"}") == [Frame(b"{}", 6)]


def test_the_closing_bracket_is_behind_the_boundary():
    parser = JSONArrayParser()
    parser.feed(b"[{}\n]\n")
    parser.finish()
    assert parser.boundary == 3


def test_a_limit_holds_at_itself_and_fails_one_byte_above():
    make = partial(JSONArrayParser, limits=Limits(event_bytes=40))
    for size in (39, 40):
        outcome = same_at_every_cut(make, b"[{}, {" + b"x" * (size - 2) + b"}, {}]")
        assert outcome.fault == ""
        assert [len(frame.data) for frame in outcome.frames] == [2, size, 2]
    outcome = same_at_every_cut(make, b"[{}, {" + b"x" * 39 + b"}, {}]")
    assert outcome.frames == [Frame(b"{}", 1)]
    assert outcome.fault.startswith(EventTooLong.__name__)
    assert outcome.fault.endswith("(at byte 5)")
    assert outcome.boundary == 3


def test_after_a_fault_nothing_is_read():
    parser = JSONArrayParser(limits=Limits(event_bytes=4))
    assert parser.feed(b"[{},{12345},{}]") == [Frame(b"{}", 1)]
    fault = parser.fault
    assert isinstance(fault, EventTooLong)
    assert parser.feed(b",{}]") == parser.finish() == parser.abandon() == []
    assert parser.fault is fault


def test_a_policy_without_repairs_wants_the_bracket():
    parser = JSONArrayParser(report=refusing())
    assert parser.feed(b"[{}") == [Frame(b"{}", 1)]
    assert parser.finish() == []
    assert isinstance(parser.fault, NeedsRepair)


@pytest.mark.parametrize("piece", [b"xy", b"x" * 4096])
def test_an_element_without_end_takes_no_more_than_its_limit(piece):
    limit = 128 * 1024
    parser = JSONArrayParser(limits=Limits(event_bytes=limit))
    tracemalloc.start()
    try:
        parser.feed(b"[{")
        while parser.fault is None:
            parser.feed(piece)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(parser.fault, EventTooLong)
    assert most < 4 * limit


def test_white_space_takes_nothing():
    parser = JSONArrayParser()
    parser.feed(b"[{}")
    tracemalloc.start()
    try:
        for _ in range(1000):
            parser.feed(b" " * 1024)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 * 1024


@pytest.fixture
def scanned(monkeypatch):
    """The lengths of what the scanner's expressions looked at."""
    lengths = []

    def counting(matcher):
        def match(piece, at):
            found = matcher(piece, at)
            lengths.append(found.end() - at)
            return found

        return match

    monkeypatch.setattr(json_array, "_plain", counting(json_array._plain))
    monkeypatch.setattr(json_array, "_in_string", counting(json_array._in_string))
    return lengths


def test_no_byte_is_scanned_twice(scanned):
    data = b"[" + b",".join([b'{"a":[' + b'"' + b"x\\n{" * 1000 + b'"]}'] * 5) + b"]"
    for size in (1, 7, 4096):
        scanned.clear()
        parser = JSONArrayParser()
        frames = [frame for at in range(0, len(data), size) for frame in parser.feed(data[at : at + size])]
        assert len(frames) == 5
        assert sum(scanned) <= len(data)


@pytest.mark.parametrize("hostile", [b"[" * 500_000, b'"' * 500_001, b'{"' + b"\\" * 500_000, b"{}" * 250_000])
def test_hostile_text_takes_linear_time(hostile, scanned):
    parser = JSONArrayParser()
    parser.feed(b"[{" + hostile)
    assert sum(scanned) <= len(hostile) + 2


streams = st.lists(
    st.sampled_from([b"[", b"]", b"{", b"}", b"{}", b",", b'"', b"\\", b" \n", b"1", b'{"a":"]"}', BOM]), max_size=14
).map(b"".join) | st.binary(max_size=40)
places = st.lists(st.integers(0, 100), max_size=8).map(sorted)
limits = st.just(Limits()) | st.builds(Limits, event_bytes=st.integers(1, 12))


def pieces(data: bytes, at: list[int]) -> list[bytes]:
    return cut_at(data, [min(place, len(data)) for place in at])


@given(streams, places, limits)
def test_the_cuts_change_nothing_not_even_a_fault(data, at, limits):
    make = partial(JSONArrayParser, limits=limits)
    for stream in (data, b"[" + data, b"[{" + data):
        assert read(make, pieces(stream, at)) == read(make, [stream])


@given(streams, places)
def test_what_precedes_the_boundary_is_whole(data, at):
    parser = JSONArrayParser()
    frames = []
    for chunk in pieces(b"[{}," + data, at):
        frames += parser.feed(chunk)
        again = JSONArrayParser()
        assert again.feed((b"[{}," + data)[: parser.boundary]) == frames
        assert again.abandon() == []
        assert again.boundary == parser.boundary


objects = st.dictionaries(
    st.text(max_size=5), st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=2), max_size=2
)


@given(st.lists(objects, max_size=3), st.booleans(), places)
def test_every_array_of_objects_comes_back(values, indent, at):
    raw = json.dumps(values, ensure_ascii=False, indent=2 if indent else None).encode("utf-8", "replace")
    outcome = read(JSONArrayParser, pieces(raw, at))
    assert [json.loads(frame.data) for frame in outcome.frames] == json.loads(raw)
    assert (outcome.fault, outcome.repairs) == ("", {})


@given(st.dictionaries(st.text(), st.text()), st.text(), places)
def test_the_scanner_finds_the_end_wherever_the_pieces_end(value, behind, at):
    raw = json.dumps(value).encode()
    scanner, read_so_far = ObjectScanner(), 0
    for piece in pieces(raw + behind.encode(), at):
        end = scanner.end(piece)
        if end != NOWHERE:
            assert read_so_far + end == len(raw)
            return
        read_so_far += len(piece)
    raise AssertionError("the end was not found")


async def test_the_stage_gives_batches_and_counts_into_the_pipes_report():
    async def source():
        for chunk in (b"[{}\n,{", b"}", b',{"a"'):
            yield chunk

    async with pipe(source(), parse_json_array()) as stream:
        batches = [batch async for batch in stream]
    assert batches == [[Frame(b"{}", 1)], [Frame(b"{}", 5)], [Frame(b'{"a"', 8, terminated=False)]]
    assert (stream.report.bytes_in, stream.report.frames) == (12, 3)
