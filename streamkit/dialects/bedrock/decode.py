"""Decode Bedrock's messages, and whole bodies, to wire events: those of Converse, or those of the model itself.

The first message decides. ``chunk`` belongs to InvokeModelWithResponseStream, which carries the model's own events as base64.
Those of Anthropic's models are read by Anthropic's decoder, and remain Anthropic's. Everything else is ConverseStream.
Exceptions are messages of a separate type, may be anywhere, and end both kinds of stream.

Blocks of text and of reasoning have no start: the first delta of an index opens one of its kind. The padding member ``p`` is
ignored. The stream does not contain the response's id and model: a client knows them from the response's headers and from its
request.

A whole message is split into the messages of a stream. A response of InvokeModel is Anthropic's message, which Anthropic's
decoder reads. The type of an error is in a header, which the body decoder does not see, or in ``__type``.

Source: dialects.md §6.1, §7.2, §7.5, §7.6; botocore's model of ``ConverseResponse``, and its parser of errors.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any, ClassVar

import orjson
from attrs import define

from streamkit.dialects.anthropic.decode import AnthropicBodyDecoder, AnthropicDecoder
from streamkit.dialects.bedrock import wire
from streamkit.dialects.bedrock.asides import IMAGE, SERVER, STREAMED, asides_of, messages_of, read_image
from streamkit.dialects.bedrock.http import TYPE, decode_exception
from streamkit.dialects.members.values import EVENT, Members, details_of, has_value, is_base64, others_of, text_of
from streamkit.dialects.streams.block_decoder import BlockDecoder, DecodedBlock, is_whole
from streamkit.dialects.vocabulary.error_bodies import error_message, message_in
from streamkit.errors import BrokenFrame, SecondResponse
from streamkit.events import (
    Aside,
    AsideKind,
    LastFrameBroken,
    ProviderFailed,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
)
from streamkit.framing.frame import Frame
from streamkit.tool_calls.ending import FAILING
from streamkit.tool_calls.value_text import lenient_text

TEXTUAL = frozenset({"text", "reasoning"})
RAW = "raw"  # the kind of a block that only this vendor understands
CALL_FIELDS = frozenset({"toolUseId", "name"})


@define
class Block(DecodedBlock):
    """The state of a block. Its kind is empty after a start without content."""

    server: bool = False  #: it belongs to a tool of the provider, so that only this vendor understands it
    form: str | None = None  #: the format of an image: ``png``


def recognises(event: str, document: Any) -> bool:
    """Return whether a payload may come from a Bedrock stream."""
    if not isinstance(document, dict):
        return False
    if event == wire.CHUNK:
        return isinstance(document.get("bytes"), str)
    return event in wire.EVENTS or event.startswith((wire.EXCEPTION, wire.ERROR))


class NativeDecoder(AnthropicDecoder):
    """Anthropic's decoder for events in InvokeModel streams."""

    dialect = "bedrock"
    members: ClassVar = {kind: members.also(wire.METRICS) for kind, members in AnthropicDecoder.members.items()}

    def decode(self, document: dict[str, Any]) -> None:
        super().decode(document)
        if has_value(metrics := document.get(wire.METRICS)):
            self.out.append(Aside(wire.VENDOR, "metadata", wire.METRICS, metrics))


