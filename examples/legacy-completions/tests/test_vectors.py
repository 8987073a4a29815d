"""Each vector gives what it says, by every driver; and what is written of it says the same again."""

import asyncio

import pytest
from machines import broken_rules, read, write
from vectors import AZURE, HEALTHY, VECTORS

import streamkit
from legacy_completions import DIALECT
from streamkit.dialects import DIALECTS
from streamkit.testing import cut_at, source_of

EACH = pytest.mark.parametrize("vector", VECTORS, ids=str)
HEALTHY_ONES = pytest.mark.parametrize("vector", HEALTHY, ids=str)


def check(vector, found):
    assert type(found.fault).__name__ == (vector.fault or "NoneType")
    assert found.text == vector.text
    assert found.clean == (vector.stop is not None)
    assert (found.stop and found.stop.reason) == vector.stop
    assert (found.stop and found.stop.stop_sequence) == vector.stop_sequence
    assert dict(found.report.repairs) == dict(vector.repairs)
    if vector.provider_error is None:
        assert found.failure is None
    else:
        kind, message = vector.provider_error
        assert found.failure.type == kind
        assert message in (found.failure.message, "…")


@EACH
def test_a_vector_gives_what_it_says_whole_and_byte_by_byte(vector):
    check(vector, read([vector.body]))
    check(vector, read(cut_at(vector.body, list(range(1, len(vector.body))))))


@EACH
def test_the_losses_of_a_translation_are_counted(vector):
    _, report = write(read([vector.body]), "openai-chat")
    assert report.losses == vector.losses


@EACH
def test_what_is_written_says_the_same_and_breaks_no_rule(vector):
    there = read([vector.body])
    output, report = write(there)
    back = read([output])
    assert (back.text, back.clean, bool(back.failure)) == (there.text, there.clean, not there.clean)
    assert back.report.repairs == {}
    assert broken_rules(output) == []
    if vector in HEALTHY and vector.stop_sequence is None:
        assert report.losses == {}
        assert back.events == there.events


@HEALTHY_ONES
def test_the_recipes_know_the_dialect_by_its_name(vector):
    async def passed() -> bytes:
        async with streamkit.transcode(source_of([vector.body]), DIALECT.name, DIALECT.name) as stream:
            return b"".join([piece async for piece in stream])

    assert asyncio.run(passed()).startswith(vector.body)
    response = asyncio.run(streamkit.collect(source_of([vector.body]), DIALECT.name))
    assert (response.text, response.clean) == (vector.text, vector.stop is not None)


#: Told only by its name.
LOOKS_LIKE = {"mistral": "openai-chat"}


def test_a_stream_is_recognised_and_no_other_dialect_is_taken_for_it():
    async def found(body: bytes) -> str:
        name, source = await streamkit.detect(source_of([body]))
        await source.aclose()
        return name

    for vector in HEALTHY:
        if vector.name == AZURE:
            continue
        assert asyncio.run(found(vector.body)) == DIALECT.name, vector.name
    for name in DIALECTS:
        output, _ = write(read([HEALTHY[0].body]), name)
        assert asyncio.run(found(output)) == LOOKS_LIKE.get(name, name)
