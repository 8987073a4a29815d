"""Cohere's whole responses and error bodies, both directions.

Reading. A whole body is told as the events of a stream, which the decoder of streams then reads: the start, the tool plan, the
parts of the content, calls, citations, the end. The body of an HTTP error is a ``message``.

Writing. The content has any number of parts in order; the tool plan, the calls and the citations stand beside it. An answer
that says nothing has one empty text, since programs look for the first part. What is lost is counted as the encoder of streams
does.

Source: dialects.md §6.2, §7.1; the response types of cohere 7.3.1.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from streamkit.conversation.messages import (
    Choice,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
)
from streamkit.dialects.bodies.request_writer import merged
from streamkit.dialects.cohere.decode import CohereDecoder
from streamkit.dialects.cohere.encode import MESSAGE_END
from streamkit.dialects.cohere.wire import (
    VENDOR,
    content_of,
    encode_usage,
    finish_reason,
    less_counted,
    less_detailed,
)
from streamkit.dialects.members.values import said, text_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import failure_of, only_choice, wrapped_input
from streamkit.dialects.streams.frame_decoder import read_body
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import TooManyToolCalls
from streamkit.events import Aside, ProviderFailed, TextDelta, WireEvent
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: What is read of a body, and of the message in it. The rest is the vendor's own.
BODY_FIELDS: Final = frozenset({"id", "finish_reason", "message", "usage", "logprobs", "error"})
MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_plan", "tool_calls", "citations"})


def decode_response(body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
    """The wire events of a whole body. Raises NotThisDialect, and what broke the reading."""
    return read_body(CohereBodyDecoder(limits, report), body)


def encode_response(response: Response, encoding: Encoding, report: StreamReport) -> dict[str, Any]:
    """A whole body as JSON values."""
    return CohereResponseWriter(response, encoding, report).body()


class CohereBodyDecoder(CohereDecoder):
    def decode(self, document: dict[str, Any]) -> None:
        message = document.get("message")
        if "finish_reason" in document:
            message = self.alone(message)
        if isinstance(message, dict) and "finish_reason" in document:
            self.recognised = True
            self._begin_message(document, message)
            self._contents(message)
            self._tool_calls(message)
            for citation in self.items(message.get("citations")):
                self.citation(_told("citations", citation))
            self._logprobs(document)
            self.message_end({"delta": {name: document.get(name) for name in ("finish_reason", "usage", "error")}})
        elif text_of(message):
            self.recognised = True
            self.out.append(provider_failed(document, VENDOR, {}))
        else:
            self.other(document, "body")

    def _begin_message(self, document: dict[str, Any], message: dict[str, Any]) -> None:
        beside = {name: value for name, value in document.items() if name not in BODY_FIELDS}
        inner = {name: value for name, value in message.items() if name not in MESSAGE_FIELDS}
        start = {"role": message.get("role"), **inner}
        self.message_start({**beside, "id": document.get("id"), "delta": {"message": start}})
        self.tool_plan(_told("tool_plan", message.get("tool_plan")))

    def _contents(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        parts = [content] if type(content) is str else [part for _, part in self.listed(content)]
        for index, part in enumerate(parts):
            document = {"index": index, **_told("content", part)}
            self.content_start(document)
            self.content_end(document)

    def _tool_calls(self, message: dict[str, Any]) -> None:
        listed = self.listed(message.get("tool_calls"))
        if len(listed) > self.limits.content_blocks:  # far beyond the limit of calls
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        for index, (step, call) in enumerate(listed):
            self.call_path = ("message", "tool_calls", *step)
            document = {"index": index, **_told("tool_calls", call)}
            before = len(self.out)
            self.call_start(document)
            self._unread(document, "tool-call-start", before)
            self.call_end(document)

    def _logprobs(self, document: dict[str, Any]) -> None:
        """Log probabilities, of which nobody says to which part they belong: the first text's."""
        block = next((event.block for event in self.out if isinstance(event, TextDelta)), 0)
        for item in self.items(document.get("logprobs")):
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", item, block=block))


def _told(name: str, value: Any) -> dict[str, Any]:
    """A member of the message as an event of a stream has it."""
    return {"delta": {"message": {name: value}}}


