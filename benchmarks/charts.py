"""Results as pictures, SVG and PNG.

Each is readable by itself: a title that says what is compared, units on the axes, markers besides colours, the machine at the
foot. Before one is written its texts are measured: none may lie on another or leave the picture. In the SVG they are shapes,
so that no other font moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.figures import BLACK, GREY, SERIES, STYLES, check, decades, figure, legend, plain, spread_points
from benchmarks.goals import GOALS, JOINED, UNJOINED, Results
from benchmarks.tables import number


def recipe(results: Results) -> Figure:
    rows = [row for row in results["stages"]["recipe"] if row["cut"] == "64 KiB"]
    names = list(dict.fromkeys(row["input"] for row in rows))
    made, axes = figure(
        4.2,
        title="Chat to Anthropic, bytes to bytes, in reads of 64 KiB, deltas joined and not",
        results=results,
        section="stages",
    )
    for mode, shift in ((JOINED, -0.14), (UNJOINED, 0.14)):
        found = {row["input"]: row["times_floor"] for row in rows if row["mode"] == mode}
        colour, marker = STYLES[mode]
        places = [names.index(name) + shift for name in found]
        label = "joined (the default)" if mode == JOINED else mode
        spread_points(axes, list(found.values()), places, color=colour, marker=marker, label=label)
        goals = {goal.name.partition(": ")[2]: goal.limit for goal in GOALS if "64 KiB reads: " in goal.name}
        limits = [(goals[f"{name}, {mode}"], names.index(name) + shift) for name in names if f"{name}, {mode}" in goals]
        axes.plot(
            *zip(*limits, strict=True), linestyle="none", marker="|", markersize=11, markeredgewidth=2, color=colour,
            label=f"goal, {mode}",
        )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(1, color=GREY, linewidth=1.2, linestyle=":", label="orjson.loads alone: 1")
    axes.set_xlim(0, 1.06 * axes.get_xlim()[1])
    axes.set_xlabel("time, as a multiple of orjson.loads of the same events alone (median, quartiles)", fontsize=9)
    legend(axes, 5)
    return made


def reads(results: Results) -> Figure:
    rows = [row for row in results["stages"]["recipe"] if row["mode"] == JOINED]
    cuts = list(dict.fromkeys(row["cut"] for row in rows))
    made, axes = figure(4.0, title="What the size of reads costs: Chat to Anthropic", results=results, section="stages")
    values = []
    for (colour, marker, line), name in zip(
        SERIES, dict.fromkeys(row["input"] for row in rows if row["cut"] != "64 KiB"), strict=False
    ):
        found = {row["cut"]: row["times_floor"]["median"] for row in rows if row["input"] == name}
        values += list(found.values())
        axes.plot(
            range(len(cuts)), [found[cut] for cut in cuts], color=colour, marker=marker, linestyle=line, label=name
        )
    axes.set_yscale("log")
    plain(axes.yaxis, decades(values))
    axes.set_xticks(range(len(cuts)), cuts)
    axes.set_xlabel("reads", fontsize=9)
    axes.set_ylabel("times orjson.loads of the events (log)", fontsize=9)
    legend(axes, 3)
    return made


PARTS = ("parse", "decode", "accumulate", "check", "encode")
PART_LABELS = {"machine": "machine, without a loop", "stage": "stage, in a pipe of its own"}


def parts(results: Results) -> Figure:
    rows = [row for row in results["stages"]["parts"] if (row["cut"], row["mode"]) == ("64 KiB", JOINED)]
    names = list(dict.fromkeys(row["input"] for row in rows))
    made, axes = figure(
        4.4, len(names), title="Each part of the recipe alone, in reads of 64 KiB, deltas joined", results=results,
        section="stages", sharey=True, sharex=True,
    )  # fmt: skip
    for one, name in zip(axes, names, strict=True):
        order = sorted(dict.fromkeys(row["part"] for row in rows), key=PARTS.index)
        for kind, shift, (colour, marker, _) in zip(PART_LABELS, (-0.27, 0.0, 0.27), SERIES, strict=False):
            found = {row["part"]: row["times_floor"] for row in rows if (row["input"], row["kind"]) == (name, kind)}
            label = PART_LABELS[kind]
            places = [order.index(part) + shift for part in found]
            spread_points(one, list(found.values()), places, color=colour, marker=marker, label=label)
        one.set_yticks(range(len(order)), order)
        one.set_title(name, fontsize=9)
        one.set_xscale("log")
        plain(one.xaxis, decades([row["times_floor"]["median"] for row in rows]))
        one.set_xlabel("times orjson.loads of the events (log)", fontsize=9)
    axes[0].invert_yaxis()
    legend(axes[0], 3)
    return made


def pairs(results: Results) -> Figure:
    found = {(row["from"], row["to"]): row["times_yardstick"]["median"] for row in results["pairs"]["pairs"]}
    names = list(dict.fromkeys(source for source, _ in found))
    made, axes = figure(
        5.4, title="Every dialect into every other, as multiples of Chat to Anthropic", results=results, section="pairs"
    )
    grid = [[found[source, target] for target in names] for source in names]
    image = axes.imshow(grid, cmap="cividis", vmin=0, aspect="auto")
    limit = max(max(line) for line in grid)
    for y, line in enumerate(grid):
        for x, value in enumerate(line):
            colour = "white" if value < 0.55 * limit else "black"
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
    axes.grid(visible=False)
    axes.set_xticks(range(len(names)), [name.replace("-", "-\n") for name in names], fontsize=7)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("to", fontsize=9)
    axes.set_ylabel("from", fontsize=9)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("times Chat to Anthropic, the same response", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return made


def growth(results: Results) -> Figure:
    sections = (("text", "text"), ("arguments", "arguments of one call"), ("lines", "one line, framing alone"))
    made, axes = figure(3.9, 3, title="Time against size", results=results, section="growth")
    units = {"events": 1, "characters": 1024, "bytes": 1024}
    words = {"events": "events", "characters": "KiB of characters", "bytes": "KiB"}
    for one, (section, title) in zip(axes, sections, strict=True):
        lines = results["growth"][section]
        for (colour, marker, style), line in zip(SERIES, lines, strict=False):
            xs = [size / units[line["unit"]] for size in line["sizes"]]
            ys = [spread["low"] * 1e3 for spread in line["seconds"]]
            label = f"{line.get('mode') or 'SSE, 1 KiB reads'}: slope {line['slope']:.2f}"
            one.plot(xs, ys, color=colour, marker=marker, linestyle=style, markersize=5, label=label)
        linear = [ys[0] * x / xs[0] for x in xs]
        one.plot(xs, linear, color=GREY, linestyle=(0, (1, 2)), linewidth=1.2, label="linear: slope 1")
        one.set_xscale("log")
        one.set_yscale("log")
        plain(one.xaxis, decades(xs)[:: 1 if len(decades(xs)) < 6 else 2])
        plain(one.yaxis, decades([*ys, *linear]))
        one.set_title(title, fontsize=9)
        one.set_xlabel(f"{words[lines[0]['unit']]} (log)", fontsize=9)
        one.legend(fontsize=7, frameon=False, loc="upper left")
        one.set_ylim(top=max([*ys, *linear]) * 12)  # room for the legend
    axes[0].set_ylabel("ms (log)", fontsize=9)
    return made


def memory(results: Results) -> Figure:
    rows = results["memory"]["arguments"]
    made, axes = figure(
        4.0, title="Memory of one open stream, Chat to Anthropic, by the size of a call's arguments", results=results,
        section="memory",
    )  # fmt: skip
    sizes = sorted({row["characters"] for row in rows})
    values = []
    for mode in (JOINED, UNJOINED):
        found = {row["characters"]: row["peak_bytes"] / 1024 for row in rows if row["mode"] == mode}
        colour, marker = STYLES[mode]
        style = "-" if mode == JOINED else "--"
        axes.plot([size / 1024 for size in sizes], [found[size] for size in sizes], color=colour, marker=marker,
                  linestyle=style, label=f"peak, deltas {mode}")  # fmt: skip
        values += list(found.values())
    axes.plot([size / 1024 for size in sizes], [size / 1024 for size in sizes], color=GREY, linestyle=":",
              label="the arguments themselves")  # fmt: skip
    axes.plot([1024], [5 * 1024], linestyle="none", marker="_", markersize=16, markeredgewidth=2.5, color=BLACK,
              label="goal at 1 MiB: 5 MiB")  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.xaxis, [16, 64, 256, 1024, 4096])
    plain(axes.yaxis, decades([*values, 16]))
    axes.set_xlabel("KiB of arguments in fragments of 14 characters (log)", fontsize=9)
    axes.set_ylabel("KiB above the start (log)", fontsize=9)
    legend(axes, 4)
    return made


def peers(results: Results) -> Figure:
    works = (("parse SSE", "text"), ("decode and accumulate", "text"), ("re-encode to Anthropic", "text"))
    rows = results["peers"]["rows"]
    made, axes = figure(
        3.6, 3, title="The same bytes in, the same work: text, in reads of 64 KiB", results=results, section="peers"
    )
    kinds: dict[str, Any] = {}
    for one, (work, name) in zip(axes, works, strict=True):
        found = [row for row in rows if (row["work"], row["input"], row["cut"]) == (work, name, "64 KiB")]
        found = sorted(
            (row for row in found if "times_streamkit" in row), key=lambda row: row["times_streamkit"]["median"]
        )
        for place, row in enumerate(found):
            kind = "streamkit" if row["peer"].startswith("streamkit") else row["kind"]
            colour, marker = STYLES[kind]
            spread = row["times_streamkit"]
            spread_points(one, [spread], [place], color=colour, marker=marker, label=kind)
            one.annotate(number(spread["median"]), (spread["high"], place), textcoords="offset points", xytext=(7, 0),
                         va="center", fontsize=8)  # fmt: skip
            kinds.setdefault(kind, one.containers[-1])
        one.axvline(1, color=BLACK, linewidth=0.8)
        one.set_xscale("log")
        values = [row["times_streamkit"]["median"] for row in found]
        plain(one.xaxis, [tick for tick in (0.1, 1, 10, 100, 1000) if min(values) / 9 < tick <= max(values) * 2])
        one.set_xlim(min(values) / 1.6, max(values) * 5)
        one.set_yticks(range(len(found)), [_who(row) for row in found])
        one.invert_yaxis()
        one.tick_params(axis="y", labelsize=7)
        one.set_title(work, fontsize=9)
        one.set_xlabel("times streamkit (log)", fontsize=9)
    axes[0].figure.legend(
        list(kinds.values()), list(kinds), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    return made


def _who(row: Mapping[str, Any]) -> str:
    version = row["version"] if not row["version"].count(".dev") else ""
    return f"{row['peer'].replace('martian-', '')}\n{version}" if version else row["peer"].replace(", ", ",\n")


def partial(results: Results) -> Figure:
    rows = [row for row in results["peers"]["rows"] if row["work"] == "look at growing arguments"]
    made, axes = figure(
        3.8,
        title="The value so far of growing arguments, looked at after every fragment",
        results=results,
        section="peers",
    )
    values: list[float] = []
    for (colour, marker, style), peer in zip(
        ((BLACK, "D", "-"), *SERIES[3:], *SERIES[:2]), dict.fromkeys(row["peer"] for row in rows), strict=False
    ):
        found = [row for row in rows if row["peer"] == peer and "microseconds_per_event" in row]
        if not found:
            continue
        xs = [int(row["input"].split()[0].replace(",", "")) / 1024 for row in found]
        ys = [row["microseconds_per_event"] for row in found]
        kind = "" if found[0]["kind"] == "Python" else f" ({found[0]['kind']})"
        axes.plot(xs, ys, color=colour, marker=marker, linestyle=style, label=f"{peer}{kind}")
        values += ys
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.xaxis, sorted(set(xs)))
    plain(axes.yaxis, decades(values))
    axes.set_xlabel("KiB of arguments in the end, in fragments of 14 characters (log)", fontsize=9)
    axes.set_ylabel("µs a fragment, on the average (log)", fontsize=9)
    legend(axes, 4)
    return made


#: For each chart the section of the results that it needs, its maker, and what it shows, for those who can't see it.
CHARTS: Mapping[str, tuple[str, Callable[[Results], Figure], str]] = {
    "recipe": (
        "stages",
        recipe,
        "Time of the whole recipe for each input as a multiple of the floor, beside the goals",
    ),
    "reads": (
        "stages",
        reads,
        "Time of the whole recipe as a multiple of the floor, for reads from 64 KiB to one byte",
    ),
    "parts": ("stages", parts, "Time of each machine and each stage alone as a multiple of the floor"),
    "pairs": (
        "pairs",
        pairs,
        "A table of eight by eight dialects in colours, each cell a multiple of Chat to Anthropic",
    ),
    "growth": ("growth", growth, "Time against the size of text, arguments and one line, beside a line of slope one"),
    "memory": (
        "memory",
        memory,
        "Peak of memory against the size of a call's arguments, joined and not, beside the goal",
    ),
    "peers": (
        "peers",
        peers,
        "Time of each peer as a multiple of streamkit's, for parsing, accumulating and re-encoding",
    ),
    "partial": (
        "peers",
        partial,
        "Microseconds a look at growing arguments against their size, for streamkit and others",
    ),
}


def draw(results: Results, folder: Path) -> list[str]:
    """Write the charts of the sections that were measured; their names."""
    drawn = []
    with mpl.rc_context({"svg.hashsalt": "streamkit", "font.family": "DejaVu Sans"}):
        for name, (section, make, _) in CHARTS.items():
            if section in results:
                made = make(results)
                check(made)
                made.savefig(folder / f"{name}.svg", metadata={"Date": None})
                made.savefig(folder / f"{name}.png", metadata={"Software": None})
                drawn.append(name)
    return drawn
