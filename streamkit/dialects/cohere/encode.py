"""Encode events as Cohere events, and whole responses as bodies.

Clients keep one pending call, so nothing may come between a call's start, its fragments and its end. The tool plan has
neither start nor end. A message has separate fields for its text, its calls and its tool plan, so text after a call loses its
position. Only the first choice is written.

A whole body without content and calls has one empty text, since programs read the first part.

Source: dialects.md §6.2, §7.1; the response types of cohere 7.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeGuard

import orjson
from attrs import evolve

from streamkit.conversation.messages import Choice, Part, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.cohere.wire import DEBUG, VENDOR, content_of, encode_usage, finish_reason
from streamkit.dialects.members.fields import add_missing, without_none
from streamkit.dialects.members.values import has_value, name_of, text_of, unknown_event
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder, BlockQueue, QueuedBlock
from streamkit.dialects.streams.event_encoder import EventEncoder, function_call, only_choice, stop_word
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.events import (
    Aside,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseStarted,
    TextDelta,
    ToolCallStarted,
)
from streamkit.text.one_string import one_string

dumps = orjson.dumps
MESSAGE_END = "message-end."
#: The form that the name of an unknown event needs to be copied into the output. A name with a line end could forge another
#: event (limits.md T1).
NAME = re.compile(r"[a-z][a-z-]{0,63}")
EVENT = b'event: %b\ndata: {"type":"%b",%b}\n\n'
CONTENT_DELTA = b'event: content-delta\ndata: {"type":"content-delta","index":%d,%b}\n\n'
CALL_DELTA = b'event: tool-call-delta\ndata: {"type":"tool-call-delta","index":%d,%b}\n\n'


class BlockWriter(BlockQueue):
    """Writes the events of blocks. Their deltas are members of an event."""

    starts: ClassVar = {
        "text": b'{"type":"text","text":""}',
        "refusal": b'{"type":"text","text":""}',
        "thinking": b'{"type":"thinking","thinking":""}',
        "plan": b"",
    }

    arguments_template: ClassVar = b'"delta":{"message":{"tool_calls":{"function":{"arguments":%b}}}}'

    _contents = _calls = 0

    def _event(self, name: bytes, members: bytes) -> None:
        self.write(EVENT % (name, name, members))

    def write_start(self, block: QueuedBlock) -> None:
        kind = block.key[0]
        if kind == "call":
            block.index = self._calls
            self._calls += 1
            members = b'"index":%d,"delta":{"message":{"tool_calls":%b}}' % (block.index, block.start)
            self._event(b"tool-call-start", members)
        elif kind != "plan":
            block.index = self._contents
            self._contents += 1
            self._event(b"content-start", b'"index":%d,"delta":{"message":{"content":%b}}' % (block.index, block.start))

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        kind = block.key[0]
        if kind == "plan":
            self._event(b"tool-plan-delta", delta)
        else:
            self.write((CALL_DELTA if kind == "call" else CONTENT_DELTA) % (block.index, delta))

    def write_stop(self, block: QueuedBlock) -> None:
        kind = block.key[0]
        if kind != "plan":
            self._event(b"tool-call-end" if kind == "call" else b"content-end", b'"index":%d' % block.index)


class CohereEncoder(BlockEncoder):
    """Encodes one choice of a response as Cohere events."""

    vendor = VENDOR
    writer = BlockWriter
    one_text = True
    text_delta = b'"delta":{"message":{"content":{"text":%b}}}'
    thinking_delta = b'"delta":{"message":{"content":{"thinking":%b}}}'

    _citations = 0
    _follows_call = False  # whether the next text follows a call
    _message_end: Mapping[str, Any] = {}

    def _event(self, name: bytes, members: bytes) -> None:
        self.begin()
        self.write(EVENT % (name, name, members))

    def _frame(self, name: bytes, payload: bytes) -> None:
        self.write(b"event: %b\ndata: %b\n\n" % (name, payload))

    def response_started(self, event: ResponseStarted) -> None:
        self._started = True
        extras = dict(self.response_extras(event))
        empty = {"content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        message = {"role": "assistant", **empty, **extras.pop("delta", {})}
        start = {"id": event.id or self.encoding.make_id("msg_"), **extras, "delta": {"message": message}}
        self._event(b"message-start", dumps(start)[1:-1])

    def text(self, event: TextDelta) -> None:
        """Write text. Neighbouring blocks of another vendor become one: programs read the first, citations count all of it."""
        self._count_late()
        last = self._blocks.last
        if self._vendor != VENDOR and last is not None and last.key[0] == "text":
            event = evolve(event, block=last.key[1])
        super().text(event)

    def refusal(self, event: RefusalDelta) -> None:
        self._count_late()
        super().refusal(event)

    def reasoning(self, event: ReasoningDelta) -> None:
        """Write reasoning. A summary that Cohere's model made is written as the tool plan, any other reasoning as thinking."""
        self._count_late()
        if event.kind == "summary" and self._vendor == VENDOR:
            delta = b'"delta":{"message":{"tool_plan":%b}}' % dumps(event.text)
            self._blocks.text(("plan", event.block), delta)
        else:
            super().reasoning(event)

    def _count_late(self) -> None:
        if self._follows_call:
            self._follows_call = False
            self.lose("block_order")

    signature = EventEncoder.signature
    opaque = EventEncoder.opaque

    def redacted(self, _data: str, _number: int) -> None:
        """Count the loss of a call's signature, for which there is no place."""
        self.lose("reasoning_signature")

    def call_start(self, event: ToolCallStarted) -> bytes:
        self._follows_call = True
        function = {"name": event.name, "arguments": ""}
        return dumps({"id": event.id, "type": "function", "function": function, **self.own_extras(event.extras)})

    def aside(self, event: Aside) -> None:
        name, raw = event.type, event.raw
        new = DEBUG if name == DEBUG else unknown_event(event)
        if event.kind == "citation":
            self._citation(event)
        elif event.kind == "logprobs":
            last = self._blocks.last
            kind = "thinking" if last is not None and last.key == ("thinking", event.block) else "text"
            delta = b'"delta":{"message":{"content":{"%b":""}}},"logprobs":%b' % (kind.encode(), dumps(raw))
            self._blocks.text((kind, event.block), delta)
        elif name.startswith(MESSAGE_END) and len(self._message_end) < FEW:
            self._message_end = {**self._message_end, name.removeprefix(MESSAGE_END): raw}
        elif new is not None and raw.get("type") == new and NAME.fullmatch(new):
            self._frame(new.encode(), dumps(raw))
        else:
            self.lose(event.kind)

    def _citation(self, event: Aside) -> None:
        """Write a citation at once: it names its text by position, and need not wait for the text."""
        index, self._citations = self._citations, self._citations + 1
        citation = dumps(event.raw)
        self._event(b"citation-start", b'"index":%d,"delta":{"message":{"citations":%b}}' % (index, citation))
        self._event(b"citation-end", b'"index":%d' % index)

    def terminate(self) -> None:
        self._blocks.finish()
        self.begin()
        stop = self.stop()
        # ``self.stop()`` has already replaced the reason ``tool_calls`` if no call was written
        found = finish_reason(stop.reason, stop.native, called=True)
        reason = stop_word(found, stop.stop_sequence, self.report)
        usage = {} if self._usage is None else {"usage": encode_usage(self._usage, self.report)}
        self._end({"finish_reason": reason, **self._message_end, **usage})

    def _end(self, delta: dict[str, Any]) -> None:
        self._frame(b"message-end", b'{"type":"message-end","delta":%b}' % dumps(delta))

    def error(self, event: ProviderFailed) -> None:
        """Write the end of a failed message, even if no start was written.

        The end has no usage: with usage, ``@ai-sdk/cohere`` takes it for the end of a complete message.
        """
        if has_detail(event, VENDOR):
            self.lose("error_detail")
        reason = "TIMEOUT" if event.type == "timeout" else "ERROR"
        self._end({**self._message_end, "finish_reason": reason, "error": event.message})


