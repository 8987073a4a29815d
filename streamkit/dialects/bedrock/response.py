"""Read and write Bedrock's whole responses: those of Converse, and error bodies.

To read a whole message, this module splits it into the messages of a stream, which the stream decoder reads; token counts come
after the stop reason. InvokeModel returns Anthropic's message, which Anthropic's decoder reads. Servers send an error's type
in a header, which this module does not see, or in ``__type`` next to the message. This module writes ``__type``.
``bodies/block_responses.py`` has most of the code that writes a response.

Source: dialects.md §6.1, §7.2, §7.5; botocore's model of ``ConverseResponse``, and its parser of errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.anthropic.response import AnthropicBodyDecoder
from streamkit.dialects.bedrock.asides import STREAMED, BedrockBlocks, asides_of, messages_of, text_block
from streamkit.dialects.bedrock.decode import BedrockDecoder
from streamkit.dialects.bedrock.errors import TYPE, decode_exception, encode_exception
from streamkit.dialects.bedrock.images import write_image
from streamkit.dialects.bedrock.wire import (
    BODY_FIELDS,
    EVENTS,
    EXTRA_FIELDS,
    INEXACT_STOPS,
    METADATA,
    SIGNER,
    VENDOR,
    encode_counts,
    stop_name,
    with_stop_sequence,
)
from streamkit.dialects.bodies.block_list import Block
from streamkit.dialects.bodies.block_responses import BlockResponseWriter
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.members.known import Members
from streamkit.dialects.members.values import is_base64
from streamkit.dialects.streams.event_encoder import only_choice
from streamkit.dialects.vocabulary.error_bodies import error_message
from streamkit.events import Aside, MediaGenerated, ProviderFailed
from streamkit.framing.frame import Frame
from streamkit.tool_calls.value_text import lenient_text

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
        self._read("metadata", {name: value for name, value in document.items() if name not in BODY_FIELDS})

    def _read(self, event: str, payload: dict[str, Any]) -> None:
        """Read members of the body for which a stream has the message ``event``."""
        self.frame = Frame(b"", event=event)
        self.read_and_keep(getattr(self, EVENTS[event].method), payload, EVENTS[event].members, f"{event}.")

    def _block(self, block: dict[str, Any], number: int, text: bytes) -> None:
        for member, found in block.items():
            if found is None:
                continue
            value = self.alone(found)
            if member in STREAMED and type(value) is dict:
                arguments = self._input(value, text) if member == "toolUse" else ""
                for event, payload in messages_of(member, value, number, arguments):
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

    def _input(self, use: dict[str, Any], block: bytes) -> str:
        arguments = use.get("input")
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
            return arguments
        return "" if arguments is None else lenient_text(block, "toolUse", "input")

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


class BedrockResponseWriter(BlockResponseWriter):
    """Writes a response as one response of Converse."""

    vendor = VENDOR
    signer = SIGNER
    inexact_stops = INEXACT_STOPS
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
            "stopReason": stop_name(self.stop(choice), choice.native_stop_reason),
            # 0 is the latency, which was not measured
            **encode_counts(response.usage, self.members, 0, self.report),
        }
        if fields := with_stop_sequence(self._fields, choice.stop_sequence):
            body["additionalModelResponseFields"] = fields
        return add_missing(body, self.members)

    def media_form(self, media: MediaGenerated) -> list[Aside]:
        return write_image(media)

    # -- content ---------------------------------------------------------------------------------------------------

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
        if part.type == EXTRA_FIELDS:
            self._fields = part.raw
        elif part.type.startswith(METADATA):
            self.members[part.type.removeprefix(METADATA)] = part.raw
        else:
            return False
        return True
