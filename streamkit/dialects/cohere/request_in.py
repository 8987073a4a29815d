"""Cohere's v2 chat requests to the neutral conversation.

The tool plan is a summary of reasoning in front of the content, as the decoder of streams reads it. A document that a tool
returned is text: the words of its data, or their JSON. One member says for all tools whether calls must fit their schemas. A
stream ends with token counts without being asked.

Source: dialects.md §6.2, §7.3; the request types of cohere 7.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_reader import (
    TurnReader,
    content_of,
    function_call,
    function_tool,
    image_of,
    read_options,
    server_tool,
    unknown_part,
)
from streamkit.dialects.cohere.wire import CITATION, OPTIONS, VENDOR
from streamkit.dialects.members.fields import Fields, kind_of
from streamkit.events import Aside
from streamkit.text.quoting import quoted

THINKING: Final = {"enabled": True, "disabled": False}
OUTPUTS: Final = frozenset({"text", "json_object"})
CHOICES: Final[Mapping[str, Literal["required", "none"]]] = {"REQUIRED": "required", "NONE": "none"}


class CohereRequestReader(TurnReader):
    """Reads one request."""

    dialect = "cohere"

    def options(self, fields: Fields) -> Options:
        return read_options(fields, OPTIONS, thinking=self._thinking(fields), output=self._output(fields))

    def _thinking(self, fields: Fields) -> Thinking | None:
        thinking = fields.fields_of_type("thinking", THINKING)
        if thinking is None:
            return None
        return Thinking(enabled=THINKING[thinking.needed("type")], budget_tokens=thinking.integer("token_budget"))

    def _output(self, fields: Fields) -> OutputFormat | None:
        output = fields.fields_of_type("response_format", OUTPUTS)
        if output is None:
            return None
        if output.needed("type") == "text":
            return OutputFormat("text")
        schema = output.mapping("json_schema")
        return OutputFormat("json") if schema is None else OutputFormat("schema", schema)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        tools = super().tools(fields)
        if any(tool.kind == "function" for tool in tools):
            strict = fields.boolean("strict_tools")
            for tool in tools:
                tool.strict = strict
        return tools

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type") or "function"
        if kind != "function":
            return server_tool(kind, tool, kind)
        return function_tool(tool.needed_fields("function"), tool)

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        choice = fields.string("tool_choice")
        if choice is None:
            return None
        if choice not in CHOICES:
            raise fields.wrong(f"'REQUIRED' or 'NONE' is needed, not {quoted(choice)}", "tool_choice")
        return ToolChoice(CHOICES[choice])

    # -- messages --------------------------------------------------------------------------------------------------

    def content(self, message: Fields) -> list[Part]:
        return content_of(message, self._part)

    def _part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                media = image_of(part)
                media.extras = part.rest() or None
                return media
            case kind:
                return unknown_part(VENDOR, kind, part)

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        if plan := message.string("tool_plan"):
            parts.append(Reasoning(plan, "summary"))
        parts += content_of(message, self._assistant_part)
        parts += [self._call(call, number) for number, call in enumerate(message.each("tool_calls"))]
        parts += [Aside(VENDOR, "citation", CITATION, raw) for raw in message.listed("citations")]
        return Turn("assistant", parts)

    def _assistant_part(self, part: Fields) -> Part:
        if part.peek("type") != "thinking":
            return self._part(part)
        part.take("type")
        return Reasoning(part.needed("thinking"), extras=part.rest() or None)

    def _call(self, call: Fields, number: int) -> ToolCall:
        read = function_call(call, number)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """A result: text, documents and images."""
        call_id, parts = message.string("tool_call_id") or "", content_of(message, self._result_part)
        return ToolResult(call_id, parts, place=message.place)

    def _result_part(self, part: Fields) -> Text | Media | Aside:
        """A part of a result. The extras of a document have its data empty, as text or as an object, which it was."""
        if part.peek("type") != "document":
            return cast("Text | Media | Aside", self._part(part))
        part.take("type")
        document = part.needed_fields("document")
        data = document.peek("data")
        empty: Any = "" if isinstance(data, str) else {}
        if isinstance(data, str):
            text = document.needed("data")
        elif isinstance(data, dict):
            text = document.text_of("data")
        else:
            raise document.wrong(f"an object or text is needed, not {kind_of(data)}", "data")
        return Text(text, extras={"document": {"data": empty, **document.rest()}, **part.rest()})
