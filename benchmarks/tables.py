"""Results as tables in Markdown: of each section the rows as they are, a column for each figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.goals import Results, judged
from benchmarks.streams import STREAMS_WORK

Row = dict[str, Any]
Columns = Mapping[str, Callable[[Row], str]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table whose first ``text_columns`` columns are words and whose others are figures."""
    marks = ["---" if column < text_columns else "---:" for column in range(len(head))]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def listed(rows: Iterable[Row], columns: Columns, *, text_columns: int = 1) -> str:
    """A table with a line for each row."""
    cells = ([cell(row) for cell in columns.values()] for row in rows)
    return table(list(columns), cells, text_columns=text_columns)


def number(value: float) -> str:
    """Two significant places or three: what a shared machine can tell."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(spread: Row) -> str:
    """A ratio with its quartiles."""
    return f"{number(spread['median'])} ({number(spread['low'])}–{number(spread['high'])})"


def word(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:,}" if isinstance(row[name], int) else str(row[name])


def figure(name: str, per: float = 1) -> Callable[[Row], str]:
    return lambda row: number(row[name] / per)


def ratio(name: str) -> Callable[[Row], str]:
    """Empty where it was not measured."""
    return lambda row: times(row[name]) if name in row else ""


def goals(results: Results) -> str:
    rows = (
        (
            one.goal.name,
            one.goal.unit,
            f"{'≥' if one.goal.at_least else '≤'} {one.goal.limit:g}",
            "not measured" if one.measured is None else number(one.measured),
            "met" if one.held else "missed",
        )
        for one in sorted(judged(results), key=lambda one: not one.held)
    )
    return table(("goal", "unit", "limit", "measured", "result"), rows, text_columns=2)


def streams(results: Results) -> Iterator[str]:
    """Each pair, next to the best Python peer where it was measured, and whether streamkit is the slower one."""
    peers = {
        (row["input"], row["work"].removeprefix(STREAMS_WORK)): row
        for row in results.get("peers", {}).get("rows", ())
        if row["work"].startswith(STREAMS_WORK) and not row["peer"].startswith("streamkit")
    }

    def beside(row: Row) -> str:
        other = peers.get((row["source"], row["pair"]), {}).get("times_streamkit")
        return "" if other is None else times(other) + (", **streamkit is slower**" if other["median"] < 1 else "")

    columns: Columns = {
        "streams": word("source"),
        "from → to": word("pair"),
        "LLM-Rosetta's time, × streamkit's": beside,
        "number of streams": word("streams"),
        "number of events": word("events"),
        "× floor": ratio("times_floor"),
        "µs for a stream": figure("microseconds_per_stream"),
    }
    yield listed(results["streams"], columns, text_columns=2)


RECIPE: Columns = {
    "input": word("input"),
    "reads": word("cut"),
    "deltas": word("mode"),
    "× floor": ratio("times_floor"),
    "µs for an event": figure("microseconds_per_event"),
    "MB/s": figure("megabytes_per_second"),
}
OWN: Columns = {
    "input": word("input"),
    "reads": word("cut"),
    "stage": word("stage"),
    "× the pipe without it": ratio("times_without"),
    "µs for an event": figure("microseconds_per_event"),
}
FRAMING: Columns = {name: cell for name, cell in RECIPE.items() if name != "deltas"}
GROWTH: Columns = {
    "what grows": word("name"),
    "deltas": word("mode"),
    "smallest to largest size": lambda line: f"{line['sizes'][0]:,} to {line['sizes'][-1]:,} {line['unit']}",
    "slope": figure("slope"),
    "× the time for twice the size": figure("doubling"),
    "ms at the largest size": lambda line: number(line["seconds"][-1]["median"] * 1e3),
}
IDLE: Columns = {
    "idle pipe": word("state"),
    "pipes": word("pipes"),
    "KiB for each pipe": figure("bytes_per_pipe", 1024),
}
ARGUMENTS: Columns = {
    "deltas": word("mode"),
    "characters of arguments": word("characters"),
    "KiB at the peak": figure("peak_bytes", 1024),
    "bytes for each character": lambda row: number(row["peak_bytes"] / row["characters"]),
}


def stages(results: Results) -> Iterator[str]:
    yield listed(results["stages"]["recipe"], RECIPE, text_columns=3)
    yield (
        "### A stage of your own\n\n"
        "The figures compare a pipe that has an additional stage with the same pipe without this stage. No deltas are\n"
        "joined. Neighbouring built-in stages share one loop. A stage between two built-in stages divides this loop, so it\n"
        "costs as much as an additional generator. [Measure your stage](../how-to/measure-your-stage.md) shows how to find\n"
        "the cost of your stage.\n\n"
        "In the rows with *after*, the additional stage forwards each batch unchanged, and is at this place in the pipe. In\n"
        "the rows with `stages=`, the stage is passed to `transcode` as `stages=[…]`.\n"
    )
    yield listed(results["stages"]["own"], OWN, text_columns=3)
    yield (
        "### SSE framing alone\n\n"
        "These rows measure only how the bytes are divided into frames, without decoding. In inputs with *event lines*, each\n"
        "frame also has a line `event: …`. In inputs with *CRLF*, each line ends with CR and LF.\n"
    )
    yield listed(results["stages"]["framing"], FRAMING, text_columns=2)


def pairs(results: Results) -> Iterator[str]:
    found = {(row["from"], row["to"]): row for row in results["pairs"]["pairs"]}
    names = list(dict.fromkeys(source for source, _ in found))
    yield table(
        ("from ↓ to →", *(f"`{name}`" for name in names)),
        (
            (f"`{source}`", *(number(found[source, target]["times_yardstick"]["median"]) for target in names))
            for source in names
        ),
    )
    encoders = {row["dialect"]: row for row in results["pairs"]["encode"]}
    columns: Columns = {
        "dialect": lambda row: f"`{row['dialect']}`",
        "decoding, µs for a delta": figure("microseconds_per_delta"),
        "decoding, × Chat's time": ratio("times_yardstick"),
        "encoding, µs for a delta": lambda row: number(encoders[row["dialect"]]["microseconds_per_delta"]),
        "encoding, × Chat's time": lambda row: times(encoders[row["dialect"]]["times_yardstick"]),
        "bytes of the stream": word("bytes"),
    }
    yield listed(results["pairs"]["decode"], columns)


def growth(results: Results) -> Iterator[str]:
    yield listed(results["growth"], GROWTH, text_columns=3)


def memory(results: Results) -> Iterator[str]:
    yield listed(results["memory"]["idle"], IDLE)
    yield listed(results["memory"]["arguments"], ARGUMENTS)


def peers(results: Results) -> Iterator[str]:
    """A table for each work; what is wrong or could not be run follows."""
    rows = results["peers"]["rows"]
    for work in dict.fromkeys(row["work"] for row in rows):
        columns: Columns = {
            work: word("input"),
            "reads": word("cut"),
            "library": lambda row: row["peer"] + ("" if row["kind"] == "Python" else f" ({row['kind']})"),
            "version": word("version"),
            "µs for an event": _microseconds,
            "× floor": ratio("times_floor"),
            "× streamkit": ratio("times_streamkit"),
        }
        yield listed([row for row in rows if row["work"] == work], columns, text_columns=4)
    notes = dict.fromkeys(
        f"- {row['peer']}, in *{row['work']}*: {what}"
        for row in rows
        if (what := row["wrong"] or row["error"] or row.get("some_wrong"))
    )
    if notes:
        yield "These results are wrong:\n\n" + "\n".join(notes) + "\n"


def _microseconds(row: Row) -> str:
    if "times_streamkit" not in row:
        return "wrong" if row["wrong"] else "not run"
    return number(row["microseconds_per_event"])


SECTIONS: Mapping[str, Callable[[Results], Iterator[str]]] = {
    "streams": streams,
    "stages": stages,
    "pairs": pairs,
    "growth": growth,
    "memory": memory,
    "peers": peers,
}
