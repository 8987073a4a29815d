"""Read and write Ollama's whole responses (``stream: false``) and error bodies.

A whole body is the last line of a stream with the whole message in it, so the stream decoder reads it as a stream of one line.
A written message has one text, one reasoning and its calls. Losses are counted as in streams, and the rules for clients are
the same: a call has one key unless the client's profile takes ids, and calls that a client must not run are withheld.

Source: dialects.md §4.1, §4.4; seeds.md S4 (Zed takes one key in a call).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from streamkit.conversation.messages import Choice, Reasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.response_writer import ResponseWriter
from streamkit.dialects.ollama.wire import (
    MESSAGE_IMAGES,
    VENDOR,
    done_reason,
    encode_error,
    encode_usage,
    takes_ids,
    write_image,
)
from streamkit.dialects.streams.event_encoder import encode_time, object_arguments, only_choice, stop_word
from streamkit.events import Aside, MediaGenerated, ProviderFailed


class OllamaResponseWriter(ResponseWriter):
    """Writes one response, whose message has one text, one reasoning and its calls."""

    vendor = VENDOR

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return encode_error(failure, self.report)

    def answer(self) -> dict[str, Any]:
        response, report = self.response, self.report
        if response.extras:
            report.lose("response_fields")
        choice = only_choice(response, report)
        seconds = response.created if response.created is not None else self.encoding.clock()
        message = self._message(choice)
        model = response.model or self.encoding.profile.model
        body = {"model": model, "created_at": encode_time(seconds), "message": message}
        for aside in choice.asides:
            self._aside(aside, body, message)
        called = "tool_calls" in message
        found = done_reason(choice.stop_reason or "other", choice.native_stop_reason, called=called)
        reason = stop_word(found, choice.stop_sequence, report)
        counts = encode_usage(response.usage, report, self.encoding)
        return {**body, "done": True, "done_reason": reason, **counts}

    def _message(self, choice: Choice) -> dict[str, Any]:
        self.lose_order(choice)
        self.lose_sealed(choice)
        for kind in Text, Reasoning:
            blocks = sum(isinstance(part, kind) and part.text != "" for part in choice.parts)
            if blocks > 1:
                self.report.lose("block_boundary", blocks - 1)
        if choice.refusal:
            self.report.lose("refusal_as_text")
        text = "".join(part.text for part in choice.parts if isinstance(part, Text | Refusal))
        calls = [written for call in choice.tool_calls if (written := self._call(call)) is not None]
        members = without_none(thinking=choice.reasoning or None, tool_calls=calls or None)
        return {"role": "assistant", "content": text, **members}

    def _call(self, call: ToolCall) -> dict[str, Any] | None:
        """Return one call; None if no client may run it."""
        if call.extras:  # strict readers allow one key in a call (dialects.md §0)
            self.report.lose("metadata")
        arguments = object_arguments(call, self.encoding.limits, self.report)
        if arguments is None or not call.name:
            self.withhold(call)
            return None
        written: dict[str, Any] = {"function": {"name": call.name, "arguments": orjson.Fragment(arguments)}}
        if takes_ids(self.encoding.profile):
            return {"id": call.id, **written}
        if not call.id_made:
            self.report.lose("call_id")
        return written

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return write_image(media)

    def _aside(self, aside: Aside, body: dict[str, Any], message: dict[str, Any]) -> None:
        """Write an aside of this dialect as a member of the body or message. Pieces of log probabilities become one list."""
        name, value = aside.type, aside.raw
        if aside.vendor == VENDOR and aside.kind == "logprobs" and isinstance(value, list):
            self.growing.extend(body, name, value)
        elif aside.vendor == VENDOR and aside.kind == "metadata":
            place = message if name.startswith("message.") else body
            if name == MESSAGE_IMAGES and isinstance(value, list):
                self.growing.extend(message, "images", value)
            elif place.setdefault(name.removeprefix("message."), value) != value:
                self.report.lose("metadata", what=name)
        else:
            self.report.lose(aside.kind, what=name)
