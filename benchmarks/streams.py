"""Streams as they are, in six pairs of dialects: recorded ones where they are at hand, for everyone a mix like them.

Half of them have fewer than 25 events, so that what a stream costs to open and to close counts as much as its events. One run
reads all streams of a dialect, each in a recipe of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import orjson

from benchmarks import content, inputs, oracle, shapes, timing
from benchmarks.content import Call, Content
from benchmarks.inputs import Input
from benchmarks.mix import mix
from benchmarks.progress import bar
from benchmarks.reads import CUTS
from benchmarks.recipe import transcoded

#: How the works of peers on many streams are called, in front of the pair.
STREAMS_WORK = "streams, "
MIX, RECORDED, THREE = "seeded mix", "recorded", "three events"
#: From, to.
PAIRS: Final = (
    ("openai-chat", "anthropic"),
    ("anthropic", "openai-chat"),
    ("openai-responses", "anthropic"),
    ("gemini", "anthropic"),
    ("openai-chat", "openai-responses"),
    ("anthropic", "openai-responses"),
)
PER_EVENT, AS_RECORDED = "per event", "as recorded"


@cache
def sources() -> Mapping[str, Mapping[str, Sequence[Input]]]:
    """The streams by where they are from and by dialect."""
    found = {MIX: {dialect: mix(dialect) for dialect in shapes.DIALECTS}}
    at = shapes.folder()
    if at is not None:
        recorded: dict[str, list[Input]] = {dialect: [] for dialect in shapes.DIALECTS}
        for stream in shapes.recordings(at):
            body = b"".join(stream.events)
            recorded[stream.dialect].append(Input("recorded", stream.dialect, body, stream.payloads, Content()))
        found[RECORDED] = {dialect: tuple(streams) for dialect, streams in recorded.items()}
    return found


def short(count: int) -> tuple[Input, ...]:
    """Streams of three events and ``[DONE]``: what a stream costs to open and to close."""
    said = Content(text=("Hello",))
    return tuple(inputs.chat("short", said) for _ in range(count))


def twelve(count: int) -> tuple[Input, ...]:
    """Streams of twelve events, most of them of a kind that comes once: words, the start of a call, its arguments, the end."""
    call = Call("call_0123456789abcdefghijklmn", "read_file", ('{"path":', '"src/a.py"', "}"))
    said = Content(text=content.words(5), calls=(call,), order=(0, 0, 0))
    return tuple(inputs.chat("twelve", said) for _ in range(count))


def prove(streams: Sequence[Input], target: str) -> None:
    """Each stream of the mix says in ``target`` what it said. Raises Wrong."""
    for stream in streams:
        output = b"".join(transcoded(CUTS[PER_EVENT](stream), stream.dialect, target))
        found, expected = oracle.read(target, output), oracle.meant(stream.said)
        if not found.reasoning:
            expected = oracle.without_reasoning(expected)
        oracle.compare(f"{stream.name} to {target}", found, expected)


def floor(streams: Sequence[Input]) -> timing.Task:
    """``orjson.loads`` of each event of each stream."""
    payloads = [payload for stream in streams for payload in stream.payloads]

    def task() -> None:
        for payload in payloads:
            orjson.loads(payload)

    return task


def _transcoded(streams: Sequence[list[bytes]], name: str, target: str) -> None:
    for reads in streams:
        transcoded(reads, name, target)


def measure(rounds: int = timing.ROUNDS, streams: int | None = None) -> list[dict[str, Any]]:
    """A row for each source, pair and cut; of ``streams`` streams each, all of them where it is None."""
    rows: list[dict[str, Any]] = []
    todo = [(source, pair, by_dialect[pair[0]]) for source, by_dialect in sources().items() for pair in PAIRS]
    todo.append((THREE, PAIRS[0], short(60)))
    with bar("streams as they are", len(todo) * 2 * rounds) as progress:
        for source, (name, target), all_found in todo:
            found = all_found[:streams]
            if source != RECORDED:
                prove(found, target)
            reads = {cut: [CUTS[cut](stream) for stream in found] for cut in (PER_EVENT, AS_RECORDED)}
            tasks: dict[str, timing.Task] = {
                cut: lambda cut=cut: [transcoded(one, name, target) for one in reads[cut]] for cut in reads
            }
            measured = timing.interleaved(tasks, floor(found), rounds=rounds, on_run=progress.update)
            events = sum(stream.events for stream in found)
            for cut, times in measured.items():
                rows.append(
                    {
                        "source": source,
                        "from": name,
                        "to": target,
                        "cut": cut,
                        "streams": len(found),
                        "events": events,
                        "microseconds_per_stream": times.seconds.median / len(found) * 1e6,
                        "times_floor": times.ratio.json(),
                    }
                )
    return rows
