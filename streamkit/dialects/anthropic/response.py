"""Anthropic's whole responses: a ``message`` or an error body, both directions.

Reading. A message says at once what a stream says in pieces, so it is taken apart into the frames of one, which the decoder of
streams reads. What a stream says at its end stands beside the rest here: stop reason and details, the container.

Writing. Blocks stand in the order of the parts. An input is an object: a call whose text is cut off is withheld, since a
client would run it. What is lost is counted as the encoder of streams does.

Source: dialects.md §3.1, §3.3, §7.2, §7.5.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from streamkit.dialects.anthropic.asides import BlockList, frames_of
from streamkit.dialects.anthropic.content import OWN_BLOCKS
from streamkit.dialects.anthropic.decode import AnthropicDecoder
from streamkit.dialects.anthropic.wire import (
    INEXACT_STOPS,
    MESSAGE_DELTA,
    STOP_NAMES,
    VENDOR,
    count_usage_losses,
    encode_error,
    encode_usage,
)
from streamkit.dialects.base import Encoding
from streamkit.dialects.decoding import read_body
from streamkit.dialects.encoding import failure_of, object_arguments
from streamkit.dialects.opaque import Kind, seal
from streamkit.dialects.writing import merged
from streamkit.events import Aside, Opaque, WireEvent
from streamkit.limits import Limits
from streamkit.messages import Choice, Part, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.report import StreamReport
from streamkit.tool_calls.value_text import item_texts, value_text

#: What a stream says at its end.
LAST: Final = ("stop_reason", "stop_sequence", "stop_details", "container")


def decode_response(body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
    """The wire events of a whole body. Raises NotThisDialect, and what broke the reading."""
    return read_body(AnthropicBodyDecoder(limits, report), body)


def encode_response(response: Response, encoding: Encoding, report: StreamReport) -> dict[str, Any]:
    """A whole body as JSON values."""
    return AnthropicResponseWriter(response, encoding, report).body()


class AnthropicBodyDecoder(AnthropicDecoder):
    _block_text = b""  #: the block that is being read

    def decode(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if kind == "message":
            self.recognised = True
            self._message(document)
        elif kind == "error" or document.get("error"):
            self.recognised = True
            if kind != "error":
                self.report.repair("error_shape")
            self._error(document)
        else:
            self.strange()

    def _message(self, document: dict[str, Any]) -> None:
        first = {name: value for name, value in document.items() if name not in LAST}
        last = {name: document.get(name) for name in LAST}
        self._message_start({"message": first})
        if blocks := self.items(document.get("content")):
            texts = item_texts(value_text(self.frame.data, "content"))
            for number, (value, text) in enumerate(zip(blocks, texts, strict=True)):
                self._block_text = text
                self._block(self.fields(value), number)
        self._message_delta({"delta": last, "usage": document.get("usage")})
        self._message_stop({})

    def _block(self, block: dict[str, Any], number: int) -> None:
        """One block, by the frames that a stream would have: a start with all of it is enough for those we know."""
        kind, given = block.get("type"), block.get("input")
        streamed = isinstance(kind, str) and kind not in OWN_BLOCKS and isinstance(given, dict) and given
        start, *deltas, stop = frames_of(block, number, self.input_text() if streamed else None)
        if block:
            self.block_start(start)
            for delta in deltas:
                self.block_delta(delta)
            self.block_stop(stop)

    def input_text(self) -> str:
        return value_text(self._block_text, "input")


class AnthropicResponseWriter:
    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        self.response = response
        self.encoding = encoding
        self.report = report
        self._own = response.vendor == VENDOR
        self._beside: dict[str, Any] = {}
        self._calls = 0  # that were written

    def body(self) -> dict[str, Any]:
        response = self.response
        failure = failure_of(response, self.report)
        if failure is not None:
            return encode_error(failure, self.report)
        for _ in response.choices[1:]:
            self.report.lose("extra_choice")
        choice = response.choices[0] if response.choices else Choice(stop_reason="stop")
        content = self.content(choice)
        body = {
            "id": response.id or self.encoding.make_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": response.model or "",
            "content": content,
            "stop_reason": self._stop_reason(choice),
            "stop_sequence": choice.stop_sequence,
            "usage": encode_usage(response.usage),
        }
        count_usage_losses(response.usage, self.report)
        if response.extras and not self._own:
            self.report.lose("response_fields")
        return merged(merged(body, self._beside), response.extras if self._own else {})

    def _stop_reason(self, choice: Choice) -> str:
        """The stop reason. Where every call was withheld, the client must not wait for one."""
        reason = choice.stop_reason or "other"
        unfounded = reason == "tool_calls" and not self._calls
        if unfounded or reason in INEXACT_STOPS:
            self.report.lose("stop_reason")
        return STOP_NAMES["stop" if unfounded else reason]

    # -- content ---------------------------------------------------------------------------------------------------

    def content(self, choice: Choice) -> list[dict[str, Any]]:
        blocks = BlockList(self.report)
        if choice.refusal:
            self.report.lose("refusal_as_text")
        for part in choice.parts:
            self._part(part, blocks)
        return blocks.finish()

    def _part(self, part: Part, blocks: BlockList) -> None:
        match part:
            case Text() | Refusal():
                if part.text:
                    blocks.text({"type": "text", "text": part.text}, part.block)
                if isinstance(part, Text) and part.signature is not None:
                    blocks.add(_redacted("text" if part.text else "part", part.signature))
            case Reasoning():
                blocks.add({"type": "thinking", "thinking": part.text, "signature": _signature(part.signature)})
            case RedactedReasoning():
                blocks.add(_redacted("opaque", part.opaque))
            case ToolCall():
                self._call(part, blocks)
            case Aside():
                self._aside(part, blocks)
            case _:
                raise TypeError(f"a response has no {type(part).__name__}")

    def _call(self, call: ToolCall, blocks: BlockList) -> None:
        text = object_arguments(call, self.encoding.limits, self.report) if call.name else None
        if text is None:
            self.report.withhold("call_withheld", call.id, call.name, call.arguments)
            return
        if call.signature is not None:  # Anthropic signs no calls: it stands before the call, sealed
            blocks.add(_redacted("call", call.signature))
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": orjson.Fragment(text)}
        if call.extras and not self._own:
            self.report.lose("metadata")
        self._calls += 1
        blocks.add(merged(block, call.extras or {}) if self._own else block)

    def _aside(self, part: Aside, blocks: BlockList) -> None:
        if part.vendor != VENDOR:
            self.report.lose(part.kind, what=part.type)
        elif part.type.startswith(MESSAGE_DELTA):
            self._beside[part.type.removeprefix(MESSAGE_DELTA)] = part.raw
        else:
            blocks.aside(part)


def _redacted(kind: Kind, opaque: Opaque) -> dict[str, Any]:
    """Redacted thinking: this vendor's as it is, what is another's or belongs to a part sealed."""
    own = kind == "opaque" and opaque.vendor == VENDOR
    return {"type": "redacted_thinking", "data": opaque.blob if own else seal(kind, opaque.vendor, opaque.blob)}


def _signature(opaque: Opaque | None) -> str:
    """The signature of a thinking block, a member that must be there."""
    if opaque is None:
        return ""
    return opaque.blob if opaque.vendor == VENDOR else seal("reasoning", opaque.vendor, opaque.blob)
