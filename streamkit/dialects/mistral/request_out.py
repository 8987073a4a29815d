"""The neutral conversation to Mistral's requests: Chat's, with other names and words; messages in ``messages_out.py``.

A stream ends with token counts in any case, so nothing is written for it. A choice of some of the tools is one of all that
are offered.

Source: dialects.md §6.3, §7.3, §7.4; the request types of mistralai 3.7.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.messages import Request, Thinking, Tool, ToolChoice
from streamkit.dialects.bodies.request_writer import asked_effort, given
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.mistral.messages_out import MistralMessageWriter
from streamkit.dialects.mistral.wire import OPTIONS, SERVICE_TIERS
from streamkit.dialects.openai_chat.request_out import BESIDE, ChatRequestWriter
from streamkit.dialects.profiles import Target
from streamkit.report import StreamReport

NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values."""
    return MistralRequestWriter(request, target, report).request_body()


class MistralRequestWriter(MistralMessageWriter, ChatRequestWriter):
    option_names: ClassVar[Mapping[str, str]] = OPTIONS
    beside: ClassVar[frozenset[str]] = BESIDE | {"service_tier"}
    search_options: ClassVar[frozenset[str] | None] = None

    def request_body(self) -> dict[str, Any]:
        return {**super().request_body(), **self._service_tier()}

    def stream_usage(self) -> dict[str, Any]:
        return {}

    # -- options ---------------------------------------------------------------------------------------------------

    def max_tokens(self) -> dict[str, Any]:
        return given(max_tokens=self.request.options.max_tokens)

    def top_k(self, top_k: int) -> dict[str, Any]:
        return {"top_k": top_k}

    def _service_tier(self) -> dict[str, Any]:
        tier = self.request.options.service_tier
        if tier is None or self.own or tier in SERVICE_TIERS:
            return given(service_tier=tier)
        self.lose("parameter", "service_tier")
        return {}

    def thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        """How much to think; whether to think at all is ``high`` or ``none``."""
        if thinking is None:
            return {}
        self.lose_thinking(thinking, "budget_tokens", "summary")
        effort = asked_effort(thinking)
        if effort is None and thinking.enabled is not None:
            effort = "high" if thinking.enabled else "none"
        return given(reasoning_effort=effort)

    # -- tools -----------------------------------------------------------------------------------------------------

    def offered(self) -> Sequence[Tool]:
        """The tools that may be called, of which a named one is chosen by its name."""
        tools, choice = self.request.tools, self.request.tool_choice
        if choice is None or not choice.names or choice.mode == "none" or _is_named(choice):
            return tools
        return chosen_of(tools, choice)

    def tool(self, tool: Tool) -> dict[str, Any] | None:
        if tool.kind == "custom":
            self.extras(tool.extras)
            tool = self.as_function(tool)
        elif tool.kind == "function" and tool.parameters is None:
            tool = evolve(tool, parameters=dict(NO_PARAMETERS))
        return super().tool(tool)

    def tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        if choice is not None and not _is_named(choice):
            choice = evolve(choice, names=())
        body = super().tool_choice(choice)
        return {**body, "tool_choice": "any"} if body.get("tool_choice") == "required" else body

    def named_tool(self, name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": self.tool_name(name)}}


def _is_named(choice: ToolChoice) -> bool:
    return choice.mode == "required" and len(choice.names) == 1
