"""What the benchmarks must show: each goal next to what a run measured. A goal whose measurement is missing is not held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from benchmarks.pairs import YARDSTICK
from benchmarks.recipe import MODES
from benchmarks.streams import MIX, RECORDED, STREAMS_WORK, THREE

JOINED, UNJOINED = MODES
Results = dict[str, Any]
Row = dict[str, Any]


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


def most(place: str, column: str, **where: Any) -> Callable[[Results], float]:
    """The largest figure of a column, in the rows at ``place`` (``stages.recipe``) that have these values."""
    return lambda results: max(figures(results, place, column, lambda row: all(row[k] == v for k, v in where.items())))


def figures(results: Results, place: str, column: str, wanted: Callable[[Row], bool]) -> Iterator[float]:
    rows: Any = results
    for name in place.split("."):
        rows = rows[name]
    for row in rows:
        if column in row and wanted(row):
            yield row[column]["median"] if isinstance(row[column], dict) else row[column]


def least_peer(work: str, **where: Any) -> Callable[[Results], float]:
    """The least multiple of streamkit's time that a Python peer took for works whose names begin with ``work``."""

    def wanted(row: Row) -> bool:
        ours = row["peer"].startswith("streamkit") or row["kind"] != "Python"
        return row["work"].startswith(work) and not ours and all(row[k] == v for k, v in where.items())

    return lambda results: min(figures(results, "peers.rows", "times_streamkit", wanted))


def three_events(results: Results) -> float:
    """How often one event could be loaded in the time of a stream of three."""
    row = next(row for row in results["streams"] if row["source"] == THREE)
    return float(row["times_floor"]["median"] * row["events"] / row["streams"])


def slowest_pair(results: Results) -> float:
    return max(figures(results, "pairs.pairs", "times_yardstick", lambda row: (row["from"], row["to"]) != YARDSTICK))


def one_line(results: Results) -> float:
    """Milliseconds of one event of 4 MiB in 1 KiB reads."""
    line = next(line for line in results["growth"] if line["unit"] == "bytes")
    return float(line["seconds"][line["sizes"].index(4 * 2**20)]["median"] * 1e3)


def recipe(name: str, cut: str, mode: str) -> Callable[[Results], float]:
    return most("stages.recipe", "times_floor", input=name, cut=cut, mode=mode)


def own_stage(cut: str) -> Callable[[Results], float]:
    """The most that a stage that changes nothing costs, at any place in the pipe."""
    return lambda results: max(
        figures(results, "stages.own", "times_without", lambda row: row["cut"] == cut and "redact" not in row["stage"])
    )


def mib(find: Callable[[Results], float], unit: int = 2**20) -> Callable[[Results], float]:
    return lambda results: find(results) / unit


FLOOR = "times orjson.loads"
OURS = "times streamkit's time"
SOME = ("text", "text, obfuscation", "four interleaved calls")
GOALS = (
    *(
        Goal(
            f"LLM-Rosetta at its fastest pair of dialects ({source})",
            OURS,
            1.5,
            least_peer(STREAMS_WORK, input=source),
            True,
            optional,
        )
        for source, optional in ((RECORDED, True), (MIX, False))
    ),
    Goal("A stream of three events, Chat to Anthropic", "times orjson.loads of one event", 70.0, three_events),
    *(
        Goal(f"A stage that passes each batch on, {words}", "times the pipe without the stage", 1.5, own_stage(cut))
        for cut, words in (("per event", "at one event a read"), ("64 KiB", "at 64 KiB reads"))
    ),
    *(
        Goal(f"Chat to Anthropic at 64 KiB reads: {name}, {mode}", FLOOR, limit, recipe(name, "64 KiB", mode))
        for mode, limits in ((JOINED, (1.1, 1.5, 1.6)), (UNJOINED, (1.6, 2.0, 2.3)))
        for name, limit in zip(SOME, limits, strict=True)
    ),
    *(
        Goal(f"Chat to Anthropic at one event a read: {name}", FLOOR, limit, recipe(name, "per event", JOINED))
        for name, limit in zip(SOME, (3.5, 3.5, 3.8), strict=True)
    ),
    Goal("Fastest other Python library, parsing SSE", OURS, 1.0, least_peer("parse SSE"), at_least=True),
    Goal(
        "Fastest other Python library, decoding and accumulating",
        OURS,
        1.0,
        least_peer("decode and accumulate"),
        at_least=True,
    ),
    Goal(
        "Fastest other Python library, re-encoding Chat to Anthropic", OURS, 3.0, least_peer("re-encode"), at_least=True
    ),
    Goal("LiteLLM, re-encoding Chat to Anthropic", OURS, 20.0, least_peer("re-encode", peer="litellm"), at_least=True),
    Goal("Slowest other pair of dialects", "times Chat to Anthropic", 1.6, slowest_pair),
    Goal(
        "Time for arguments of twice the size, up to 4 MiB",
        "times as long",
        2.2,
        most("growth", "doubling", name="arguments"),
    ),
    Goal(
        "Time for a line of twice the size, up to 4 MiB", "times as long", 2.3, most("growth", "doubling", unit="bytes")
    ),  # design.md §1, L2
    Goal("One event of 4 MiB in 1 KiB reads", "ms", 20.0, one_line),
    Goal("SSE parsing at 64 KiB reads", FLOOR, 0.7, most("stages.framing", "times_floor", input="text", cut="64 KiB")),
    Goal("Memory at 1 MiB of arguments", "MiB", 5.0, mib(most("memory.arguments", "peak_bytes", characters=2**20))),
    Goal("Memory of an idle open pipe", "KiB", 12.0, mib(most("memory.idle", "bytes_per_pipe"), 2**10)),
    Goal("Memory during a stream of 100 MiB", "MiB above the start", 8.0, mib(most("memory.flat", "peak_bytes"))),
)


def judged(results: Results) -> Iterator[Judged]:
    for goal in GOALS:
        try:
            measured: float | None = goal.find(results)
        except (KeyError, StopIteration, ValueError):
            measured = None
        if measured is not None or not goal.optional:
            yield Judged(goal, measured)
