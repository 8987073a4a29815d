"""Time against size: linear, or the slope says otherwise.

Text and arguments go through the whole recipe; arguments also through accumulating and checking alone, beside the least that
anyone could do with fragments: put them in a list, join, and parse once. Lines go through framing, in reads of 1 KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from benchmarks import content, inputs, oracle, timing
from benchmarks.inputs import CHAT
from benchmarks.progress import bar
from benchmarks.reads import CUTS, KIB
from benchmarks.recipe import MODES, transcoded
from benchmarks.stages import TARGET, machines
from streamkit.events import ToolCallFinished
from streamkit.framing.sse import SSEParser
from streamkit.machines import Chain
from streamkit.testing import drive_machine

MIB = KIB * KIB
TEXT_EVENTS = (1_000, 2_000, 4_000, 8_000, 16_000)
#: Characters of one call's arguments, in fragments of 14.
ARGUMENTS = (16 * KIB, 64 * KIB, 256 * KIB, MIB // 2, MIB, 2 * MIB, 4 * MIB)
LINES = (64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB)
#: Characters of the arguments that are accumulated and checked alone.
ACCUMULATED = MIB
READ = KIB
ROUNDS = 3


def series(name: str, unit: str, sizes: Sequence[int], found: Sequence[timing.Spread], **more: Any) -> dict[str, Any]:
    """One line of a chart. ``doubling`` is how the time grows per doubling at the end: 2 is linear.

    Both come from the lower quartiles: what disturbs a long run only ever makes it longer.
    """
    seconds = [spread.low for spread in found]
    late = timing.slope(sizes[-3:], seconds[-3:])
    return {
        "name": name,
        "unit": unit,
        "sizes": list(sizes),
        "seconds": [spread.json() for spread in found],
        "slope": timing.slope(sizes, seconds),
        "doubling": 2**late,
        **more,
    }


def text(rounds: int) -> list[dict[str, Any]]:
    streams = [inputs.chat("text", content.text(size)) for size in TEXT_EVENTS]
    return [_recipe("text", "events", TEXT_EVENTS, streams, mode, rounds) for mode in MODES]


def arguments(rounds: int) -> list[dict[str, Any]]:
    streams = [inputs.chat("one call", content.one_call(size)) for size in ARGUMENTS]
    return [_recipe("arguments", "characters", ARGUMENTS, streams, mode, rounds) for mode in MODES]


def _recipe(
    name: str, unit: str, sizes: Sequence[int], streams: Sequence[inputs.Input], mode: str, rounds: int
) -> dict[str, Any]:
    found = []
    with bar(f"growth: {name}, {mode}", len(streams) * rounds) as progress:
        for stream in streams:
            reads = CUTS["64 KiB"](stream)
            oracle.verify_output(stream, TARGET, b"".join(transcoded(reads, CHAT, TARGET, mode)))
            task = {mode: lambda: transcoded(reads, CHAT, TARGET, mode)}
            found.append(_seconds(task, rounds, progress.update)[mode])
    return series(f"{name}, {mode}", unit, sizes, found, mode=mode)


def _seconds(tasks: Mapping[str, timing.Task], rounds: int, on_run: Any) -> dict[str, timing.Spread]:
    measured = timing.interleaved(tasks, lambda: None, rounds=rounds, on_run=on_run)
    return {name: found.seconds for name, found in measured.items()}


def accumulated(batches: list[Any], make: Mapping[str, Callable[[], Any]]) -> str:
    """Accumulate and check, without framing and decoding: the argument text of the one call."""
    machine = Chain(make["accumulate"](), make["check"]())
    finished = [
        event for batch in drive_machine(machine, batches) for event in batch if type(event) is ToolCallFinished
    ]
    return finished[0].arguments


def listed(batches: list[list[str]]) -> str:
    """The yardstick: each fragment into a list, one join, one ``orjson.loads``."""
    parts: list[str] = []
    append = parts.append
    for batch in batches:
        for fragment in batch:
            append(fragment)
    text = "".join(parts)
    orjson.loads(text)
    return text


def accumulating(rounds: int, size: int) -> list[dict[str, Any]]:
    """Accumulate and check together, as multiples of the yardstick."""
    stream = inputs.chat("one call", content.one_call(size))
    text = stream.said.calls[0].arguments
    reads = CUTS["64 KiB"](stream)
    fragments = [
        [piece for event in batch if (piece := getattr(event, "arguments", None))]
        for batch in decoded(machines(join=False), reads)
    ]
    rows = []
    with bar("accumulate and check", len(MODES) * rounds) as progress:
        for mode in MODES:
            make = machines(join=mode == MODES[0])
            batches = decoded(make, reads)
            if accumulated(batches, make) != text or listed(fragments) != text:
                raise oracle.Wrong("one call: other arguments than went in")
            tasks = {mode: lambda: accumulated(batches, make)}
            found = timing.interleaved(tasks, lambda: listed(fragments), rounds=rounds, on_run=progress.update)[mode]
            rows.append(
                {
                    "mode": mode,
                    "characters": size,
                    "milliseconds": found.seconds.median * 1e3,
                    "times_list_join_loads": found.ratio.json(),
                }
            )
    return rows


def decoded(make: Mapping[str, Callable[[], Any]], reads: list[bytes]) -> list[Any]:
    """What the accumulator is fed with."""
    first = list(make)[: list(make).index("accumulate")]
    return drive_machine(Chain(*(make[part]() for part in first)), reads)


def lines(rounds: int) -> dict[str, Any]:
    """One event of one line, in reads of 1 KiB: framing alone."""
    found = []
    with bar("growth: one line", len(LINES) * rounds) as progress:
        for size in LINES:
            line = b"x" * size
            reads = [b"data: ", *_cut(line, READ), b"\n\n"]
            frames = [frame for batch in drive_machine(SSEParser(), reads) for frame in batch]
            if [frame.data for frame in frames] != [line]:
                raise oracle.Wrong("one line: another event than went in")
            task = {"line": lambda: drive_machine(SSEParser(), reads)}
            found.append(_seconds(task, rounds, progress.update)["line"])
    return series("one line in 1 KiB reads", "bytes", LINES, found)


def _cut(line: bytes, size: int) -> list[bytes]:
    return [line[place : place + size] for place in range(0, len(line), size)]


def measure(rounds: int = ROUNDS) -> dict[str, Any]:
    return {
        "text": text(rounds),
        "arguments": arguments(rounds),
        "lines": [lines(3 * rounds)],
        "accumulating": accumulating(3 * rounds, ACCUMULATED),
    }
