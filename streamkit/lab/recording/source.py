"""Play a recording as a source: the same reads, then the same end.

If the recorded response was interrupted, the source raises the error that a live source would have raised, so that a reader
reports the same. The source never waits; ``now`` is the recorded time of the last read.

Source: observe.md O29.
"""

from __future__ import annotations

from typing import Final

from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)
from streamkit.events import ProviderFailed
from streamkit.http_errors import decode_error
from streamkit.lab.recording import Recording
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The only status of a model's response. Any other status is an error.
OK: Final = 200
#: The error message for a response whose connection was interrupted.
_BROKE: Final = "the connection to the upstream broke"
_FAILURES: Final = {
    "cut": _BROKE,
    "reset": f"{_BROKE}: Connection reset by peer",
    "client_left": "the client disconnected before the response ended",
    "unreachable": "no connection to the upstream could be made",
    "truncated_by_recorder": "the recording ends before the response, which was too large",
    "withheld": "the recording ends before the response, in which a key came next",
}
_TIMEOUTS: Final[dict[str, type[TimedOut]]] = {
    "connect": ConnectTimeout,
    "first_byte": FirstByteTimeout,
    "idle": IdleTimeout,
    "total": TotalTimeout,
}


class RecordedSource:
    """An async iterator over the reads of a recording. After the last read it raises ``failure``, if there is one.

    If the client left after the stream's terminator (``report.terminated``), the stream is complete and nothing is raised.
    If reads were dropped, the iterator yields no read: the remaining ones would be a response that no provider sent.
    """

    def __init__(self, recording: Recording, report: StreamReport | None = None) -> None:
        self.now = 0.0  #: time of the last read that was taken, in seconds since the request was sent
        self.ended_at: float | None = None  #: time of the end, in the same seconds; None until the end is reached
        self._recording = recording
        self._report = report
        self._reads = iter(() if recording.end is not None and recording.end.dropped else recording.reads)

    def __aiter__(self) -> RecordedSource:
        return self

    async def __anext__(self) -> bytes:
        for read in self._reads:
            self.now = read.t
            return read.data
        recording, report = self._recording, self._report
        self.ended_at = self.now if recording.end is None else max(self.now, recording.end.t)
        failed = failure(recording)
        if failed is None or (recording.ending == "client_left" and report is not None and report.terminated):
            raise StopAsyncIteration
        raise failed

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def failure(recording: Recording) -> SourceFailed | None:
    """Return the error that a live source would raise for this end: a timeout or SourceFailed. None for a whole response."""
    end = recording.end
    if end is None:
        return SourceFailed("the recording has no end: its recorder was killed")
    if end.dropped:
        return SourceFailed(f"the recording lacks {end.dropped:,} reads, which came too fast to be written")
    if end.kind == "whole":
        return None
    if end.kind == "shut_down":
        return Interrupted("the server was shutting down")
    kind, _, which = end.kind.partition(":")
    if kind == "timeout" and which in _TIMEOUTS:
        last = recording.reads[-1].t if which == "idle" and recording.reads else 0.0
        return _TIMEOUTS[which](float(f"{end.t - last:.3g}"))
    return SourceFailed(_FAILURES.get(end.kind) or f"the recording ends with {quoted(end.kind)}")


def refusal(recording: Recording, dialect: str) -> ProviderFailed | None:
    """Return the error in a response whose status is not 200, else None. Raises UsageError for an unknown dialect."""
    response = recording.response
    if response is None or response.status == OK:
        return None
    return decode_error(response.status, recording.body, dialect, response.headers)
