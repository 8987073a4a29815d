"""Report the arguments of each call while they are received, next to the events of the call.

Each open call has one ``PartialJSON``, fed once a batch, however many fragments of the call the batch holds.

After the last event of a batch comes one ``PartialArguments`` for each call that grew in the batch. If the call finished in
the same batch, ``PartialArguments`` comes before its ``ToolCallFinished``, so that ``StreamEnded`` stays last. Every other
event passes unchanged. Calls of custom tools are free text and have no value. Finished calls are forgotten.

The stage is for code that reads events: ``encode`` does not accept ``PartialArguments``, as its types show.

Source: design.md §4.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import define

from streamkit.events import Event, ToolCallArguments, ToolCallFinished, ToolCallStarted
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.tool_calls.partial_json import PartialJSON, Path


@define
class PartialArguments:
    """The arguments of a call so far.

    ``value`` and ``partial`` are live: they show the text so far when you read them, which may be more than when the event was
    made. ``value`` is ``MISSING`` before there is a value. ``path`` is the path of the value being received when the event was
    made. ``partial`` has ``is_final`` and ``snapshot``, and its ``changes`` are those of this batch.
    """

    call: int
    choice: int
    value: Any
    path: Path
    partial: PartialJSON


Seen: TypeAlias = Event | PartialArguments
"""The events that ``partial_arguments`` yields."""


class ArgumentsWatcher(Link):
    """The machine of ``partial_arguments``: passes events, and adds a ``PartialArguments`` for each call that grew."""

    waits = True

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended") -> None:
        self._depth = limits.json_depth
        self._numbers: Literal["ended", "growing"] = numbers
        self._open: dict[tuple[int, int], PartialJSON] = {}  # keyed by choice and call
        self._grown: dict[tuple[int, int], list[str]] = {}  # fragments in the current read, keyed by choice and call

    def push(self, event: Event, /) -> None:
        if isinstance(event, ToolCallStarted) and event.kind == "function":
            self._open[event.choice, event.call] = PartialJSON(depth=self._depth, numbers=self._numbers)
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._open:
            self._grown.setdefault((event.choice, event.call), []).append(event.fragment)
            self.holds = True
        elif isinstance(event, ToolCallFinished):
            key = event.choice, event.call
            if key in self._grown:
                self.emit(self._partial(key, self._grown.pop(key)))
            self._open.pop(key, None)
        self.emit(event)

    def end_read(self) -> None:
        grown, self._grown, self.holds = self._grown, {}, False
        for key, fragments in grown.items():
            self.emit(self._partial(key, fragments))

    def _partial(self, key: tuple[int, int], fragments: list[str]) -> PartialArguments:
        partial = self._open[key]
        partial.feed("".join(fragments))
        choice, call = key
        return PartialArguments(call, choice, partial.value, partial.path, partial)


def partial_arguments(
    *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended"
) -> Stage[list[Event], list[Seen]]:
    """Create the stage after ``accumulate_tool_calls`` or ``check_json`` that reports arguments while they are received.

    ``numbers`` selects when a number appears in the value: once it has ended, or while it grows.
    """
    return Stage("partial_arguments", lambda _report: ArgumentsWatcher(limits=limits, numbers=numbers), takes="events")
