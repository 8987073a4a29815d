"""Tool calls that are written whole, in the order in which they were mentioned.

A call whose arguments are held until they ended may end before one that began earlier: it waits for that one, so that a client
sees the calls in the order of the model's answer.

Source: dialects.md §0.4, §4.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.events import ToolCallFinished, ToolCallStarted


class CallOrder:
    """The calls of one choice that were started and are not written yet."""

    def __init__(self) -> None:
        self._started: list[ToolCallStarted] = []  #: short: an empty deque takes 760 bytes
        self._finished: dict[int, ToolCallFinished] = {}  #: by number, those behind a call that has not finished

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, event: ToolCallStarted) -> None:
        """Take the next place for a call."""
        self._started.append(event)

    def finish(self, event: ToolCallFinished) -> Iterator[tuple[ToolCallStarted, ToolCallFinished]]:
        """The calls to write now that one has finished: none while one in front of it has not."""
        self._finished[event.call] = event
        while self._started and self._started[0].call in self._finished:
            start = self._started.pop(0)
            yield start, self._finished.pop(start.call)
