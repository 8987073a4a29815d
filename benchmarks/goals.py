"""What the benchmarks must show: each goal beside what a run measured. A goal whose measurement is missing is not held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from benchmarks.pairs import YARDSTICK
from benchmarks.recipe import MODES, PLAIN
from benchmarks.streams import MIX, PAIRS, RECORDED, STREAMS_WORK, THREE

JOINED, UNJOINED = MODES
Results = dict[str, Any]


@frozen
class Goal:
    """``limit`` bounds what ``find`` takes from the results: from above, or from below where ``at_least``.

    ``optional``: not everybody can measure it, and it is named where somebody did.
    """

    name: str
    unit: str
    limit: float
    find: Callable[[Results], float]
    at_least: bool = False
    optional: bool = False


@frozen
class Judged:
    goal: Goal
    measured: float | None

    @property
    def held(self) -> bool:
        if self.measured is None:
            return False
        return self.measured >= self.goal.limit if self.goal.at_least else self.measured <= self.goal.limit


def recipe(name: str, cut: str, mode: str) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        rows = results["stages"]["recipe"]
        return next(
            row["times_floor"]["median"] for row in rows if (row["input"], row["cut"], row["mode"]) == (name, cut, mode)
        )

    return find


def beside(work: str, source: str) -> Callable[[Results], float]:
    """The multiple of streamkit's time that the peer took for streams of ``source``."""

    def find(results: Results) -> float:
        return next(
            row["times_streamkit"]["median"]
            for row in results["peers"]["rows"]
            if (row["work"], row["input"]) == (work, source) and "times_streamkit" in row
            if not row["peer"].startswith("streamkit")
        )

    return find


def three_events(results: Results) -> float:
    """How often one event could be loaded in the time of a stream of three."""
    row = next(row for row in results["streams"] if row["source"] == THREE)
    return float(row["times_floor"]["median"] * row["events"] / row["streams"])


def slowest_pair(results: Results) -> float:
    others = [row for row in results["pairs"]["pairs"] if (row["from"], row["to"]) != YARDSTICK]
    return max(row["times_yardstick"]["median"] for row in others)


def growth(section: str, mode: str | None = None) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        return next(line["doubling"] for line in results["growth"][section] if line.get("mode") == mode)

    return find


def accumulating(mode: str) -> Callable[[Results], float]:
    def find(results: Results) -> float:
        rows = results["growth"]["accumulating"]
        return next(row["times_list_join_loads"]["median"] for row in rows if row["mode"] == mode)

    return find


def framing(results: Results) -> float:
    rows = results["stages"]["framing"]
    return next(row["times_floor"]["median"] for row in rows if (row["input"], row["cut"]) == ("text", "64 KiB"))


def one_line(results: Results) -> float:
    """Milliseconds of one event of 4 MiB in 1 KiB reads."""
    line = results["growth"]["lines"][0]
    return line["seconds"][line["sizes"].index(4 * 2**20)]["median"] * 1e3


def arguments_memory(results: Results) -> float:
    """MiB at the peak with 1 MiB of arguments, in whichever mode takes more."""
    return max(row["peak_bytes"] for row in results["memory"]["arguments"] if row["characters"] == 2**20) / 2**20


def idle(results: Results) -> float:
    """KiB a pipe that waits behind its first event."""
    return max(state["bytes_per_pipe"] for state in results["memory"]["idle"]) / 1024


def flat(results: Results) -> float:
    return results["memory"]["flat"]["peak_bytes"] / 2**20


def peers(work: str, *names: str) -> Callable[[Results], float]:
    """The least multiple of streamkit's time that a Python peer took for a work, over all inputs; ``names``: only theirs."""

    def find(results: Results) -> float:
        return min(
            row["times_streamkit"]["median"]
            for row in results["peers"]["rows"]
            if row["work"] == work
            and row["kind"] == "Python"
            and not row["peer"].startswith("streamkit")
            and (not names or row["peer"] in names)
            and "times_streamkit" in row
        )

    return find


FLOOR = "times orjson.loads"
OURS = "times streamkit"
GOALS = (
    *(
        Goal(
            f"llm-rosetta, {source}, {name} to {target}",
            OURS,
            1.5,
            beside(f"{STREAMS_WORK}{name} → {target}", source),
            at_least=True,
            optional=source == RECORDED,
        )
        for source in (RECORDED, MIX)
        for name, target in PAIRS
    ),
    Goal("A stream of three events, Chat to Anthropic", "times orjson.loads of one", 70.0, three_events),
    Goal(
        "A stage of one's own behind the framing, at one event a read", FLOOR, 4.0, recipe("text", "per event", PLAIN)
    ),
    Goal("A stage of one's own behind the framing, at 64 KiB reads", FLOOR, 2.5, recipe("text", "64 KiB", PLAIN)),
    *(
        Goal(f"Chat to Anthropic at 64 KiB reads: {name}, {mode}", FLOOR, limit, recipe(name, "64 KiB", mode))
        for mode, limits in ((JOINED, (1.1, 1.5, 1.6)), (UNJOINED, (1.6, 2.0, 2.3)))
        for name, limit in zip(("text", "text, obfuscation", "four interleaved calls"), limits, strict=True)
    ),
    *(
        Goal(f"Chat to Anthropic at one event a read: {name}", FLOOR, limit, recipe(name, "per event", JOINED))
        for name, limit in (("text", 3.5), ("text, obfuscation", 3.5), ("four interleaved calls", 3.8))
    ),
    Goal("Best Python peer, parsing SSE", OURS, 1.0, peers("parse SSE"), at_least=True),
    Goal("Best Python peer, decoding and accumulating", OURS, 1.0, peers("decode and accumulate"), at_least=True),
    Goal("Best Python peer, re-encoding Chat to Anthropic", OURS, 3.0, peers("re-encode to Anthropic"), at_least=True),
    Goal(
        "LiteLLM, re-encoding Chat to Anthropic", OURS, 20.0, peers("re-encode to Anthropic", "litellm"), at_least=True
    ),
    Goal("Slowest other pair of dialects", "times Chat to Anthropic", 1.6, slowest_pair),
    Goal("Arguments, each doubling up to 4 MiB, joined", "times", 2.2, growth("arguments", JOINED)),
    Goal("Arguments, each doubling up to 4 MiB, unjoined", "times", 2.2, growth("arguments", UNJOINED)),
    Goal("Accumulate and check 1 MiB of arguments, joined", "times list, join, loads", 3.0, accumulating(JOINED)),
    Goal("Accumulate and check 1 MiB of arguments, unjoined", "times list, join, loads", 6.0, accumulating(UNJOINED)),
    Goal("SSE parsing at 64 KiB reads", FLOOR, 0.7, framing),
    Goal("One event of 4 MiB in 1 KiB reads", "ms", 20.0, one_line),
    Goal("One line, each doubling up to 4 MiB", "times", 2.3, growth("lines")),  # design.md §1, L2
    Goal("Memory at 1 MiB of arguments", "MiB", 5.0, arguments_memory),
    Goal("Memory of an idle open pipe", "KiB", 12.0, idle),
    Goal("Memory over a stream of 100 MiB", "MiB above the start", 8.0, flat),
)


def judged(results: Results) -> Iterator[Judged]:
    for goal in GOALS:
        try:
            measured: float | None = goal.find(results)
        except (KeyError, StopIteration, ValueError):
            measured = None
        if measured is not None or not goal.optional:
            yield Judged(goal, measured)
