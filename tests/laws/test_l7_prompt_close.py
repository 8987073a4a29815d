"""L7: when the consumer leaves, everything is closed on the line after the ``async with``, in the consumer's task."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from streamkit import accumulate_tool_calls, check_json, decode, detect, encode, parse_sse, pipe
from streamkit.dialects import DIALECTS
from streamkit.recipes import collect, events_of, transcode
from streamkit.report import StreamReport
from streamkit.testing import FaultySource, PlannedFailure, cut_at, open_sources
from tests.vectors import LOOKS_LIKE, VECTORS

BODIES = {name: next(v.body for v in VECTORS if v.dialect == name and v.name == "text") for name in DIALECTS}


def reads(dialect: str) -> list[bytes]:
    body = BODIES[dialect]
    return cut_at(body, list(range(50, len(body), 50)))


async def broken_stage(batches):
    async for batch in batches:
        yield batch
        raise ZeroDivisionError


RECIPES = {
    **{f"{a} to {b}": (lambda source, a=a, b=b: transcode(source, a, b), a) for a, b in product(DIALECTS, DIALECTS)},
    **{f"{a} again": (lambda source, a=a: transcode(source, a, a, reencode=True), a) for a in DIALECTS},
    **{f"events of {a}": (lambda source, a=a: events_of(source, a), a) for a in DIALECTS},
}
EACH = pytest.mark.parametrize("recipe", RECIPES)


def closed_here(source: FaultySource) -> None:
    assert open_sources() == 0
    assert source.closed
    assert source.closed_in is asyncio.current_task()


@EACH
async def test_leaving_early_closes(recipe, open_sources):
    make, dialect = RECIPES[recipe]
    for outputs in range(4):
        source = FaultySource(reads(dialect))
        async with make(source) as stream:
            for _ in range(outputs):
                await anext(stream)
            assert open_sources() == 1
        closed_here(source)


@EACH
async def test_an_exception_of_the_consumer_closes(recipe):
    make, dialect = RECIPES[recipe]
    source = FaultySource(reads(dialect))
    with pytest.raises(ZeroDivisionError):
        async with make(source) as stream:
            async for _ in stream:
                raise ZeroDivisionError
    closed_here(source)


@EACH
@pytest.mark.parametrize("after", [0, 1, 5])
async def test_cancelling_closes_in_the_cancelled_task(recipe, after):
    make, dialect = RECIPES[recipe]
    source = FaultySource(reads(dialect), stall_after=after)
    outputs = []

    async def consume():
        try:
            async with make(source) as stream:
                async for output in stream:
                    outputs.append(output)
        finally:
            closed_here(source)

    consumer = asyncio.create_task(consume())
    await asyncio.wait_for(source.stalled.wait(), 5)
    before = len(outputs)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert consumer.cancelled()
    assert len(outputs) == before, "something was yielded after the cancellation"
    assert open_sources() == 0


@EACH
async def test_a_source_that_fails_is_closed_and_its_error_passes(recipe):
    make, dialect = RECIPES[recipe]
    source = FaultySource(reads(dialect), fail_after=3)
    with pytest.raises(PlannedFailure) as raised:
        async with make(source) as stream:
            async for _ in stream:
                pass
    assert raised.value is source.error
    closed_here(source)


async def test_a_stage_that_raises_closes():
    for position in range(6):
        source = FaultySource(reads("openai-chat"))
        stages = [parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json(), encode("anthropic")]
        stages.insert(position, broken_stage)
        with pytest.raises(ZeroDivisionError):
            async with pipe(source, *stages) as stream:
                async for _ in stream:
                    pass
        closed_here(source)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fail_after", [None, 2])
async def test_collect_closes(dialect, fail_after):
    source = FaultySource(reads(dialect), fail_after=fail_after)
    if fail_after is None:
        await collect(source, dialect)
    else:
        with pytest.raises(PlannedFailure):
            await collect(source, dialect)
    closed_here(source)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_detect_hands_the_source_on_or_closes_it(dialect):
    source = FaultySource(reads(dialect))
    name, again = await detect(source)
    assert (name, open_sources()) == (LOOKS_LIKE.get(dialect, dialect), 1)
    async with transcode(again, name, name) as stream:
        await anext(stream)
    closed_here(source)


async def test_a_failed_source_is_told_to_the_client_and_to_the_report():
    report = StreamReport()
    pieces = []
    with pytest.raises(PlannedFailure):
        async with transcode(
            FaultySource(reads("openai-chat"), fail_after=5), "openai-chat", "anthropic", report=report
        ) as stream:
            async for piece in stream:
                pieces.append(piece)
    assert b"event: error" in pieces[-1]
    assert b"message_stop" not in b"".join(pieces)
    assert isinstance(report.error, PlannedFailure)
