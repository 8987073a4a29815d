"""Cohere's v2 chat requests to the neutral conversation; ``messages_in.py`` reads the messages.

Whether calls must fit their tools is said once for all tools. A stream ends with token counts without being asked.

Source: dialects.md §6.2, §7.3; the request types of cohere 7.3.1.
"""

from __future__ import annotations

from typing import Final

from streamkit.conversation.messages import Options, OutputFormat, Request, Thinking, Tool, ToolChoice
from streamkit.dialects.cohere.messages_in import MessageReader
from streamkit.dialects.members.fields import Fields
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

THINKING: Final = {"enabled": True, "disabled": False}
OUTPUTS: Final = frozenset({"text", "json_object"})


def decode_request(fields: Fields, _report: StreamReport) -> Request:
    """Read a request body of ``/v2/chat``. Raises BadRequest."""
    return CohereRequestReader().request(fields)


class CohereRequestReader(MessageReader):
    def request(self, fields: Fields) -> Request:
        stream = fields.boolean("stream")
        request = Request("cohere", fields.string("model"), stream=stream, stream_usage=stream or None)
        for message in fields.needed_each("messages"):
            self.message(message)
        request.turns = self.turns
        request.tools = self._tools(fields)
        request.tool_choice = self._tool_choice(fields)
        request.options = self._options(fields)
        request.extras = fields.rest()
        return request

    def _options(self, fields: Fields) -> Options:
        return Options(
            max_tokens=fields.integer("max_tokens"),
            temperature=fields.number("temperature"),
            top_p=fields.number("p"),
            top_k=fields.integer("k"),
            stop=fields.strings("stop_sequences"),
            seed=fields.integer("seed"),
            presence_penalty=fields.number("presence_penalty"),
            frequency_penalty=fields.number("frequency_penalty"),
            logprobs=fields.boolean("logprobs"),
            thinking=self._thinking(fields),
            output=self._output(fields),
        )

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
        function = tool.needed_fields("function")
        read = Tool(function.needed("name"), function.string("description"), function.mapping("parameters"))
        read.extras = tool.rest() or None
        return read

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
