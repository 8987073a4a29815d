"""A stream that is read a second time says what it said the first time, and each thing at its byte."""

import pytest

from streamkit.dialects import DIALECTS
from streamkit.lab.inspector.reading import Reading
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.recipes import collect, events_of, transcode
from streamkit.report import Status
from tests.cli.command import DEMO
from tests.vectors import VECTORS
from tests.vectors.vector import sse

FIXED = ReadOptions(make_id=lambda prefix: f"{prefix}made")


async def in_reads(body, size=1000):
    for at in range(0, len(body), size):
        yield body[at : at + size]


def read(body, dialect, *, client=None, options=FIXED, size=1000):
    """All that was found, and the reading."""
    reading = Reading(dialect, options, client)
    parts = [reading.feed(body[at : at + size]) for at in range(0, len(body), size)] + [reading.finish()]
    return reading, parts


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
async def test_the_events_are_those_of_the_recipe(dialect):
    for vector in (vector for vector in VECTORS if vector.dialect == dialect):
        await check(vector)


async def check(vector):
    expected = []
    async with events_of(in_reads(vector.body), vector.dialect, FIXED) as stream:
        try:
            async for batch in stream:
                expected += batch
        except Exception as error:  # noqa: BLE001 - whatever broke it
            stream.report.failed(error)
    reading, parts = read(vector.body, vector.dialect)
    assert [event for part in parts for _, event in part.events] == expected
    assert reading.report.repairs == stream.report.repairs
    assert type(reading.report.error) is type(stream.report.error)
    assert reading.report.status is stream.report.status
    assert sum(times for part in parts for _, _, times in part.repairs) == stream.report.repairs.total()


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_an_event_has_the_byte_at_which_its_frame_begins(size):
    body = DEMO.read_bytes()
    _, parts = read(body, "openai-chat", size=size)
    offsets = {offset for part in parts for offset, _ in part.events if offset < len(body)}
    assert len(offsets) > 10
    assert all(body[offset:].startswith(b"data: ") for offset in offsets)


def test_a_repair_is_found_at_its_frame():
    odd = b'{"index": 1, "id": "call_other", "function"'
    body = DEMO.read_bytes().replace(b'{"index": 1, "function"', odd)
    _, parts = read(body, "openai-chat")
    [found] = {(offset, kind) for part in parts for offset, kind, _ in part.repairs if offset < body.index(odd)}
    assert found == (body.rindex(b"data: ", 0, body.index(odd)), "id_changed")


def test_a_loss_is_found_at_the_frame_that_the_client_does_not_get_whole():
    frame = {
        "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}]
    }
    first = sse({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
    _, parts = read(first + sse(frame, b"[DONE]"), "openai-chat", client="anthropic")
    assert (len(first), "logprobs", 1) in [each for part in parts for each in part.losses]


@pytest.mark.parametrize("client", ["anthropic", "ollama", "openai-responses"])
async def test_what_is_encoded_is_what_a_client_would_get(client):
    body = DEMO.read_bytes()
    options = ReadOptions(make_id=lambda prefix: f"{prefix}made")
    written = b""
    async with transcode(in_reads(body, len(body)), "openai-chat", client, options, join=False) as stream:
        async for chunk in stream:
            written += chunk
    _, parts = read(body, "openai-chat", client=client, options=options)
    assert len(b"".join(part.encoded for part in parts).splitlines()) == len(written.splitlines())


async def test_what_breaks_the_reading_is_told_and_ends_it():
    body = DEMO.read_bytes()[:1500]
    broken = body[: body.rindex(b"\n\n") + 2] + b"data: {nonsense\n\n" + DEMO.read_bytes()[1500:]
    reading, parts = read(broken, "openai-chat", client="anthropic")
    answer = await collect(in_reads(broken), "openai-chat", DEFAULT_OPTIONS)
    assert type(reading.report.error) is type(answer.report.error)
    assert reading.report.status is Status.FAILED
    assert b"event: error" in b"".join(part.encoded for part in parts)
