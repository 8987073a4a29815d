"""The form of a recording: what is written is read again, and what can't be read is named with its line."""

from __future__ import annotations

import json
import re

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from streamkit.lab.recording import (
    BadRecording,
    End,
    Read,
    RecordedRequest,
    RecordedResponse,
    Recording,
    is_recording,
    lines_of,
    parse_recording,
    read_recording,
)

ENDS = [
    "withheld",
    "whole",
    "cut",
    "reset",
    "client_left",
    "timeout:idle",
    "shut_down",
    "unreachable",
    "truncated_by_recorder",
]
SECONDS = st.integers(0, 10**8).map(lambda hundredths_of_ms: hundredths_of_ms / 10**5)
BODIES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.text(max_size=40).map(str.encode),
    st.recursive(st.integers() | st.text(max_size=5) | st.floats(allow_nan=False), st.lists, max_leaves=5).map(
        lambda value: json.dumps(value).encode()
    ),
)


def recording(**members) -> Recording:
    return Recording(
        id="1", at="2026-11-22T18:01:20.955Z", streamkit="1.0", dialect="openai-chat", provider="deepseek", **members
    )


@given(
    body=BODIES,
    reads=st.lists(st.tuples(SECONDS, st.binary(min_size=1, max_size=20) | st.text(max_size=9).map(str.encode))),
    end=st.none() | st.builds(End, t=SECONDS, kind=st.sampled_from(ENDS), reads=st.integers(0, 9)),
)
def test_what_is_written_is_read_again(body, reads, end):
    request = RecordedRequest(path="/v1/chat/completions?a=b", headers={"content-type": "application/json"}, body=body)
    response = RecordedResponse(t=0.4132, status=200, headers={"x-a": "ü"})
    written = recording(request=request, response=response, reads=tuple(Read(*read) for read in reads), end=end)
    lines = lines_of(written)
    assert all(line.count(b"\n") == 1 and json.loads(line) is not None for line in lines)
    found = parse_recording(b"".join(lines))
    assert (found.reads, found.end, found.response) == (written.reads, end, response)
    if body is not None and b"\n" not in body and b"\r" not in body:
        assert found.request.body in (body, body.strip())
    else:
        assert (found.request.body is None) == (body is None)


def test_a_body_keeps_its_numbers_and_its_blanks():
    body = b'{"n": 18446744073709551616, "x": 1.0,\n "e": 1e400}'
    found = parse_recording(b"".join(lines_of(recording(request=RecordedRequest(path="/", body=body)))))
    assert found.request.body == body.replace(b"\n", b" ")
    assert len(found.request.body_sha256) == 64


def test_a_file_whose_recorder_died_is_read_up_to_there():
    response = RecordedResponse(t=0.5, status=200)
    whole = b"".join(lines_of(recording(response=response, reads=(Read(0.6, b"a"), Read(0.7, b"b")))))
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        found = parse_recording(whole[:cut])
        assert (found.end, found.ending) == (None, "cut")
        assert found.reads == (Read(0.6, b"a"), Read(0.7, b"b"))[: len(found.reads)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"data: {}\n\n", "r: this is not a recording, according to its first line"),
        (b'{"streamkit_recording":2}\n', "r:1: the line can't be read: unknown version 2; only 1"),
        (b'{"streamkit_recording":1}\n[0.1]\n', "r:2: the line can't be read: a read must be [seconds, \"text\"] or [seconds, {\"b64\": \"base64\"}], not [0.1]"),
        (b'{"streamkit_recording":1}\n[1,null]\n', "r:2: the line can't be read: a read must be [seconds, "),
        (b'{"streamkit_recording":1}\n["x","a"]\n', "r:2: the line can't be read: a time must be a number of seconds, not 'x'"),
        (b'{"streamkit_recording":1}\n{"request":[]}\n', "r:2: the line can't be read: request must be an object, not []"),
        (b'{"streamkit_recording":1}\n{"t":0,"response":{"status":200,"headers":[1]}}\n', "r:2: the line can't be read: a value has an unexpected type"),
        (b'{"streamkit_recording":1}\n{"request":{}}\n', "r:2: the line can't be read: 'path' is missing"),
        (b'{"streamkit_recording":1}\n\n[-1,"a"]\n', "r:3: the line can't be read: a time must be a number of seconds, not -1"),
        (b'{"streamkit_recording":1}\n[1,{"b64":"?"}]\n', "r:2: the line can't be read: Only base64 data is allowed"),
        (b'{"streamkit_recording":1}\n7\n', "r:2: the line can't be read: must be an object or a list, not 7"),
        (b'{"streamkit_recording":1,', "r:1: the line is incomplete"),
        (b'{"streamkit_recording":1,"removed":5}\n', "r:1: the line can't be read: removed must be a list, not 5"),
        (b'{"streamkit_recording":1,"id":"\\ud800"}\n', "r:1: the line can't be read: id has half of a surrogate pair: '\\ud800'"),
        (b'{"streamkit_recording":1,"side":"left"}\n', "r:1: the line can't be read: side must be upstream or client, not 'left'"),
        (b'{"streamkit_recording":1}\n{"t":0,"response":{"status":1e400}}\n', "r:2: the line can't be read: status must be a whole number, not inf"),
        (b'{"streamkit_recording":1}\n{"t":0,"response":{"status":99}}\n', "r:2: the line can't be read: status must be 200 to 999, not 99"),
        (b'{"streamkit_recording":1}\n{"t":0,"response":{"status":200,"headers":{"a":"b\\r\\nc: d"}}}\n',
         "r:2: the line can't be read: the header 'a' has a character that headers must not have: 'b\\r\\nc: d'"),
        (b'{"streamkit_recording":1}\n{"t":1,"end":"whole","reads":' + b"9" * 400 + b"}\n", "r:2: the line can't be read: reads must be a count, not 999"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_line(content, message):
    with pytest.raises(BadRecording) as caught:
        parse_recording(content, name="r")
    assert str(caught.value).startswith(message)


def test_reads_that_were_dropped_make_a_recording_inexact(tmp_path):
    path = tmp_path / "a.stream.jsonl"
    path.write_bytes(b"".join(lines_of(recording(end=End(t=1, kind="whole", dropped=2)))))
    assert is_recording(path.read_bytes())
    assert not read_recording(path).exact


READS = (Read(0.6, b"data: a\n\n"), Read(0.7, b"data: b\n\n"))


@pytest.mark.parametrize(
    ("reads", "change"),
    [
        (READS[:1], "it has 1 reads, but had 2"),
        ((READS[0], Read(0.7, b"data: b\r\n\r\n")), "it has 20 bytes, but had 18"),
        ((READS[0], Read(0.7, b"data: c\n\n")), "its hash differs"),
    ],
)
def test_reads_that_are_not_those_of_the_end_are_refused_unless_it_has_no_hash(reads, change):
    end = End.of(READS)
    advice = "if this was on purpose, remove the member sha256 from the file's last line"
    with pytest.raises(BadRecording, match=re.escape(f"r: the response in the file was changed: {change}; {advice}")):
        parse_recording(b"".join(lines_of(recording(reads=reads, end=end))), name="r")
    for other in (
        evolve(end, sha256=""),
        evolve(end, dropped=1),
        evolve(end, kind="truncated_by_recorder"),
        evolve(end, kind="withheld"),
    ):
        assert parse_recording(b"".join(lines_of(recording(reads=reads, end=other)))).reads == reads
