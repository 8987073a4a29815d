"""Encode events as Cohere events: blocks and calls one after another, and the end of the message with the usage.

Clients keep one pending call, so nothing may come between a call's start, its fragments and its end. The tool plan has
neither start nor end. A message has separate fields for its text, its calls and its tool plan, so text after a call loses its
position. Only the first choice is written.

Source: dialects.md §6.2, §7.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from streamkit.dialects.cohere.wire import DEBUG, VENDOR, encode_usage, finish_reason
from streamkit.dialects.members.known import unknown_event
from streamkit.dialects.streams.block_encoder import FEW, BlockEncoder
from streamkit.dialects.streams.block_queue import BlockQueue, QueuedBlock
from streamkit.dialects.streams.event_encoder import EventEncoder, stop_word
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

dumps = orjson.dumps
MESSAGE_END = "message-end."
#: The form that the name of an unknown event needs to be copied into the output. A name with a line end could forge another
#: event (limits.md T1).
NAME = re.compile(r"[a-z][a-z-]{0,63}")
EVENT = b'event: %b\ndata: {"type":"%b",%b}\n\n'
#: Templates for the events with a fragment of text, of a call and of the tool plan.
CONTENT_DELTA = b'event: content-delta\ndata: {"type":"content-delta","index":%d,%b}\n\n'
CALL_DELTA = b'event: tool-call-delta\ndata: {"type":"tool-call-delta","index":%d,%b}\n\n'
PLAN_DELTA = b'"delta":{"message":{"tool_plan":%b}}'


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
            self._event(
                b"tool-call-start", b'"index":%d,"delta":{"message":{"tool_calls":%b}}' % (block.index, block.start)
            )
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
    text_delta = b'"delta":{"message":{"content":{"text":%b}}}'
    thinking_delta = b'"delta":{"message":{"content":{"thinking":%b}}}'

    _citations = 0
    _behind_call = False  # whether the next text follows a call
    _message_end: Mapping[str, Any] = {}

    # -- the message -----------------------------------------------------------------------------------------------

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

    # -- text and reasoning ----------------------------------------------------------------------------------------

    def text(self, event: TextDelta) -> None:
        self._place()
        super().text(event)

    def refusal(self, event: RefusalDelta) -> None:
        self._place()
        super().refusal(event)

    def reasoning(self, event: ReasoningDelta) -> None:
        """Write reasoning. A summary that Cohere's model made is written as the tool plan, any other reasoning as thinking."""
        self._place()
        if self._is_plan(event):
            self._blocks.text(("plan", event.block), PLAN_DELTA % dumps(event.text))
        else:
            super().reasoning(event)

    def _is_plan(self, event: ReasoningDelta) -> bool:
        return event.kind == "summary" and self._vendor == VENDOR

    def _place(self) -> None:
        if self._behind_call:
            self._behind_call = False
            self.lose("block_order")

    signature = EventEncoder.signature
    opaque = EventEncoder.opaque

    def redacted(self, _data: str, _number: int) -> None:
        """Count the loss of a call's signature, for which there is no place."""
        self.lose("reasoning_signature")

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_start(self, event: ToolCallStarted) -> bytes:
        self._behind_call = True
        function = {"name": event.name, "arguments": ""}
        return dumps({"id": event.id, "type": "function", "function": function, **self.own_extras(event.extras)})

    # -- asides ----------------------------------------------------------------------------------------------------

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

    # -- the end ---------------------------------------------------------------------------------------------------

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
