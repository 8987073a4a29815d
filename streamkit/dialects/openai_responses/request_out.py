"""The neutral conversation to Responses requests: options, tools, the choice among them; the input in ``messages_out.py``.

``strict`` of a function is always written: left out it means another thing here than in Chat. What was not said is false in a
request of another dialect, and null, the server's own choice, in one of this. There is one choice; nothing stops an answer at
a text or seeds it. A bound that is less than the server takes is raised to that, and counted.

Source: dialects.md §2.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import (
    Compaction,
    Namespace,
    OutputFormat,
    Request,
    Thinking,
    Tool,
    ToolChoice,
    WebSearch,
)
from streamkit.dialects.bodies.option_limits import least_effort
from streamkit.dialects.bodies.request_writer import asked_effort, given, merged
from streamkit.dialects.openai_responses.messages_out import MessageWriter
from streamkit.dialects.openai_responses.output import Item
from streamkit.dialects.openai_responses.wire import LEAST_TOKENS, LOGPROBS, MANAGEMENT, OPTIONS, SERVICE_TIERS, TRIGGER
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.compactions import COMPACTION
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "compaction", "logprobs", "max_tokens", "output", "service_tier", "thinking"})
#: A schema must have a name, and other dialects give it none.
SCHEMA_NAME: Final = "response"
#: The search of the web, and the entry of ``include`` that asks for the pages that it found.
SEARCH: Final = "web_search"
SOURCES: Final = "web_search_call.action.sources"
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}
#: What other dialects take for it; the server demands a schema.
NOTHING: Final[tuple[Any, ...]] = (None, {})


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values. Raises BadRequest."""
    return RequestBodyWriter(request, target, report).request_body()


