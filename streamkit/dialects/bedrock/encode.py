"""Encode events as ConverseStream messages, each with both its checksums, and whole responses as responses of Converse.

One block is open at a time, and indices have no gaps. Blocks of text and reasoning have no start; a call's start has its id
and name. ``messageStop`` waits for the end of the stream, and ``metadata`` with the counts follows it. Its latency is the
time since the response started here.

Opaque reasoning of other vendors is written in a marked form ("sealed"), as the signature of its block or as a block of
redacted content. The form is base64, as Bedrock's clients require. There is no place for the response's id and model, but this
is no loss: the client knows them from its request and from the response's headers.

Source: dialects.md §6.1, §7.1, §7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.bedrock import wire
from streamkit.dialects.bedrock.asides import BedrockBlocks, text_block, write_image
from streamkit.dialects.bedrock.http import encode_exception
from streamkit.dialects.bodies.responses import Block, BlockResponseWriter
from streamkit.dialects.members.fields import add_missing, without_none
from streamkit.dialects.members.values import is_base64, unknown_event
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder, BlockQueue, QueuedBlock
from streamkit.dialects.streams.event_encoder import only_choice
from streamkit.events import Aside, MediaGenerated, ProviderFailed, ResponseStarted, ToolCallStarted
from streamkit.framing.eventstream import serialize_headers, serialize_message


def headers(event: str) -> bytes:
    """Return the headers of an event, in Bedrock's order."""
    return serialize_headers({":event-type": event, ":content-type": "application/json", ":message-type": "event"})


HEADERS: Mapping[str, bytes] = {event: headers(event) for event in wire.EVENTS}
START, DELTA, STOP = (HEADERS[f"contentBlock{part}"] for part in ("Start", "Delta", "Stop"))


class BlockWriter(BlockQueue):
    """Writes the messages of blocks."""

    starts: ClassVar = {"text": b"", "refusal": b"", "thinking": b""}
    arguments_template: ClassVar = b'{"toolUse":{"input":%b}}'

    def _message(self, head: bytes, payload: bytes) -> None:
        self.write(serialize_message(head, payload))

    def write_start(self, block: QueuedBlock) -> None:
        self.give_index(block)
        if block.start:
            self._message(START, b'{"contentBlockIndex":%d,"start":%b}' % (block.index, block.start))

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        self._message(DELTA, b'{"contentBlockIndex":%d,"delta":%b}' % (block.index, delta))

    def write_stop(self, block: QueuedBlock) -> None:
        if block.signature:
            self.write_delta(block, b'{"reasoningContent":{"signature":%b}}' % orjson.dumps(block.whole_signature()))
        self._message(STOP, b'{"contentBlockIndex":%d}' % block.index)


dumps = orjson.dumps
BLOCK_MEMBERS = frozenset({"contentBlockIndex", "start", "delta", wire.PADDING})
KEEP_ALIVE_MESSAGE = serialize_message(headers(wire.KEEP_ALIVE), b"{}")


def _is_union(value: Any) -> bool:
    """Return whether clients accept a start or delta: it has one member, whose value is an object, a list or a string."""
    return isinstance(wire.only_member(value)[1], dict | list | str)


