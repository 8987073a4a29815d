"""The neutral conversation to Bedrock's Converse requests: options, tools, the choice among them; ``messages_out.py`` writes
messages.

What Converse has no word for is written into ``additionalModelRequestFields`` where the model is Claude, which its id says:
how to think, and that calls may not be parallel. For other models it is a loss, since each takes other words. The model and
whether to stream are in the URL.

A choice that this dialect lacks (some of the tools) is refused, or imitated if the target says so. For ``none`` no tools are
offered; but where the history has calls the server demands definitions, so the tools called there are defined.

Source: dialects.md §6.1, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from attrs import evolve

from streamkit.conversation.messages import OutputFormat, Request, Thinking, Tool, ToolCall, ToolChoice
from streamkit.dialects.bedrock.messages_out import Block, Message, MessageWriter, is_claude
from streamkit.dialects.bedrock.wire import CACHE_POINTS, SERVICE_TIERS
from streamkit.dialects.bodies.claude_thinking import EFFORTS, ClaudeRequestWriter
from streamkit.dialects.bodies.request_writer import asked_effort, given, merged
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.reasoning_effort import nearest
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

#: Members of ``inferenceConfig``, by our names.
INFERENCE: Final[Mapping[str, str]] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "output", "service_tier", "thinking", "top_k"})
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object"}


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body of Converse as JSON values. Raises BadRequest."""
    return BedrockRequestWriter(request, target, report).request_body()


