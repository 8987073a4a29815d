"""Cassettes of reel-vcr, in the form that its version 0.1.0 writes."""

from __future__ import annotations

import base64
import json

import pytest

from streamkit.lab.recording import BadRecording, Read
from streamkit.lab.recording.loading import parse_any
from streamkit.recipes import collect
from tests.lab.recording.cassettes import cassette, entry


async def source(recording):
    for read in recording.reads:
        yield read.data


async def test_each_event_is_a_read_at_its_time():
    meta = {"_meta": {"match": {"mode": "exact"}}}
    (found,) = parse_any(cassette(meta, entry()))
    assert (found.id, found.at, found.provider, found.dialect) == (
        "req_1", "2026-05-15T10:23:11+00:00", "openai", "openai-chat",
    )  # fmt: skip
    assert not found.exact
    assert found.request.body == b'{"x":1.0}'
    assert found.response.headers == {"content-type": "text/event-stream"}
    assert [read.t for read in found.reads] == [0.003, 0.25, 0.251, 0.251]
    assert b'"n":18446744073709551616' in found.reads[1].data
    assert found.reads[-1] == Read(0.251, b"data: [DONE]\n\n")
    response = await collect(source(found), found.dialect)
    assert (response.text, response.clean) == ("2^64: ü", True)


def test_events_have_their_names_and_data_of_several_lines():
    chunks = [{"data": "a\nb", "t_offset_ms": 0, "event": "ping"}]
    (found,) = parse_any(cassette(entry(response={"stream_chunks": chunks})), dialect="anthropic")
    assert (found.body, found.dialect) == (b"event: ping\ndata: a\ndata: b\n\n", "anthropic")


def test_a_whole_answer_is_one_read():
    raw = {"__reel_raw_base64__": base64.b64encode(b"\xff\n").decode()}
    first = entry(response={"status": 429, "body": {"error": {"message": "no"}}, "stream_chunks": None})
    last = entry(request={"body": raw}, response={"body": raw, "stream_chunks": None})
    found = parse_any(cassette(first, last))
    assert [(each.response.status, each.body, each.dialect) for each in found] == [
        (429, b'{"error":{"message":"no"}}', ""),
        (200, b"\xff\n", ""),
    ]
    assert found[1].request.body == b"\xff\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "the line can't be read: Expecting property name"),
        (b"[]", "the line can't be read: a value has an unexpected type"),
        (json.dumps({**entry(), "schema_version": 2}).encode(), "unknown version 2; only 1"),
        (json.dumps({"schema_version": 1, "request": {}}).encode(), "'response' is missing"),
        (cassette(entry(response={"stream_chunks": [{"data": "x"}]})), "'t_offset_ms' is missing"),
        (cassette(entry(response={"stream_chunks": [{"data": "x", "t_offset_ms": -1}]})), "a time must be a number of milliseconds, not -1"),
        (cassette(entry(request={"body": {"__reel_raw_base64__": "?"}})), "Only base64 data is allowed"),
        (json.dumps({**entry(), "response": 7}).encode(), "the line can't be read: a value has an unexpected type"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(line, message):
    with pytest.raises(BadRecording) as caught:
        parse_any(cassette(entry()) + line, name="c.jsonl")
    assert str(caught.value).startswith("c.jsonl:2: ")
    assert message in str(caught.value)
