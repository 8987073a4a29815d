"""When the outputs of one answer came: its first, the gaps between them, and where it stalled.

An output is a read of the upstream in which the model says something: text, reasoning, a call. Headers, keep-alives, counts
and reasons to stop are none. Its time is when it was read, which is later than it arrived where a slow client was waited for.
All is counted in place while the answer runs, in 0.3 µs an output, and added to metrics once at its end: an observation an
event would cost as much as three of its translations (observe.md F32).

Source: observe.md O17, O18, O19.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from streamkit.report import StreamReport

#: Bounds of the gaps that are counted, in seconds, each included: fast models write an output every few milliseconds.
GAP_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: A gap above it, in seconds, is a stall, if nothing else is said.
STALL_S: Final = 5.0


class OutputTimes:
    """The outputs of one answer. Times are the event loop's, in seconds."""

    def __init__(self, stall_s: float = STALL_S) -> None:
        self.first_at: float | None = None  #: when the first output was read
        self.last_at = 0.0  #: the same of the last one
        self.gaps = [0] * (len(GAP_BOUNDS) + 1)  #: by the first bound that they do not pass, or none
        self.gap_total_s = 0.0
        self.greatest_gap_s = 0.0
        self.stalls = 0  #: gaps above ``stall_s``
        self.record_gap: Callable[[float], None] | None = (
            None  #: is handed each gap; None: nobody wants them one by one
        )
        self._stall_s = stall_s
        self._at: float | None = None  # when was read what has not been counted
        self._frames = 0

    def read(self, report: StreamReport, at: float) -> None:
        """Something was read at a time. What was read before it has gone through the pipe of ``report`` by now."""
        self.settle(report)
        self._at = at

    def settle(self, report: StreamReport) -> None:
        """Count what was read last, if it was an output."""
        at = self._at
        if report.frames == self._frames or at is None:  # of a whole answer nothing is timed
            return
        self._frames = report.frames
        is_output, report.has_output = report.has_output, False
        if not is_output:
            return
        if self.first_at is None:
            self.first_at = self.last_at = at
            return
        gap = at - self.last_at
        self.last_at = at
        self.gaps[bisect_left(GAP_BOUNDS, gap)] += 1
        self.gap_total_s += gap
        if gap > self.greatest_gap_s:  # noqa: PLR1730 - `max` is a call more, for each output
            self.greatest_gap_s = gap
        if gap > self._stall_s:
            self.stalls += 1
        if self.record_gap is not None:
            self.record_gap(gap)

    @property
    def outputs(self) -> int:
        """How many there were."""
        return 0 if self.first_at is None else 1 + sum(self.gaps)

    @property
    def median_gap_s(self) -> float | None:
        """The bound that half of the gaps do not pass; None where there are none, or it is above all bounds."""
        half, passed = sum(self.gaps) / 2, 0
        for bound, count in zip(GAP_BOUNDS, self.gaps, strict=False):
            passed += count
            if passed and passed >= half:
                return bound
        return None
