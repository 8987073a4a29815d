"""Encode events as Anthropic events, and whole responses as messages.

The order of events is strict, because clients find blocks by their index. ``BlockWriter`` writes the events of blocks (one
open at a time, indices without gaps, no block without content), and ``BlockEncoder`` finds the block of an event. The end of
the message waits for ``StreamEnded``, because usage may follow the stop reason. Only the first choice is written, because the
dialect has no place for a second.

Source: design.md §5, dialects.md §0.4, §3.1, §3.3, §7.2, §7.5, quirks.md §8, §9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeGuard

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.anthropic import wire
from streamkit.dialects.anthropic.asides import AnthropicBlocks
from streamkit.dialects.bodies.responses import Block, BlockResponseWriter
from streamkit.dialects.members.fields import add_missing
from streamkit.dialects.members.values import details_of, unknown_event
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder, BlockQueue, Key, QueuedBlock
from streamkit.dialects.streams.event_encoder import only_choice
from streamkit.dialects.vocabulary.client_tools import COMPUTER
from streamkit.events import Aside, ProviderFailed, QualifiedName, ResponseStarted, TextDelta, ToolCallStarted

# Templates for whole events, except ``DELTA`` and ``ARGUMENTS``. The index of the block is filled in.
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
ARGUMENTS = b'{"type":"input_json_delta","partial_json":%b}'
START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
DELTAS = DELTA + b"%b}\n\n"
STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
FRAGMENT = DELTA + ARGUMENTS + b"}\n\n"
TEXT = DELTA + b'{"type":"text_delta","text":%b}}\n\n'
THINKING = DELTA + b'{"type":"thinking_delta","thinking":%b}}\n\n'


class BlockWriter(BlockQueue):
    """Writes the events of blocks."""

    #: An unsigned thinking block needs the member ``signature``, because a client sends the block back as it is.
    starts: ClassVar = {
        "text": b'{"type":"text","text":""}',
        "refusal": b'{"type":"text","text":""}',
        "thinking": b'{"type":"thinking","thinking":"","signature":""}',
    }
    arguments_template: ClassVar = ARGUMENTS

    def write_start(self, block: QueuedBlock) -> None:
        self.give_index(block)
        self.write(START % (block.index, block.start))

    def write_fragment(self, block: QueuedBlock, fragment: str) -> None:
        self.write(FRAGMENT % (block.index, orjson.dumps(fragment)))  # one template is twice as fast as three

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        self.write(DELTAS % (block.index, delta))

    def write_stop(self, block: QueuedBlock) -> None:
        if block.signature:  # whole, directly before the stop: clients do not append signatures (dialects.md §0.4)
            signature = orjson.dumps(block.whole_signature())
            self.write_delta(block, b'{"type":"signature_delta","signature":%b}' % signature)
        self.write(STOP % block.index)


dumps, loads = orjson.dumps, orjson.loads
#: What ``encode_message`` returns for the start of a message without extra members and usage.
MESSAGE = (
    b'{"id":%%b,"type":"message","role":"assistant","model":%%b,"content":[],"stop_reason":null,"stop_sequence":null,'
    b'%b,"usage":%b}' % (dumps(wire.MESSAGE_DEFAULTS)[1:-1], dumps(wire.encode_usage(None)))
)
CALL = b'{"type":"tool_use","id":%%b,"name":%%b,"input":{},%b}' % dumps(wire.CALL_DEFAULTS)[1:-1]
MESSAGE_END = b'{"stop_reason":%%b,"stop_sequence":%%b,%b}' % dumps(wire.MESSAGE_DEFAULTS)[1:-1]
END = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":%b,"usage":%b%b}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
BLOCK_FRAMES = frozenset({"content_block_start", "content_block_delta", "content_block_stop"})
#: The form that the name of an unknown event or block needs to be copied into the output. A name with a line end could
#: forge another event (limits.md T1).
NAME = re.compile(r"[a-z][a-z_]{0,63}")


def _is_name(kind: object) -> TypeGuard[str]:
    """Return whether the type of an event, a block or a delta is a plain word, as clients expect."""
    return isinstance(kind, str) and NAME.fullmatch(kind) is not None


class AnthropicEncoder(BlockEncoder):
    """Encodes one choice of a response as Anthropic events."""

    vendor = native = wire.VENDOR
    writer = BlockWriter
    signer = wire.VENDOR
    inexact_stops = wire.INEXACT_STOPS
    text_delta = b'{"type":"text_delta","text":%b}'
    thinking_delta = b'{"type":"thinking_delta","thinking":%b}'

    #: Citations that are held until the first text of their block. Only a stream of this dialect has such citations.
    _citations: dict[Key, list[bytes]] | None = None
    _message_delta: Mapping[str, Any] = {}
    _siblings: Mapping[str, Any] = {}

    def _event(self, name: bytes, payload: bytes) -> None:
        self.parts.append(b"event: %b\ndata: %b\n\n" % (name, payload))

    def response_started(self, event: ResponseStarted) -> None:
        self._started = True
        extras = self.response_extras(event)
        if extras or event.usage is not None:
            message = dumps({**wire.encode_message(event, self.encoding, []), **extras})
        else:  # nearly always: the template gives the same bytes as ``encode_message`` in a fifth of the time
            response_id, model = event.id or self.encoding.make_id("msg_"), event.model or self.encoding.profile.model
            message = MESSAGE % (dumps(response_id), dumps(model))
        self.parts.append(b'event: message_start\ndata: {"type":"message_start","message":%b}\n\n' % message)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        blocks = self._blocks
        if (choice, block) == blocks.goes_on:  # the text continues the open block, as nearly always
            self.parts.append(TEXT % (blocks.current.index, dumps(text)))  # type: ignore[union-attr] # it is open
        else:
            super().push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        blocks = self._blocks
        if (choice, block, kind) == blocks.goes_on:
            self.parts.append(THINKING % (blocks.current.index, dumps(text)))  # type: ignore[union-attr] # it is open
        else:
            super().push_reasoning(text, choice, block, kind)

    def text(self, event: TextDelta) -> None:
        key = ("text", event.block)
        if self._citations:
            for citation in self._citations.pop(key, ()):  # held citations are written before the text
                self._blocks.text(key, citation)
        self._blocks.text(key, self.text_delta % dumps(event.text))

    def redacted(self, data: str, number: int) -> None:
        start = dumps({"type": "redacted_thinking", "data": data})
        self._blocks.end(self._blocks.add(("redacted_thinking", number), start))

    def call_start(self, event: ToolCallStarted) -> bytes:
        name, members = _called(event.name, event.qualified)
        start = CALL % (dumps(event.id), dumps(name))
        if event.extras:
            members = {**members, **self.own_extras(event.extras)}
        return dumps({**loads(start), **members}) if members else start

    def aside(self, event: Aside) -> None:
        if event.type == "citations_delta":
            self._citation(event)
        elif event.type.startswith((wire.MESSAGE_DELTA, wire.DELTA_SIBLING)):
            where, _, name = event.type.partition(".")
            if len(self._message_delta) + len(self._siblings) >= FEW:
                self.lose(event.kind)
            elif where + "." == wire.MESSAGE_DELTA:
                self._message_delta = {**self._message_delta, name: event.raw}
            else:
                self._siblings = {**self._siblings, name: event.raw}
        elif event.type in BLOCK_FRAMES:
            if not event.raw.keys() <= wire.EVENTS[event.type].members.names:  # members next to the block have no place
                self.lose(event.kind)
            key = ("raw", event.block)
            block, delta = self._blocks.find(key), details_of(event.raw, "delta")
            if event.type == "content_block_start" and _is_name(event.raw["content_block"].get("type")):
                self._blocks.add(key, dumps(event.raw["content_block"]), needs_end=True)
            elif event.type == "content_block_stop" and block is not None:
                self._blocks.end(block)
            elif event.type == "content_block_delta" and block is not None and _is_name(delta.get("type")):
                self._blocks.delta(block, dumps(delta))
            else:
                self.lose(event.kind)
        elif _is_name(new := unknown_event(event)) and isinstance(event.raw, dict) and event.raw.get("type") == new:
            self.begin()
            self._event(new.encode(), dumps(event.raw))
        else:
            self.lose(event.kind)

    def _citation(self, event: Aside) -> None:
        """Write a citation, or hold it until its block's first text, because a text block is not opened without text."""
        key = ("text", event.block)
        delta = b'{"type":"citations_delta","citation":%b}' % dumps(event.raw)
        if self._blocks.last is not None and self._blocks.last.key == key:
            self._blocks.text(key, delta)
        else:
            self._blocks.hold(len(delta))
            self._blocks.goes_on = None
            if self._citations is None:
                self._citations = {}
            self._citations.setdefault(key, []).append(delta)

    def terminate(self) -> None:
        self._blocks.finish()
        if self._citations:
            for citations in self._citations.values():
                self.report.lose("citation", len(citations))
        wire.count_usage_losses(self._usage, self.report)
        stop = self.stop()
        if not self._started:
            self.begin()
        delta = MESSAGE_END % (dumps(wire.STOP_NAMES[stop.reason]), dumps(stop.stop_sequence))
        if self._message_delta:
            delta = dumps({**loads(delta), **self._message_delta})
        usage = dumps(wire.encode_usage(self._usage, wire.DELTA_USAGE_DEFAULTS))
        self.parts.append(END % (delta, usage, self._sibling_members()))

    def _sibling_members(self) -> bytes:
        """Return the JSON of kept members that belong next to ``delta`` in the last event, with a comma before it."""
        if not self._siblings:
            return b""
        fields = {name: value for name, value in self._siblings.items() if name not in {"type", "delta", "usage"}}
        return b"," + dumps(fields)[1:-1] if fields else b""

    def error(self, event: ProviderFailed) -> None:
        for _ in (*self._message_delta, *self._siblings):  # members kept for a last event that is never written
            self.lose("metadata")
        self._event(b"error", dumps(wire.encode_error(event, self.report)))


