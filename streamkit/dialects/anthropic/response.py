"""Read and write Anthropic's whole responses: a ``message`` or an error body.

To read a message, this module splits it into the frames that a stream would have sent, and the stream decoder reads them.
A whole message has the stop reason, its details and the container among its members; a stream sends them at its end.

``bodies/block_responses.py`` has most of the code that writes a message.

Source: dialects.md §3.1, §3.3, §7.2, §7.5 (messages, stop reasons and usage).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.anthropic.asides import AnthropicBlocks
from streamkit.dialects.anthropic.decode import AnthropicDecoder
from streamkit.dialects.anthropic.wire import (
    CALL_DEFAULTS,
    DELTA_SIBLING,
    INEXACT_STOPS,
    MESSAGE_DELTA,
    STOP_NAMES,
    VENDOR,
    count_usage_losses,
    encode_error,
    encode_message,
    with_defaults,
)
from streamkit.dialects.bodies.block_list import Block
from streamkit.dialects.bodies.block_responses import BlockResponseWriter
from streamkit.dialects.bodies.json_members import add_missing
from streamkit.dialects.streams.event_encoder import only_choice
from streamkit.events import Aside, ProviderFailed

#: Members of a message that a stream sends in ``message_delta``, next to the member ``delta``.
LAST_EVENT_MEMBERS: Final = ("context_management",)
#: Members of a message that a stream sends inside the ``delta`` of ``message_delta``.
LAST: Final = ("stop_reason", "stop_sequence", "stop_details", "container")


class AnthropicBodyDecoder(AnthropicDecoder):
    """Reads a whole body: a message or an error."""

    def decode(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if kind == "message":
            self.recognised = True
            self._message(document)
            self.read_error(document)
        elif kind == "error":
            self.recognised = True
            self._error(document)
        else:
            self.unknown_frame("body", document)

    def _message(self, document: dict[str, Any]) -> None:
        first = {name: value for name, value in document.items() if name not in (*LAST, *LAST_EVENT_MEMBERS, "content")}
        last = {name: document.get(name) for name in LAST}
        self._message_start({"message": first})
        if blocks := self.contents(document.get("content")):
            texts = self.texts_at(len(blocks), "content")
            for number, (value, text) in enumerate(zip(blocks, texts, strict=True)):
                self.whole_block(value, number, text)
        beside = {name: document[name] for name in LAST_EVENT_MEMBERS if name in document}
        self._message_delta({"delta": last, "usage": document.get("usage"), **beside})
        self._message_stop({})


class AnthropicResponseWriter(BlockResponseWriter):
    """Writes a response as one message."""

    vendor = VENDOR
    signer = VENDOR
    inexact_stops = INEXACT_STOPS
    block_list = AnthropicBlocks

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return encode_error(failure, self.report)

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        content = self.content(choice)
        body = encode_message(response, self.encoding, content, STOP_NAMES[self.stop(choice)], choice.stop_sequence)
        count_usage_losses(response.usage, self.report)
        return add_missing(add_missing(body, self.members), self.own_extras(response.extras, "response_fields"))

    def text(self, text: str, label: int) -> None:
        # ``citations`` is an empty list, because strict readers refuse null
        self.blocks.add_text({"type": "text", "text": text, "citations": []}, label)

    def thinking(self, text: str, signature: str | None) -> Block:
        return {"type": "thinking", "thinking": text, "signature": signature or ""}  # the member is mandatory

    def redacted(self, data: str) -> Block:
        return {"type": "redacted_thinking", "data": data}

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": orjson.Fragment(arguments)}
        return with_defaults(add_missing(block, extras), CALL_DEFAULTS)

    def beside(self, part: Aside) -> bool:
        if not part.type.startswith((MESSAGE_DELTA, DELTA_SIBLING)):
            return False
        self.members[part.type.partition(".")[2]] = part.raw
        return True
