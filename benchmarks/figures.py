"""What every chart is made of: a figure with its foot, colours and markers, axes; and the check that texts keep apart.

The colours are Okabe and Ito's, which colour-blind readers can tell apart; a marker of its own goes with each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from benchmarks.goals import JOINED, UNJOINED, Results

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#767676"
#: Colour and marker of what is compared with itself, and of who else there is.
STYLES: Mapping[str, tuple[str, str]] = {
    JOINED: (BLUE, "o"),
    UNJOINED: (ORANGE, "s"),
    "streamkit": (BLACK, "D"),
    "Python": (BLUE, "o"),
    "Rust core": (VERMILION, "^"),
    "Node": (GREEN, "s"),
}
SERIES = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (VERMILION, "v", ":"), (PURPLE, "D", "-"))
INCHES = 8.0
FOOT_INCHES = 0.22
DPI = 144
#: Two texts that share less than so many pixels do not lie on one another.
TOUCH = 1.0


class Overlap(Exception):
    """Two texts of a chart lie on one another, or one leaves the picture."""


def figure(height: float, panels: int = 1, *, title: str, results: Results, section: str, **options: Any) -> Any:
    """A figure with its axes, its title and its foot."""
    made = Figure(figsize=(INCHES, height), dpi=DPI, layout="constrained")
    # The foot has a part of its own: a legend "outside" goes to the edge of its part, over whatever is there.
    top, bottom = made.subfigures(2, 1, height_ratios=[height - FOOT_INCHES, FOOT_INCHES])
    axes = top.subplots(1, panels, squeeze=False, **options)[0]
    top.suptitle(title, fontsize=11, fontweight="bold")
    bottom.text(0.5, 0.4, foot(results["machines"][section]), fontsize=7, color=GREY, ha="center")
    for one in axes:
        one.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.6)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=8)
    return made, axes if panels > 1 else axes[0]


def foot(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['python']}, "
        f"orjson {machine['packages']['orjson']}, commit {machine['commit']}, {machine['when'][:10]}"
    )


def legend(axes: Axes, columns: int) -> None:
    """Below the axes, where nothing is drawn."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def spread_points(axes: Axes, spreads: Sequence[Mapping[str, float]], places: Sequence[float], **style: Any) -> None:
    """Medians with their quartiles, lying."""
    middles = [spread["median"] for spread in spreads]
    errors = [
        [spread["median"] - spread["low"] for spread in spreads],
        [spread["high"] - spread["median"] for spread in spreads],
    ]
    axes.errorbar(middles, places, xerr=errors, linestyle="none", markersize=6, capsize=2, linewidth=1, **style)


def plain(axis: Any, ticks: Sequence[float]) -> None:
    """A logarithmic axis with these ticks, written as plain numbers."""
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def decades(values: Sequence[float]) -> list[float]:
    """1, 10, 100, … around the values; with 3 and 30 where they are few."""
    low, high = min(values), max(values)
    steps = [10.0**power for power in range(-7, 8)]
    if high / low < 300:
        steps = sorted([*steps, *(3 * step for step in steps)])
    return [step for step in steps if low / 3.4 <= step <= high * 3.4]


def texts(made: Figure) -> Iterator[Text]:
    """All texts that are drawn: an axis also has labels for ticks beyond its ends, which are not."""
    hidden: set[int] = set()
    for axes in made.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            hidden |= {
                id(label)
                for tick in ticks
                for label in (tick.label1, tick.label2)
                if not low <= tick.get_loc() <= high or not label.get_visible()
            }
    for text in made.findobj(Text):
        if id(text) not in hidden and text.get_visible() and text.get_text().strip():
            yield text


def check(made: Figure) -> None:
    """Raises Overlap for a text that lies on another one or leaves the picture."""
    made.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(made)]
    for words, box in boxes:
        if box.x0 < -TOUCH or box.y0 < -TOUCH or box.x1 > made.bbox.x1 + TOUCH or box.y1 > made.bbox.y1 + TOUCH:
            raise Overlap(f"{words!r} leaves the picture")
    for (words, one), (others, other) in combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        if wide > TOUCH and high > TOUCH:
            raise Overlap(f"{words!r} lies on {others!r}")
