"""Encode events as Ollama lines that the strictest client accepts. Every call is complete in one line.

Source: dialects.md §4.4, §0 (the strict reader), §0.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from streamkit.dialects.ollama.wire import VENDOR, done_reason, encode_error, encode_usage, takes_ids, write_image
from streamkit.dialects.streams.event_encoder import encode_time, stop_word
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
        call_id = b'"id":%b,' % dumps(call.id) if takes_ids(self.encoding.profile) else b""
        if not call_id and not start.id_made:
            self.lose("call_id")
        self._line(
            b'"content":"","tool_calls":[{%b"function":{"name":%b,"arguments":%b}}]'
            % (call_id, dumps(call.name), arguments)
        )

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return write_image(media)

    def aside(self, event: Aside) -> None:
        if event.vendor == VENDOR and event.kind == "logprobs":
            self._line(b'"content":""', b'"logprobs":%b,"done":false' % dumps(event.raw))
        elif event.vendor == VENDOR and event.type.startswith("message."):
            self._line(b'"content":"",' + dumps({event.type.removeprefix("message."): event.raw})[1:-1])
        elif event.vendor == VENDOR and event.kind == "metadata":
            self._line(b'"content":""', dumps({event.type: event.raw, "done": False})[1:-1])
        else:
            super().aside(event)

    def terminate(self) -> None:
        stop = self.stop or ResponseFinished("stop")
        found = done_reason(stop.reason, stop.native, called=self._called)
        reason = stop_word(found, stop.stop_sequence, self.report)
        counts = encode_usage(self._usage, self.report, self.encoding, self._first_s)
        last = {"done": True, "done_reason": reason, **counts}
        self._line(b'"content":""', dumps(last)[1:-1])

    def error(self, event: ProviderFailed) -> None:
        self.write(serialize_ndjson(dumps(encode_error(event, self.report))))
