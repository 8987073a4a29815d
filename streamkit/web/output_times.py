"""The times of one response's outputs: the first one, the gaps between them, and the stalls.

An output is a read from the upstream in which the model emits something: text, reasoning, a call. Headers, keep-alives, token
counts and stop reasons are not outputs. Its time is the time of the read, which is later than its arrival if a slow client
delayed the read. Everything is counted while the response runs, in 0.3 µs per output, and added to the metrics once at its
end: recording a metric per event would cost as much as three translations of an event (observe.md F32: measured).

Source: observe.md O17, O18, O19.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from streamkit.report import StreamReport

#: The inclusive upper bounds of the gap counters, in seconds. Fast models emit an output every few milliseconds.
GAP_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: The default for the longest gap, in seconds, that is not a stall.
STALL_S: Final = 5.0


class OutputTimes:
    """The outputs of one response. Times are the event loop's, in seconds."""

    def __init__(self, stall_s: float = STALL_S) -> None:
        self.first_at: float | None = None  #: when the first output was read
        self.last_at = 0.0  #: when the last output was read
        self.gaps = [0] * (len(GAP_BOUNDS) + 1)  #: the number of gaps up to each bound; the last: above all
        self.gap_total_s = 0.0
        self.greatest_gap_s = 0.0
        self.stalls = 0  #: the number of gaps above ``stall_s``
        self.record_gap: Callable[[float], None] | None = None  #: called with each gap in seconds
        self._stall_s = stall_s
        self._at: float | None = None  # the time of the last read; None once it is counted
        self._frames = 0

    def read(self, report: StreamReport, at: float) -> None:
        """Note a read at time ``at``. Count the read before: ``report`` now shows whether that one was an output."""
        self.settle(report)
        self._at = at

    def settle(self, report: StreamReport) -> None:
        """Count the last read if it was an output."""
        at = self._at
        if report.frames == self._frames or at is None:  # whole responses are not timed
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
        if gap > self.greatest_gap_s:  # noqa: PLR1730 - `max` would be one more call per output
            self.greatest_gap_s = gap
        if gap > self._stall_s:
            self.stalls += 1
        if self.record_gap is not None:
            self.record_gap(gap)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return 0 if self.first_at is None else 1 + sum(self.gaps)

    @property
    def median_gap_s(self) -> float | None:
        """The bound that half of the gaps do not exceed. None without gaps, or if they exceed all bounds."""
        half, passed = sum(self.gaps) / 2, 0
        for bound, count in zip(GAP_BOUNDS, self.gaps, strict=False):
            passed += count
            if passed and passed >= half:
                return bound
        return None
