"""Memory by tracemalloc: peaks above the start, in bytes that Python allocated. Sources are outside the count.

An idle pipe has read its first event and waits for the next read; it is suspended by hand, so that neither a task nor an event
loop is counted.
"""

from __future__ import annotations

import gc
import tracemalloc
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

from attrs import define

from benchmarks import content, inputs
from benchmarks.inputs import CHAT
from benchmarks.progress import bar
from benchmarks.reads import CUTS, KIB
from benchmarks.recipe import MODES, recipe, run
from benchmarks.stages import TARGET

MIB = KIB * KIB
ARGUMENTS = (16 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB - 1)
PIPES = 10_000
LONG_BYTES = 100 * MIB


def peak(task: Callable[[], object]) -> int:
    """Bytes at the highest point of ``task`` above the start; what it returns is let go of."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        task()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


async def _drain(reads: Iterator[bytes], mode: str) -> int:
    """Read a transcoded stream to its end, keep nothing; how many bytes came."""
    written = 0
    async with recipe(_endless(reads), CHAT, TARGET, mode) as stream:
        async for chunk in stream:
            written += len(chunk)
    return written


async def _endless(reads: Iterator[bytes]) -> AsyncIterator[bytes]:
    for read in reads:
        yield read


def drained(reads: Iterator[bytes], mode: str = MODES[0]) -> int:
    return run(_drain(reads, mode))


def arguments() -> list[dict[str, Any]]:
    """The peak of one open stream with one call of so many characters, in fragments of 14."""
    rows = []
    with bar("memory: arguments", len(ARGUMENTS) * len(MODES)) as progress:
        for size in ARGUMENTS:
            reads = CUTS["64 KiB"](inputs.chat("one call", content.one_call(size)))
            for mode in MODES:
                found = peak(lambda: drained(iter(reads), mode=mode))
                rows.append({"characters": size, "mode": mode, "peak_bytes": found})
                progress.update()
    return rows


@define
class Long:
    """A stream of text of about ``size`` bytes in reads of 64 KiB; its reads are made once and given again and again."""

    size: int
    head: bytes
    middle: list[bytes]
    end: bytes

    def reads(self) -> Iterator[bytes]:
        yield self.head
        for _ in range(self.size // sum(map(len, self.middle))):
            yield from self.middle
        yield self.end


def long_stream(size: int) -> Long:
    stream = inputs.recipe_inputs(4_000)[0]
    events = stream.body.split(b"\n\n")
    middle = b"\n\n".join(events[1:-4]) + b"\n\n"
    reads = [middle[place : place + 64 * KIB] for place in range(0, len(middle), 64 * KIB)]
    return Long(size, events[0] + b"\n\n", reads, b"\n\n".join(events[-4:]))


def flat(size: int = LONG_BYTES) -> dict[str, Any]:
    """The peak over a long stream of text to Anthropic."""
    stream = long_stream(size)
    with bar("memory: 100 MB", 1) as progress:
        found = peak(lambda: drained(stream.reads()))
        progress.update()
    return {"bytes": size, "peak_bytes": found}


@define
class Waiting:
    """A source whose first read is at hand and whose second never comes."""

    first: bytes | None

    def __aiter__(self) -> Waiting:
        return self

    async def __anext__(self) -> bytes:
        if self.first is None:
            await Never()
            raise StopAsyncIteration
        read, self.first = self.first, None
        return read


class Never:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def _read(stream: Any) -> Any:
    return await anext(stream)


def idle(count: int = PIPES) -> list[dict[str, Any]]:
    """Bytes a pipe, over ``count`` of them: just entered, and waiting behind the first event."""
    head = b"data: %b\n\n" % inputs.recipe_inputs(4_000)[0].payloads[1]
    sources = [Waiting(head) for _ in range(count)]
    held: list[Any] = []
    states: list[dict[str, Any]] = []
    gc.collect()
    with bar("memory: idle pipes", 2 * count) as progress:
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for source in sources:
                held.append(recipe(source, CHAT, TARGET))
                run(held[-1].__aenter__())
                progress.update()
            states.append(_state("opened, before the first event", before, count))
            waits = []
            for stream in held:
                run(_read(stream))
                waits.append(_read(stream))
                waits[-1].send(None)
                progress.update()
            gc.collect()
            states.append(_state("waits after the first event", before, count))
        finally:
            tracemalloc.stop()
    for wait, stream in zip(waits, held, strict=True):
        with suppress(CancelledError):
            wait.throw(CancelledError())
        run(stream.__aexit__())
    return states


def _state(name: str, before: int, count: int) -> dict[str, Any]:
    return {"state": name, "pipes": count, "bytes_per_pipe": (tracemalloc.get_traced_memory()[0] - before) / count}


def measure() -> dict[str, Any]:
    return {"idle": idle(), "arguments": arguments(), "flat": [flat()]}
