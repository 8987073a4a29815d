"""What encoders of dialects with content blocks share: they decide to which block each event belongs.

``BlockQueue`` decides the order of blocks. Opaque reasoning of another vendor is written sealed, as a signature or as a
separate block (``vocabulary/sealed_reasoning.py``).

Source: design.md §5, quirks.md R9, R14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import orjson
from attrs import evolve

from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.block_queue import BlockQueue, Key, QueuedBlock
from streamkit.dialects.streams.event_encoder import OneChoiceEncoder, wrapped_input
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.events import (
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport

dumps = orjson.dumps
#: The most extra members that the end of a message may have. An object with more members is not the end of a message.
FEW = 64


class BlockEncoder(OneChoiceEncoder):
    """An encoder of a dialect with content blocks, of which one is open at a time."""

    writer: ClassVar[type[BlockQueue]]  #: the dialect's class of queue
    #: The dialect's own vendor. Its signatures are written unchanged, and other vendors' are sealed.
    signer: ClassVar[str]
    inexact_stops: ClassVar[frozenset[str]] = frozenset()  #: stop reasons for which the dialect has no exact word
    #: Deltas for ``BlockQueue.delta``, with ``%b`` in place of the text.
    text_delta: ClassVar[bytes]
    thinking_delta: ClassVar[bytes]

    _started = False
    _refused = False
    _stop: ResponseFinished | None = None
    _cut: Mapping[Key, ToolCallFinished] = {}

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._blocks = self.writer(self)
        self._calls: dict[int, QueuedBlock] = {}
        self._thought: set[int] = set()  # numbers of the reasoning blocks that were begun

    # Subclasses define the following methods.

    def call_start(self, event: ToolCallStarted) -> bytes:
        """Return the call's part of the start event, as JSON."""
        raise NotImplementedError

    def redacted(self, data: str, number: int) -> None:
        """Write a block of redacted reasoning."""
        raise NotImplementedError

    # -- text and reasoning ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Write the start of the response if no event has started it."""
        if not self._started:
            self.response_started(ResponseStarted())

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        self.push(TextDelta(text, choice, block))
        if self._spoke and self._is_open("text", choice, block):
            self._blocks.goes_on = choice, block

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        self.push(ReasoningDelta(text, choice, block, kind))
        if self._is_open("thinking", choice, block):
            self._blocks.goes_on = choice, block, kind

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        block = self._calls.get(call)
        if block is None or block.is_custom or block.closed or choice != self._choice or self.ended:
            self.push(ToolCallArguments(call, text, choice))
        else:
            self._blocks.arguments(block, text)

    def _is_open(self, kind: str, choice: int, block: int) -> bool:
        current = self._blocks.current
        is_own = current is not None and current.key == (kind, block) and choice == self._choice
        return is_own and not (self._blocks.queue or self.ended)

    def text(self, event: TextDelta) -> None:
        self._blocks.text(("text", event.block), self.text_delta % dumps(event.text))

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self.lose("refusal_as_text")
        self._refused = True
        self._blocks.text(("refusal", event.block), self.text_delta % dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self._thought.add(event.block)
        self._blocks.text(("thinking", event.block), self.thinking_delta % dumps(event.text))

    def signature(self, event: ReasoningSignature, /) -> None:
        if event.on == "text":
            last = self._blocks.last
            kind: Kind = "text" if last is not None and last.key == ("text", event.block) else "part"
            self.redacted(seal(kind, event.vendor, event.blob), event.block)
            return
        key = ("thinking", event.block)
        block = self._blocks.find(key)
        signer = "" if event.vendor == self.signer else event.vendor
        if block is None and event.block not in self._thought:  # the reasoning has no text, only this signature
            block = self._blocks.add(key, self._blocks.starts["thinking"])
            self._thought.add(event.block)
        if block is None or (block.signature and block.signer != signer):
            self.lose("reasoning_signature")  # the block was closed, or has another vendor's signature
            return
        self._blocks.hold(len(event.blob))
        block.add_signature(event.blob)
        block.signer = signer

    def opaque(self, event: ReasoningOpaque, /) -> None:
        own = event.vendor == self.signer and self.takes(event.blob)
        self.redacted(event.blob if own else seal("opaque", event.vendor, event.blob), event.block)

    def takes(self, _redacted: str) -> bool:
        """Return whether the dialect's own redacted reasoning may be written as it is. Subclasses may override this."""
        return True

    def carries(self, _signature: Opaque) -> bool:
        """Whether a call's start contains its signature. Most of these dialects do not sign calls."""
        return False

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_started(self, event: ToolCallStarted) -> None:
        if event.name and not event.cut:  # readers would take a cut call without arguments for {} (law L3)
            start = self.call_start(event)
            if event.signature is not None and not self.carries(event.signature):  # seal it before the call
                self.redacted(seal("call", event.signature.vendor, event.signature.blob), event.call)
            block = self._calls[event.call] = self._blocks.add(("call", event.call), start, needs_end=True)
            block.is_custom = event.kind == "custom"

    def call_arguments(self, event: ToolCallArguments) -> None:
        block = self._calls.get(event.call)
        if block is None or block.is_custom:
            return  # a nameless call is withheld when it ends
        if block.closed:
            self._blocks.keep_late(block, event.fragment)
        else:
            self._blocks.arguments(block, event.fragment)

    def call_finished(self, event: ToolCallFinished) -> None:
        block = self._calls.get(event.call)
        if block is not None and block.late is not None:
            self._tell_late(block, event)
        if block is None or (block.is_custom and not event.ended):
            self.withhold(event)
        elif not event.ended:
            self._cut = {**self._cut, block.key: event}
        elif not block.closed:
            if block.is_custom:
                self.lose("custom_tool_wrapped")
                self._blocks.arguments(block, wrapped_input(event.arguments))
            self._blocks.end(block)

    def _tell_late(self, block: QueuedBlock, call: ToolCallFinished | None) -> None:
        """Report arguments that arrived after the block of their call was closed. White space is ignored."""
        late = self._blocks.take_late(block)
        if late.strip():
            call_id, name = (None, None) if call is None else (call.id, call.name)
            self.report.withhold("late_arguments", call_id, name, late)

    # -- the end ---------------------------------------------------------------------------------------------------

    def finished(self, event: ResponseFinished) -> None:
        self._stop = event

    def stop(self) -> ResponseFinished:
        """Return the stop reason to write. ``tool_calls`` becomes another reason if every call was withheld.

        Otherwise the client would wait for a call.
        """
        stop = self._stop or ResponseFinished("stop")
        if stop.reason == "tool_calls" and not self._calls:
            self.lose("stop_reason")
            return evolve(stop, reason="stop")
        if stop.reason in self.inexact_stops:
            self.lose("stop_reason")
        return stop

    def flush(self) -> None:
        for begun in self._calls.values():
            self._tell_late(begun, None)
        waiting = [key for key in self._cut if (block := self._blocks.find(key)) is not None and block.index < 0]
        for key in waiting:
            self.withhold(self._cut[key], "cut_call")
        self._blocks.flush(drop=set(waiting))
