"""The neutral conversation to Anthropic's requests: options, tools, the choice among them; messages in ``messages_out.py``.

A bound on the answer is demanded, and is the target's where the request has none. Sampling parameters are refused since API
version 2026-10-21: of another dialect's request they are written only for a provider that says it is older. A choice that this
dialect lacks (some of the tools, or forced thinking with a forced tool) is refused, or imitated if the target says so.

How much to think is said in two places: an effort among the options of the output, and ``thinking.py``.

Source: dialects.md §3.0, §3.2, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Compaction, OutputFormat, Request, Thinking, Tool, ToolChoice, WebSearch
from streamkit.dialects.anthropic.compaction import FIRST_COMPACTING, LEAST_TRIGGER, members_of
from streamkit.dialects.anthropic.messages_out import Block, Message, MessageWriter, plain
from streamkit.dialects.anthropic.thinking import ThinkingWriter
from streamkit.dialects.anthropic.wire import (
    SERVICE_TIERS,
    WEB_SEARCH,
    WITHOUT_SAMPLING,
)
from streamkit.dialects.bodies.request_writer import given, merged
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

#: The search of the web that every version of the server has.
SEARCH_TYPE: Final = f"{WEB_SEARCH}20250305"
SEARCH_NAME: Final = "web_search"
SAMPLING: Final = ("temperature", "top_p", "top_k")
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "compaction", "max_tokens", "output", "service_tier", "stop", "thinking", "user"})
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object"}


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values. Raises BadRequest."""
    return AnthropicRequestWriter(request, target, report).request_body()