class AnthropicResponseWriter(BlockResponseWriter):
    """Writes a response as one message."""

    vendor = wire.VENDOR
    signer = wire.VENDOR
    inexact_stops = wire.INEXACT_STOPS
    block_list = AnthropicBlocks

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return wire.encode_error(failure, self.report)

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        content = self.content(choice)
        reason = wire.STOP_NAMES[self.stop(choice)]
        body = wire.encode_message(response, self.encoding, content, reason, choice.stop_sequence)
        wire.count_usage_losses(response.usage, self.report)
        return add_missing(add_missing(body, self.members), self.own_extras(response.extras, "response_fields"))

    def text(self, text: str, label: int) -> None:
        # ``citations`` is an empty list, because strict readers refuse null
        self.blocks.add_text({"type": "text", "text": text, "citations": []}, label)

    def thinking(self, text: str, signature: str | None) -> Block:
        return {"type": "thinking", "thinking": text, "signature": signature or ""}  # the member is mandatory

    def redacted(self, data: str) -> Block:
        return {"type": "redacted_thinking", "data": data}

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        name, members = _called(call.name, call.qualified)
        block = {"type": "tool_use", "id": call.id, "name": name, "input": orjson.Fragment(arguments), **members}
        return wire.with_defaults(add_missing(block, extras), wire.CALL_DEFAULTS)

    def beside(self, part: Aside) -> bool:
        if not part.type.startswith((wire.MESSAGE_DELTA, wire.DELTA_SIBLING)):
            return False
        self.members[part.type.partition(".")[2]] = part.raw
        return True


def _called(name: str, qualified: QualifiedName | None) -> tuple[str, dict[str, Any]]:
    """Return the name of a call, and the members that name the toolset of its tool."""
    if qualified is None or qualified.namespace != COMPUTER:
        return name, {}
    return qualified.name, {"toolset_name": qualified.namespace}
