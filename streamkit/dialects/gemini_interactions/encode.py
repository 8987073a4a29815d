"""Encode events as Interactions events: each content block is a step, one open at a time, with indices without gaps.

The end of the interaction waits for ``StreamEnded``, because usage may follow the stop reason. Only the first choice is
written. Google's own signature of a call is in the start of its step. Another vendor's signed or encrypted value is written in
streamkit's marked form ("sealed"), as the signature of a separate thought. A failed stream ends with an event ``error``, and
without ``interaction.completed``.

Source: dialects.md §5.5, quirks.md R14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.gemini_interactions.asides import write_media
from streamkit.dialects.members.values import details_of
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder
from streamkit.dialects.streams.block_queue import BlockQueue, QueuedBlock
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.event_encoder import encode_time, stop_word
from streamkit.dialects.vocabulary import google
from streamkit.events import Aside, Opaque, ProviderFailed, ResponseFinished, ResponseStarted, ToolCallStarted

dumps = orjson.dumps
DELTA_EVENT: Final = b'event: step.delta\ndata: {"event_type":"step.delta","index":%d,"delta":'
START: Final = b'event: step.start\ndata: {"event_type":"step.start","index":%d,"step":%b}\n\n'
STOP: Final = b'event: step.stop\ndata: {"event_type":"step.stop","index":%d}\n\n'
STARTS: Final[Mapping[str, bytes]] = {
    **dict.fromkeys(("text", "refusal"), b'{"type":"model_output"}'),
    "thinking": b'{"type":"thought"}',
}


class StepWriter(BlockQueue):
    """Writes the events of steps."""

    starts: ClassVar = STARTS
    arguments_template: ClassVar[bytes] = b'{"type":"arguments_delta","arguments":%b}'

    def write_start(self, block: QueuedBlock) -> None:
        self.give_index(block)
        self.write(START % (block.index, block.start))

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        self.write(DELTA_EVENT % block.index + delta + b"}\n\n")

    def write_stop(self, block: QueuedBlock) -> None:
        if block.signature:
            signature = dumps(block.whole_signature())
            self.write_delta(block, b'{"type":"thought_signature","signature":%b}' % signature)
        self.write(STOP % block.index)


class InteractionsEncoder(BlockEncoder):
    """Encodes one choice of a response as events of an interaction."""

    vendor = native = wire.VENDOR
    writer = StepWriter
    signer = google.VENDOR
    media_form = staticmethod(write_media)
    inexact_stops = wire.INEXACT_STOPS
    text_delta = b'{"type":"text","text":%b}'
    thinking_delta = b'{"type":"thought_summary","content":{"type":"text","text":%b}}'

    _interaction: Mapping[str, Any] = {}
    _waits = False  # whether the server waits for a tool's result that only a client of this dialect can send
    _last_members: Mapping[str, Any] = {}  # kept members for the interaction in the last event

    def _event(self, name: str, **members: Any) -> None:
        payload = dumps({"event_type": name, **members})
        self.parts.append(b"event: %b\ndata: %b\n\n" % (name.encode(), payload))

    def response_started(self, event: ResponseStarted) -> None:
        self._started = True
        self._interaction = without_none(
            id=event.id or self.encoding.make_id("interaction_"),
            model=event.model or self.encoding.profile.model,
            object="interaction",
            created=None if event.created is None else encode_time(event.created),
        )
        begun = {**self._interaction, "status": "in_progress", **self.response_extras(event)}
        self._event("interaction.created", interaction=begun)

    def redacted(self, data: str, number: int) -> None:
        step = dumps({"type": "thought", "signature": data})
        self._blocks.end(self._blocks.add(("redacted_thinking", number), step))

    def takes(self, _redacted: str) -> bool:
        return False  # this dialect has no field for it, so streamkit's marked form is written as a signature

    def carries(self, signature: Opaque) -> bool:
        return signature.vendor == self.signer

    def call_start(self, event: ToolCallStarted) -> bytes:
        call: dict[str, Any] = {"type": wire.CALL, "id": event.id, "name": event.name, "arguments": {}}
        if event.signature is not None and self.carries(event.signature):
            call["signature"] = event.signature.blob
        return dumps({**call, **self.own_extras(event.extras)})

    def aside(self, event: Aside) -> None:
        if event.type == WAITS:  # the status expresses this
            self._waits = True
        elif event.type == wire.DELTA:
            self._blocks.text(("text", event.block), dumps(event.raw))
        elif event.type == wire.THOUGHT_DELTA:
            self._thought.add(event.block)
            self._blocks.text(("thinking", event.block), dumps(event.raw))
        elif event.type.startswith(wire.INTERACTION_MEMBER) and len(self._last_members) < FEW:
            self._last_members = {**self._last_members, event.type.removeprefix(wire.INTERACTION_MEMBER): event.raw}
        elif event.type in {"step.start", "step.delta", "step.stop"}:
            self._raw_step(event)
        else:
            self.lose(event.kind)

    def _raw_step(self, event: Aside) -> None:
        """Write an event of a step that only Google understands."""
        key = ("raw", event.block)
        block, step, delta = self._blocks.find(key), details_of(event.raw, "step"), details_of(event.raw, "delta")
        if not event.raw.keys() <= wire.EVENTS[event.type].members.names:  # members next to the step have no place
            self.lose(event.kind)
        if event.type == "step.start" and isinstance(step.get("type"), str):
            self._blocks.add(key, dumps(step), needs_end=True)
        elif event.type == "step.stop" and block is not None:
            self._blocks.end(block)
        elif event.type == "step.delta" and block is not None and delta:
            self._blocks.delta(block, dumps(delta))
        else:
            self.lose(event.kind)

    def stop(self) -> ResponseFinished:
        return self._stop if self._waits and self._stop is not None else super().stop()

    def terminate(self) -> None:
        self._blocks.finish()
        stop = self.stop()
        native = stop.native if self._vendor == wire.VENDOR else None
        status = stop_word((wire.status_of(stop.reason, native), False), stop.stop_sequence, self.report)
        self.begin()
        ended = {**self._interaction, "status": status}
        if self._usage is not None:
            ended["usage"] = wire.USAGE.encode(self._usage, self.report)
        self._event("interaction.completed", interaction={**self._last_members, **ended})

    def error(self, event: ProviderFailed) -> None:
        for _ in self._last_members:  # members kept for a last event that is never written
            self.lose("metadata")
        self._event("error", error=wire.encode_error(event, self.report))
