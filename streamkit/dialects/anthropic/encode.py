"""Events to Anthropic events: a strict state machine, because its readers index blocks by position.

``BlockWriter`` holds the grammar of blocks; here events find their block. The message's end
waits for ``StreamEnded``, since usage may come after the stop reason. One choice is written, the first.

Source: dialects.md §3.3, §0.4, quirks.md §8, §9.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
from attrs import evolve

from streamkit.dialects.anthropic.blocks import STARTS, Block, BlockWriter, Key
from streamkit.dialects.anthropic.wire import ERROR_NAMES, INEXACT_STOPS, STOP_NAMES, VENDOR, encode_usage
from streamkit.dialects.base import Encoding
from streamkit.dialects.encoding import OneChoiceEncoder, wrapped_input
from streamkit.dialects.opaque import Kind, seal
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.report import StreamReport

dumps = orjson.dumps
MESSAGE_DELTA = "message_delta."
#: Fields that a message_delta may have; more is no message.
FEW = 64


#: Names of events and blocks that may be copied from the wire: nothing in them can end a line (limits.md T1).
NAME = re.compile(r"[a-z][a-z_]{0,63}")


def _is_event(name: str, raw: Any) -> bool:
    """Whether an unknown event of this vendor can be written as it came."""
    return isinstance(raw, dict) and raw.get("type") == name and NAME.fullmatch(name) is not None


def _is_error(raw: Any) -> bool:
    """Whether an error of this vendor can be written as it came."""
    return isinstance(raw, dict) and isinstance(raw.get("type"), str) and isinstance(raw.get("message"), str)


class AnthropicEncoder(OneChoiceEncoder):
    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._blocks = BlockWriter(self._event, encoding.limits)
        self._started = False
        self._vendor = ""
        self._calls: dict[int, Block] = {}
        self._custom: set[int] = set()
        self._cut: dict[Key, ToolCallFinished] = {}
        self._citations: dict[Key, list[bytes]] = {}
        self._thought: set[int] = set()  # blocks of thinking that were begun
        self._refused = False
        self._usage: UsageReported | None = None
        self._stop: ResponseFinished | None = None
        self._message_delta: dict[str, Any] = {}

    # -- the message -----------------------------------------------------------------------------------------------

    def _event(self, name: bytes, payload: bytes) -> None:
        if not self._started and name != b"error":
            self.response_started(ResponseStarted())
        self.write(b"event: %b\ndata: %b\n\n" % (name, payload))

    def response_started(self, event: ResponseStarted) -> None:
        self._started = True
        self._vendor = event.vendor
        message: dict[str, Any] = {
            "id": event.id or self.encoding.make_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": event.model or "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": encode_usage(event.usage),
        }
        if event.extras:
            if event.vendor == VENDOR:
                message.update(event.extras)
            else:
                self.lose("response_fields")
        self._event(b"message_start", b'{"type":"message_start","message":%b}' % dumps(message))

    def choice_started(self, event: ChoiceStarted) -> None:
        self._is_ours(event.choice)

    # -- text and reasoning ----------------------------------------------------------------------------------------

    def text(self, event: TextDelta) -> None:
        if self._is_ours(event.choice):
            key = ("text", event.block)
            self._blocks.text(key, b'{"type":"text_delta","text":%b}' % dumps(event.text))
            if key in self._citations:
                for citation in self._citations.pop(key):
                    self._blocks.text(key, citation)

    def refusal(self, event: RefusalDelta) -> None:
        if self._is_ours(event.choice):
            if not self._refused:
                self.lose("refusal_as_text")
            self._refused = True
            self._blocks.text(("refusal", event.block), b'{"type":"text_delta","text":%b}' % dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        if self._is_ours(event.choice):
            self._thought.add(event.block)
            self._blocks.text(("thinking", event.block), b'{"type":"thinking_delta","thinking":%b}' % dumps(event.text))

    def signature(self, event: ReasoningSignature) -> None:
        if not self._is_ours(event.choice):
            return
        if event.on == "text":
            last = self._blocks.last
            kind: Kind = "text" if last is not None and last.key == ("text", event.block) else "part"
            self._redacted(seal(kind, event.vendor, event.blob), event.block)
            return
        key = ("thinking", event.block)
        block = self._blocks.find(key)
        signer = "" if event.vendor == VENDOR else event.vendor
        if block is None and event.block not in self._thought:  # omitted thinking: a signature alone
            block = self._blocks.add(key, STARTS["thinking"])
            self._thought.add(event.block)
        if block is None or (block.signature and block.signer != signer):
            self.lose("reasoning_signature")  # its block had to be closed: a signature proves its own text only
            return
        self._blocks.hold(len(event.blob))
        block.signature.append(event.blob)
        block.signer = signer

    def opaque(self, event: ReasoningOpaque) -> None:
        if self._is_ours(event.choice):
            data = event.blob if event.vendor == VENDOR else seal("opaque", event.vendor, event.blob)
            self._redacted(data, event.block)

    def _redacted(self, data: str, number: int) -> None:
        start = dumps({"type": "redacted_thinking", "data": data})
        self._blocks.end(self._blocks.add(("redacted_thinking", number), start))

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_started(self, event: ToolCallStarted) -> None:
        if self._is_ours(event.choice) and event.name:
            start: dict[str, Any] = {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
            if event.extras and self._vendor == VENDOR:
                start.update(event.extras)
            elif event.extras:
                self.lose("metadata")
            if event.signature is not None:  # Anthropic signs no calls: it stands before the call, sealed
                self._redacted(seal("call", event.signature.vendor, event.signature.blob), event.call)
            self._calls[event.call] = self._blocks.add(("call", event.call), dumps(start), needs_end=True)
            if event.kind == "custom":
                self._custom.add(event.call)

    def call_arguments(self, event: ToolCallArguments) -> None:
        if event.choice != self._choice or event.call in self._custom:
            return
        block = self._calls.get(event.call)
        if block is None:
            return  # nameless: withheld when it ends
        if block.closed:
            self.withhold("late_arguments", None, None, event.fragment)
        else:
            self._blocks.arguments(block, event.fragment)

    def call_finished(self, event: ToolCallFinished) -> None:
        if event.choice != self._choice:
            return
        block = self._calls.get(event.call)
        if block is None or (event.call in self._custom and not event.ended):
            self.withhold("call_withheld", event.id, event.name or None, event.arguments)
        elif not event.ended:
            self._cut[block.key] = event
        elif not block.closed:
            if event.call in self._custom:
                self.lose("custom_tool_wrapped")
                self._blocks.arguments(block, wrapped_input(event.arguments))
            self._blocks.end(block)

    # -- beside the text -------------------------------------------------------------------------------------------

    def usage_reported(self, event: UsageReported) -> None:
        self._usage = event

    def aside(self, event: Aside) -> None:
        if event.vendor != VENDOR:
            self.lose(event.kind)
        elif event.type == "citations_delta":
            self._citation(event)
        elif event.type.startswith(MESSAGE_DELTA):
            if len(self._message_delta) < FEW:
                self._message_delta[event.type.removeprefix(MESSAGE_DELTA)] = event.raw
            else:
                self.lose(event.kind)
        elif event.type == "content_block_start":
            if NAME.fullmatch(event.raw["content_block"]["type"]) is None:
                self.lose(event.kind)
            else:
                self._blocks.add(("raw", event.block), dumps(event.raw["content_block"]), needs_end=True)
        elif event.type in {"content_block_delta", "content_block_stop"}:
            block = self._blocks.find(("raw", event.block))
            if block is None:
                self.lose(event.kind)
            elif event.type == "content_block_stop":
                self._blocks.end(block)
            elif isinstance(event.raw.get("delta"), dict):
                self._blocks.delta(block, dumps(event.raw["delta"]))
            else:
                self.lose(event.kind)
        elif event.kind == "unknown_event" and _is_event(event.type, event.raw):
            self._event(event.type.encode(), dumps(event.raw))
        else:
            self.lose(event.kind)

    def _citation(self, event: Aside) -> None:
        """A citation may come before its block's first text, and a text block is not opened without text."""
        key = ("text", event.block)
        delta = b'{"type":"citations_delta","citation":%b}' % dumps(event.raw)
        if self._blocks.last is not None and self._blocks.last.key == key:
            self._blocks.text(key, delta)
        else:
            self._blocks.hold(len(delta))
            self._citations.setdefault(key, []).append(delta)

    # -- the end ---------------------------------------------------------------------------------------------------

    def finished(self, event: ResponseFinished) -> None:
        if self._is_ours(event.choice):
            self._stop = event

    def terminate(self) -> None:
        self._blocks.finish()
        for citations in self._citations.values():
            self.report.lose("citation", len(citations))
        self._count_usage_losses()
        stop = self._stop or ResponseFinished("stop")
        if stop.reason == "tool_calls" and not self._calls:
            stop = evolve(stop, reason="stop")  # every call was withheld: the client would wait for one
            self.lose("stop_reason")
        elif stop.reason in INEXACT_STOPS:
            self.lose("stop_reason")
        delta = {
            "stop_reason": STOP_NAMES[stop.reason],
            "stop_sequence": stop.stop_sequence,
            **self._message_delta,
        }
        self._event(
            b"message_delta",
            b'{"type":"message_delta","delta":%b,"usage":%b}' % (dumps(delta), dumps(encode_usage(self._usage))),
        )
        self._event(b"message_stop", b'{"type":"message_stop"}')

    def _count_usage_losses(self) -> None:
        usage = self._usage or UsageReported()
        if usage.input_total is None or usage.output_total is None:
            self.lose("usage_unknown")
        elif usage.total not in {None, usage.input_total + usage.output_total}:
            self.lose("usage_detail")

    def flush(self) -> None:
        waiting = {key for key in self._cut if (block := self._blocks.find(key)) is not None and block.index < 0}
        for key in waiting:
            call = self._cut[key]
            self.withhold("cut_call", call.id, call.name, call.arguments)
        self._blocks.flush(drop=waiting)

    def error(self, event: ProviderFailed) -> None:
        if event.vendor == VENDOR and _is_error(event.raw):
            self._event(b"error", b'{"type":"error","error":%b}' % dumps(event.raw))
            return
        kind = event.native_type if event.vendor == VENDOR and event.native_type else ERROR_NAMES[event.type]
        if event.code is not None and event.type != "truncated":
            self.lose("error_detail")
        self._event(b"error", b'{"type":"error","error":%b}' % dumps({"type": kind, "message": event.message}))