class BedrockDecoder(BlockDecoder[Block]):
    """Decodes the messages of a stream. It reads ConverseStream itself, and gives InvokeModel's to Anthropic's decoder."""

    dialect = "bedrock"
    vendor = wire.VENDOR
    signer = wire.SIGNER
    call_kind = "toolUse"
    idle = frozenset({wire.PADDING})
    block_type = Block
    _native: NativeDecoder | None = None

    def take(self, frame: Frame) -> None:
        """Read one message of any type, also an unknown one. A truncated message is not read: its checksum is missing."""
        event = frame.event
        if not frame.terminated:
            self.out.append(LastFrameBroken(frame.data))
        elif event in wire.EVENTS and self._native is None:
            document = self.load(frame)
            if document is not None:
                self.recognised = True
                reader = getattr(self, wire.EVENTS[event].method)
                if self._stopped and event != "metadata":
                    self.behind_end(reader, document)
                else:
                    self.read_and_keep(reader, document, wire.EVENTS[event].members, f"{event}.")
                self.read_error(document)
        elif event == wire.CHUNK and not self._started:
            self._chunk(frame)
        elif event.startswith((wire.EXCEPTION, wire.ERROR)) or event in wire.EXCEPTIONS:
            self._failed(frame)
        elif event == wire.KEEP_ALIVE:
            if self._started and (document := self.load(frame)) is not None:
                self.keep_unread(document, Members(wire.PADDING), where=f"{wire.KEEP_ALIVE}.")
        elif not self.recognised:
            self.foreign_frame()
            self.report.lose("unknown_event", what=event)
        elif (document := self.load(frame)) is not None and not self.read_error(document, alone=True):
            self.out.append(Aside(wire.VENDOR, "unknown_event", f"{EVENT}{event}", document))

    def close(self) -> None:
        if self._native is not None:
            self.out += self._native.rest()

    # -- ConverseStream --------------------------------------------------------------------------------------------

    def _message_start(self, document: dict[str, Any]) -> None:
        if self._started:
            if self._seen:  # content arrived before: no server sends a second start then, so this is another response
                raise SecondResponse(offset=self.frame.offset)
            self.report.repair("response_restarted")
            return
        self.start(ResponseStarted(vendor=wire.VENDOR, extras=others_of(document, {"role", wire.PADDING}) or None))

    def _message_stop(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self.stop_message()
        fields = self.fields(document.get("additionalModelResponseFields"))
        delta = fields.get("delta")
        sequence = text_of(delta.get("stop_sequence")) if type(delta) is dict else None
        if native := text_of(document.get("stopReason")):
            reason = self.stop_reason(native, wire.STOP_REASONS)
            known = wire.STOP_REASONS.get(native) in FAILING
            self.out.append(StopReasonSeen(reason, native, 0, sequence, ends_failed=known))
        if fields and not (fields.keys() == {"delta"} and type(delta) is dict and delta.keys() <= {"stop_sequence"}):
            self.out.append(Aside(wire.VENDOR, "metadata", wire.EXTRA_FIELDS, fields))
        self.out.append(TerminatorSeen())

    def _metadata(self, document: dict[str, Any]) -> None:
        """Read the token counts, and keep other members: latency, traces of guardrails, the service tier."""
        self.ensure_started()
        if usage := self.fields(document.get("usage")):
            self.tell_counts(wire.decode_usage(usage))
        for name, value in others_of(document, {"usage", wire.PADDING}).items():
            if name != "metrics" or self.fields(value):
                self.out.append(Aside(wire.VENDOR, "metadata", wire.METADATA + name, value))

    # -- content blocks --------------------------------------------------------------------------------------------

    def _block_start(self, document: dict[str, Any]) -> None:
        start = {name: value for name, value in self.fields(document.get("start")).items() if value is not None}
        index = self.start_index(document.get("contentBlockIndex"))
        use = self.alone(start.get("toolUse"))
        if type(use) is dict and not has_value(use.get("type")):
            block = self.open_block(index, "toolUse")
            self.start_call(block, use.get("toolUseId"), use.get("name"), others_of(use, CALL_FIELDS))
        elif not start or (use is not None and type(use) is not dict):
            self.open_block(index, "")
            if start:
                self.keep_invalid(document)
        else:
            self._aside(document, self._open_raw(index, start))

    def _block_delta(self, document: dict[str, Any]) -> None:
        delta = self.alone(document.get("delta"))
        if type(delta) is not dict or not delta:
            self.keep_invalid(document)
            return
        index = self.block_index(document.get("contentBlockIndex"))
        block = self.blocks.get(index)
        if block is not None and block.kind == RAW:
            self._aside(document, block)
            return
        for member, value in delta.items():
            if value is None:
                continue
            belongs = wire.DELTAS.get(member)
            if belongs is None and block is None:
                self._aside(document, self._open_raw(index, delta))
                return
            if belongs is None:
                self.out.append(Aside(wire.VENDOR, "metadata", f"delta.{member}", value))
                continue
            if block is None or block.kind != belongs:
                block = self._place(index, block, belongs)
                if block is None:
                    self.keep_invalid(document)
                    return
            if member == "text":
                if text := self.string(value):
                    self.out.append(TextDelta(text, 0, block.number))
            elif member == "citation":
                if citation := self.fields(value):
                    self.out.append(Aside(wire.VENDOR, "citation", "citation", citation, block=block.number))
            elif belongs == "toolUse":
                fragment = self.fields(value).get("input")
                if is_whole(fragment):
                    self.report.repair("arguments_not_text")
                    whole = self.text_at("delta", "toolUse", "input")
                    self.out.append(ToolCallDelta(block.call, arguments=whole, snapshot=True))
                elif fragment := self.string(fragment):
                    self.out.append(ToolCallDelta(block.call, arguments=fragment))
            else:
                self._reasoning(self.fields(value), block)

    def _block_stop(self, document: dict[str, Any]) -> None:
        index = self.block_index(document.get("contentBlockIndex"))
        block = self.blocks.get(index)
        if block is None and index in self._closed:
            self.report.repair("block_unopened")
            return
        if block is None:  # a stop without a start or a delta: an empty text block
            block = self.open_block(index, "")
        if block.kind == RAW:
            self._aside(document, block)
        self.close_block(index)

    def _place(self, index: int, block: Block | None, kind: str) -> Block | None:
        """Find or open the block for a delta of ``kind`` if the open block has another kind; None if that is impossible."""
        if block is None:
            closed = self._closed.get(index)
            if closed is not None and closed.kind == kind == "toolUse":
                return closed  # arguments for a call that has ended: the accumulator reports them
            if kind == "toolUse":
                self.report.repair("block_unopened")
            return self.open_block(index, kind)
        if not block.kind and kind in TEXTUAL:
            block.kind = kind
            if kind == "text":
                self._text = block.number
            return block
        if block.kind in TEXTUAL and kind in TEXTUAL:
            self.report.repair("block_mismatch")
            return block
        return None

    def open_block(self, index: int, kind: str) -> Block:
        block = super().open_block(index, kind)
        if kind == "text":
            self._text = block.number
        return block

    def _open_raw(self, index: int, union: dict[str, Any]) -> Block:
        block = self.open_block(index, RAW)
        block.server = not SERVER.isdisjoint(union)
        block.form = text_of(details_of(union, IMAGE).get("format"))
        return block

    def _reasoning(self, delta: dict[str, Any], block: Block) -> None:
        if text := self.string(delta.get("text")):
            self.out.append(ReasoningDelta(text, 0, block.number))
        if len(delta) == 1 and "text" in delta:  # nearly always: no signature and no redacted content to read
            return
        if signature := self.string(delta.get("signature")):
            self.opaque(signature, block, redacted=False)
        if data := self.string(delta.get("redactedContent")):
            if is_base64(data):
                self.opaque(data, block, redacted=True)
            else:
                self.keep_invalid(data)
        self.keep_others(delta, wire.REASONING, "reasoningContent.")

    def _aside(self, document: dict[str, Any], block: Block) -> None:
        """Emit a frame of a block that only this vendor understands as an aside, from which an encoder can write it again."""
        kind: AsideKind = "server_tool" if block.server else "unknown_event"
        aside = Aside(wire.VENDOR, kind, self.frame.event, document, block=block.number)
        self.out.append(read_image(document, block.form, aside) or aside)

    def _chunk(self, frame: Frame) -> None:
        """Read a message of InvokeModelWithResponseStream, which carries an event of the model."""
        document = self.load(frame)
        if document is None:
            return
        try:
            data = b64decode(document["bytes"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenFrame("a chunk without bytes in base64", frame.data, offset=frame.offset) from error
        self._native = self._native or NativeDecoder(self.limits, self.report)
        self.out += self._native.feed([Frame(data, frame.offset, wire.CHUNK)])
        if self._native.fault is not None:
            raise self._native.fault
        self.recognised = self._native.recognised
        if not self.recognised:
            self.foreign_frame()

    def _failed(self, frame: Frame) -> None:
        """Read an exception, whose name is in a header, or an error, whose code and message are both in headers."""
        self.recognised = True
        kind, _, name = frame.event.rpartition(":")
        if not kind:  # sent as an event by servers that do not know other types of message
            self.report.repair("error_shape")
        raw: dict[str, Any] = {}
        if frame.data and not frame.data.isspace():
            try:
                raw = self.load(frame) or {}
            except BrokenFrame:
                self.report.repair("error_shape")
                raw = {"message": frame.text}
        message = text_of(frame.headers.get(":error-message")) or message_in(raw)
        error, status = wire.exception_of(name, raw)
        code = text_of(name) if kind + ":" == wire.ERROR else None
        native = text_of(name) if code is None else None
        shown = message or "an error without a message: " + (text_of(name) or orjson.dumps(raw).decode())
        self.out.append(ProviderFailed(error, shown, native, code, status, raw or None, wire.VENDOR))


CITED = frozenset({"content", "citations"})
#: The members that are read of ``output``, and of a piece of cited text.
OUTPUT, CITED_TEXT = Members("message"), Members("text")


class BedrockBodyDecoder(BedrockDecoder):
    """Reads a whole body: a response of Converse or InvokeModel, or an error."""

    def take(self, frame: Frame) -> None:
        document = self.load(frame)
        if document is None:
            return
        self.recognised = True
        if type(output := self.alone(document.get("output"))) is dict:
            self._whole(document, output)
            self.read_error(document)
        elif document.get("type") == "message":  # a response of InvokeModel for Anthropic's models
            native = AnthropicBodyDecoder(self.limits, self.report)
            self.out += native.feed([frame])
            if native.fault is not None:
                raise native.fault
        elif TYPE not in document and self.read_error(document, alone=True):
            return
        elif isinstance(document.get(TYPE), str) or error_message(document, ("message", "Message")) is not None:
            self.out.append(decode_exception(document))
        else:
            self.recognised = False
            self.foreign_frame()

    def _whole(self, document: dict[str, Any], output: dict[str, Any]) -> None:
        message = self.fields(output.get("message"))
        self.keep_unread(output, OUTPUT, where="output.")
        blocks = self.contents(message.get("content"))
        texts = self.texts_at(len(blocks), "output", "message", "content") if blocks else []
        self._read("messageStart", {name: value for name, value in message.items() if name != "content"})
        for number, (block, text) in enumerate(zip(blocks, texts, strict=True)):
            self._block(self.part_of(block, None), number, text)
        last = {name: document.get(name) for name in ("stopReason", "additionalModelResponseFields")}
        self._read("messageStop", last)
        self._read("metadata", {name: value for name, value in document.items() if name not in wire.BODY_FIELDS})

    def _read(self, event: str, payload: dict[str, Any]) -> None:
        """Read members of the body for which a stream has the message ``event``."""
        self.frame = Frame(b"", event=event)
        self.read_and_keep(getattr(self, wire.EVENTS[event].method), payload, wire.EVENTS[event].members, f"{event}.")

    def _block(self, block: dict[str, Any], number: int, text: bytes) -> None:
        for member, found in block.items():
            if found is None:
                continue
            value = self.alone(found)
            if member in STREAMED and type(value) is dict:
                arguments = value.get("input") if member == "toolUse" else None
                if isinstance(arguments, str):
                    self.report.repair("arguments_not_object")
                elif arguments is not None:
                    arguments = lenient_text(text, "toolUse", "input")
                for event, payload in messages_of(member, value, number, arguments or ""):
                    self._read(event, payload)
                continue
            deltas = list(self._deltas(member, value))
            for delta in deltas:
                self._read("contentBlockDelta", {"contentBlockIndex": number, "delta": delta})
            if not deltas:
                self.out += asides_of(member, value, number)
                continue
            self._read("contentBlockStop", {"contentBlockIndex": number})
            if member == "citationsContent":
                self.keep_others(value, CITED, f"{member}.")

    def _deltas(self, member: str, value: Any) -> Iterator[dict[str, Any]]:
        """Yield the deltas that a stream would have for text and reasoning; none for blocks without such deltas."""
        if member == "text":
            yield {"text": value}
        elif member == "citationsContent" and type(value) is dict:
            for piece in self.items(value.get("content")):
                yield {"text": self.fields(piece).get("text") or ""}
                self.keep_unread(piece, CITED_TEXT, where="citationsContent.content.")
            for citation in self.items(value.get("citations")):
                yield {"citation": citation}
        elif member == "reasoningContent" and type(value) is dict:
            for inner in (self.fields(value.get("reasoningText")), {**value, "reasoningText": None}):
                for name, words in inner.items():
                    if words is not None:
                        yield {"reasoningContent": {name: words}}
