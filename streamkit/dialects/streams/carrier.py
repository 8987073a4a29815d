"""What one dialect says in a form of its own and another has a form for, too: carried into that, in front of an encoder.

Compactions (``compactions.py``), and items of Responses that the client runs (``client_calls.py``). Both come as asides, which
within their dialect are written as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from streamkit.conversation.messages import Choice, Part, RedactedReasoning, Response, Text, ToolCall
from streamkit.dialects.streams.client_calls import ADDED, DONE, ClientCallReader
from streamkit.dialects.streams.compactions import FORMS, PROGRESS, CompactionReader
from streamkit.events import (
    Aside,
    Event,
    Opaque,
    ReasoningOpaque,
    ResponseFinished,
    StopReason,
    TextDelta,
    ToolCallFinished,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: Types of asides before which there is nothing to carry.
FIRST: Final = frozenset({ADDED, DONE, PROGRESS, "content_block_start"})
#: Reasons that say that nothing is missing.
WHOLE: Final[frozenset[StopReason]] = frozenset({"stop", "tool_calls"})


class Carrier:
    """The asides of one answer, for a dialect whose own are those of ``native``: events for its encoder."""

    def __init__(self, native: str, limits: Limits, report: StreamReport) -> None:
        self._calls = None if FORMS.get(native) == "item" else ClientCallReader(limits, report)
        self._compactions = CompactionReader(native, report)

    def take(self, aside: Aside) -> Sequence[Event]:
        if self._calls is not None and FORMS.get(aside.vendor) == "item":
            found = self._calls.take(aside)
            if found is not None:
                return found
        return self._compactions.take(aside)

    def finish(self) -> Sequence[Event]:
        """Nothing more comes: what waited."""
        self._compactions.finish()
        return () if self._calls is None else self._calls.finish()

    def abandon(self) -> None:
        """The answer was cut, or failed: what waited is for the report alone."""
        if self._calls is not None:
            self._calls.abandon()

    def finished(self, event: ResponseFinished) -> ResponseFinished:
        """The end of a choice: one with a call that nobody can run is told as cut, if it says that nothing is missing."""
        if self._calls is None or not self._calls.cut or event.reason not in WHOLE:
            return event
        return evolve(event, reason="length", native="incomplete")


def carried(response: Response, native: str, limits: Limits, report: StreamReport) -> Response:
    """A whole response for a dialect whose own asides are those of ``native``."""
    if not any(part.vendor in FORMS.keys() - {native} for choice in response.choices for part in choice.asides):
        return response
    return evolve(response, choices=[_carried(choice, Carrier(native, limits, report)) for choice in response.choices])


def _carried(choice: Choice, carrier: Carrier) -> Choice:
    parts = _Parts()
    for part in choice.parts:
        if isinstance(part, Aside):
            parts.add(carrier.take(part))
        else:
            parts.put(part)
    parts.add(carrier.finish())
    end = carrier.finished(ResponseFinished(choice.stop_reason or "other", choice.native_stop_reason))
    if choice.stop_reason is None or end.reason == choice.stop_reason:
        return evolve(choice, parts=parts.parts)
    return evolve(choice, parts=parts.parts, stop_reason=end.reason, native_stop_reason=end.native)


class _Parts:
    """The parts of a choice as they are put together."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._index = 0  # above that of each call

    def put(self, part: Part) -> None:
        if isinstance(part, ToolCall):
            self._index = max(self._index, part.index + 1)
        self.parts.append(part)

    def add(self, events: Sequence[Event]) -> None:
        """Add the parts that events of a carrier are."""
        for event in events:
            match event:
                case Aside():
                    self.put(event)
                case TextDelta():
                    self.put(Text(event.text, block=event.block))
                case ReasoningOpaque():
                    self.put(RedactedReasoning(Opaque(event.vendor, event.blob), block=event.block))
                case ToolCallFinished():
                    self.put(ToolCall(self._index, event.id, event.name, event.arguments, verdict=event.verdict))
