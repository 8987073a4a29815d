"""The inputs are the same on every machine, say what they should, and are cut where they say."""

from __future__ import annotations

import hashlib
import json

import pytest

from benchmarks import content, inputs, oracle, reads
from benchmarks.inputs import CHAT, Input

EVENTS = 300
STREAMS = [*inputs.recipe_inputs(EVENTS), *inputs.dialect_inputs(EVENTS).values()]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: f"{stream.dialect}: {stream.name}")
def test_what_readers_find_is_what_the_content_says(stream):
    oracle.verify(stream)


def test_the_same_seed_gives_the_same_bytes():
    digest = hashlib.sha256(b"".join(stream.body for stream in inputs.recipe_inputs(EVENTS))).hexdigest()
    inputs.recipe_inputs.cache_clear()
    again = hashlib.sha256(b"".join(stream.body for stream in inputs.recipe_inputs(EVENTS))).hexdigest()
    assert digest == again
    assert digest.startswith("b0536a9b24f4"), (
        "other inputs: figures before and after can't be compared; say so where you change this"
    )


@pytest.mark.parametrize("size", [96, 100, 511, 512, 1000, 16_384, 100_000])
def test_a_document_is_an_object_of_exactly_that_size(size):
    text = content.document(size)
    assert len(text) == size
    assert isinstance(json.loads(text), dict)


def test_fragments_of_calls_are_interleaved_and_lose_nothing():
    said = content.calls(8_000)
    changes = sum(a != b for a, b in zip(said.order, said.order[1:], strict=False))
    assert changes > len(said.order) / 2
    assert [len(call.fragments) for call in said.calls] == [said.order.count(number) for number in range(4)]


@pytest.mark.parametrize("cut", reads.CUTS)
@pytest.mark.parametrize("stream", STREAMS[:5], ids=lambda stream: stream.name)
def test_reads_are_the_whole_stream(cut, stream):
    assert b"".join(reads.CUTS[cut](stream)) == stream.body


@pytest.mark.parametrize("stream", STREAMS[:5], ids=lambda stream: stream.name)
def test_a_read_per_event_ends_behind_its_blank_line(stream):
    found = reads.by_event(stream)
    assert len(found) == stream.events
    assert all(read.endswith((b"\n\n", b"\r\n\r\n")) for read in found)
    assert all(read.startswith(b"data: ") for read in found)


@pytest.mark.parametrize(
    ("found", "instead", "wrong"),
    [
        (b'"content":"', b'"kontent":"', "text differs"),
        (b'"finish_reason":"stop"', b'"finish_reason":"length"', "stop differs"),
    ],
)
def test_an_input_that_was_spoilt_is_refused(found, instead, wrong):
    stream = inputs.chat("text", content.text(20))
    spoilt = Input(stream.name, CHAT, stream.body.replace(found, instead), stream.payloads, stream.said)
    with pytest.raises(oracle.Wrong, match=wrong):
        oracle.verify(spoilt)
