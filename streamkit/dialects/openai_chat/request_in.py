"""Chat requests to the neutral conversation: options, tools, the choice among them; ``messages_in.py`` reads the messages.

Two fields bound the answer and two ask for thinking (OpenRouter's ``reasoning`` is an object); which one came is remembered.
The older ``functions`` and ``function_call`` are read as tools and the choice among them.

Source: dialects.md §1.3, §1.6, §7.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from streamkit.conversation.messages import Options, OutputFormat, Request, Thinking, Tool, ToolChoice
from streamkit.dialects.bodies.options import read_options
from streamkit.dialects.members.fields import Fields, kind_of
from streamkit.dialects.openai_chat.messages_in import MessageReader
from streamkit.dialects.openai_chat.wire import OPTIONS
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The two fields, in the order in which they are asked.
MAX_TOKENS = ("max_completion_tokens", "max_tokens")
#: Kinds of ``response_format``, and ours.
OUTPUT_KINDS: Mapping[str, Literal["text", "json", "schema"]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}

#: Types of ``tool_choice`` that name tools of the program.
CHOICES = frozenset({"function", "custom", "allowed_tools"})


def decode_request(fields: Fields, report: StreamReport) -> Request:
    """Read a request body. Raises BadRequest."""
    return ChatRequestReader(report).request(fields)


class ChatRequestReader(MessageReader):
    dialect: ClassVar[str] = "openai-chat"

    def request(self, fields: Fields) -> Request:
        request = Request(self.dialect, fields.string("model"), stream=fields.boolean("stream"))
        for message in fields.needed_each("messages"):
            self.message(message)
        request.turns = self.turns
        request.tools = self.tools(fields)
        request.tool_choice = self.tool_choice(fields)
        request.options = self.options(fields)
        request.stream_usage = self.stream_usage(fields, request.stream)
        request.extras = fields.rest()
        return request

    def stream_usage(self, fields: Fields, _stream: bool | None) -> bool | None:
        """Whether a stream shall end with token counts."""
        options = fields.fields("stream_options")
        return None if options is None else options.boolean("include_usage")

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        options = read_options(
            fields,
            {**OPTIONS, "top_k": "top_k"},
            stop=self.stop(fields),
            thinking=self.thinking(fields),
            output=self.output(fields),
        )
        bound = next((name for name in MAX_TOKENS if name in fields), None)
        if bound is not None:
            options.max_tokens, options.native_max_tokens = fields.integer(bound), bound
        return options

    def stop(self, fields: Fields) -> tuple[str, ...]:
        if isinstance(fields.peek("stop"), str):
            return (fields.needed("stop"),)
        stops = fields.listed("stop")
        for number, stop in enumerate(stops):
            if not isinstance(stop, str):
                raise fields.wrong(f"text is needed, not {kind_of(stop)}", f"stop[{number}]")
        return tuple(stops)

    def thinking(self, fields: Fields) -> Thinking | None:
        """``reasoning_effort``, or the object ``reasoning`` (OpenRouter)."""
        if reasoning := fields.fields("reasoning"):
            effort, budget = reasoning.string("effort"), reasoning.integer("max_tokens")
            excluded = reasoning.boolean("exclude")
            shown = None if excluded is None else "none" if excluded else "auto"
            return Thinking(effort, budget, reasoning.boolean("enabled"), shown, native="reasoning")
        effort = fields.string("reasoning_effort")
        return None if effort is None else Thinking(effort, native="reasoning_effort")

    def output(self, fields: Fields) -> OutputFormat | None:
        read = fields.fields_of_type("response_format", OUTPUT_KINDS)
        if read is None:
            return None
        kind = OUTPUT_KINDS[read.needed("type")]
        if kind != "schema":
            return OutputFormat(kind)
        schema = read.needed_fields("json_schema")
        name, description, strict = schema.string("name"), schema.string("description"), schema.boolean("strict")
        return OutputFormat(kind, schema.take("schema"), name, description, strict)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        tools = [self.tool(tool) for tool in fields.each("tools")]
        tools += [self.function(function, function) for function in fields.each("functions")]
        if (options := fields.mapping("web_search_options")) is not None:
            tools.append(Tool("web_search", kind="server", raw={"web_search_options": options}))
            tools[-1].search = read_search(options)
        return tools

    def tool(self, tool: Fields) -> Tool:
        match tool.needed("type"):
            case "function":
                return self.function(tool.needed_fields("function"), tool)
            case "custom":
                custom = tool.needed_fields("custom")
                read = Tool(custom.needed("name"), custom.string("description"), kind="custom")
                read.format = self._grammar(custom)
                read.extras = tool.rest() or None
                return read
            case kind:
                raw = {"type": kind, **tool.rest()}
                return Tool(str(raw.get("name", kind)), kind="server", raw=raw)

    def function(self, function: Fields, tool: Fields) -> Tool:
        """A function; ``tool`` is the object that says what it is, itself for the older ``functions``."""
        read = Tool(
            function.needed("name"),
            function.string("description"),
            function.mapping("parameters"),
            function.boolean("strict"),
        )
        read.extras = tool.rest() or None
        return read

    def _grammar(self, custom: Fields) -> dict[str, Any] | None:
        """The format of a custom tool's input, without the object around the grammar."""
        form = custom.fields("format")
        if form is None:
            return None
        kind = form.needed("type")
        if kind != "grammar":
            return {"type": kind, **form.rest()}
        grammar = form.needed_fields("grammar")
        return {"type": kind, "syntax": grammar.needed("syntax"), "definition": grammar.needed("definition")}

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        parallel = fields.boolean("parallel_tool_calls")
        choice = self.choice(fields, "tool_choice") or self.choice(fields, "function_call")
        if choice is None and parallel is not None:
            choice = ToolChoice()
        if choice is not None:
            choice.parallel = parallel
        return choice

    def choice(self, fields: Fields, name: str) -> ToolChoice | None:
        if isinstance(fields.peek(name), str):
            return self.mode(fields.needed(name), fields.at(name))
        given = fields.peek(name)
        choice = fields.fields_of_type(name, CHOICES)
        if choice is None:
            return self.choice_of_hosted(fields, name)
        if name == "function_call":
            return ToolChoice("required", (choice.needed("name"),))
        kind = choice.needed("type")
        if kind != "allowed_tools":
            return ToolChoice("required", (choice.needed_fields(kind).needed("name"),))
        allowed = choice.needed_fields("allowed_tools")
        found = self.mode(allowed.needed("mode"), allowed.at("mode"))
        tools = list(allowed.needed_each("tools"))
        kinds = [tool.peek("type") for tool in tools]
        found.names = tuple(self._allowed(tool) for tool in tools)
        found.native = None if all(kind in CHOICES for kind in kinds) else given
        return found

    def choice_of_hosted(self, fields: Fields, name: str) -> ToolChoice | None:
        """A choice of a tool that the provider runs itself: it is called what its type is."""
        given = fields.mapping(name)
        return None if given is None else ToolChoice("required", (given["type"],), native=given)

    def mode(self, mode: str, path: str) -> ToolChoice:
        match mode:
            case "auto" | "none" | "required":
                return ToolChoice(mode)
            case _:
                raise BadRequest(path, f"'auto', 'none' or 'required' is needed, not {quoted(mode)}")

    def _allowed(self, tool: Fields) -> str:
        kind = tool.needed("type")
        return (
            tool.needed_fields(kind).needed("name") if kind in {"function", "custom"} else tool.string("name") or kind
        )
