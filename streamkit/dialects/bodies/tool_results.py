"""Which call a result answers, in histories whose calls need no ids.

A call without an id is given one by the reader, made of its place in the history. A result without one, or with one that no
call has, answers the first call that waits under its tool's name, or the first that waits at all where it names none.

Source: dialects.md §7.3; quirks.md 35.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from streamkit.conversation.messages import ToolCall

#: The key of the calls that wait, whatever their names.
_ANY: Final = ""


class Waiting:
    """The calls of one turn, and which of them have a result."""

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._waiting: dict[str, deque[ToolCall]] = {}
        self._given: dict[str, int] = {}  #: the ids that came with their calls
        self._answered: set[int] = set()
        for call in calls:
            self.add(call)

    def add(self, call: ToolCall) -> None:
        if not call.id_made:
            self._given[call.id] = call.index
        for key in (call.name, _ANY):
            self._waiting.setdefault(key, deque()).append(call)

    def answer(self, call_id: str, name: str | None) -> str:
        """The id of the call that a result answers; the result's own where there is no such call."""
        if call_id in self._given:
            self._answered.add(self._given[call_id])
            return call_id
        waiting = self._waiting.get(name or _ANY, deque())
        while waiting and waiting[0].index in self._answered:
            waiting.popleft()
        if not waiting or (call_id and not waiting[0].id_made):
            return call_id
        call = waiting.popleft()
        self._answered.add(call.index)
        if call_id:  # the result has kept what the call has not
            call.id, call.id_made = call_id, False
        return call.id
