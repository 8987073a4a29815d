"""Two pictures of the results, as SVG: what others take for the same work, and time against size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.goals import Results

WORKS = ("parse SSE", "decode and accumulate", "re-encode to Anthropic")
#: The parts of the growth section, and what a size is divided by.
GROWN = {"text": 1, "arguments": 1024, "one line in 1 KiB reads": 1024}


def figure(title: str, machine: Mapping[str, Any]) -> tuple[Figure, Any]:
    """Three panels in a row, with the machine below."""
    made = Figure(figsize=(9, 3.8), layout="constrained")
    axes = made.subplots(1, 3)
    made.suptitle(title, fontsize=11)
    foot = f"{machine['processor']}, {machine['python']}, commit {machine['commit']}, {machine['when'][:10]}"
    made.supxlabel(foot, fontsize=7)
    return made, axes


def peers(results: Results) -> Figure:
    made, panels = figure("Text in reads of 64 KiB: time as a multiple of streamkit's", results["machines"]["peers"])
    for axes, work in zip(panels, WORKS, strict=True):
        rows = [
            row
            for row in results["peers"]["rows"]
            if (row["work"], row["input"], row["cut"]) == (work, "text", "64 KiB") and "times_streamkit" in row
        ]
        rows.sort(key=lambda row: row["times_streamkit"]["median"], reverse=True)
        medians = [row["times_streamkit"]["median"] for row in rows]
        bars = axes.barh([row["peer"] for row in rows], medians)
        axes.bar_label(bars, fmt="%.3g", fontsize=7, padding=2)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlim(min(medians) / 3, 8 * max(medians))
        axes.set_title(work, fontsize=9)
        axes.tick_params(labelsize=7)
    return made


def growth(results: Results) -> Figure:
    made, panels = figure("Time against size, in ms", results["machines"]["growth"])
    for axes, (name, unit) in zip(panels, GROWN.items(), strict=True):
        for line in (line for line in results["growth"] if line["name"] == name):
            sizes = [size / unit for size in line["sizes"]]
            times = [spread["low"] * 1e3 for spread in line["seconds"]]
            axes.loglog(sizes, times, marker="o", label=f"{line['mode'] or 'SSE'}: slope {line['slope']:.2f}")
        axes.loglog(sizes, [times[0] * size / sizes[0] for size in sizes], "k:", label="linear")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("events" if unit == 1 else "KiB", fontsize=8)
        axes.legend(fontsize=7)
        axes.tick_params(labelsize=7)
    return made


#: For each section that has a picture its maker, and what it shows, for those who can't see it.
CHARTS: Mapping[str, tuple[Callable[[Results], Figure], str]] = {
    "growth": (growth, "The time for more and more text, arguments or bytes of one line, next to a line of slope 1"),
    "peers": (
        peers,
        "The time of each library as a multiple of streamkit's time, for parsing, accumulating and re-encoding",
    ),
}


def draw(results: Results, folder: Path) -> None:
    """Write the pictures of the sections that were measured."""
    with mpl.rc_context({"svg.hashsalt": "streamkit"}):
        for name, (make, _) in CHARTS.items():
            if name in results:
                make(results).savefig(folder / f"{name}.svg", metadata={"Date": None})