class AnthropicRequestWriter(ThinkingWriter, MessageWriter):
    search_options = frozenset({"max_uses", "allowed_domains", "blocked_domains", "location"})

    def request_body(self) -> dict[str, Any]:
        compaction = self._compacting()
        request, options = self.request, self.request.options
        if options.choices is not None and options.choices > 1:
            raise BadRequest("n", f"Anthropic gives one choice, and {options.choices} are asked for")
        system, messages = self.conversation()
        if not messages and not self.own:
            system, messages = self._said_by_the_user(system)
        offered, choice = self._offered(request.tool_choice)
        thinking = self.thinking(options.thinking, choice, unsigned=_continues_unsigned(messages))
        choice = self.with_thinking(choice, thinking)
        tools = [written for tool in offered if (written := self.tool(tool)) is not None]
        if not tools and not self.own and (called := _called(messages)):
            tools, choice = self._declared(called), ToolChoice("none")
        body = given(
            model=request.model,
            max_tokens=self._max_tokens(thinking),
            system=plain(system) or None,
            messages=[message.body() for message in messages],
            tools=tools or None,
            tool_choice=self._choice(choice, tools),
            thinking=thinking,
            output_config=self._output_config(options.thinking, options.output),
            stop_sequences=list(options.stop) or None,
            metadata=None if options.user is None else {"user_id": options.user},
            service_tier=self._service_tier(options.service_tier),
            stream=request.stream,
        )
        body |= compaction | self.options({name: name for name in self._sampling()}, BESIDE)
        return merged(body, self.extras(request.extras, "parameter"))

    def _said_by_the_user(self, system: list[Block]) -> tuple[list[Block], list[Message]]:
        """Where only the system speaks, its words as the user's: the dialect demands a message."""
        if not self.target.emulate or not system:
            raise BadRequest("messages", "Anthropic needs a message of the user, beside what the system says")
        self.lose("system_place")
        return [], [Message("user", system)]

    # -- options ---------------------------------------------------------------------------------------------------

    def _compacting(self) -> dict[str, Any]:
        """The members that ask for a summary in place of the conversation, where the model makes any."""
        compaction = self.request.options.compaction
        if compaction is None or self.own:
            return {} if compaction is None else dict(compaction.native or members_of(compaction))
        if self._version < FIRST_COMPACTING:
            self.lose("parameter", "compaction")
            return {}
        if compaction.now:
            self._without_reply(compaction)
        elif compaction.threshold is not None and compaction.threshold < LEAST_TRIGGER:
            self.lose("parameter", "compaction.threshold")
        return members_of(compaction)

    def _without_reply(self, compaction: Compaction) -> None:
        """Leave out what only shapes a reply: beside a request for nothing but a summary the server refuses it."""
        request, options = self.request, self.request.options
        shaping = {
            "compaction.threshold": compaction.threshold is not None,
            "stop": bool(options.stop),
            "output": options.output is not None and options.output.kind != "text",
        }
        for name in (name for name, said in shaping.items() if said):
            self.lose("parameter", name)
        forced = request.tool_choice is not None and request.tool_choice.mode == "required"
        if forced:
            self.lose("tool_choice", "required")
        options = evolve(options, stop=(), output=None)
        self.request = evolve(request, options=options, tool_choice=None if forced else request.tool_choice)

    def _max_tokens(self, thinking: Mapping[str, Any] | None) -> int:
        """The bound; the target's is one on the answer, so what may be thought comes on top."""
        bound = self.request.options.max_tokens
        if bound is not None:
            return bound
        return self.target.max_tokens + ((thinking or {}).get("budget_tokens") or 0)

    def _sampling(self) -> Sequence[str]:
        """The sampling parameters that are written; a temperature must be in this vendor's range."""
        if self.own:
            return SAMPLING
        version = (self.target.provider or _NEWEST).api_version
        if version >= WITHOUT_SAMPLING:
            return ()
        temperature = self.request.options.temperature
        return SAMPLING if temperature is None or temperature <= 1 else SAMPLING[1:]

    def _service_tier(self, tier: str | None) -> str | None:
        if tier is None or self.own or tier in SERVICE_TIERS:
            return tier
        self.lose("parameter", "service_tier")
        return None

    # -- output ----------------------------------------------------------------------------------------------------

    def _output_config(self, thinking: Thinking | None, output: OutputFormat | None) -> dict[str, Any] | None:
        return given(effort=self.effort(thinking), format=self._format(output)) or None

    def _format(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None or output.kind == "text":
            return None
        if output.kind == "json":
            self.lose("parameter", "output")
            return None
        for name in "name", "description":
            if getattr(output, name) is not None:
                self.lose("parameter", f"output.{name}")
        if output.strict is False:  # here an answer always fits
            self.lose("parameter", "output.strict")
        return {"type": "json_schema", "schema": output.schema}

    # -- tools -----------------------------------------------------------------------------------------------------

    def tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            return self.hosted(tool)
        if tool.kind == "custom":
            self.extras(tool.extras)
            tool = self.as_function(tool)
        empty = tool.parameters is None or (tool.parameters == {} and not self.own)
        written = given(
            name=self.tool_name(tool.name),
            description=tool.description,
            input_schema=dict(NO_PARAMETERS) if empty else tool.parameters,
            strict=tool.strict if self.own else tool.strict or None,
        )
        return merged(written | self.cache(tool.cache), self.extras(tool.extras))

    def can_search(self, tool: Tool) -> bool:
        """Whether a tool is a search; no other tool may have its name."""
        return super().can_search(tool) and SEARCH_NAME not in self.functions

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        allowed, blocked = list(search.allowed_domains), list(search.blocked_domains)
        if allowed and blocked:  # one of them may be given, and what is allowed says more
            self.lose("parameter", "web_search.blocked_domains")
            blocked = []
        return given(
            type=SEARCH_TYPE,
            name=SEARCH_NAME,
            max_uses=search.max_uses,
            allowed_domains=allowed or None,
            blocked_domains=blocked or None,
            user_location=location_out(search),
        )

    def _offered(self, choice: ToolChoice | None) -> tuple[Sequence[Tool], ToolChoice | None]:
        """The tools that are offered, and the choice among them: one of some tools is imitated by offering no others."""
        tools = self.request.tools
        named = choice is not None and choice.mode == "required" and len(choice.names) == 1
        if choice is None or not choice.names or named or choice.mode == "none":
            return tools, choice
        if not self.target.emulate:
            raise BadRequest("tool_choice", "Anthropic can't be told to choose among some of the tools only")
        self.lose("tool_choice", "names")
        return chosen_of(tools, choice), evolve(choice, names=())

    def _declared(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Tools that were called: with calls in the history the server demands definitions, even where none may be called."""
        for _ in names:
            self.report.repair("tool_declared")
        return [{"name": name, "input_schema": dict(NO_PARAMETERS)} for name in names]

    def _choice(self, choice: ToolChoice | None, tools: Sequence[Any]) -> dict[str, Any] | None:
        if choice is None:
            return None
        self.extras(choice.extras, "tool_choice")
        if not tools and not self.own and choice.mode != "required":
            return None  # a choice without tools is refused, and this one says nothing
        parallel = choice.parallel if self.own or choice.parallel is False else None
        serial = None if parallel is None or (choice.mode == "none" and not self.own) else not parallel
        match choice.mode:
            case "required" if choice.names:
                kind, chosen = "tool", choice.names[0]
                name = SEARCH_NAME if self.is_search(chosen) else self.tool_name(chosen)
                return given(type=kind, name=name, disable_parallel_tool_use=serial)
            case "required":
                kind = "any"
            case _:
                kind = choice.mode
        return given(type=kind, disable_parallel_tool_use=serial)


_NEWEST: Final = Provider(name="", title="")


def _called(messages: Sequence[Message]) -> list[str]:
    """The names of the tools that the history calls, each once."""
    blocks = (block for message in messages for block in message.blocks)
    return list(dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use"))


def _continues_unsigned(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with a turn that called tools and does not begin with thinking."""
    if len(messages) < 2 or messages[-1].role != "user":
        return False
    if not any(block["type"] == "tool_result" for block in messages[-1].blocks):
        return False
    before = next((message for message in reversed(messages) if message.role == "assistant"), None)
    return before is not None and before.blocks[0]["type"] not in {"thinking", "redacted_thinking"}
