"""The neutral conversation to Cohere's v2 chat requests: options, tools, the choice of them; messages in ``messages_out.py``.

The server refuses fields that it does not know. A tool can't be named: such a choice is written as the only tool, which must
then be called, and counted; a choice of some is one of all that are offered. Whether calls must fit their tools is said once
for all of them. Numbers that other dialects take and this one does not become the nearest that it takes.

Source: dialects.md §6.2, §7.3, §7.4; the documentation in the client of cohere 7.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamkit.conversation.messages import OutputFormat, Request, Thinking, Tool, ToolChoice
from streamkit.dialects.bodies.request_writer import given, merged
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.cohere.messages_out import MessageWriter
from streamkit.dialects.cohere.wire import OPTIONS, RANGES
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.reasoning_effort import below, budget_of
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "output", "thinking"})


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values. Raises BadRequest."""
    return CohereRequestWriter(request, target, report).request_body()


class CohereRequestWriter(MessageWriter):
    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        if options.choices is not None and options.choices > 1:
            raise BadRequest("n", f"Cohere gives one choice, and {options.choices} are asked for")
        body = given(model=request.model)
        body["messages"] = self.messages()
        offered = self._offered(request.tool_choice)
        tools = [written for tool in offered if (written := self._tool(tool)) is not None]
        body |= given(tools=tools or None, strict_tools=self._strict(offered))
        body |= given(tool_choice=self._tool_choice(request.tool_choice, tools))
        body |= self._numbers(self.options(OPTIONS, BESIDE))
        body |= given(
            thinking=self._thinking(options.thinking),
            response_format=self._output(options.output),
            stream=request.stream,
        )
        return merged(body, self.extras(request.extras, "parameter"))

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
        if thinking.summary is not None:
            self.lose("parameter", "thinking.summary")
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
        return given(type="enabled" if enabled else "disabled", token_budget=budget if enabled or self.own else None)

    def _output(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None:
            return None
        if output.kind == "text":
            return {"type": "text"}
        for name in ("name", "description"):
            if getattr(output, name) is not None:
                self.lose("metadata", f"output.{name}")
        return given(type="json_object", json_schema=output.schema)

    # -- tools -----------------------------------------------------------------------------------------------------

    def _offered(self, choice: ToolChoice | None) -> Sequence[Tool]:
        """The tools that may be called."""
        tools = self.request.tools
        if choice is None or not choice.names or choice.mode == "none":
            return tools
        return chosen_of(tools, choice)

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            return self.hosted(tool)
        extras = self.extras(tool.extras)
        if tool.cache is not None:
            self.lose("cache_mark", tool.name)
        if tool.kind == "custom":
            tool = self.as_function(tool)
        parameters = {} if tool.parameters is None else tool.parameters
        function = given(name=self.tool_name(tool.name), description=tool.description, parameters=parameters)
        return merged({"type": "function", "function": function}, extras)

    def _strict(self, tools: Sequence[Tool]) -> bool | None:
        """Whether all calls must fit their tools; where only some must, that is lost."""
        said = {tool.strict for tool in tools if tool.kind == "function"}
        if said == {True} or (said == {False} and self.own):
            return said.pop()
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
        match choice.mode:
            case "required":
                return "REQUIRED"
            case "none":
                return "NONE" if tools or self.own else None
            case "auto":
                return None
