"""The neutral conversation to Cohere's v2 chat requests.

A turn is one message, and each result in it a ``tool`` message of its own in front; a request of another dialect gets them
right behind their calls. Images are for the user's messages only. A part of reasoning is a thinking, and this dialect's own
summary the tool plan. Nothing signed or encrypted has a place.

The server refuses fields that it does not know. A tool can't be named: such a choice is written as the only tool, which must
then be called, and counted; a choice of some is one of all that are offered. One member says for all tools whether calls must
fit their schemas. Numbers that other dialects take and this one does not become the nearest that it takes.

Source: dialects.md §6.2, §7.3, §7.4; the documentation in the client of cohere 7.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from streamkit.conversation.messages import (
    Media,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.json_members import add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.bodies.message_writer import MessageWriter
from streamkit.dialects.bodies.request_writer import as_error
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.cohere.wire import CITATION, OPTIONS, RANGES, VENDOR, content_of
from streamkit.dialects.streams.event_encoder import function_call
from streamkit.dialects.vocabulary.reasoning_effort import below, budget_of
from streamkit.events import Aside
from streamkit.text.one_string import one_string

#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "output", "thinking"})


class CohereRequestWriter(MessageWriter):
    """Writes one request."""

    dialect = "cohere"
    most_stops = 5
    text_files = False
    vendor = VENDOR
    form_with_tools = False

    def request_body(self) -> dict[str, Any]:
        """The body. Raises BadRequest for more than one choice."""
        request, options = self.request, self.request.options
        self.one_choice("Cohere")
        body = without_none(model=request.model)
        body["messages"] = list(self.messages())
        offered = chosen_of(request.tools, request.tool_choice)
        definitions = [self.function_tool(tool, lambda schema: schema or {}) for tool in offered]
        tools = [tool for tool in definitions if tool is not None]
        body |= without_none(tools=tools or None, strict_tools=self._strict(offered))
        body |= without_none(tool_choice=self._tool_choice(request.tool_choice, tools))
        body |= self._numbers(self.options(OPTIONS, BESIDE))
        body |= without_none(
            thinking=self._thinking(options.thinking),
            response_format=self._output(options.output),
            stream=request.stream,
        )
        return add_missing(body, self.request_extras())

    # -- options ---------------------------------------------------------------------------------------------------

    def _numbers(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options within the ranges that the server takes."""
        if self.own:
            return options
        for name, (least, most) in RANGES.items():
            if name in options and not least <= options[name] <= most:
                self.lose("parameter", name)
                options[name] = min(max(options[name], least), most)
        return options

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any] | None:
        if thinking is None:
            return None
        if not self.own and not self.model.efforts:
            self.lose("parameter", "thinking")
            return None
        self.lose_members(thinking, "thinking", "summary")
        if thinking.effort not in {None, "none"}:
            self.lose("parameter", "thinking.effort")
        budget, enabled = thinking.budget_tokens, thinking.enabled
        if budget is not None and budget <= 0 and not self.own:  # none, or as the model likes (Gemini)
            enabled = budget < 0 if enabled is None else enabled
            budget = None
        if budget is None and enabled is not False:  # an effort has no other form here
            budget = below(budget_of(thinking.effort) or 0, self.request.options.max_tokens) or None
        if enabled is None:
            if thinking.effort is None and budget is None:
                return None
            enabled = thinking.effort != "none"
        return without_none(
            type="enabled" if enabled else "disabled", token_budget=budget if enabled or self.own else None
        )

    def _output(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None:
            return None
        if output.kind == "text":
            return {"type": "text"}
        self.lose_members(output, "output", "name", "description", kind="metadata")
        return without_none(type="json_object", json_schema=output.schema)

    # -- tools -----------------------------------------------------------------------------------------------------

    def _strict(self, tools: Sequence[Tool]) -> bool | None:
        """Whether all calls must fit their tools; where only some must, that is lost."""
        strict = {tool.strict for tool in tools if tool.kind == "function"}
        if strict == {True} or (strict == {False} and self.own):
            return strict.pop()
        for tool in tools:
            if tool.strict:
                self.lose("tool_strict", tool.name)
        return None

    def _tool_choice(self, choice: ToolChoice | None, tools: Sequence[Any]) -> str | None:
        if choice is None:
            return None
        self.extras(choice.extras)
        if choice.parallel is False:
            self.lose("tool_choice", "parallel")
        if choice.mode == "required" and len(choice.names) == 1:
            self.lose("tool_choice", choice.names[0])
        if choice.mode == "required":
            return "REQUIRED"
        return "NONE" if choice.mode == "none" and (tools or self.own) else None

    # -- messages --------------------------------------------------------------------------------------------------

    def message_of(self, turn: Turn, parts: Sequence[Part]) -> dict[str, Any]:
        return self.named({"role": turn.role, "content": self._content(parts, turn.role)}, turn)

    def _content(self, parts: Sequence[Part], role: str) -> str | list[dict[str, Any]]:
        """A string for one plain text, else a list of parts."""
        return plain_or_list([content for part in parts if (content := self._part(part, role)) is not None])

    def _part(self, part: Part, role: str) -> dict[str, Any] | None:
        """One part of the content of a message of ``role``; None for what can't be."""
        match part:
            case Text() | Refusal():
                return self._text(part)
            case Media():
                return self._media(part, role)
            case Reasoning() if role == "assistant":
                extras = self.extras(part.extras)
                self.lose_marks(part)
                return add_missing({"type": "thinking", "thinking": part.text}, extras) if part.text else None
            case Aside():
                content = content_of(part) if self.own else None
                if content is None:
                    self.lose(part.kind, part.type)
                return content
            case _:
                raise TypeError(f"content has no {type(part).__name__}")

    def _text(self, part: Text | Refusal) -> dict[str, Any] | None:
        self.lose_marks(part)
        extras = self.extras(part.extras)
        if isinstance(document := extras.get("document"), Mapping):
            data = orjson.Fragment(part.text) if document.get("data") == {} else part.text
            return {"type": "document", **extras, "document": {**document, "data": data}}
        return add_missing({"type": "text", "text": part.text}, extras) if part.text or self.own else None

    def _media(self, media: Media, role: str) -> dict[str, Any] | None:
        url = data_uri(media) if media.data is not None else media.url
        if role != "user" or media.kind != "image" or url is None:
            self.lose("media", media.kind)
            return None
        if not self.own and not url.startswith(("data:", "http:", "https:")):
            self.lose("media", "image, not at a URL of the web")
            return None
        self.lose_marks(media)
        return add_missing(
            {"type": "image_url", "image_url": without_none(url=url, detail=self.closeness(media))},
            self.extras(media.extras),
        )

    def assistant(self, turn: Turn) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        plans: list[str] = []
        calls: list[dict[str, Any]] = []
        citations: list[Any] = []
        for part in turn.parts:
            late = False  # whether it is written in front of one that came before it
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                case Aside(type=name) if name == CITATION and self.own and part.vendor == VENDOR:
                    citations.append(part.raw)
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                case Reasoning(kind="summary") if self.own and part.extras is None:
                    late = bool(content or calls)
                    self.lose_marks(part)
                    plans.append(part.text)
                case _ if (written := self._part(part, "assistant")) is not None:
                    late = bool(calls)
                    content.append(written)
            if late:
                self.lose("block_order")
        plan = self.joined(plans, one_string) or None
        message = {"role": "assistant", **without_none(tool_plan=plan, tool_calls=calls or None)}
        if content or message.keys() == {"role"}:
            message["content"] = plain_or_list(content)
        return self.named(message | without_none(citations=citations or None), turn)

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        if call.kind == "custom":
            self.lose("custom_tool_wrapped", call.name)
        self.lose_marks(call)
        written = function_call(call, self.call_id(call.id), self.tool_name(call.name))
        return add_missing(written, self.extras(call.extras))

    def result(self, result: ToolResult, _moved: list[Media]) -> dict[str, Any]:
        """A ``tool`` message: text, and documents of this dialect."""
        parts: list[Part] = list(result.parts)
        if result.is_error:
            self.lose("result_error", result.call_id)
            parts = as_error(parts)
        self.lose_marks(result)
        content = self._content(parts, "tool")
        message = {"role": "tool", "tool_call_id": self.call_id(result.call_id), "content": content}
        return add_missing(message, self.extras(result.extras))
