"""Put finished tool calls in the order in which they started, for dialects that write each call as a whole.

Such a dialect holds a call until it ends. A call may end before an earlier call; it then waits for the earlier call, so that
clients see calls in the model's order.

Source: dialects.md §0.4, §4.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.events import ToolCallFinished, ToolCallStarted


class CallOrder:
    """The calls of one choice that started and are not yet written."""

    def __init__(self) -> None:
        self._started: list[ToolCallStarted] = []  #: a list, because an empty deque takes 760 bytes
        self._finished: dict[int, ToolCallFinished] = {}  #: finished calls that wait for an earlier call, by number

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, event: ToolCallStarted) -> None:
        self._started.append(event)

    def finish(self, event: ToolCallFinished) -> Iterator[tuple[ToolCallStarted, ToolCallFinished]]:
        """Yield the calls that can be written now that this call finished: none if an earlier call has not finished."""
        self._finished[event.call] = event
        while self._started and self._started[0].call in self._finished:
            start = self._started.pop(0)
            yield start, self._finished.pop(start.call)
