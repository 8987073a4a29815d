"""Events to Ollama lines: every line whole for the strictest reader, every call whole in one line.

A call is held until it has its verdict, because its arguments must be an object: a complete text is embedded as it is (its
numbers and key order are the model's), an empty one is ``{}``, one that is no object is wrapped under one key, and a
truncated one is withheld: a client would execute it (design.md §4, seeds.md S4).

Source: dialects.md §4.4, §0 (the strict reader), §0.4.
"""

from __future__ import annotations

from typing import Any

import orjson

from streamkit.dialects.ollama.wire import VENDOR, done_reason, encode_usage, takes_ids
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.call_order import CallOrder
from streamkit.dialects.streams.event_encoder import OneChoiceEncoder, encode_time, stop_word
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.events import (
    Aside,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.framing.ndjson import serialize_ndjson
from streamkit.report import StreamReport

dumps = orjson.dumps


class OllamaEncoder(OneChoiceEncoder):
    """Writes one choice of a response as lines of ``/api/chat``."""

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._head: bytes = b""
        self._blocks: dict[type, int] = {}
        self._refused = False
        self._calls = CallOrder()
        self._behind_call = False  # the next text stands behind a call
        self._stop: ResponseFinished | None = None

    # -- lines -----------------------------------------------------------------------------------------------------

    def response_started(self, event: ResponseStarted) -> None:
        seconds = event.created if event.created is not None else self.encoding.clock()
        head = {"model": event.model or self.encoding.profile.model, "created_at": encode_time(seconds)}
        self._head = dumps(head)[:-1]
        if event.extras:
            self.lose("response_fields")

    def _line(self, message: bytes, rest: bytes = b'"done":false') -> None:
        """Write a line with all that a strict reader asks for: model, created_at, message with role and content."""
        if not self._head:
            self.response_started(ResponseStarted())
        self.write(b'%b,"message":{"role":"assistant",%b},%b}\n' % (self._head, message, rest))

    # -- text and reasoning ----------------------------------------------------------------------------------------

    def text(self, event: TextDelta) -> None:
        self._place(event)
        self._line(b'"content":%b' % dumps(event.text))

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self.lose("refusal_as_text")
        self._refused = True
        self._line(b'"content":%b' % dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self._place(event)
        self._line(b'"content":"","thinking":%b' % dumps(event.text))

    def _place(self, event: TextDelta | ReasoningDelta) -> None:
        """Ollama has one text and one reasoning stream: the boundary between two blocks of a kind is lost."""
        if self._blocks.setdefault(type(event), event.block) != event.block:
            self._blocks[type(event)] = event.block
            self.lose("block_boundary")
        if self._calls and self._behind_call:  # this text is written in front of a call that is held
            self._behind_call = False
            self.lose("block_order")

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_started(self, event: ToolCallStarted) -> None:
        self._calls.start(event)
        self._behind_call = True
        if event.signature is not None:
            self.lose("reasoning_signature")
        if event.extras:  # strict readers allow one key in a call (dialects.md §0)
            self.lose("metadata")

    def call_arguments(self, _event: ToolCallArguments) -> None:
        """Held: the finished call has the whole text."""

    def call_finished(self, event: ToolCallFinished) -> None:
        """Write it once the calls mentioned before it are written."""
        for start, finished in self._calls.finish(event):
            self._write_call(start, finished)

    def _write_call(self, start: ToolCallStarted, event: ToolCallFinished) -> None:
        arguments = self.object_arguments(event)
        if arguments is None or not event.name:
            self.withhold("call_withheld", event.id, event.name or None, event.arguments)
            return
        call_id = b'"id":%b,' % dumps(event.id) if takes_ids(self.encoding.profile) else b""
        if not call_id and not start.id_made:
            self.lose("call_id")
        self._line(
            b'"content":"","tool_calls":[{%b"function":{"name":%b,"arguments":%b}}]'
            % (call_id, dumps(event.name), arguments)
        )

    # -- asides ----------------------------------------------------------------------------------------------------

    def aside(self, event: Aside) -> None:
        if event.vendor == VENDOR and event.kind == "logprobs":
            self._line(b'"content":""', b'"logprobs":%b,"done":false' % dumps(event.raw))
        elif event.vendor == VENDOR and event.type.startswith("message."):
            self._line(b'"content":"",' + dumps({event.type.removeprefix("message."): event.raw})[1:-1])
        elif event.vendor == VENDOR and event.kind == "metadata":
            self._line(b'"content":""', dumps({event.type: event.raw, "done": False})[1:-1])
        else:
            self.lose(event.kind)

    # -- the end ---------------------------------------------------------------------------------------------------

    def finished(self, event: ResponseFinished) -> None:
        self._stop = event

    def terminate(self) -> None:
        stop = self._stop or ResponseFinished("stop")
        reason = stop_word(done_reason(stop.reason, stop.native), stop.stop_sequence, self.report)
        last = {"done": True, "done_reason": reason, **self._counts()}
        self._line(b'"content":""', dumps(last)[1:-1])

    def _counts(self) -> dict[str, Any]:
        counts, is_less = encode_usage(self._usage) if self._usage is not None else ({}, False)
        if is_less:
            self.lose("usage_detail")
        return counts

    def error(self, event: ProviderFailed) -> None:
        if has_detail(event, VENDOR):
            self.lose("error_detail")
        self.write(serialize_ndjson(dumps({"error": event.message})))