class RequestBodyWriter(MessageWriter):
    search_options = frozenset({"allowed_domains", "location", "context"})

    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        if options.choices is not None and options.choices > 1:
            raise BadRequest("n", f"Responses gives one choice, and {options.choices} are asked for")
        instructions, items = self.conversation()
        items += self._trigger(options.compaction)
        tools = self._tools()
        body = given(
            model=request.model,
            instructions=instructions,
            input=items if items or not self.own else None,
            tools=tools or None,
            **self._tool_choice(request.tool_choice),
            max_output_tokens=self._max_tokens(options.max_tokens),
            reasoning=self._thinking(options.thinking),
            text=self._text(options.output),
            service_tier=self._service_tier(options.service_tier),
            stream=request.stream,
        )
        body |= self._compacting(options.compaction) | self.options(OPTIONS, BESIDE)
        extras = dict(self.request_extras())
        include = [*extras.pop("include", ()), *([LOGPROBS] if options.logprobs else ())]
        if self.search is not None:
            include.append(SOURCES)
        return merged(body, extras | given(include=include or None))

    # -- options ---------------------------------------------------------------------------------------------------

    def _trigger(self, compaction: Compaction | None) -> list[Item]:
        """The item at the end that asks for nothing but a compaction."""
        if compaction is None or not compaction.now:
            return []
        came = (compaction.native or {}).get("input") if self.own else None
        return [came or {"type": TRIGGER}]

    def _compacting(self, compaction: Compaction | None) -> dict[str, Any]:
        """The member that asks for compaction where the conversation is long."""
        if compaction is None:
            return {}
        if self.own and compaction.native is not None:
            return {name: value for name, value in compaction.native.items() if name == MANAGEMENT}
        for name in ("pause", "instructions"):
            if getattr(compaction, name):
                self.lose("parameter", f"compaction.{name}")
        if compaction.now and compaction.threshold is None:
            return {}
        return {MANAGEMENT: [given(type=COMPACTION, compact_threshold=compaction.threshold)]}

    def _max_tokens(self, bound: int | None) -> int | None:
        if bound is None or self.own or not 0 < bound < LEAST_TOKENS:
            return bound
        self.lose("parameter", "max_tokens")
        return LEAST_TOKENS

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any] | None:
        if thinking is None:
            return None
        least = None if self.own or thinking.enabled is not False else least_effort(self.request.model)
        if least != "none":  # which says that it is off
            self.lose_thinking(thinking, "enabled")
        self.lose_thinking(thinking, "budget_tokens")
        summary = None if thinking.summary == "none" else thinking.summary
        return given(effort=asked_effort(thinking) or least, summary=summary) or None

    def _text(self, output: OutputFormat | None) -> dict[str, Any] | None:
        if output is None:
            return None
        if output.kind != "schema":
            return {"format": {"type": "json_object" if output.kind == "json" else "text"}}
        form = given(
            type="json_schema",
            name=output.name or SCHEMA_NAME,
            description=output.description,
            schema=output.schema,
            strict=output.strict,
        )
        return {"format": form}

    def _service_tier(self, tier: str | None) -> str | None:
        if tier is None or self.own or tier in SERVICE_TIERS:
            return tier
        self.lose("parameter", "service_tier")
        return None

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self) -> list[dict[str, Any]]:
        """The definitions. Within the dialect, neighbours of one namespace stand in it again."""
        written: list[dict[str, Any]] = []
        last: Namespace | None = None
        for tool in self.request.tools:
            if tool.loaded and self.own:
                continue  # the item that brought it says so
            definition = self._tool(tool)
            if definition is None:
                continue
            if tool.namespace is None or not self.own:
                written.append(definition)
            elif last is not None and tool.namespace == last:
                written[-1]["tools"].append(definition)
            else:
                written.append(_namespace(tool.namespace, definition))
            last = tool.namespace
        return written

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.cache is not None:
            self.lose("cache_mark", tool.name)
        match tool.kind:
            case "function":
                nothing = not self.own and tool.parameters in NOTHING
                written = {
                    **given(type="function", name=self._defined_name(tool), description=tool.description),
                    "parameters": dict(NO_PARAMETERS) if nothing else self.with_properties(tool.parameters),
                    "strict": tool.strict if self.own else bool(tool.strict),
                }
            case "custom":
                name, form = self._defined_name(tool), tool.format
                written = given(type="custom", name=name, description=tool.description, format=form)
            case "server":
                return self.hosted(tool)
        return merged(written, self.extras(tool.extras))

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        return given(
            type=SEARCH,
            filters={"allowed_domains": [*search.allowed_domains]} if search.allowed_domains else None,
            user_location=location_out(search),
            search_context_size=search.context,
        )

    def _defined_name(self, tool: Tool) -> str:
        return tool.qualified.name if self.own and tool.qualified is not None else self.tool_name(tool.name)

    def _tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        """Which tools may or must be called. ``auto``, the default, is not said where only ``parallel`` is."""
        if choice is None:
            return {}
        self.extras(choice.extras, "tool_choice")
        body = given(parallel_tool_calls=choice.parallel)
        if self.own and choice.native is not None:
            return {**body, "tool_choice": choice.native}
        if choice.mode == "required" and len(choice.names) == 1 and not self.is_search(choice.names[0]):
            body["tool_choice"] = self._named_tool(choice.names[0])
        elif choice.mode == "required" and choice.names and sum(map(self.defines, self.request.tools)) == 1:
            body["tool_choice"] = "required"
        elif choice.names and choice.mode != "none":
            tools = [self._named_tool(name) for name in choice.names]
            body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
        elif choice.mode != "auto" or choice.parallel is None:
            body["tool_choice"] = choice.mode
        return body

    def _named_tool(self, name: str) -> dict[str, Any]:
        if self.is_search(name):
            return {"type": SEARCH}
        return {"type": "custom" if name in self.custom else "function", "name": self.tool_name(name)}


def _namespace(namespace: Namespace, first: dict[str, Any]) -> dict[str, Any]:
    """A namespace with its first tool."""
    head = given(type="namespace", name=namespace.name, description=namespace.description)
    return {**head, **(namespace.extras or {}), "tools": [first]}
