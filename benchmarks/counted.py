"""What ``check.py`` counts under callgrind: runs of each case at two sizes, with a mark in front of each and behind the last.

The mark is a call of ``getppid``, at which callgrind writes what it has counted since the mark before and starts at zero. Each
case runs once unmarked first, so that imports, caches and the specialising interpreter are behind it. Garbage collection is
off: its runs would fall at other places with other sizes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks import content, inputs
from benchmarks.content import Content
from benchmarks.inputs import CHAT, Input
from benchmarks.mix import DIALECTS as SHAPED
from benchmarks.mix import mix
from benchmarks.reads import CUTS
from benchmarks.recipe import MODES, PLACES, floor, piped, transcoded
from benchmarks.streams import floor as floor_of
from benchmarks.streams import short, twelve
from streamkit.dialects import DIALECTS
from streamkit.framing.sse import SSEParser
from streamkit.resume import EventIDs, LogLimits, MemoryStore, Meta
from streamkit.resume.memory import MemoryLog
from streamkit.testing import drive_machine

#: Events of the two streams whose counts are subtracted.
SIZES = (400, 1_200)
#: A stream for so many of them, where there are many short ones.
STREAM = 40
FLOOR = "floor: "
TARGET = "anthropic"
Case = Callable[[int], tuple[Input, Callable[[], object]]]


def chat(said: Callable[[int], Content], *, obfuscation: bool = False) -> Callable[[int], Input]:
    return lambda size: inputs.chat("counted", said(size), obfuscation=obfuscation)


def four_calls(size: int) -> Content:
    return content.calls(size * content.FRAGMENT_CHARS)


def one_call(size: int) -> Content:
    return content.one_call(size * content.FRAGMENT_CHARS)


OWN = next(iter(PLACES))  #: where ``stages=`` puts a user's stage
STREAMS: dict[str, Callable[[int], Input]] = {
    "text": chat(content.text),
    "text, obfuscation": chat(content.text, obfuscation=True),
    "four interleaved calls": chat(four_calls),
    "one call": chat(one_call),
    **{name: lambda size, name=name: inputs.dialect_inputs(size)[name] for name in DIALECTS.built_in},
}


def recipe(stream: Input, cut: str, mode: str) -> Callable[[], object]:
    return partial(transcoded, CUTS[cut](stream), stream.dialect, TARGET if stream.dialect == CHAT else CHAT, mode)


def framing(stream: Input, cut: str) -> Callable[[], object]:
    reads = CUTS[cut](stream)
    return lambda: drive_machine(SSEParser(), reads)


def kept(stream: Input) -> Callable[[], object]:
    """What an answer costs more that its client can come back to, in memory: a log, and an id for each event."""
    reads = CUTS["per event"](stream)
    store = MemoryStore(LogLimits(log_bytes=10**9, all_bytes=10**10))

    def run() -> None:
        log_id = store.new_id()
        log, ids = MemoryLog(store, log_id, Meta(dialect=stream.dialect), lambda: None), EventIDs(log_id)
        for event in reads:
            log.append(event)
            ids.feed(event)

    return run


def each(streams: Sequence[Input], way: Callable[[Sequence[bytes], str, str], object]) -> Callable[[], object]:
    """A recipe for each stream, one event a read; ``way`` runs it, with a stage of a user's own or without."""
    reads = [(CUTS["per event"](stream), stream.dialect) for stream in streams]

    def run() -> None:
        for events, dialect in reads:
            way(events, dialect, TARGET if dialect != TARGET else CHAT)

    return run


def cases(size: int) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
    """Each case's name, the stream whose floor it is a multiple of, the events of that stream, and what to run."""
    for name, make in STREAMS.items():
        stream = make(size)
        yield f"{FLOOR}{name}", name, stream.events, partial(floor, stream)
        if name == "text":
            for cut in ("64 KiB", "per event"):
                yield f"SSE, {cut}", name, stream.events, framing(stream, cut)
                own = partial(piped, CUTS[cut](stream), CHAT, TARGET, OWN)
                yield f"own stage, {cut}", name, stream.events, own
        if name in ("text", "anthropic"):
            yield f"resumable: {name}, memory", name, stream.events, kept(stream)
        cuts = ("64 KiB", "per event") if name in ("text", "four interleaved calls") else ("64 KiB",)
        for mode in MODES if stream.dialect == CHAT else MODES[:1]:
            for cut in cuts:
                yield f"recipe: {name}, {cut}, {mode}", name, stream.events, recipe(stream, cut, mode)
    many = {
        "three events": short(size // STREAM),
        "twelve events": twelve(size // STREAM),
        **{f"mix of {name}": mix(name)[: size // STREAM] for name in SHAPED},
    }
    for name, streams in many.items():
        events = sum(stream.events for stream in streams)
        yield f"{FLOOR}{name}", name, events, floor_of(streams)
        yield f"streams: {name}", name, events, each(streams, transcoded)
        if name == "twelve events":
            yield f"own stage, {name}", name, events, each(streams, partial(piped, place=OWN))


def main() -> None:
    """Run each case at each size, and print its name, its stream, its size and its events as lines of tab-separated words."""
    gc.disable()
    for pair in zip(*(cases(size) for size in SIZES), strict=True):
        pair[1][3]()  # the warm-up, at the larger size: memory is then at hand
        for name, stream, events, task in pair:
            os.getppid()
            task()
            os.getppid()
            print(name, stream, events, sep="\t")


if __name__ == "__main__":
    main()