class BedrockRequestWriter(ClaudeRequestWriter, MessageWriter):
    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        #: Whether the model's own fields are Claude's, or those that the client wrote.
        self.claude = self.own or is_claude(request.model)

    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        if options.choices is not None and options.choices > 1:
            raise BadRequest("n", f"Bedrock gives one choice, and {options.choices} are asked for")
        system, messages = self.conversation()
        if not messages and not self.own:
            system, messages = self._said_by_the_user(system)
        choice = request.tool_choice
        thinking = self._claudes_thinking(options.thinking, choice, messages)
        choice = self.with_thinking(choice, thinking)
        tools, choice = self._tools(choice)
        model = given(
            thinking=thinking,
            top_k=self._top_k(options.top_k),
            tool_choice=self._parallel(choice) if tools else None,
        )
        body = given(
            messages=[message.body() for message in messages],
            system=system or None,
            inferenceConfig=self.options(self._inference(), BESIDE) or None,
            toolConfig=given(tools=tools, toolChoice=self._choice(choice, model)) if tools else None,
            additionalModelRequestFields=model or None,
            outputConfig=self._output_config(options.thinking, options.output) or None,
            serviceTier=self._service_tier(options.service_tier),
        )
        return merged(body, self.extras(request.extras, "parameter"))

    def _said_by_the_user(self, system: list[Block]) -> tuple[list[Block], list[Message]]:
        """Where only the system speaks, its words as the user's: the server demands a message."""
        if not self.target.emulate or not system:
            raise BadRequest("messages", "Bedrock needs a message of the user, beside what the system says")
        self.lose("system_place")
        return [], [Message("user", said=system)]

    # -- options ---------------------------------------------------------------------------------------------------

    def _inference(self) -> Mapping[str, str]:
        """The options that stand in ``inferenceConfig``; a temperature must be in the dialect's range, 0 to 1."""
        temperature = self.request.options.temperature
        if self.own or temperature is None or temperature <= 1:
            return INFERENCE
        return {name: word for name, word in INFERENCE.items() if name != "temperature"}

    def _top_k(self, top_k: int | None) -> int | None:
        if top_k is not None and not self.claude:
            self.lose("parameter", "top_k")
            return None
        return top_k

    def _service_tier(self, tier: str | None) -> dict[str, Any] | None:
        if tier is None or self.own or tier in SERVICE_TIERS:
            return None if tier is None else {"type": tier}
        self.lose("parameter", "service_tier")
        return None

    # -- thinking and output ---------------------------------------------------------------------------------------

    def _claudes_thinking(
        self, thinking: Thinking | None, choice: ToolChoice | None, messages: Sequence[Message]
    ) -> dict[str, Any] | None:
        if self.claude or thinking is None:
            return self.thinking(thinking, choice, unsigned=_continues_unsigned(messages))
        self.lose_thinking(thinking, "budget_tokens", "enabled", "summary")
        return None

    def _output_config(self, thinking: Thinking | None, output: OutputFormat | None) -> dict[str, Any]:
        effort = self.effort(thinking) if self.claude else self._others_effort(thinking)
        return given(effort=effort, textFormat=self._format_of(output))

    def _others_effort(self, thinking: Thinking | None) -> str | None:
        """The effort for a model that is not Claude."""
        effort = asked_effort(thinking)
        if effort is None or effort in EFFORTS:
            return effort
        self.lose("parameter", "thinking.effort")
        return nearest(effort, EFFORTS)

    def _format_of(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None or output.kind == "text":
            return None
        if output.kind == "json":
            self.lose("parameter", "output")
            return None
        if output.strict is False:  # here an answer always fits
            self.lose("parameter", "output.strict")
        schema = orjson.dumps(output.schema).decode()
        definition = given(schema=schema, name=output.name, description=output.description)
        return {"type": "json_schema", "structure": {"jsonSchema": definition}}

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self, choice: ToolChoice | None) -> tuple[list[Block], ToolChoice | None]:
        """The tools that are offered, and the choice among them."""
        offered: Sequence[Tool] = self.request.tools
        if choice is not None:
            self.extras(choice.extras, "tool_choice")
        if choice is not None and choice.mode == "none":
            if offered:
                self.lose("tool_choice", "none")
            offered, choice = (), None
        elif choice is not None and choice.names and not (choice.mode == "required" and len(choice.names) == 1):
            if not self.target.emulate:
                raise BadRequest("tool_choice", "Bedrock can't be told to choose among some of the tools only")
            self.lose("tool_choice", "names")
            offered = chosen_of(offered, choice)
            choice = evolve(choice, names=())
        written = [block for tool in offered for block in self._tool(tool)]
        if choice is not None and choice.mode == "required" and not written:
            raise BadRequest("tool_choice", "a tool must be called, and there is none")
        return written or self._declared(), choice

    def _tool(self, tool: Tool) -> list[Block]:
        """A definition, and its mark; nothing for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            hosted = self.hosted(tool)
            return [] if hosted is None else [hosted, *self._point(tool)]
        if tool.kind == "custom":
            self.extras(tool.extras)
            tool = self.as_function(tool)
        empty = tool.parameters is None or (tool.parameters == {} and not self.own)
        spec = given(
            name=self.tool_name(tool.name),
            description=tool.description or None,
            inputSchema={"json": dict(NO_PARAMETERS) if empty else tool.parameters},
            strict=tool.strict if self.own else tool.strict or None,
        )
        return [{"toolSpec": merged(spec, self.extras(tool.extras))}, *self._point(tool)]

    def _point(self, tool: Tool) -> list[Block]:
        if tool.cache is None:
            return []
        if self.request.dialect not in self.same_spans:
            self.lose("cache_mark", tool.name)
        return [{"cachePoint": dict(CACHE_POINTS[tool.cache])}]

    def _declared(self) -> list[Block]:
        """Tools that the history calls, where none is offered: the server demands definitions then."""
        calls = (part for turn in self.request.turns for part in turn.parts if isinstance(part, ToolCall))
        names = dict.fromkeys(self.tool_name(call.name) for call in calls)
        for _ in names:
            self.report.repair("tool_declared")
        return [{"toolSpec": {"name": name, "inputSchema": {"json": dict(NO_PARAMETERS)}}} for name in names]

    def _choice(self, choice: ToolChoice | None, model: Mapping[str, Any]) -> dict[str, Any] | None:
        """``toolChoice``; ``auto``, the default, is not said twice where Claude's own words say it."""
        if choice is None:
            return None
        if choice.mode == "required":
            return {"tool": {"name": self.tool_name(choice.names[0])}} if choice.names else {"any": {}}
        return None if "tool_choice" in model else {"auto": {}}

    def _parallel(self, choice: ToolChoice | None) -> dict[str, Any] | None:
        """Claude's own ``tool_choice``, which has its type only where ``toolChoice`` does not say it: else it is refused."""
        if choice is None or choice.parallel is None or (choice.parallel and not self.own):
            return None
        if not self.claude:
            self.lose("tool_choice", "parallel")
            return None
        kind = "auto" if choice.mode == "auto" else None
        return given(type=kind, disable_parallel_tool_use=not choice.parallel)


def _continues_unsigned(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with a turn that called tools and does not begin with thinking."""
    if not messages or not messages[-1].results:
        return False
    before = next((message for message in reversed(messages) if message.role == "assistant"), None)
    return before is not None and "reasoningContent" not in before.said[0]
