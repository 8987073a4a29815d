"""The base of machines that read the text of a response."""

from __future__ import annotations

from typing import Any

from streamkit.errors import StreamError
from streamkit.events import WireEvent
from streamkit.machines import Link
from streamkit.report import StreamReport


class InTextMachine(Link):
    """A machine from wire events to wire events."""

    reads_texts = True

    def __init__(self, report: StreamReport | None) -> None:
        self._report = report if report is not None else StreamReport()

    def push(self, event: WireEvent, /) -> None:
        out: list[Any] = []
        try:
            self.take(event, out)
        except StreamError:
            self.failed(out)
            self._hand_on(out)
            raise
        self._hand_on(out)

    def push_end(self) -> None:
        out: list[Any] = []
        self.release(out)
        self._hand_on(out)

    push_rest = push_end

    def _hand_on(self, out: list[Any]) -> None:
        if len(out) > 1 and self.several is not None:
            self.several()
        for event in out:
            self.emit(event)

    # Methods that subclasses define.

    def take(self, event: Any, out: list[Any]) -> None:
        """Read one event, and append the resulting events."""
        raise NotImplementedError

    def failed(self, out: list[Any]) -> None:
        """Append the results that an event had before ``take`` raised an error for it."""

    def release(self, out: list[Any]) -> None:
        """End the input: append the held events."""
        raise NotImplementedError
