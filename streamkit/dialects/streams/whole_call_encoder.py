"""An encoder for dialects that stream text in pieces and write each call as a whole, with an object as arguments.

A call is held until its arguments are complete, because they must be an object (``object_arguments``). A call may end before
an earlier call; then it waits, so that clients see calls in the model's order. A truncated call is withheld, because a client
would run it.

Source: dialects.md §0.4, §4.4; design.md §4; seeds.md S4.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.dialects.members.values import name_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import OneChoiceEncoder, object_arguments
from streamkit.events import (
    Aside,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport
from streamkit.text.one_string import OneString


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


class WholeCallEncoder(OneChoiceEncoder):
    """Writes one choice with ``write_text`` and ``write_call``. Other content is counted as lost, unless overridden."""

    one_text = True
    stop: ResponseFinished | None = None  #: how the choice finished, for ``terminate``
    _refused = False
    _behind_call = False  # whether the next text follows a call

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._blocks: dict[type, int] = {}
        self.thought = OneString()  #: the reasoning, for dialects that have one string for it
        self._reasoned: set[int] = set()
        self._calls = CallOrder()

    # Subclasses define the following methods, and ``terminate`` and ``error``.

    def write_text(self, text: str, /) -> None:
        raise NotImplementedError

    def write_call(self, start: ToolCallStarted, call: ToolCallFinished, arguments: bytes, /) -> None:
        """Write a whole call. ``arguments`` is one JSON object."""
        raise NotImplementedError

    # Subclasses may override these.

    def response_started(self, event: ResponseStarted) -> None:
        if event.extras:
            self.lose("response_fields")

    def text(self, event: TextDelta) -> None:
        self.place(event)
        self.write_text(event.text)

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self.lose("refusal_as_text")
        self._refused = True
        self.write_text(event.text)

    def reasoning(self, event: ReasoningDelta) -> None:
        if event.block not in self._reasoned:  # once for each block, not for each delta
            self._reasoned.add(event.block)
            self.lose("reasoning")

    def place(self, event: TextDelta | ReasoningDelta) -> None:
        """Count the lost order if a text begins another block of its type, or follows a call that is written after it."""
        if self._blocks.setdefault(type(event), event.block) != event.block:
            self._blocks[type(event)] = event.block
            if isinstance(event, ReasoningDelta):
                self.thought.begin()
            self.lose("block_boundary")
        if self._calls and self._behind_call:  # this text is written before a call that is held
            self._behind_call = False
            self.lose("block_order")

    def call_started(self, event: ToolCallStarted) -> None:
        self._calls.start(event)
        self._behind_call = True
        if event.signature is not None:
            self.lose("reasoning_signature")
        if event.extras:
            self.lose("metadata")

    def call_finished(self, event: ToolCallFinished) -> None:
        """Write this call as soon as all calls that started before it are written."""
        for start, call in self._calls.finish(event):
            arguments = object_arguments(call, self.encoding.limits, self.report)
            if arguments is None or not call.name:
                self.withhold(call)
            else:
                self.write_call(start, call, arguments)

    def aside(self, event: Aside) -> None:
        self.report.lose(event.kind, what=name_of(event))

    def finished(self, event: ResponseFinished) -> None:
        self.stop = event