class CohereResponseWriter(ResponseWriter):
    """Writes one response, with content, tool plan, calls and citations in separate members of its message."""

    vendor = VENDOR

    def answer(self) -> dict[str, Any]:
        response, report = self.response, self.report
        choice = only_choice(response, report)
        message = self._message(choice)
        body: dict[str, Any] = {"id": response.id or self.encoding.make_id("msg_"), "message": message}
        for aside in choice.asides:
            self._aside(aside, body, message)
        reason, called = choice.stop_reason or "other", "tool_calls" in message
        found = finish_reason(reason, choice.native_stop_reason, called=called)
        body["finish_reason"] = stop_word(found, choice.stop_sequence, report)
        if response.usage is not None:
            body["usage"] = encode_usage(response.usage, report)
        if not message.get("content") and "tool_calls" not in message:
            message["content"] = [{"type": "text", "text": ""}]
        extras = dict(self.own_extras(self.response.extras, "response_fields"))
        add_missing(message, extras.pop("delta", {}))
        return add_missing(body, extras)

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        raw = failure.raw
        if failure.vendor == VENDOR and isinstance(raw, dict) and text_of(raw.get("message")):
            return raw
        if has_detail(failure, VENDOR):
            self.report.lose("error_detail")
        return {"message": failure.message}

    def _message(self, choice: Choice) -> dict[str, Any]:
        self.lose_order(choice)
        self.lose_sealed(choice)
        plans = [part.text for part in choice.parts if self._is_plan(part)]
        if len(plans) > 1:
            self.report.lose("block_boundary", len(plans) - 1)
        if choice.refusal:
            self.report.lose("refusal_as_text")
        content = list[dict[str, Any]]()
        joins = False  # whether a text continues the last part, as in ``CohereEncoder.text``
        for part in choice.parts:
            if (written := self._part(part)) is not None:
                if joins and isinstance(part, Text):
                    content[-1]["text"] += written["text"]
                else:
                    content.append(written)
            if not isinstance(part, Aside):
                joins = isinstance(part, Text) and bool(part.text) and self.response.vendor != VENDOR
        calls = [written for call in choice.tool_calls if (written := self._call(call)) is not None]
        plan = one_string(plans) if plans else None
        return {"role": "assistant", **without_none(tool_plan=plan, tool_calls=calls or None, content=content or None)}

    def place_of(self, part: Part) -> int | None:
        """Return the place of a part in a message: the plan, then the content, then the calls."""
        if isinstance(part, Aside | RedactedReasoning):
            return None
        return 0 if self._is_plan(part) else 2 if isinstance(part, ToolCall) else 1

    def _is_plan(self, part: Part) -> TypeGuard[Reasoning]:
        """Return whether a part is the tool plan: Cohere's summary. Another vendor's summary is written as thinking."""
        return isinstance(part, Reasoning) and part.kind == "summary" and self.response.vendor == VENDOR

    def _part(self, part: Part) -> dict[str, Any] | None:
        match part:
            case Text() | Refusal() if part.text:
                return {"type": "text", "text": part.text}
            case Reasoning() if part.text and not self._is_plan(part):
                return {"type": "thinking", "thinking": part.text}
            case Aside():
                return content_of(part)
            case _:
                return None

    def _call(self, call: ToolCall) -> dict[str, Any] | None:
        """Return one call; None if no client may run it."""
        if not call.name or not call.ended:
            self.withhold(call)
            return None
        if call.kind == "custom":
            self.report.lose("custom_tool_wrapped")
        return add_missing(function_call(call, call.id, call.name), self.own_extras(call.extras))

    def _aside(self, aside: Aside, body: dict[str, Any], message: dict[str, Any]) -> None:
        """Write an aside of this dialect as a member of the body or of its message; count any other as lost."""
        name = aside.type
        if aside.vendor != VENDOR:
            self.report.lose(aside.kind, what=name_of(aside))
        elif aside.kind == "citation":
            message.setdefault("citations", []).append(aside.raw)
        elif aside.kind == "logprobs":
            body.setdefault("logprobs", []).append(aside.raw)
        elif name.startswith(MESSAGE_END) and has_value(aside.raw):
            body.setdefault(name.removeprefix(MESSAGE_END), aside.raw)
        elif content_of(aside) is None and name != "content-end":
            self.report.lose(aside.kind, what=name)
