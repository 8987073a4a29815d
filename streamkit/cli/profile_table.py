"""``inspect --profile``: the time of each stage, as a table and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkit.cli.streams import visible
from streamkit.report import StageTiming

HEADINGS = ("stage", "ms", "share", "items in", "items out", "µs an item")


def table(timings: Sequence[StageTiming]) -> str:
    """Return the table and an empty line. Shares exclude the wait for the source; time per item counts items that went in."""
    source, *stages = timings
    work_s = sum(row.seconds for row in stages)
    waited = (f"{source.name} (waiting)", _ms(source), "", "", f"{source.items_out:,}", "")
    rows = [HEADINGS, waited, *(_cells(row, work_s) for row in stages)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"  {_aligned(row, widths)}\n" for row in rows) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line, with the name aligned to the left and the numbers to the right."""
    name, *numbers = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join([name.strip().ljust(widths[0]), *numbers]).rstrip()


def profile_of(timings: Sequence[StageTiming]) -> list[dict[str, Any]]:
    """Return the rows as JSON values, with seconds rounded to nanoseconds."""
    return [
        {"stage": row.name, "seconds": round(row.seconds, 9), "items_in": row.items_in, "items_out": row.items_out}
        for row in timings
    ]


def _cells(row: StageTiming, work_s: float) -> tuple[str, ...]:
    share = f"{row.seconds / work_s:.0%}" if work_s else ""
    per_item = f"{1e6 * row.seconds / row.items_in:,.1f}" if row.items_in else ""
    return visible(row.name), _ms(row), share, f"{row.items_in:,}", f"{row.items_out:,}", per_item


def _ms(row: StageTiming) -> str:
    return f"{1000 * row.seconds:,.3f}"