class CohereResponseWriter:
    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        self.response = response
        self.encoding = encoding
        self.report = report

    def body(self) -> dict[str, Any]:
        response, report = self.response, self.report
        failure = failure_of(response, report)
        if failure is not None:
            return self._error(failure)
        choice = only_choice(response, report)
        message = self.message(choice)
        body: dict[str, Any] = {"id": response.id or self.encoding.make_id("msg_"), "message": message}
        for aside in choice.asides:
            self.aside(aside, body, message)
        body["finish_reason"] = self._finish_reason(choice, called="tool_calls" in message)
        if response.usage is not None:
            body["usage"] = encode_usage(response.usage)
            if less_counted(response.usage):
                report.lose("usage_detail")
        if not message.get("content") and "tool_calls" not in message:
            message["content"] = [{"type": "text", "text": ""}]
        return self._with_extras(body, message)

    def _with_extras(self, body: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
        extras = dict(self.response.extras)
        if extras and self.response.vendor != VENDOR:
            self.report.lose("response_fields")
            return body
        merged(message, extras.pop("delta", {}))
        return merged(body, extras)

    def _error(self, failure: ProviderFailed) -> dict[str, Any]:
        raw = failure.raw
        if failure.vendor == VENDOR and isinstance(raw, dict) and text_of(raw.get("message")):
            return raw
        if less_detailed(failure):
            self.report.lose("error_detail")
        return {"message": failure.message}

    def _finish_reason(self, choice: Choice, *, called: bool) -> str:
        reason, is_less = finish_reason(choice.stop_reason or "other", called=called)
        if is_less:
            self.report.lose("stop_reason")
        if choice.stop_sequence is not None:
            self.report.lose("stop_sequence")
        return reason

    # -- the message -----------------------------------------------------------------------------------------------

    def message(self, choice: Choice) -> dict[str, Any]:
        self._count(choice)
        plans = [part.text for part in choice.parts if self._is_plan(part)]
        content = [written for part in choice.parts if (written := self._part(part)) is not None]
        calls = [written for call in choice.tool_calls if (written := self.call(call)) is not None]
        message: dict[str, Any] = {"role": "assistant"}
        if plans:
            message["tool_plan"] = "".join(plans)
        if calls:
            message["tool_calls"] = calls
        if content:
            message["content"] = content
        return message

    def _count(self, choice: Choice) -> None:
        """Count what the shape of a message loses."""
        lose = self.report.lose
        order = plans = 0
        for part in choice.parts:
            if isinstance(part, RedactedReasoning):
                lose("reasoning_opaque")
            elif isinstance(part, Text | Reasoning | ToolCall) and part.signature is not None:
                lose("reasoning_signature")
            plans += self._is_plan(part)
            place = 0 if self._is_plan(part) else 2 if isinstance(part, ToolCall) else 1
            if isinstance(part, Aside | RedactedReasoning):
                continue
            if place < order:
                lose("block_order")
            order = place
        if plans > 1:
            lose("block_boundary", plans - 1)
        if choice.refusal:
            lose("refusal_as_text")

    def _is_plan(self, part: Part) -> TypeGuard[Reasoning]:
        """Whether a part is the tool plan: this vendor's summary. What others call one is thinking here."""
        return isinstance(part, Reasoning) and part.kind == "summary" and self.response.vendor == VENDOR

    def _part(self, part: Part) -> dict[str, Any] | None:
        """A part of the content."""
        match part:
            case Text() | Refusal() if part.text:
                return {"type": "text", "text": part.text}
            case Reasoning() if part.text and not self._is_plan(part):
                return {"type": "thinking", "thinking": part.text}
            case Aside():
                return content_of(part)
            case _:
                return None

    def call(self, call: ToolCall) -> dict[str, Any] | None:
        """One call; None for one that a client could do nothing with. Readers parse the arguments, and "" is no JSON."""
        if not call.name or not call.ended:
            self.report.withhold("call_withheld", call.id, call.name, call.arguments)
            return None
        arguments = call.arguments if call.arguments.strip() else "{}"
        if call.kind == "custom":
            self.report.lose("custom_tool_wrapped")
            arguments = wrapped_input(call.arguments)
        written: dict[str, Any] = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments},
        }
        if call.extras and self.response.vendor == VENDOR:
            return merged(written, call.extras)
        if call.extras:
            self.report.lose("metadata")
        return written

    # -- beside the text -------------------------------------------------------------------------------------------

    def aside(self, aside: Aside, body: dict[str, Any], message: dict[str, Any]) -> None:
        """What only this dialect knows, in its place."""
        name = aside.type
        if aside.vendor != VENDOR:
            self.report.lose(aside.kind, what=name)
        elif aside.kind == "citation":
            message.setdefault("citations", []).append(aside.raw)
        elif aside.kind == "logprobs":
            body.setdefault("logprobs", []).append(aside.raw)
        elif name.startswith(MESSAGE_END) and said(aside.raw):
            body.setdefault(name.removeprefix(MESSAGE_END), aside.raw)
        elif content_of(aside) is None and name != "content-end":
            self.report.lose(aside.kind, what=name)
