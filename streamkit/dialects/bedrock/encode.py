"""Encode events as ConverseStream messages, each with both its checksums.

One block is open at a time, and indices have no gaps. Blocks of text and reasoning have no start; a call's start has its id
and name. ``messageStop`` waits for the end of the stream, and ``metadata`` with the counts follows it. Its latency is the
time since the response started here.

Opaque reasoning of other vendors is written in a marked form ("sealed"), as the signature of its block or as a block of
redacted content. The form is base64, as Bedrock's clients require.
There is no place for the response's id and model, but this is no loss: the client knows
them from its request and from the response's headers.

Source: dialects.md §6.1, §7.1, §7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from streamkit.dialects.bedrock.images import write_image
from streamkit.dialects.bedrock.wire import (
    CHUNK,
    EVENTS,
    EXCEPTION_NAMES,
    EXTRA_FIELDS,
    INEXACT_ERRORS,
    INEXACT_STOPS,
    KEEP_ALIVE,
    METADATA,
    PADDING,
    SIGNER,
    STREAM_EXCEPTIONS,
    VENDOR,
    encode_counts,
    only_member,
    stop_name,
    with_stop_sequence,
)
from streamkit.dialects.members.known import unknown_event
from streamkit.dialects.members.values import is_base64
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder
from streamkit.dialects.streams.block_queue import BlockQueue, QueuedBlock
from streamkit.events import Aside, MediaGenerated, ProviderFailed, ResponseStarted, ToolCallStarted
from streamkit.framing.eventstream import serialize_headers, serialize_message


def headers(event: str) -> bytes:
    """Return the headers of an event, in Bedrock's order."""
    return serialize_headers({":event-type": event, ":content-type": "application/json", ":message-type": "event"})


#: The headers of each known event.
HEADERS: Mapping[str, bytes] = {event: headers(event) for event in EVENTS}
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
#: Members of a message of a block.
BLOCK_MEMBERS = frozenset({"contentBlockIndex", "start", "delta", PADDING})
KEEP_ALIVE_MESSAGE = serialize_message(headers(KEEP_ALIVE), b"{}")


def _is_union(value: Any) -> bool:
    """Return whether clients accept a start or delta: it has one member, whose value is an object, a list or a string."""
    return isinstance(only_member(value)[1], dict | list | str)


class BedrockEncoder(BlockEncoder):
    """Encodes one choice of a response as messages of ConverseStream."""

    vendor = VENDOR
    writer = BlockWriter
    signer = SIGNER
    inexact_stops = INEXACT_STOPS
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
        elif event.type == EXTRA_FIELDS:
            self._fields = event.raw
        elif event.type.startswith(METADATA) and len(self._metadata) < FEW:
            self._metadata = {**self._metadata, event.type.removeprefix(METADATA): event.raw}
        elif (name := unknown_event(event)) is not None and name not in {CHUNK, *EVENTS}:
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
        last: dict[str, Any] = {"stopReason": stop_name(stop.reason, stop.native)}
        if fields := with_stop_sequence(self._fields, stop.stop_sequence):
            last["additionalModelResponseFields"] = fields
        self._event(HEADERS["messageStop"], dumps(last))
        if self._usage is not None or self._metadata:
            metadata = dict(self._metadata)
            latency = max(0, round(1000 * (self.encoding.clock() - self._begun)))
            counts = encode_counts(self._usage, metadata, latency, self.report)
            self._event(HEADERS["metadata"], dumps({**counts, **metadata}))

    def error(self, event: ProviderFailed) -> None:
        for _ in (*self._metadata, *self._fields):  # members kept for a last message that is never written
            self.lose("metadata")
        name = EXCEPTION_NAMES[event.type]
        payload: dict[str, Any] = {"message": event.message}
        if event.vendor == VENDOR and event.native_type in STREAM_EXCEPTIONS:
            name = event.native_type or name
            payload |= {
                member: value for member, value in (event.raw or {}).items() if member not in {"message", PADDING}
            }
        elif event.type in INEXACT_ERRORS or (event.code is not None and event.type != "truncated"):
            self.lose("error_detail")
        head = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        self.write(serialize_message(serialize_headers(head), dumps(payload)))
