"""The arguments of each call as far as they are written, beside the events of the call.

Theory: one ``PartialJSON`` for each open call, fed once a batch, however many fragments of the call the batch holds.

Rules. After the last event of a batch comes one ``PartialArguments`` for each call that grew in it; if the call finished in
the same batch it comes before its ``ToolCallFinished``, so that ``StreamEnded`` stays last. Every other event passes as it
is. Calls of custom tools are free text and have no value. A call that has finished is forgotten.

The stage is for those who read events: ``encode`` takes no ``PartialArguments``, and the types say so.

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
    """What a call's arguments say so far.

    ``value`` is live, as is ``partial``: both show what the text says when they are looked at, which may be more than when
    the event was made; ``MISSING`` is the value of nothing yet. ``path`` is what was being written when the event was made.
    ``partial`` answers ``is_final`` and ``snapshot``, and its ``changes`` are those of this batch.
    """

    call: int
    choice: int
    value: Any
    path: Path
    partial: PartialJSON


Seen: TypeAlias = Event | PartialArguments
"""What ``partial_arguments`` yields."""


class ArgumentsWatcher(Link):
    """Machine of ``partial_arguments``: events to events, and a ``PartialArguments`` for a call that a read let grow."""

    waits = True

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended") -> None:
        self._depth = limits.json_depth
        self._numbers: Literal["ended", "growing"] = numbers
        self._open: dict[tuple[int, int], PartialJSON] = {}  # by choice and call
        self._grown: dict[tuple[int, int], list[str]] = {}  # what the read at hand brought of them

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
    """The stage after ``accumulate_tool_calls`` or ``check_json`` that shows arguments while they are written.

    ``numbers`` says when a number shows: once it has ended, or as it grows.
    """
    return Stage("partial_arguments", lambda _report: ArgumentsWatcher(limits=limits, numbers=numbers), takes="events")
