"""The neutral conversation to Ollama's chat requests: options, tools, the choice among them; messages in ``messages_out.py``.

Ollama can't be told to call a tool: such a choice is refused, or imitated if the target says so, by offering only the tools
that may be called. Its server reads a schema into types of its own and drops what they do not know: here that is a counted
loss. It streams unless it is told not to, so ``stream`` is always written.

Source: dialects.md §4.1, §4.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import OutputFormat, Request, Thinking, Tool
from streamkit.dialects.bodies.request_writer import given, merged
from streamkit.dialects.members.values import DEPTH
from streamkit.dialects.ollama.messages_out import MessageWriter
from streamkit.dialects.ollama.tools import TOOLS
from streamkit.dialects.ollama.wire import OPTIONS, THINK_LEVELS
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.reasoning_effort import nearest
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import STEP_CHARS, shortened

#: Options that are not members of ``options``.
BESIDE: Final = frozenset({"choices", "logprobs", "top_logprobs", "thinking", "output"})


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values. Raises BadRequest."""
    return OllamaRequestWriter(request, target, report).request_body()


class OllamaRequestWriter(MessageWriter):
    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        if options.choices is not None and options.choices > 1:
            raise BadRequest("n", f"Ollama gives one choice, and {options.choices} are asked for")
        body = given(model=request.model)
        body["messages"] = list(self.messages())
        if tools := self.tools():
            body["tools"] = tools
        if model := self.options(OPTIONS, BESIDE):
            body["options"] = model
        body |= given(
            format=self.output(options.output),
            think=self.think(options.thinking),
            logprobs=options.logprobs,
            top_logprobs=options.top_logprobs,
        )
        body["stream"] = bool(request.stream)
        return merged(body, self.extras(request.extras, "parameter"))

    # -- options ---------------------------------------------------------------------------------------------------

    def think(self, thinking: Thinking | None) -> bool | str | None:
        if thinking is None:
            return None
        self.lose_thinking(thinking, "budget_tokens", "summary")
        effort = thinking.effort
        if effort == "none" or thinking.enabled is False:
            return False
        if effort is None:
            return True if thinking.enabled or thinking.budget_tokens is not None else None
        if effort not in THINK_LEVELS:
            self.lose("parameter", "thinking.effort")
        return nearest(effort, THINK_LEVELS) or True

    def output(self, output: OutputFormat | None) -> Any:
        """``json`` or a schema, which Ollama always holds the model to."""
        if output is None or output.kind == "text":
            return None
        if output.kind == "json":
            return "json"
        for name in ("name", "description"):
            if getattr(output, name) is not None:
                self.lose("metadata", f"output.{name}")
        return output.schema if output.schema is not None else "json"

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        """The definitions of the tools that may be called."""
        tools, choice = list(enumerate(self.request.tools)), self.request.tool_choice
        if choice is not None:
            self.extras(choice.extras)
            if choice.mode == "none":
                return []
            if choice.mode == "required":
                if not self.target.emulate:
                    raise BadRequest("tool_choice", "Ollama can't be made to call a tool, only be offered fewer")
                self.lose("tool_choice", "required")
            if choice.parallel is False:
                self.lose("tool_choice", "parallel")
            if choice.names:
                names = {*choice.names}
                tools = [(number, tool) for number, tool in tools if tool.name in names]
        written = (self.tool(tool, f"tools[{number}]") for number, tool in tools)
        return [tool for tool in written if tool is not None]

    def tool(self, tool: Tool, path: str) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            return self.hosted(tool)
        extras = self.extras(tool.extras)
        if tool.cache is not None:
            self.lose("cache_mark", tool.name)
        if tool.kind == "custom":
            tool = self.as_function(tool)
        if tool.strict:
            self.lose("tool_strict", tool.name)
        parameters = tool.parameters if self.own else self.parameters(tool.parameters, f"{path}.parameters")
        function = given(name=self.tool_name(tool.name), description=tool.description, parameters=parameters)
        return merged({"type": "function", "function": function}, extras)

    def parameters(self, schema: Any, path: str) -> dict[str, Any]:
        """A schema of another dialect with what the server takes of it."""
        schema = schema if isinstance(schema, Mapping) else {}
        kept = self._kept(schema, path, TOOLS.root_keywords or frozenset())
        if kept.get("type", "object") != "object":  # the server reads one type here, and no list of them
            self.lose("schema_keyword", f"{path}.type")
        return {**kept, "type": "object", "properties": kept.get("properties", {})}

    def _kept(self, schema: Mapping[str, Any], path: str, keywords: frozenset[str], depth: int = 1) -> dict[str, Any]:
        """The keywords of a schema that are taken, and the same of the schemas in it."""
        if depth > DEPTH:
            raise BadRequest(path, f"a schema nested deeper than {DEPTH}")
        kept: dict[str, Any] = {}
        for keyword, value in schema.items():
            where = f"{path}.{shortened(keyword, STEP_CHARS)}"
            if keyword not in keywords:
                self.lose("schema_keyword", where)
            elif keyword == "properties" and isinstance(value, Mapping):
                kept[keyword] = {
                    name: self._property(inner, f"{where}.{name}", depth + 1) for name, inner in value.items()
                }
            elif keyword == "anyOf" and isinstance(value, list):
                kept[keyword] = [
                    self._property(inner, f"{where}[{number}]", depth + 1) for number, inner in enumerate(value)
                ]
            else:
                kept[keyword] = value
        return kept

    def _property(self, schema: Any, path: str, depth: int) -> dict[str, Any]:
        if isinstance(schema, Mapping):
            return self._kept(schema, path, TOOLS.keywords or frozenset(), depth)
        self.lose("schema_keyword", path)  # true or false, which the server refuses
        return {}
