"""Decode Bedrock's messages to wire events: those of ConverseStream, or those of the model itself.

The first message decides. ``chunk`` belongs to InvokeModelWithResponseStream, which carries the model's own events as base64.
Those of Anthropic's models are read by Anthropic's decoder, and remain Anthropic's. Everything else is ConverseStream.
Exceptions are messages of a separate type, may be anywhere, and end both kinds of stream.

Blocks of text and of reasoning have no start: the first delta of an index opens one of its kind. The padding member ``p`` is
ignored. The stream does not contain the response's id and model: a client knows them from the response's headers and from its
request.

Source: dialects.md §6.1, §7.6.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, ClassVar

import orjson
from attrs import define

from streamkit.dialects.anthropic.decode import AnthropicDecoder
from streamkit.dialects.bedrock.images import IMAGE, read_image
from streamkit.dialects.bedrock.wire import (
    CHUNK,
    DELTAS,
    ERROR,
    EVENTS,
    EXCEPTION,
    EXCEPTIONS,
    EXTRA_FIELDS,
    KEEP_ALIVE,
    METADATA,
    METRICS,
    PADDING,
    REASONING,
    SIGNER,
    STOP_REASONS,
    VENDOR,
    decode_usage,
    exception_of,
)
from streamkit.dialects.members.known import EVENT, Members
from streamkit.dialects.members.values import details_of, has_value, is_base64, others_of, text_of
from streamkit.dialects.streams.block_decoder import BlockDecoder, DecodedBlock
from streamkit.dialects.vocabulary.error_bodies import message_in
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

TEXTUAL = frozenset({"text", "reasoning"})
#: The kind of a block that only this vendor understands.
RAW = "raw"
#: Members of a start or a delta that may belong to a tool of the provider.
SERVER = frozenset({"toolUse", "toolResult"})
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
    if event == CHUNK:
        return isinstance(document.get("bytes"), str)
    return event in EVENTS or event.startswith((EXCEPTION, ERROR))


class NativeDecoder(AnthropicDecoder):
    """Anthropic's decoder for events in InvokeModel streams."""

    dialect = "bedrock"
    members: ClassVar = {kind: members.also(METRICS) for kind, members in AnthropicDecoder.members.items()}

    def decode(self, document: dict[str, Any]) -> None:
        super().decode(document)
        if has_value(metrics := document.get(METRICS)):
            self.out.append(Aside(VENDOR, "metadata", METRICS, metrics))


