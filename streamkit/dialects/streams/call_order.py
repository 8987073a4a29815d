"""Return tool calls that are written as a whole in the order in which they were first mentioned.

A call whose arguments are held until it ends may end before a call that began earlier. It waits for the earlier call, so that
clients see calls in the model's order.

Source: dialects.md §0.4, §4.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.events import ToolCallFinished, ToolCallStarted


class CallOrder:
    """The calls of one choice that have started and are not written yet."""

    def __init__(self) -> None:
        self._started: list[ToolCallStarted] = []  #: a list, because an empty deque takes 760 bytes
        self._finished: dict[int, ToolCallFinished] = {}  #: by number: calls that wait for an earlier call to finish

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, event: ToolCallStarted) -> None:
        """Add a call to the order."""
        self._started.append(event)

    def finish(self, event: ToolCallFinished) -> Iterator[tuple[ToolCallStarted, ToolCallFinished]]:
        """Yield the calls that can be written after this one finished: none if an earlier call has not finished."""
        self._finished[event.call] = event
        while self._started and self._started[0].call in self._finished:
            start = self._started.pop(0)
            yield start, self._finished.pop(start.call)
