"""Turns to Cohere's messages.

A turn is one message, and each result in it a ``tool`` message of its own in front; a request of another dialect gets them
right behind their calls. Images are for the user's messages only. A part of reasoning is a thinking, and this dialect's own
summary the tool plan. Nothing signed or encrypted has a place.

Source: dialects.md §6.2, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_writer import RequestWriter, as_error, data_uri, given, merged
from streamkit.dialects.cohere.wire import CITATION, DETAILS, VENDOR, content_of
from streamkit.dialects.streams.event_encoder import wrapped_input
from streamkit.events import Aside


class MessageWriter(RequestWriter):
    """The part of the writer of requests that writes messages."""

    dialect = "cohere"
    text_files = False
    vendor = VENDOR

    def messages(self) -> list[dict[str, Any]]:
        messages = self._messages()
        return list(messages) if self.own else self.answered(messages)

    def _messages(self) -> Iterator[dict[str, Any]]:
        for turn in self.request.turns:
            if turn.role == "assistant":
                message = self._assistant(turn)
                if self.own or message.keys() != {"role", "content"} or message["content"]:
                    yield message
                else:
                    self.report.repair("turn_empty")
                continue
            results = [part for part in turn.parts if isinstance(part, ToolResult)]
            if any(not isinstance(part, ToolResult) for part in turn.parts[: len(results)]):
                self.report.repair("result_moved")
            yield from map(self._result, results)
            said = [part for part in turn.parts if not isinstance(part, ToolResult)]
            if said or not results:
                yield self._named({"role": turn.role, "content": self._content(said, turn.role)}, turn)

    def _named(self, message: dict[str, Any], turn: Turn) -> dict[str, Any]:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        return merged(message, self.extras(turn.extras))

    # -- content ---------------------------------------------------------------------------------------------------

    def _content(self, parts: Sequence[Part], role: str) -> str | list[dict[str, Any]]:
        """A string for one plain text, else a list of parts."""
        written = [content for part in parts if (content := self._part(part, role)) is not None]
        if not written:
            return ""
        if len(written) == 1 and written[0].keys() == {"type", "text"}:
            return str(written[0]["text"])
        return written

    def _part(self, part: Part, role: str) -> dict[str, Any] | None:
        """One part of the content of a message of ``role``; None for what can't be."""
        match part:
            case Text() | Refusal():
                return self._text(part)
            case Media():
                return self._media(part, role)
            case Aside():
                content = content_of(part) if self.own else None
                if content is None:
                    self.lose(part.kind, part.type)
                return content
            case _:
                raise TypeError(f"content has no {type(part).__name__}")

    def _text(self, part: Text | Refusal) -> dict[str, Any] | None:
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        elif part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        if isinstance(part, Text) and part.cache is not None:
            self.lose("cache_mark", part.cache)
        extras = self.extras(part.extras)
        if isinstance(document := extras.get("document"), Mapping):
            data = orjson.Fragment(part.text) if document.get("data") == {} else part.text
            return {"type": "document", **extras, "document": {**document, "data": data}}
        return merged({"type": "text", "text": part.text}, extras) if part.text or self.own else None

    def _media(self, media: Media, role: str) -> dict[str, Any] | None:
        url = data_uri(media) if media.data is not None else media.url
        if role != "user" or media.kind != "image" or url is None:
            self.lose("media", media.kind)
            return None
        if not self.own and not url.startswith(("data:", "http:", "https:")):
            self.lose("media", "image, not at a URL of the web")
            return None
        if media.cache is not None:
            self.lose("cache_mark", media.cache)
        detail = media.detail
        if detail is not None and detail not in DETAILS and not self.own:
            self.lose("metadata", "detail")
            detail = None
        return merged({"type": "image_url", "image_url": given(url=url, detail=detail)}, self.extras(media.extras))

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _assistant(self, turn: Turn) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        plans: list[str] = []
        calls: list[dict[str, Any]] = []
        citations: list[Any] = []
        for part in turn.parts:
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                    continue
                case Aside(type=name) if name == CITATION and self.own and part.vendor == VENDOR:
                    citations.append(part.raw)
                    continue
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                    continue
                case Reasoning(kind="summary") if self.own and part.extras is None:
                    late = bool(content or calls)
                    plans.append(self._visible(part))
                case _:
                    said = self._said_or_thought(part)
                    late = bool(said and calls)
                    content += said
            if late:
                self.lose("block_order")
        if len(plans) > 1:
            self.report.lose("block_boundary", len(plans) - 1)
        message = {"role": "assistant", **given(tool_plan="".join(plans) or None, tool_calls=calls or None)}
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            message["content"] = content[0]["text"]
        elif content or message.keys() == {"role"}:
            message["content"] = content or ""
        if citations:
            message["citations"] = citations
        return self._named(message, turn)

    def _said_or_thought(self, part: Part) -> list[dict[str, Any]]:
        if isinstance(part, Reasoning):
            extras, text = self.extras(part.extras), self._visible(part)
            return [merged({"type": "thinking", "thinking": text}, extras)] if text else []
        written = self._part(part, "assistant")
        return [] if written is None else [written]

    def _visible(self, part: Reasoning) -> str:
        if part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        return part.text

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = call.arguments if call.arguments.strip() else "{}"
        if call.kind == "custom":
            self.lose("custom_tool_wrapped", call.name)
            arguments = wrapped_input(call.arguments)
        if call.signature is not None:
            self.lose("reasoning_signature", call.signature.vendor)
        if call.cache is not None:
            self.lose("cache_mark", call.cache)
        function = {"name": self.tool_name(call.name), "arguments": arguments}
        written = {"id": self.call_id(call.id), "type": "function", "function": function}
        return merged(written, self.extras(call.extras))

    def _result(self, result: ToolResult) -> dict[str, Any]:
        """A ``tool`` message: text, and documents of this dialect."""
        parts: list[Part] = list(result.parts)
        if result.is_error:
            self.lose("result_error", result.call_id)
            parts = as_error(parts)
        if result.cache is not None:
            self.lose("cache_mark", result.cache)
        content = self._content(parts, "tool")
        message = {"role": "tool", "tool_call_id": self.call_id(result.call_id), "content": content}
        return merged(message, self.extras(result.extras))
