"""The neutral conversation to Chat requests: options, tools, the choice among them; ``messages_out.py`` writes the messages.

What the dialect has two fields for is written in the one that the provider takes, or in the one it came in if the request was
Chat's and no provider is named. Custom tools stay custom: a client of this dialect can declare them.

Source: dialects.md §1.3, §1.6, §7.3, §7.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from attrs import evolve

from streamkit.conversation.messages import OutputFormat, Request, Thinking, Tool, ToolChoice, WebSearch
from streamkit.dialects.bodies.option_limits import least_effort
from streamkit.dialects.bodies.request_writer import asked_effort, given, merged
from streamkit.dialects.openai_chat.messages_out import MessageWriter
from streamkit.dialects.openai_chat.wire import OPTIONS
from streamkit.dialects.profiles import Target
from streamkit.report import StreamReport

#: Options that are written by methods of their own.
BESIDE = frozenset({"max_tokens", "thinking", "output", "top_k"})
#: The member that lets a model search the web, and the models that take it.
SEARCH = "web_search_options"
SEARCH_MODELS = re.compile(r"-search-(?:preview|api)")
#: A schema must have a name, and other dialects give it none.
SCHEMA_NAME = "response"


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values."""
    return ChatRequestWriter(request, target, report).request_body()


class ChatRequestWriter(MessageWriter):
    #: Options that are one field each, by our names, and those that are not.
    option_names: ClassVar[Mapping[str, str]] = OPTIONS
    beside: ClassVar[frozenset[str]] = BESIDE
    search_options: ClassVar[frozenset[str] | None] = frozenset({"location", "context"})
    #: A tool that is a member of the request: the search of the web.
    _beside_tools: Mapping[str, Any] = MappingProxyType({})

    def request_body(self) -> dict[str, Any]:
        request = self.request
        body = given(model=request.model)
        body["messages"] = list(self.messages())
        tools = [written for tool in self.offered() if (written := self.tool(tool)) is not None]
        if tools:
            body["tools"] = tools
        body |= self._beside_tools
        if tools or self.own:
            body |= self.tool_choice(request.tool_choice)
        body |= self.options(self.option_names, self.beside)
        body |= self.max_tokens()
        body |= self.thinking(request.options.thinking)
        body |= given(response_format=self.output(request.options.output), stream=request.stream)
        if request.options.top_k is not None:
            body |= self.top_k(request.options.top_k)
        body |= self.stream_usage()
        return merged(body, self.request_extras())

    def stream_usage(self) -> dict[str, Any]:
        usage = self.request.stream_usage
        return {} if usage is None else {"stream_options": {"include_usage": usage}}

    # -- options ---------------------------------------------------------------------------------------------------

    def max_tokens(self) -> dict[str, Any]:
        provider, options = self.target.provider, self.request.options
        name = provider.max_tokens_field if provider is not None else "max_completion_tokens"
        if self.as_it_came and options.native_max_tokens is not None:
            name = options.native_max_tokens
        return given(**{name: options.max_tokens})

    def top_k(self, top_k: int) -> dict[str, Any]:
        """OpenAI has no such field, many of the others do: it is written where the client speaks to one of them."""
        if self.own:
            return {"top_k": top_k}
        self.lose("parameter", "top_k")
        return {}

    def thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        if thinking is None:
            return {}
        provider = self.target.provider
        field = provider.thinking_field if provider is not None else "reasoning_effort"
        if self.as_it_came and thinking.native is not None:
            field = thinking.native
        if field == "reasoning_effort":
            least = None if self.own or thinking.enabled is not False else least_effort(self.request.model)
            if least != "none":  # which says that it is off
                self.lose_thinking(thinking, "enabled")
            self.lose_thinking(thinking, "budget_tokens", "summary")
            return given(reasoning_effort=asked_effort(thinking) or least)
        if thinking.summary not in {None, "none", "auto"}:
            self.lose_thinking(thinking, "summary")
        exclude = None if thinking.summary is None else thinking.summary == "none"
        effort = thinking.effort
        if effort is not None and thinking.budget_tokens is not None and not self.own:  # one of them may be given
            self.lose_thinking(thinking, "effort")
            effort = None
        return {
            field: given(
                effort=effort,
                max_tokens=thinking.budget_tokens,
                enabled=thinking.enabled,
                exclude=exclude,
            )
        }

    def output(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None:
            return None
        if output.kind != "schema":
            return {"type": "json_object" if output.kind == "json" else "text"}
        schema = given(
            name=output.name or SCHEMA_NAME,
            description=output.description,
            schema=output.schema,
            strict=output.strict,
        )
        return {"type": "json_schema", "json_schema": schema}

    # -- tools -----------------------------------------------------------------------------------------------------

    def offered(self) -> Sequence[Tool]:
        """The tools to define."""
        return self.request.tools

    def tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.cache is not None:
            self.lose("cache_mark", tool.name)
        if tool.kind == "custom" and self.functions_only:
            self.extras(tool.extras)
            tool = self.as_function(tool)
        match tool.kind:
            case "function":
                function = given(
                    name=self.tool_name(tool.name),
                    description=tool.description,
                    parameters=self.with_properties(tool.parameters),
                    strict=tool.strict,
                )
                written: dict[str, Any] = {"type": "function", "function": function}
            case "custom":
                custom = given(
                    name=self.tool_name(tool.name), description=tool.description, format=_format(tool.format)
                )
                written = {"type": "custom", "custom": custom}
            case "server":
                hosted = self.hosted(tool)
                if hosted is not None and SEARCH in hosted:
                    self._beside_tools = hosted
                    return None
                return hosted
        return merged(written, self.extras(tool.extras))

    def tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        """Which tools may or must be called. ``auto``, the default, is not said where only ``parallel`` is."""
        if choice is None:
            return {}
        self.extras(choice.extras)
        if choice.names and not self.own:
            choice = self._without_search(choice)
        body = given(parallel_tool_calls=choice.parallel)
        if self.own and choice.native is not None:
            return {**body, "tool_choice": choice.native}
        if choice.mode == "required" and len(choice.names) == 1:
            body["tool_choice"] = self.named_tool(choice.names[0])
        elif choice.names:
            allowed = {"mode": choice.mode, "tools": [self.named_tool(name) for name in choice.names]}
            body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
        elif choice.mode != "auto" or choice.parallel is None:
            body["tool_choice"] = choice.mode
        return body

    def _without_search(self, choice: ToolChoice) -> ToolChoice:
        """A choice among functions: the search is none, and a model that has it uses it in any case."""
        names = tuple(name for name in choice.names if not self.is_search(name))
        if names == choice.names:
            return choice
        self.lose("tool_choice", "names")
        return evolve(choice, names=names, mode=choice.mode if names else "auto")

    def can_search(self, tool: Tool) -> bool:
        """Whether the model is one of those that search, and always do."""
        choice = self.request.tool_choice
        searches = SEARCH_MODELS.search(self.request.model or "") is not None
        return super().can_search(tool) and searches and (choice is None or choice.mode != "none")

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        location = None if search.location is None else {"type": "approximate", "approximate": dict(search.location)}
        return {SEARCH: given(user_location=location, search_context_size=search.context)}

    def named_tool(self, name: str) -> dict[str, Any]:
        kind = "custom" if name in self.custom and not self.functions_only else "function"
        return {"type": kind, kind: {"name": self.tool_name(name)}}


def _format(form: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The format of a custom tool's input, with the object around the grammar."""
    if form is None or form.get("type") != "grammar":
        return None if form is None else dict(form)
    grammar = {name: value for name, value in form.items() if name != "type"}
    return {"type": "grammar", "grammar": grammar}
