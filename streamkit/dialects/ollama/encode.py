"""Encode events as Ollama lines, and whole responses as one line, that the strictest client accepts.

Every call is complete in one line, with one key unless the client's profile takes ids. A whole message has one text, one
reasoning and its calls. Losses are counted as in streams.

Source: dialects.md §4.1, §4.4, §0 (the strict reader), §0.4; seeds.md S4 (Zed takes one key in a call).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from streamkit.conversation.messages import Choice, Reasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import name_of
from streamkit.dialects.ollama import wire
from streamkit.dialects.streams.event_encoder import encode_time, object_arguments, only_choice, stop_word
from streamkit.dialects.streams.whole_call_encoder import WholeCallEncoder
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ResponseFinished,
    ResponseStarted,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.framing.ndjson import serialize_ndjson

dumps = orjson.dumps


class OllamaEncoder(WholeCallEncoder):
    """Encodes one choice of a response as lines of ``/api/chat``."""

    vendor = wire.VENDOR
    _head = b""
    _called = False  # whether a call was written
    _first_s: float | None = None  # time of the first line, if the profile has the time of the request

    def response_started(self, event: ResponseStarted) -> None:
        seconds = event.created if event.created is not None else self.encoding.clock()
        head = {"model": event.model or self.encoding.profile.model, "created_at": encode_time(seconds)}
        self._head = dumps(head)[:-1]
        super().response_started(event)

    def _line(self, message: bytes, rest: bytes = b'"done":false') -> None:
        """Write a line with all members that strict clients require: model, created_at, message with role and content."""
        if not self._head:
            self.response_started(ResponseStarted())
        if self._first_s is None and self.encoding.profile.asked_at is not None:
            self._first_s = self.encoding.clock()
        self.write(b'%b,"message":{"role":"assistant",%b},%b}\n' % (self._head, message, rest))

    def write_text(self, text: str) -> None:
        self._line(b'"content":%b' % dumps(text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self.place(event)
        self._line(b'"content":"","thinking":%b' % dumps(self.thought.before(event.text) + event.text))

    def write_call(self, start: ToolCallStarted, call: ToolCallFinished, arguments: bytes) -> None:
        """Write a call without any key that a strict client does not know (dialects.md §0)."""
        self._called = True
        call_id = b'"id":%b,' % dumps(call.id) if wire.takes_ids(self.encoding.profile) else b""
        if not call_id and not start.id_made:
            self.lose("call_id")
        self._line(
            b'"content":"","tool_calls":[{%b"function":{"name":%b,"arguments":%b}}]'
            % (call_id, dumps(call.name), arguments)
        )

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return wire.write_image(media, self.encoding.profile)

    def aside(self, event: Aside) -> None:
        if event.kind == "logprobs":
            self._line(b'"content":""', b'"logprobs":%b,"done":false' % dumps(event.raw))
        elif event.type.startswith("message."):
            self._line(b'"content":"",' + dumps({event.type.removeprefix("message."): event.raw})[1:-1])
        elif event.kind == "metadata":
            self._line(b'"content":""', dumps({event.type: event.raw, "done": False})[1:-1])
        else:
            super().aside(event)

    def terminate(self) -> None:
        stop = self.stop or ResponseFinished("stop")
        found = wire.done_reason(stop.reason, stop.native, called=self._called)
        reason = stop_word(found, stop.stop_sequence, self.report)
        counts = wire.encode_usage(self._usage, self.report, self.encoding, self._first_s)
        last = {"done": True, "done_reason": reason, **counts}
        self._line(b'"content":""', dumps(last)[1:-1])

    def error(self, event: ProviderFailed) -> None:
        self.write(serialize_ndjson(dumps(wire.encode_error(event, self.report))))


class OllamaResponseWriter(ResponseWriter):
    """Writes one response, whose message has one text, one reasoning and its calls."""

    vendor = wire.VENDOR

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return wire.encode_error(failure, self.report)

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
        found = wire.done_reason(choice.stop_reason or "other", choice.native_stop_reason, called=called)
        reason = stop_word(found, choice.stop_sequence, report)
        counts = wire.encode_usage(response.usage, report, self.encoding)
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
        if wire.takes_ids(self.encoding.profile):
            return {"id": call.id, **written}
        if not call.id_made:
            self.report.lose("call_id")
        return written

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return wire.write_image(media, self.encoding.profile)

    def _aside(self, aside: Aside, body: dict[str, Any], message: dict[str, Any]) -> None:
        """Write an aside of this dialect as a member of the body or message. Pieces of log probabilities become one list."""
        name, value = aside.type, aside.raw
        if aside.vendor == wire.VENDOR and aside.kind == "logprobs" and isinstance(value, list):
            self.growing.extend(body, name, value)
        elif aside.vendor == wire.VENDOR and aside.kind == "metadata":
            place = message if name.startswith("message.") else body
            if name == wire.MESSAGE_IMAGES and isinstance(value, list):
                self.growing.extend(message, "images", value)
            elif place.setdefault(name.removeprefix("message."), value) != value:
                self.report.lose("metadata", what=name)
        else:
            self.report.lose(aside.kind, what=name_of(aside))
