"""Requests to Claude, as far as each of its providers takes them alike: how to think, tools, the form of an answer.

How to think stands in the member ``thinking``, and in the effort beside it. An effort alone asks Claude for effort only, while
in other dialects it asks the model to think: then ``adaptive`` is written with it. Claude takes that since 4.6, and a budget
up to 4.6 (``vocabulary/models.py``): an effort becomes a budget for an older one, a budget an effort for a newer one. An
unknown model gets either, as the request has it.

Source: dialects.md §3.2, §7.4; AWS and Anthropic, "Adaptive thinking", "Extended thinking".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.messages import CacheMark, OutputFormat, Reasoning, Thinking, Tool, ToolChoice
from streamkit.dialects.bodies.claude_schemas import ClaudeSchemas
from streamkit.dialects.bodies.request_writer import RequestWriter, without_none
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import BUDGETS, COMMON, below, budget_of, effort_of
from streamkit.errors import BadRequest

#: Whether thinking is shown, and our words for it.
DISPLAYS: Final[Mapping[str, str]] = {"summarized": "auto", "omitted": "none"}
SHOWN: Final[Mapping[str, str]] = {ours: word for word, ours in DISPLAYS.items()}
#: ``ttl`` of a ``cache_control`` or a ``cachePoint``, which without one is the shorter.
CACHE_SPANS: Final[Mapping[str | None, CacheMark]] = {None: "short", "5m": "short", "1h": "long"}
CACHE_CONTROLS: Final[Mapping[CacheMark, Mapping[str, str]]] = {
    "short": {"type": "ephemeral"},
    "long": {"type": "ephemeral", "ttl": "1h"},
}
#: The efforts that the server knows; for none there is another member.
EFFORTS: Final = frozenset({"none", "low", "medium", "high", "xhigh", "max"})
#: Kinds of ``thinking`` that have a word of ours.
THINKING: Final = frozenset({"enabled", "adaptive", "disabled"})
#: The least ``budget_tokens``.
LEAST_BUDGET: Final = 1024
#: What asks for thinking, with which a tool can't be forced.
THINKS: Final = frozenset({"enabled", "adaptive"})
#: The schema of a function that takes nothing.
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object"}
#: Marks on the prompt that a request may have.
MOST_MARKS: Final = 4


def read_thinking(fields: Fields | None, effort: str | None) -> Thinking | None:
    """How much to think: ``effort``, and the member ``thinking`` of ``fields``, which is taken. Raises BadRequest."""
    thinking = fields.fields_of_type("thinking", THINKING) if fields else None
    if thinking is None:
        return Thinking(effort) if effort else None
    kind = thinking.needed("type")
    read = Thinking(effort, enabled=kind != "disabled")
    if kind == "enabled":
        read.budget_tokens = thinking.integer("budget_tokens")
        if read.budget_tokens is None:
            raise thinking.wrong("a whole number is needed, and there is none", "budget_tokens")
    display = thinking.peek("display")
    if isinstance(display, str) and display in DISPLAYS:
        read.summary = DISPLAYS[thinking.needed("display")]
    return read


class ClaudeRequestWriter(RequestWriter):
    """What the writers of requests to Claude share."""

    models = "claude"
    efforts = EFFORTS
    unknown = evolve(UNKNOWN, efforts=("none", *COMMON), cache_marks="long")
    #: What the API is called, for messages.
    title: ClassVar[str]

    def most_marks(self) -> int | None:
        return MOST_MARKS if self.model.cache_marks else 0

    # -- thinking --------------------------------------------------------------------------------------------------

    def thinking(
        self, thinking: Thinking | None, choice: ToolChoice | None, *, unsigned: bool
    ) -> dict[str, Any] | None:
        """The member ``thinking``. Raises nothing: what the model can't do is a loss.

        ``unsigned``: the answer goes on with a turn that called tools and does not begin with thinking. With a budget the
        server then demands what it had thought before the calls.
        """
        if thinking is None:
            return None
        enabled, budget = thinking.enabled, thinking.budget_tokens
        if not self.own and enabled is None and budget is None and thinking.effort is not None:
            forced = choice is not None and choice.mode == "required"
            if forced and thinking.effort != "none":
                self.lose("parameter", "thinking")  # the effort is written, and the tool is what was asked for
                return None
            enabled = thinking.effort != "none"
        if enabled is False or (thinking.effort == "none" and not self.own):
            always = not self.own and "none" not in self.model.efforts
            if always and self.model.efforts:
                self.lose("parameter", "thinking.enabled")
            return None if always else {"type": "disabled"}
        if budget is None and enabled is None:
            if thinking.summary is not None:
                self.lose("parameter", "thinking.summary")
            return None
        if not self.own and not self.model.efforts:
            self.lose("parameter", "thinking")
            return None
        if not self.own and budget is not None and self.model.budget is None:
            self.lose("parameter", "thinking.budget_tokens")
            budget = None
        elif not self.own and budget is None and not self.model.words:
            self.lose("parameter", "thinking.effort" if thinking.effort else "thinking.enabled")
            budget = budget_of(thinking.effort) or BUDGETS["medium"]
        if budget is not None:
            return self._budget(thinking, budget, unsigned=unsigned)
        return without_none(type="adaptive", display=self._display(thinking.summary))

    def _budget(self, thinking: Thinking, budget: int, *, unsigned: bool) -> dict[str, Any] | None:
        """A budget, which must stay below the bound of the answer (§3.2)."""
        if not self.own:
            fits = None if unsigned else below(max(budget, LEAST_BUDGET), self.request.options.max_tokens, LEAST_BUDGET)
            if fits is None:
                self.lose("parameter", "thinking")
                return None
            if fits != budget and thinking.budget_tokens is not None:
                self.lose("parameter", "thinking.budget_tokens")
            budget = fits
        return without_none(type="enabled", budget_tokens=budget, display=self._display(thinking.summary))

    def effort(self, thinking: Thinking | None) -> str | None:
        """The effort, in a word that the server knows; None where it takes none, or where none was asked for."""
        if thinking is None:
            return None
        if self.own:
            return thinking.effort
        effort = thinking.effort
        if not self.model.words or effort == "none":
            return None
        if effort is None and self.model.budget is None and thinking.enabled is not False:
            return effort_of(thinking.budget_tokens)
        return self.fit_effort(effort)

    def _display(self, summary: str | None) -> str | None:
        if summary in {"concise", "detailed"}:
            self.lose("parameter", "thinking.summary")
        return None if summary is None else SHOWN.get(summary, "summarized")

    def with_thinking(self, choice: ToolChoice | None, thinking: Mapping[str, Any] | None) -> ToolChoice | None:
        """The choice, if thinking does not forbid it (§3.2). Raises BadRequest if the target does not imitate it."""
        if choice is None or choice.mode != "required" or thinking is None or thinking.get("type") not in THINKS:
            return choice
        if not self.target.emulate:
            raise BadRequest("tool_choice", "Claude can't be told to call a tool while thinking is enabled")
        self.lose("tool_choice", "required")
        return evolve(choice, mode="auto", names=())

    def lose_reasoning(self, part: Reasoning) -> None:
        """Count reasoning that is left out: the server refuses what Claude did not sign."""
        self.lose_signature(part.signature)
        if part.text:
            self.lose("reasoning_history")

    # -- the form of the answer ------------------------------------------------------------------------------------

    def schema_form(self, output: OutputFormat | None, *lost: str) -> OutputFormat | None:
        """The form of the answer where it has a schema, without what is ``lost`` of it; None for any other."""
        if output is None or output.kind == "text":
            return None
        if output.kind == "json":
            self.lose("parameter", "output")
            return None
        self.lose_output(output, *lost)
        return evolve(output, schema=self._held_to(output.schema, "output.schema"))

    def _held_to(self, schema: Any, path: str) -> Any:
        """Return a schema that the model must follow, as Claude takes it."""
        if self.own:
            return schema
        schemas = ClaudeSchemas(lambda where: self.lose("schema_keyword", where), self._closed)
        return schemas.write(schema, path)

    def _closed(self) -> None:
        self.report.repair("schema_closed")

    # -- tools -----------------------------------------------------------------------------------------------------

    def function(self, tool: Tool) -> Tool:
        """A tool that the program runs, as a function with a schema, which the server demands."""
        if tool.kind == "custom":
            self.extras(tool.extras)
            tool = self.as_function(tool)
        empty = tool.parameters is None or (tool.parameters == {} and not self.own)
        parameters = dict(NO_PARAMETERS) if empty else tool.parameters
        if tool.strict:
            parameters = self._held_to(parameters, f"{tool.name}.parameters")
        return evolve(tool, parameters=parameters, strict=tool.strict if self.own else tool.strict or None)

    def called_tools(self) -> list[str]:
        """The names of the tools that the history calls: the server demands definitions of them, though none is offered."""
        names = list(dict.fromkeys(self.tool_name(call.name) for call in self.calls))
        for _ in names:
            self.report.repair("tool_declared")
        return names

    def narrowed(self, choice: ToolChoice | None) -> tuple[Sequence[Tool], ToolChoice | None]:
        """The tools to offer, and the choice among them: one of some tools is imitated by offering no others.

        Raises BadRequest if the target does not imitate it.
        """
        tools = self.request.tools
        named = choice is not None and choice.mode == "required" and len(choice.names) == 1
        if choice is None or not choice.names or named or choice.mode == "none":
            return tools, choice
        if not self.target.emulate:
            raise BadRequest("tool_choice", f"{self.title} can't be told to choose among some of the tools only")
        self.lose("tool_choice", "names")
        return chosen_of(tools, choice), evolve(choice, names=())
