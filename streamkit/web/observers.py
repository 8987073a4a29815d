"""What observes the bytes of a response: a recording of its exchange, a tap, and the times of its outputs.

Without an observer, each read and each write costs one check. An observer does not change the response: it gets the bytes when
they were read or are about to be written, and must neither wait nor raise.

Source: observe.md §D, O17, O18, O19, O24, O39, O40.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport


class ExchangeRecording(Protocol):
    """Receives one exchange and stores it (``lab/recording/recorder.py``)."""

    def request(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        """The request is sent. ``target`` is its path and query, percent-encoded as they are sent."""

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The headers of the response have arrived."""

    def read(self, data: bytes) -> None:
        """These bytes of the body were read."""

    def unread(self, data: bytes) -> None:
        """These bytes were put back and will be read again."""

    def end(self, kind: str) -> None:
        """The exchange is over. Only the first call counts."""

    def again(self) -> ExchangeRecording:
        """Return the recording of another exchange with the same server."""


# how an exchange ended: the values of ``recording.End.kind``
WHOLE: Final = "whole"
#: The end of an exchange that our side closed: the client disconnected, or the response could not be used.
CLIENT_LEFT: Final = "client_left"
SHUT_DOWN: Final = "shut_down"
UNREACHABLE: Final = "unreachable"
TIMEOUT: Final = (
    "timeout:"  #: the end of an exchange that a timeout closed begins with this; the name of the timeout follows
)
_TIMERS: Final[Mapping[type[TimedOut], str]] = {
    ConnectTimeout: "connect",
    FirstByteTimeout: "first_byte",
    IdleTimeout: "idle",
    TotalTimeout: "total",
}


def end_of(error: BaseException, *, answered: bool = True) -> str:
    """Return how an exchange ended whose reading raised ``error``. ``answered``: the headers of a response had arrived."""
    if isinstance(error, StopAsyncIteration):
        return WHOLE
    if isinstance(error, TimedOut):
        return TIMEOUT + _TIMERS.get(type(error), "total")
    if isinstance(error, Interrupted):
        return SHUT_DOWN if error.end == "shut_down" else CLIENT_LEFT
    if not isinstance(error, SourceFailed):
        return CLIENT_LEFT
    if not answered:
        return UNREACHABLE
    return "reset" if error.is_reset else "cut"


class Tap(Protocol):
    """Observes one response. It gets no headers and no requests."""

    def attempt(self, upstream: str, dialect: str, options: ReadOptions, /) -> None:
        """The upstream of this name is tried from now on. Its response is read with these options."""

    def read(self, chunk: bytes, /) -> None:
        """These bytes were read from the present upstream."""

    def unread(self, data: bytes, /) -> None:
        """These bytes were put back and will be read again."""

    def wrote(self, data: bytes, /, *, keep_alive: bool = False) -> None:
        """These bytes are about to be written to the client."""

    def leave_out(self, size: int, /) -> None:
        """So many bytes were read or written without a call, because of a limit."""


#: The inclusive upper bounds of the gap counters, in seconds. Fast models emit an output every few milliseconds.
GAP_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
STALL_S: Final = 5.0  #: the default for the longest gap, in seconds, that is not a stall


class OutputTimes:
    """The outputs of one response: the first one, their gaps, and the stalls. Times are the event loop's, in seconds.

    An output is a read from the upstream in which the model emits something: text, reasoning, a call. Headers, keep-alives,
    token counts and stop reasons are not outputs. Its time is the time of the read, which is later than its arrival if a slow
    client delayed the read. Everything is counted while the response runs, in 0.3 µs per output, and added to the metrics once
    at its end: recording a metric per event would cost as much as three translations of an event (observe.md F32: measured).
    """

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
