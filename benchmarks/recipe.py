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
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.tool_calls.check import check_json

T = TypeVar("T")
#: ``join``: what one read brought of one block leaves as one delta, the recipe's default. Otherwise as the provider cut it.
MODES = ("joined", "unjoined")
#: With a stage of a user's own behind the framing, so that the other stages share no driver with it.
PLAIN = "own stage"


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
    """A stage of a user's own, that does nothing."""
    async for batch in batches:
        yield batch


def plain(reads: Sequence[bytes], from_dialect: str, to_dialect: str) -> list[bytes]:
    """What the recipe writes with a stage of a user's own behind the framing."""
    stages = (
        parse(from_dialect),
        passed_on,
        decode(from_dialect),
        accumulate_tool_calls(),
        check_json(),
        encode(to_dialect, make_id=counted_ids(), clock=lambda: CREATED),
    )
    return staged(reads, *stages)


def floor(stream: Input) -> None:
    """The yardstick: ``orjson.loads`` of each event's payload, alone. No framing, no output."""
    loads = orjson.loads
    for payload in stream.payloads:
        loads(payload)
