"""What the machines that read the text of an answer share: batches of events, and the end of reading at a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkit.errors import StreamError
from streamkit.events import WireEvent
from streamkit.report import BatchMarks, StreamReport
from streamkit.tool_calls.delta_run import DeltaRun


class InTextMachine:
    """Machine: ``list[WireEvent]`` to ``list[WireEvent]``, and runs of them if they are taken."""

    gives_runs = False

    def __init__(self, report: StreamReport | None) -> None:
        self.fault: StreamError | None = None
        self.behind = 0  #: of the batch at which it failed, the events behind the one at fault
        self._report = report if report is not None else StreamReport()
        self._marks: BatchMarks | None = None  # of the last batch

    @property
    def takes_runs(self) -> bool:
        """Runs of deltas pass through."""
        return self.gives_runs

    def feed(self, events: list[Any], /) -> list[WireEvent]:
        out: list[Any] = []
        ends: list[int] = []
        self._marks = self._report.marks = BatchMarks(ends)
        more = 0  # a run is one item of ``out``, and so many events more
        left = self._apart(events)
        try:
            for event in left:
                self.take(event, out)
                if type(event) is DeltaRun:
                    begin, size = len(out) + more - 1, len(event.texts)
                    ends.extend(range(begin + 1, begin + size + 1))
                    more += size - 1
                else:
                    ends.append(len(out) + more)
        except StreamError as error:
            self._report.fails(error)
            self.fault = error
            self.failed(out)
            self.behind = sum(len(one.texts) if type(one) is DeltaRun else 1 for one in left)
        self._report.marks = None
        return out

    def finish(self) -> list[WireEvent]:
        self._marks = None
        out: list[Any] = []
        self.release(out)
        return out

    def abandon(self) -> list[WireEvent]:
        return self.finish()

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        return 0 if self._marks is None else self._marks.take_back(self._report, behind)

    def _apart(self, events: list[Any]) -> Iterator[Any]:
        """Events, and one by one the deltas of runs whose text is looked at: of each only what came before it may decide."""
        for event in events:
            if type(event) is DeltaRun and self.reads(event):
                yield from event.deltas()
            else:
                yield event

    # What a machine defines.

    def reads(self, run: DeltaRun) -> bool:
        """Whether the text of a run is looked at; else the run passes."""
        raise NotImplementedError

    def take(self, event: Any, out: list[Any]) -> None:
        """Read one event, and append what comes of it; a run passes behind that."""
        raise NotImplementedError

    def failed(self, out: list[Any]) -> None:
        """The reading failed: append what came of the event at fault until then."""

    def release(self, out: list[Any]) -> None:
        """Nothing more comes: append what is held."""
        raise NotImplementedError
