"""Results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmarks.goals import Results, judged
from benchmarks.streams import STREAMS_WORK

Row = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table whose first ``text_columns`` columns are words and whose others are figures."""
    marks = ["---" if column < text_columns else "---:" for column in range(len(head))]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def number(value: float) -> str:
    """Two significant places or three: what a shared machine can tell."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(spread: Row) -> str:
    """A ratio with its quartiles."""
    return f"{number(spread['median'])} ({number(spread['low'])}–{number(spread['high'])})"


def goals(results: Results) -> str:
    rows = (
        (
            one.goal.name,
            one.goal.unit,
            f"{'≥' if one.goal.at_least else '≤'} {one.goal.limit:g}",
            "not measured" if one.measured is None else number(one.measured),
            "yes" if one.held else "**no**",
        )
        for one in judged(results)
    )
    return table(("goal", "unit", "limit", "measured", "held"), rows, text_columns=2)


def streams(results: Results) -> str:
    """Each pair, beside the best peer where one was measured."""
    peers = {
        (row["input"], row["work"]): row
        for row in results.get("peers", {}).get("rows", ())
        if row["work"].startswith(STREAMS_WORK) and not row["peer"].startswith("streamkit")
    }
    rows = []
    for row in results["streams"]:
        pair = f"{row['from']} → {row['to']}"
        other = peers.get((row["source"], f"{STREAMS_WORK}{pair}")) if row["cut"] == "per event" else None
        beside = times(other["times_streamkit"]) if other is not None and "times_streamkit" in other else ""
        rows.append(
            (
                row["source"],
                pair,
                row["cut"],
                f"{row['streams']}, {row['events']:,}",
                times(row["times_floor"]),
                number(row["microseconds_per_stream"]),
                beside,
            )
        )
    head = ("streams", "pair", "reads", "streams, events", "× floor", "µs a stream", "llm-rosetta, × streamkit")
    return _faster(list(peers.values())) + table(head, rows, text_columns=3)


def _faster(rows: Sequence[Row]) -> str:
    """Say where the peer is faster."""
    measured = [row for row in rows if "times_streamkit" in row]
    faster = [row for row in measured if row["times_streamkit"]["median"] < 1]
    if not faster:
        return ""
    pairs = ", ".join(f"{row['work'].removeprefix(STREAMS_WORK)} ({row['input']})" for row in faster)
    return f"LLM-Rosetta is faster in {len(faster)} of {len(measured)}: {pairs}.\n\n"


def recipe(results: Results) -> str:
    rows = (
        (
            row["input"],
            row["cut"],
            row["mode"],
            times(row["times_floor"]),
            number(row["microseconds_per_event"]),
            f"{row['events_per_second']:,.0f}",
            number(row["megabytes_per_second"]),
        )
        for row in results["stages"]["recipe"]
    )
    return table(("input", "reads", "deltas", "× floor", "µs an event", "events/s", "MB/s"), rows, text_columns=3)


KINDS = ("machine", "stage")


def parts(results: Results) -> str:
    """Machines and stages, for each input and cut."""
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in results["stages"]["parts"]:
        found.setdefault((row["input"], row["cut"], row["mode"], row["part"]), {})[row["kind"]] = row
    rows = (
        (*key, *(times(kinds[kind]["times_floor"]) if kind in kinds else "" for kind in KINDS))
        for key, kinds in found.items()
    )
    head = ("input", "reads", "deltas", "part", "machine, × floor", "stage, × floor")
    return table(head, rows, text_columns=4)


def framing(results: Results) -> str:
    rows = (
        (row["input"], row["cut"], times(row["times_floor"]), number(row["microseconds_per_event"]),
         number(row["megabytes_per_second"]))
        for row in results["stages"]["framing"]
    )  # fmt: skip
    return table(("input", "reads", "× floor", "µs an event", "MB/s"), rows, text_columns=2)


def pairs(results: Results) -> str:
    found = {(row["from"], row["to"]): row for row in results["pairs"]["pairs"]}
    names = list(dict.fromkeys(source for source, _ in found))
    rows = (
        (f"`{source}`", *(number(found[source, target]["times_yardstick"]["median"]) for target in names))
        for source in names
    )
    return table(("from ↓ to →", *(f"`{name}`" for name in names)), rows)


def dialects(results: Results) -> str:
    decoders = {row["dialect"]: row for row in results["pairs"]["decode"]}
    encoders = {row["dialect"]: row for row in results["pairs"]["encode"]}
    rows = (
        (f"`{name}`", number(row["microseconds_per_delta"]), times(row["times_yardstick"]),
         number(encoders[name]["microseconds_per_delta"]), times(encoders[name]["times_yardstick"]), f"{row['bytes']:,}")
        for name, row in decoders.items()
    )  # fmt: skip
    head = ("dialect", "decoding, µs a delta", "× Chat's", "encoding, µs a delta", "× Chat's", "bytes of the stream")
    return table(head, rows)


def growth(results: Results) -> str:
    lines = [line for section in ("text", "arguments", "lines") for line in results["growth"][section]]
    rows = (
        (line["name"], f"{line['sizes'][0]:,} to {line['sizes'][-1]:,} {line['unit']}", f"{line['slope']:.2f}",
         f"{line['doubling']:.2f}", number(line["seconds"][-1]["median"] * 1e3))
        for line in lines
    )  # fmt: skip
    return table(("what grows", "from, to", "slope", "× a doubling", "ms at the end"), rows, text_columns=2)


def accumulating(results: Results) -> str:
    rows = (
        (row["mode"], f"{row['characters']:,}", number(row["milliseconds"]),
         times(row["times_list_join_loads"]))
        for row in results["growth"]["accumulating"]
    )  # fmt: skip
    return table(("deltas", "characters", "ms", "× list, join, loads"), rows, text_columns=1)


def memory(results: Results) -> Iterator[str]:
    found = results["memory"]
    yield table(
        ("idle pipe", "pipes", "KiB each"),
        ((state["state"], f"{state['pipes']:,}", number(state["bytes_per_pipe"] / 1024)) for state in found["idle"]),
    )
    yield table(
        ("one stream of text, 1.2 MB, reads", "KiB at the peak"),
        ((row["cut"], number(row["peak_bytes"] / 1024)) for row in found["streams"]),
    )
    yield table(
        ("deltas", "characters of arguments", "KiB at the peak", "bytes a character"),
        ((row["mode"], f"{row['characters']:,}", number(row["peak_bytes"] / 1024),
          number(row["peak_bytes"] / row["characters"])) for row in found["arguments"]),
    )  # fmt: skip
    yield table(
        ("text towards", *(f"{size / 2**20:g} MiB of stream: KiB" for size in found["towards"][0]["bytes"])),
        ((f"`{row['to']}`", *(number(peak / 1024) for peak in row["peak_bytes"])) for row in found["towards"]),
    )


def peers(results: Results) -> Iterator[str]:
    """A table for each work; what is wrong or could not be run stands behind it."""
    rows = results["peers"]["rows"]
    for work in dict.fromkeys(row["work"] for row in rows):
        found = [row for row in rows if row["work"] == work]
        yield table(
            (work, "reads", "who", "version", "µs an event", "× floor", "× streamkit"),
            (_peer(row) for row in found),
            text_columns=4,
        )
    notes = dict.fromkeys(
        f"- {row['peer']}, {row['work']}: {what}"
        for row in rows
        if (what := row["wrong"] or row["error"] or row.get("some_wrong"))
    )
    if notes:
        yield "\n".join(notes) + "\n"


def _peer(row: Row) -> Sequence[str]:
    kind = "" if row["kind"] == "Python" else f" ({row['kind']})"
    head = (row["input"], row["cut"], f"{row['peer']}{kind}", row["version"])
    if "times_streamkit" not in row:
        return (*head, "wrong" if row["wrong"] else "not run", "", "")
    floor = times(row["times_floor"]) if "times_floor" in row else ""
    return (*head, number(row["microseconds_per_event"]), floor, times(row["times_streamkit"]))


SECTIONS: dict[str, Sequence[Callable[[Results], str | Iterator[str]]]] = {
    "streams": (streams,),
    "stages": (recipe, parts, framing),
    "pairs": (pairs, dialects),
    "growth": (growth, accumulating),
    "memory": (memory,),
    "peers": (peers,),
}


def rendered(make: Callable[[Results], str | Iterator[str]], results: Results) -> str:
    found = make(results)
    return found if isinstance(found, str) else "\n".join(found)
