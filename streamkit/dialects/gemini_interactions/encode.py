"""Encode events as Interactions events: each content block is a step, one open at a time, with indices without gaps.

The end of the interaction waits for ``StreamEnded``, because usage may follow the stop reason. Only the first choice is
written. Google's own signature of a call is in the start of its step. Another vendor's signed or encrypted value is written in
streamkit's marked form ("sealed"), as the signature of a separate thought. A failed stream ends with an event ``error``, and
without ``interaction.completed``.

A whole interaction has its steps in the order of the parts; neighbouring texts and media of one block become one output.

Source: dialects.md §5.5, §7.2, §7.5, quirks.md R14 (opaque data must survive).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.bodies import google
from streamkit.dialects.bodies.responses import Block, BlockList, BlockResponseWriter
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.gemini_interactions.asides import ANNOTATIONS, write_media
from streamkit.dialects.members.fields import add_missing, without_none
from streamkit.dialects.members.values import details_of, text_of
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder, BlockQueue, QueuedBlock
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.event_encoder import encode_time, only_choice, stop_word
from streamkit.events import Aside, Opaque, ProviderFailed, ResponseFinished, ResponseStarted, ToolCallStarted
from streamkit.report import StreamReport

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
        elif event.type == wire.DELTA and wire.is_delta(event.raw):
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
        if event.type == "step.start" and text_of(step.get("type")) is not None:
            self._blocks.add(key, dumps(step), needs_end=True)
        elif event.type == "step.stop" and block is not None:
            self._blocks.end(block)
        elif event.type == "step.delta" and block is not None and wire.is_delta(delta):
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


class Steps(BlockList):
    """The steps of one interaction while it is written."""

    start = "step.start"
    delta = "step.delta"
    stop = "step.stop"
    citation = wire.DELTA

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._last: tuple[str, int] | None = None  # the kind and label of the last step, if parts may join it
        self._raw: dict[int, Block] = {}

    def add(self, block: Block) -> None:
        self._last = None
        super().add(block)

    def put(self, content: Block, label: int) -> None:
        """Add a content to the output step with this label."""
        if self._last != (wire.TEXT, label):
            self.add({"type": wire.TEXT, "content": []})
            self._last = wire.TEXT, label
        self.blocks[-1]["content"].append(content)

    def put_thought(self, thought: Block, label: int) -> None:
        """Add a thought, which an image may join."""
        self.add(thought)
        self._last = wire.THOUGHT, label

    def aside(self, part: Aside) -> None:
        raw = part.raw
        if part.type == wire.DELTA and raw.get("type") == ANNOTATIONS:
            self._cite(part)
        elif part.type == wire.DELTA and wire.is_delta(raw):
            self.put(dict(raw), part.block)
        elif part.type == wire.THOUGHT_DELTA:
            if self._last != (wire.THOUGHT, part.block):
                self.put_thought({"type": wire.THOUGHT}, part.block)
            self.blocks[-1].setdefault("summary", []).append(raw["content"])
        elif part.type == self.start:
            step = self._raw[part.block] = dict(details_of(raw, "step"))
            self.add(step)
        elif part.block in self._raw and part.type in {self.delta, self.stop}:
            members = details_of(raw, "delta")
            self._raw[part.block].update({name: value for name, value in members.items() if name != "type"})
        else:
            self.report.lose(part.kind, what=part.type)

    def _cite(self, part: Aside) -> None:
        """Add citations to the last text of their block."""
        contents = self.blocks[-1]["content"] if self._last == (wire.TEXT, part.block) else ()
        texts = [content for content in contents if content.get("type") == "text"]
        if not texts:
            self.report.lose("citation")
            return
        texts[-1].setdefault("annotations", []).extend(part.raw["annotations"])


class InteractionsResponseWriter(BlockResponseWriter):
    """Writes a response as one interaction."""

    vendor = wire.VENDOR
    signer = google.VENDOR
    media_form = staticmethod(write_media)
    inexact_stops = wire.INEXACT_STOPS
    block_list = Steps
    blocks: Steps

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return {"error": wire.encode_error(failure, self.report)}

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        steps = self.content(choice)
        native = choice.native_stop_reason if self.own else None
        found = wire.status_of(self.stop(choice), native), False
        body = without_none(
            id=response.id or self.encoding.make_id("interaction_"),
            status=stop_word(found, choice.stop_sequence, self.report),
            object="interaction",
            model=response.model or self.encoding.profile.model,
            created=None if response.created is None else encode_time(response.created),
            steps=steps,
            usage=None if response.usage is None else wire.USAGE.encode(response.usage, self.report),
        )
        return add_missing(add_missing(body, self.members), self.own_extras(response.extras, "response_fields"))

    def text(self, text: str, label: int) -> None:
        self.blocks.put({"type": "text", "text": text}, label)

    def thinking(self, text: str, signature: str | None) -> Block:
        summary = [{"type": "text", "text": text}] if text else None
        return without_none(type=wire.THOUGHT, summary=summary, signature=signature)

    def redacted(self, data: str) -> Block:
        return {"type": wire.THOUGHT, "signature": data}

    def takes(self, _redacted: str) -> bool:
        return False  # no field for it: streamkit's marked form is written as a signature

    def carries(self, signature: Opaque) -> bool:
        return signature.vendor == self.signer

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        step: Block = {"type": wire.CALL, "id": call.id, "name": call.name, "arguments": orjson.Fragment(arguments)}
        if call.signature is not None and self.carries(call.signature):
            step["signature"] = call.signature.blob
        return add_missing(step, extras)

    def beside(self, part: Aside) -> bool:
        if part.type == WAITS:  # the call is in the status
            self._calls += 1
            return True
        if not part.type.startswith(wire.INTERACTION_MEMBER):
            return False
        self.members[part.type.removeprefix(wire.INTERACTION_MEMBER)] = part.raw
        return True
