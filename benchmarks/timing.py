"""Interleaved timing: a ratio to a yardstick that was timed beside it, with its spread.

A shared machine changes its speed by a third from one second to the next, so a time alone says little. Here the yardstick is
timed before and after each run of each task, in rounds, and a task's ratio of one round is its time over the mean of the two.
What is told is the median of the rounds and their quartiles.

Why not pyperf: it times one command after the other, each in processes of its own, and compares means that were taken minutes
apart; it has no notion of a ratio within a round. ``statistics`` of the standard library does the rest.

Garbage collection is on, as it is in service; a full collection runs before each round, and what the benchmark itself holds is
taken out of the collector's sight (``gc.freeze``), so that no task pays for another's inputs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from math import log
from statistics import quantiles
from time import perf_counter
from typing import Any

from attrs import asdict, frozen

Task = Callable[[], Any]
ROUNDS = 9
#: A run that is shorter is repeated until it is not: the clock and the scheduler are to be noise.
LEAST_SECONDS = 0.012


@frozen
class Spread:
    """A median with its quartiles, over ``count`` rounds."""

    median: float
    low: float
    high: float
    count: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """Of one value all three are that value; of a few, quartiles lie within what was seen."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high, len(values))


@frozen
class Measured:
    """``seconds`` of one run of a task, and its ``ratio`` to the yardstick in the same round."""

    seconds: Spread
    ratio: Spread


def timed(task: Task, repeats: int = 1) -> float:
    """Seconds of one run, the mean over ``repeats``."""
    start = perf_counter()
    for _ in range(repeats):
        task()
    return (perf_counter() - start) / repeats


def repeats_of(task: Task, least: float) -> int:
    """How often to run a task so that the clock does not matter; the first call warms it up, and is enough if it is long."""
    seconds = timed(task)
    if seconds > 4 * least:
        return 1
    seconds = timed(task)
    return max(1, round(least / seconds + 0.5)) if seconds < least else 1


def interleaved(
    tasks: Mapping[str, Task],
    yardstick: Task,
    *,
    rounds: int = ROUNDS,
    least: float | None = None,
    on_run: Callable[[], object] = lambda: None,
) -> dict[str, Measured]:
    """Time each task in turns with the yardstick. ``on_run`` is called behind each timed run, for a progress bar."""
    least = LEAST_SECONDS if least is None else least
    counts = {name: repeats_of(task, least) for name, task in tasks.items()}
    count = repeats_of(yardstick, least)
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    ratios: dict[str, list[float]] = {name: [] for name in tasks}
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            gc.collect()
            before = timed(yardstick, count)
            for name, task in tasks.items():
                found = timed(task, counts[name])
                after = timed(yardstick, count)
                seconds[name].append(found)
                ratios[name].append(found / ((before + after) / 2))
                before = after
                on_run()
    finally:
        gc.unfreeze()
    return {name: Measured(spread(seconds[name]), spread(ratios[name])) for name in tasks}


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent of growth, by least squares over logarithms: 1 is linear, 2 quadratic."""
    xs, ys = [log(size) for size in sizes], [log(second) for second in seconds]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)