class BedrockDecoder(BlockDecoder[Block]):
    """Decodes the messages of a stream. It reads ConverseStream itself, and gives InvokeModel's to Anthropic's decoder."""

    dialect = "bedrock"
    vendor = VENDOR
    signer = SIGNER
    call_kind = "toolUse"
    idle = frozenset({PADDING})
    block_type = Block
    _native: NativeDecoder | None = None

    def take(self, frame: Frame) -> None:
        """Read one message of any type, also an unknown one. A truncated message is not read: its checksum is missing."""
        event = frame.event
        if not frame.terminated:
            self.out.append(LastFrameBroken(frame.data))
        elif event in EVENTS and self._native is None:
            document = self.load(frame)
            if document is not None:
                self.recognised = True
                reader = getattr(self, EVENTS[event].method)
                if self._stopped and event != "metadata":
                    self.behind_end(reader, document)
                else:
                    self.read_and_keep(reader, document, EVENTS[event].members, f"{event}.")
                self.read_error(document)
        elif event == CHUNK and not self._started:
            self._chunk(frame)
        elif event.startswith((EXCEPTION, ERROR)) or event in EXCEPTIONS:
            self._failed(frame)
        elif event == KEEP_ALIVE:
            if self._started and (document := self.load(frame)) is not None:
                self.keep_unread(document, Members(PADDING), where=f"{KEEP_ALIVE}.")
        elif not self.recognised:
            self.foreign_frame()
        elif (document := self.load(frame)) is not None and not self.read_error(document, alone=True):
            self.out.append(Aside(VENDOR, "unknown_event", f"{EVENT}{event}", document))

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
        self.start(ResponseStarted(vendor=VENDOR, extras=others_of(document, {"role", PADDING}) or None))

    def _message_stop(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self.stop_message()
        fields = self.fields(document.get("additionalModelResponseFields"))
        delta = fields.get("delta")
        sequence = text_of(delta.get("stop_sequence")) if type(delta) is dict else None
        if native := text_of(document.get("stopReason")):
            reason = self.stop_reason(native, STOP_REASONS)
            known = STOP_REASONS.get(native) in FAILING
            self.out.append(StopReasonSeen(reason, native, 0, sequence, ends_failed=known))
        if fields and not (fields.keys() == {"delta"} and type(delta) is dict and delta.keys() <= {"stop_sequence"}):
            self.out.append(Aside(VENDOR, "metadata", EXTRA_FIELDS, fields))
        self.out.append(TerminatorSeen())

    def _metadata(self, document: dict[str, Any]) -> None:
        """Read the token counts, and keep other members: latency, traces of guardrails, the service tier."""
        self.ensure_started()
        if usage := self.fields(document.get("usage")):
            self.tell_counts(decode_usage(usage))
        for name, value in others_of(document, {"usage", PADDING}).items():
            if name != "metrics" or self.fields(value):
                self.out.append(Aside(VENDOR, "metadata", METADATA + name, value))

    # -- content blocks --------------------------------------------------------------------------------------------

    def _block_start(self, document: dict[str, Any]) -> None:
        start = {name: value for name, value in self.fields(document.get("start")).items() if value is not None}
        index = self.start_index(document.get("contentBlockIndex"))
        use = self.alone(start.get("toolUse"))
        if type(use) is dict and not has_value(use.get("type")):
            self._call(use, self.open_block(index, "toolUse"))
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
            belongs = DELTAS.get(member)
            if belongs is None and block is None:
                self._aside(document, self._open_raw(index, delta))
                return
            if belongs is None:
                self.out.append(Aside(VENDOR, "metadata", f"delta.{member}", value))
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
                    self.out.append(Aside(VENDOR, "citation", "citation", citation, block=block.number))
            elif belongs == "toolUse":
                fragment = self.fields(value).get("input")
                if type(fragment) is dict:
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

    def _call(self, use: dict[str, Any], block: Block) -> None:
        self.start_call(block, use.get("toolUseId"), use.get("name"), others_of(use, CALL_FIELDS))

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
        self.keep_others(delta, REASONING, "reasoningContent.")

    def _aside(self, document: dict[str, Any], block: Block) -> None:
        """Emit a frame of a block that only this vendor understands as an aside, from which an encoder can write it again."""
        kind: AsideKind = "server_tool" if block.server else "unknown_event"
        aside = Aside(VENDOR, kind, self.frame.event, document, block=block.number)
        self.out.append(read_image(document, block.form, aside) or aside)

    # -- InvokeModelWithResponseStream -----------------------------------------------------------------------------

    def _chunk(self, frame: Frame) -> None:
        document = self.load(frame)
        if document is None:
            return
        try:
            data = b64decode(document["bytes"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenFrame("a chunk without bytes in base64", frame.data, offset=frame.offset) from error
        if self._native is None:
            self._native = NativeDecoder(self.limits, self.report)
        self.out += self._native.feed([Frame(data, frame.offset, CHUNK)])
        if self._native.fault is not None:
            raise self._native.fault
        self.recognised = self._native.recognised
        if not self.recognised:
            self.foreign_frame()

    # -- errors ----------------------------------------------------------------------------------------------------

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
        error, status = exception_of(name, raw)
        code = text_of(name) if kind + ":" == ERROR else None
        native = text_of(name) if code is None else None
        shown = message or "an error without a message: " + (text_of(name) or orjson.dumps(raw).decode())
        self.out.append(ProviderFailed(error, shown, native, code, status, raw or None, VENDOR))
