"""Cohere's v2 chat requests to the neutral conversation.

The tool plan is a summary of reasoning in front of the content, as the decoder of streams reads it. A document that a tool
returned is text: the words of its data, or their JSON. One member says for all tools whether calls must fit their schemas. A
stream ends with token counts without being asked.

Source: dialects.md §6.2, §7.3; the request types of cohere 7.3.1.
"""

from __future__ import annotations

from typing import Any, Final, cast

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.options import read_options
from streamkit.dialects.bodies.turn_reader import TurnReader
from streamkit.dialects.cohere.wire import CITATION, CONTENT, OPTIONS, VENDOR
from streamkit.dialects.members.fields import Fields, is_data_uri, kind_of, media_of
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

THINKING: Final = {"enabled": True, "disabled": False}
OUTPUTS: Final = frozenset({"text", "json_object"})


def decode_request(fields: Fields, _report: StreamReport) -> Request:
    """Read a request body of ``/v2/chat``. Raises BadRequest."""
    return CohereRequestReader().request(fields)


class CohereRequestReader(TurnReader):
    """Reads one request."""

    def request(self, fields: Fields) -> Request:
        """The conversation of a body. Raises BadRequest."""
        stream = fields.boolean("stream")
        request = Request("cohere", fields.string("model"), stream=stream, stream_usage=stream or None)
        request.turns = self.read_turns(fields)
        request.tools = self._tools(fields)
        request.tool_choice = self._tool_choice(fields)
        request.options = self._options(fields)
        request.extras = fields.rest()
        return request

    def _options(self, fields: Fields) -> Options:
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

    def _tools(self, fields: Fields) -> list[Tool]:
        tools = [self._tool(tool) for tool in fields.each("tools")]
        if any(tool.kind == "function" for tool in tools):
            strict = fields.boolean("strict_tools")
            for tool in tools:
                tool.strict = strict
        return tools

    def _tool(self, tool: Fields) -> Tool:
        kind = tool.string("type") or "function"
        if kind != "function":
            return Tool(kind, kind="server", raw={"type": kind, **tool.rest()})
        return self.function(tool)

    def _tool_choice(self, fields: Fields) -> ToolChoice | None:
        match fields.string("tool_choice"):
            case None:
                return None
            case "REQUIRED":
                return ToolChoice("required")
            case "NONE":
                return ToolChoice("none")
            case choice:
                raise BadRequest(fields.at("tool_choice"), f"'REQUIRED' or 'NONE' is needed, not {quoted(choice)}")

    # -- messages --------------------------------------------------------------------------------------------------

    def content(self, message: Fields) -> list[Part]:
        """The parts of a message of the system or the user."""
        content = message.text_or_each("content")
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [self._part(part) for part in content]

    def _part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                return self._image(part)
            case kind:
                return Aside(VENDOR, "unknown_event", f"{CONTENT}{kind}", {"type": kind, **part.rest()})

    def _image(self, part: Fields) -> Media:
        image = part.needed_fields("image_url")
        url = image.needed("url")
        media = (
            Media("image", *media_of(url, image.at("url")))
            if is_data_uri(url)
            else Media("image", url=url, place=image.place)
        )
        media.detail = image.string("detail")
        media.extras = part.rest() or None
        return media

    def assistant(self, message: Fields) -> Turn:
        """A message of the assistant: the tool plan, its content, its calls and its citations."""
        parts: list[Part] = []
        if plan := message.string("tool_plan"):
            parts.append(Reasoning(plan, "summary"))
        content = message.text_or_each("content")
        if isinstance(content, str):
            parts += [Text(content)] if content else []
        else:
            parts += [self._assistant_part(part) for part in content]
        parts += [self._call(call, number) for number, call in enumerate(message.each("tool_calls"))]
        parts += [Aside(VENDOR, "citation", CITATION, raw) for raw in message.listed("citations")]
        return Turn("assistant", parts)

    def _assistant_part(self, part: Fields) -> Part:
        if part.peek("type") != "thinking":
            return self._part(part)
        part.take("type")
        return Reasoning(part.needed("thinking"), extras=part.rest() or None)

    def _call(self, call: Fields, number: int) -> ToolCall:
        kind = call.string("type") or "function"
        if kind != "function":
            raise call.wrong(f"there is no call of type {quoted(kind)}", "type")
        function = call.needed_fields("function")
        arguments = function.string("arguments") or ""
        read = ToolCall(number, call.string("id") or "", function.needed("name"), arguments, place=call.place)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """A result: text, documents and images."""
        result = ToolResult(message.string("tool_call_id") or "", place=message.place)
        content = message.text_or_each("content")
        if isinstance(content, str):
            result.parts = [Text(content)] if content else []
        else:
            result.parts = [self._result_part(part) for part in content]
        result.extras = message.rest() or None
        return result

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