class BedrockEncoder(BlockEncoder):
    """Encodes one choice of a response as messages of ConverseStream."""

    vendor = wire.VENDOR
    writer = BlockWriter
    signer = wire.SIGNER
    inexact_stops = wire.INEXACT_STOPS
    text_delta = b'{"text":%b}'
    thinking_delta = b'{"reasoningContent":{"text":%b}}'
    _begun = 0.0
    _fields: Mapping[str, Any] = {}
    _metadata: Mapping[str, Any] = {}

    def joined(self, parts: list[bytes]) -> bytes:
        return b"".join(parts)  # binary messages: unlike events of SSE, they are never repaired at line ends

    def _event(self, head: bytes, payload: bytes) -> None:
        if not self._started:
            self.begin()
        self.write(serialize_message(head, payload))

    def response_started(self, event: ResponseStarted) -> None:
        self._started = True
        self._begun = self.encoding.clock()
        self._event(HEADERS["messageStart"], dumps({"role": "assistant", **self.response_extras(event)}))

    def takes(self, redacted: str) -> bool:
        return is_base64(redacted)  # clients decode redacted content as base64

    def redacted(self, data: str, number: int) -> None:
        block = self._blocks.add(("redacted", number), b"")
        self._blocks.delta(block, b'{"reasoningContent":{"redactedContent":%b}}' % dumps(data))
        self._blocks.end(block)

    def call_start(self, event: ToolCallStarted) -> bytes:
        return dumps({"toolUse": {"toolUseId": event.id, "name": event.name, **self.own_extras(event.extras)}})

    def media_form(self, media: MediaGenerated) -> list[Aside]:
        return write_image(media)

    def aside(self, event: Aside) -> None:
        if event.type == "citation":
            self._blocks.text(("text", event.block), b'{"citation":%b}' % dumps(event.raw))
        elif event.type in HEADERS:
            self._raw_block(event)
        elif event.type == wire.EXTRA_FIELDS:
            self._fields = event.raw
        elif event.type.startswith(wire.METADATA) and len(self._metadata) < FEW:
            self._metadata = {**self._metadata, event.type.removeprefix(wire.METADATA): event.raw}
        elif (name := unknown_event(event)) is not None and name not in {wire.CHUNK, *wire.EVENTS}:
            self._event(headers(name), dumps(event.raw))
        else:
            self.lose(event.kind)

    def _raw_block(self, event: Aside) -> None:
        """Write a message of a block that only this vendor understands, under the block's index here."""
        key = ("raw", event.block)
        block = self._blocks.find(key)
        start, delta = event.raw.get("start"), event.raw.get("delta")
        if not event.raw.keys() <= BLOCK_MEMBERS:  # members next to the block have no place
            self.lose(event.kind)
        if event.type == "contentBlockStart" and _is_union(start):
            self._blocks.add(key, dumps(start), needs_end=True)
        elif event.type == "contentBlockDelta" and _is_union(delta) and (block is not None or "toolUse" not in delta):
            self._blocks.delta(block or self._blocks.add(key, b"", needs_end=True), dumps(delta))
        elif event.type == "contentBlockStop" and block is not None:
            self._blocks.end(block)
        else:
            self.lose(event.kind)

    def terminate(self) -> None:
        self._blocks.finish()
        stop = self.stop()
        last: dict[str, Any] = {"stopReason": wire.stop_name(stop.reason, stop.native)}
        if fields := wire.with_stop_sequence(self._fields, stop.stop_sequence):
            last["additionalModelResponseFields"] = fields
        self._event(HEADERS["messageStop"], dumps(last))
        if self._usage is not None or self._metadata:
            metadata = dict(self._metadata)
            latency = max(0, round(1000 * (self.encoding.clock() - self._begun)))
            counts = wire.encode_counts(self._usage, metadata, latency, self.report)
            self._event(HEADERS["metadata"], dumps({**counts, **metadata}))

    def error(self, event: ProviderFailed) -> None:
        for _ in (*self._metadata, *self._fields):  # members kept for a last message that is never written
            self.lose("metadata")
        name = wire.EXCEPTION_NAMES[event.type]
        payload: dict[str, Any] = {"message": event.message}
        if event.vendor == wire.VENDOR and event.native_type in wire.STREAM_EXCEPTIONS:
            name = event.native_type or name
            payload |= {
                member: value for member, value in (event.raw or {}).items() if member not in {"message", wire.PADDING}
            }
        elif event.type in wire.INEXACT_ERRORS or (event.code is not None and event.type != "truncated"):
            self.lose("error_detail")
        head = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        self.write(serialize_message(serialize_headers(head), dumps(payload)))


class BedrockResponseWriter(BlockResponseWriter):
    """Writes a response as one response of Converse."""

    vendor = wire.VENDOR
    signer = wire.SIGNER
    inexact_stops = wire.INEXACT_STOPS
    block_list = BedrockBlocks
    _fields: Mapping[str, Any] = {}  #: the members of ``additionalModelResponseFields``

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return encode_exception(failure, self.report)

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        message = {"role": "assistant", "content": self.content(choice)}
        body: dict[str, Any] = {
            "output": {"message": add_missing(message, self.own_extras(response.extras, "response_fields"))},
            "stopReason": wire.stop_name(self.stop(choice), choice.native_stop_reason),
            # 0 is the latency, which was not measured
            **wire.encode_counts(response.usage, self.members, 0, self.report),
        }
        if fields := wire.with_stop_sequence(self._fields, choice.stop_sequence):
            body["additionalModelResponseFields"] = fields
        return add_missing(body, self.members)

    def media_form(self, media: MediaGenerated) -> list[Aside]:
        return write_image(media)

    def text(self, text: str, label: int) -> None:
        self.blocks.add_text(text_block(text), label)

    def thinking(self, text: str, signature: str | None) -> Block:
        return {"reasoningContent": {"reasoningText": without_none(text=text, signature=signature)}}

    def takes(self, redacted: str) -> bool:
        return is_base64(redacted)  # clients decode it as base64

    def redacted(self, data: str) -> Block:
        return {"reasoningContent": {"redactedContent": data}}

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        use = {"toolUseId": call.id, "name": call.name, "input": orjson.Fragment(arguments)}
        return {"toolUse": add_missing(use, extras)}

    def beside(self, part: Aside) -> bool:
        if part.type == wire.EXTRA_FIELDS:
            self._fields = part.raw
        elif part.type.startswith(wire.METADATA):
            self.members[part.type.removeprefix(wire.METADATA)] = part.raw
        else:
            return False
        return True
