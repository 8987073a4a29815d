"""The recipe under test, driven without an event loop: a source that never waits never suspends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeVar

import orjson

from benchmarks.inputs import CREATED, Input, counted_ids
from streamkit.dialects import decode, encode
from streamkit.pipeline import Pipe, StageFunction, pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import parse, transcode
from streamkit.rewrite.given import EventStage
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.tool_calls.check import check_json

T = TypeVar("T")
#: ``join``: what one read brought of one block leaves as one delta, the recipe's default. Otherwise as the provider cut it.
MODES = ("joined", "unjoined")
#: Where a user's stage is in the recipe: where ``stages=`` puts it, and before that.
PLACES = {"after the checked calls": 4, "after decode": 2, "after the framing": 1}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, without a loop. Raises RuntimeError for one that does."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("the coroutine waited")


async def source(items: Sequence[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def recipe(reads: AsyncIterator[bytes], from_dialect: str, to_dialect: str, mode: str = MODES[0]) -> Pipe[bytes]:
    """``transcode``, decoding and encoding even within one dialect, with ids and a clock that do not vary."""
    return transcode(
        reads,
        from_dialect,
        to_dialect,
        ReadOptions(make_id=counted_ids()),
        reencode=True,
        join=mode == "joined",
        clock=lambda: CREATED,
    )


async def _output(reads: Sequence[bytes], from_dialect: str, to_dialect: str, mode: str) -> list[bytes]:
    async with recipe(source(reads), from_dialect, to_dialect, mode) as stream:
        return [chunk async for chunk in stream]


def transcoded(reads: Sequence[bytes], from_dialect: str, to_dialect: str, mode: str = MODES[0]) -> list[bytes]:
    """What the recipe writes, one item a write."""
    return run(_output(reads, from_dialect, to_dialect, mode))


async def _staged(items: Sequence[Any], stages: tuple[StageFunction[Any, Any], ...]) -> list[Any]:
    async with pipe(source(items), *stages) as stream:
        return [batch async for batch in stream]


def staged(items: Sequence[Any], *stages: StageFunction[Any, Any]) -> list[Any]:
    """What a pipe of some stages yields for ``items``."""
    return run(_staged(items, stages))


async def passed_on(batches: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """A user's stage that changes nothing."""
    async for batch in batches:
        yield batch


def piped(reads: Sequence[bytes], from_dialect: str, to_dialect: str, place: str = "") -> list[bytes]:
    """Return what a pipe of the recipe's stages writes, with a user's stage at ``place`` if there is one."""
    stages: list[StageFunction[Any, Any]] = [
        parse(from_dialect),
        decode(from_dialect),
        accumulate_tool_calls(),
        check_json(),
        encode(to_dialect, make_id=counted_ids(), clock=lambda: CREATED),
    ]
    if place:
        stages.insert(PLACES[place], passed_on)
    return staged(reads, *stages)


async def _with_stage(reads: Sequence[bytes], from_dialect: str, to_dialect: str, stage: EventStage) -> list[bytes]:
    options = ReadOptions(make_id=counted_ids())
    async with transcode(
        source(reads), from_dialect, to_dialect, options, stages=[stage], join=False, clock=lambda: CREATED
    ) as stream:
        return [chunk async for chunk in stream]


def with_stage(reads: Sequence[bytes], from_dialect: str, to_dialect: str, stage: EventStage) -> list[bytes]:
    """Return what ``transcode(stages=[stage])`` writes, with the provider's deltas."""
    return run(_with_stage(reads, from_dialect, to_dialect, stage))


def floor(stream: Input) -> None:
    """The yardstick: ``orjson.loads`` of each event's payload, alone. No framing, no output."""
    loads = orjson.loads
    for payload in stream.payloads:
        loads(payload)
