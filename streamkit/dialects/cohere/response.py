"""Write Cohere's whole responses and error bodies. ``CohereBodyDecoder`` reads them.

The content has any number of parts in order; the tool plan, the calls and the citations are members next to it. A response
without content and calls has one empty text, since programs read the first part. Losses are counted as in streams.

Source: dialects.md §6.2, §7.1; the response types of cohere 7.3.1.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from streamkit.conversation.messages import Choice, Part, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.response_writer import ResponseWriter
from streamkit.dialects.cohere.encode import MESSAGE_END
from streamkit.dialects.cohere.wire import VENDOR, content_of, encode_usage, finish_reason
from streamkit.dialects.members.values import has_value, text_of
from streamkit.dialects.streams.event_encoder import function_call, only_choice, stop_word
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.events import Aside, ProviderFailed
from streamkit.text.one_string import one_string


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
        content = [written for part in choice.parts if (written := self._part(part)) is not None]
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
            self.report.lose(aside.kind, what=name)
        elif aside.kind == "citation":
            message.setdefault("citations", []).append(aside.raw)
        elif aside.kind == "logprobs":
            body.setdefault("logprobs", []).append(aside.raw)
        elif name.startswith(MESSAGE_END) and has_value(aside.raw):
            body.setdefault(name.removeprefix(MESSAGE_END), aside.raw)
        elif content_of(aside) is None and name != "content-end":
            self.report.lose(aside.kind, what=name)
