"""Time against size: linear, or the slope says otherwise.

Text and arguments go through the whole recipe. One line goes through framing, in reads of 1 KiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks import content, inputs, oracle, timing
from benchmarks.inputs import CHAT
from benchmarks.progress import bar
from benchmarks.reads import CUTS, KIB
from benchmarks.recipe import MODES, transcoded
from benchmarks.stages import TARGET
from streamkit.framing.sse import SSEParser
from streamkit.testing import drive_machine

MIB = KIB * KIB
TEXT_EVENTS = (1_000, 2_000, 4_000, 8_000, 16_000)
#: Characters of one call's arguments, in fragments of 14.
ARGUMENTS = (16 * KIB, 64 * KIB, 256 * KIB, MIB // 2, MIB, 2 * MIB, 4 * MIB)
LINES = (64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB)
ROUNDS = 3


def series(
    name: str, unit: str, sizes: Sequence[int], tasks: Sequence[timing.Task], rounds: int, mode: str = ""
) -> dict[str, Any]:
    """Time a task of each size. ``doubling`` is how the time grows per doubling at the end: 2 is linear.

    It and the slope come from the lower quartiles: what disturbs a long run only ever makes it longer.
    """
    found = []
    with bar(f"growth: {name}, {mode}", len(tasks) * rounds) as progress:
        for task in tasks:
            measured = timing.interleaved({"": task}, lambda: None, rounds=rounds, on_run=progress.update)
            found.append(measured[""].seconds)
    seconds = [spread.low for spread in found]
    return {
        "name": name,
        "mode": mode,
        "unit": unit,
        "sizes": list(sizes),
        "seconds": [spread.json() for spread in found],
        "slope": timing.slope(sizes, seconds),
        "doubling": 2 ** timing.slope(sizes[-3:], seconds[-3:]),
    }


def task_of(stream: inputs.Input, mode: str) -> timing.Task:
    reads = CUTS["64 KiB"](stream)
    oracle.verify_output(stream, TARGET, b"".join(transcoded(reads, CHAT, TARGET, mode)))
    return lambda: transcoded(reads, CHAT, TARGET, mode)


def line_of(size: int) -> timing.Task:
    """One event of one line, in reads of 1 KiB: framing alone."""
    line = b"x" * size
    reads = [b"data: ", *(line[place : place + KIB] for place in range(0, size, KIB)), b"\n\n"]
    frames = [frame.data for batch in drive_machine(SSEParser(), reads) for frame in batch]
    if frames != [line]:
        raise oracle.Wrong("one line: another event than went in")
    return lambda: drive_machine(SSEParser(), reads)


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    text = [inputs.chat("text", content.text(size)) for size in TEXT_EVENTS]
    calls = [inputs.chat("one call", content.one_call(size)) for size in ARGUMENTS]
    return [
        *(
            series("text", "events", TEXT_EVENTS, [task_of(each, mode) for each in text], rounds, mode)
            for mode in MODES
        ),
        *(
            series("arguments", "characters", ARGUMENTS, [task_of(each, mode) for each in calls], rounds, mode)
            for mode in MODES
        ),
        series("one line in 1 KiB reads", "bytes", LINES, list(map(line_of, LINES)), 3 * rounds),
    ]
