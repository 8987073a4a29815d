"""The neutral conversation to Gemini's requests: options, tools, the choice among them; contents in ``messages_out.py``.

The model, and whether the answer streams, stand in the URL and not here. A schema is written as JSON schema, without the
keywords that Gemini does not take, or in the older form if it came so. Arguments that must match their schemas are asked for
once for all tools (``VALIDATED``), and so is a choice among some of them that leaves it to the model whether to call.

Source: dialects.md §5.3, §7.3, §7.4.
"""

from __future__ import annotations

from typing import Any, Final

from streamkit.conversation.messages import Extras, OutputFormat, Request, Thinking, Tool, ToolChoice, WebSearch
from streamkit.dialects.bodies.request_writer import given, merged
from streamkit.dialects.gemini.messages_out import MessageWriter
from streamkit.dialects.gemini.request_in import DYNAMIC
from streamkit.dialects.gemini.schemas import SchemaCutter, json_schema
from streamkit.dialects.gemini.wire import (
    BUDGET_BOUNDS,
    FIRST_WITH_LEVELS,
    JSON,
    LEVELS,
    MODES,
    NEAREST_LEVEL,
    OPTIONS,
    PLAIN,
    SERVICE_TIERS,
    VALIDATED,
)
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.reasoning_effort import budget_of, gemini_version, nearest
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"thinking", "output", "service_tier"})
#: The members for a schema, the older form first.
PARAMETER_FORMS: Final = ("parameters", "parametersJsonSchema")
RESPONSE_FORMS: Final = ("responseSchema", "responseJsonSchema")


def encode_request(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Write a request body as JSON values. Raises BadRequest."""
    return GeminiRequestWriter(request, target, report).request_body()


class GeminiRequestWriter(MessageWriter):
    search_options = frozenset()

    def request_body(self) -> dict[str, Any]:
        request = self.request
        instruction, contents = self.conversation()
        if not contents and not self.own:
            instruction, contents = self._said_by_the_user(instruction)
        tools = self.tools()
        body = given(
            contents=contents,
            systemInstruction=instruction,
            tools=tools or None,
            toolConfig=self.tool_config(request.tool_choice),
            generationConfig=self.generation_config() or None,
            serviceTier=self.service_tier(request.options.service_tier),
        )
        return merged(body, self.extras(request.extras, "parameter"))

    def _said_by_the_user(self, instruction: dict[str, Any] | None) -> tuple[None, list[dict[str, Any]]]:
        """Where only the system speaks, its words as the user's: the dialect demands a content."""
        if not self.target.emulate or instruction is None:
            raise BadRequest("contents", "Gemini needs a content of the user, beside what the system says")
        self.lose("system_place")
        return None, [{"role": "user", "parts": instruction["parts"]}]

    # -- options ---------------------------------------------------------------------------------------------------

    def generation_config(self) -> dict[str, Any]:
        options = self.request.options
        config = self.options(OPTIONS, BESIDE)
        config |= self._output(options.output)
        thinking = self._thinking(options.thinking)
        return {**config, "thinkingConfig": thinking} if thinking else config

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        if thinking is None:
            return {}
        level, budget = thinking.effort, thinking.budget_tokens
        if level == "none" or (thinking.enabled is False and level is None):
            level, budget = None, 0
        elif thinking.enabled and level is None and budget is None:
            budget = DYNAMIC
        elif level is not None and budget is not None and not self.own:  # one of them may be given
            self.lose("parameter", "thinking.budget_tokens")
            budget = None
        if not self.own:
            level, budget = self._for_model(level, budget)
        if thinking.summary not in {None, "none", "auto"}:
            self.lose("parameter", "thinking.summary")
        shown = None if thinking.summary is None else thinking.summary != "none"
        return given(
            thinkingLevel=None if level is None else self._level(level), thinkingBudget=budget, includeThoughts=shown
        )

    def _level(self, effort: str) -> str:
        if effort in LEVELS:
            return effort.upper()
        self.lose("parameter", "thinking.effort")
        return (nearest(effort, LEVELS) or NEAREST_LEVEL).upper()

    def _for_model(self, level: str | None, budget: int | None) -> tuple[str | None, int | None]:
        """The two as the model takes them: budgets within its bounds up to 2.5, levels from 3 on, which is never without."""
        model = self.request.model or ""
        version = gemini_version(model)
        if version is None:
            return level, budget
        if version >= FIRST_WITH_LEVELS:
            if budget != 0:
                return level, budget
            self.lose("parameter", "thinking.enabled")
            return ("minimal" if "flash" in model else "low"), None
        if level is not None:
            self.lose("parameter", "thinking.effort")
            level, budget = None, budget_of(level)
        bounds = next((bounds for name, bounds in BUDGET_BOUNDS.items() if name in model), None)
        if bounds is None or budget is None or budget == DYNAMIC or (budget == 0 and bounds.can_be_none):
            return level, budget
        fits = min(max(budget, bounds.least), bounds.most)
        if fits != budget:
            self.lose("parameter", "thinking.budget_tokens")
        return level, fits

    def _output(self, output: OutputFormat | None) -> dict[str, Any]:
        if output is None:
            return {}
        if output.kind != "schema":
            return {"responseMimeType": JSON if output.kind == "json" else PLAIN}
        for name in "name", "description":
            if getattr(output, name) is not None:
                self.lose("parameter", f"output.{name}")
        if output.strict is False:  # here an answer always fits
            self.lose("parameter", "output.strict")
        schema = self._schema(output.schema, output.native_schema, RESPONSE_FORMS, "output.schema")
        return {"responseMimeType": JSON, **schema}

    def _schema(self, schema: Any, came: Extras | None, forms: tuple[str, str], path: str) -> dict[str, Any]:
        """A schema under the name of its form: the older as it came, unless the schema is another by now."""
        older, newer = forms
        if not self.own:
            return given(**{newer: SchemaCutter(lambda where: self.lose("schema_keyword", where)).cut(schema, path)})
        is_older = came is not None and json_schema(came) == schema
        return given(**({older: came} if is_older else {newer: schema}))

    def service_tier(self, tier: str | None) -> str | None:
        if tier is None or self.own:
            return tier
        if tier not in SERVICE_TIERS:
            self.lose("parameter", "service_tier")
        return SERVICE_TIERS.get(tier)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        """The functions, in one tool at the place of the first, and Google's own tools, each in one."""
        functions: list[dict[str, Any]] = []
        tools: list[dict[str, Any]] = []
        must_search = self._must_search
        for number, tool in enumerate(self.request.tools):
            if tool.kind != "server":
                if must_search:
                    self.lose("tool_definition", tool.name)
                    continue
                if not functions:
                    tools.append({"functionDeclarations": functions})
                functions.append(self._function(tool, f"tools[{number}].parameters"))
            elif (hosted := self.hosted(tool)) is not None:
                tools.append(hosted)
        return tools

    def can_search(self, tool: Tool) -> bool:
        """Whether Google's search is offered for a tool: beside functions it is refused, so one of both must do without."""
        choice = self.request.tool_choice
        if choice is not None and choice.mode == "none":  # which says nothing of it here
            return False
        named = choice is not None and choice.mode == "required" and choice.names == (tool.name,)
        alone = not self.functions or (named and tool.name not in self.functions)
        return super().can_search(tool) and alone

    def search_tool(self, _search: WebSearch) -> dict[str, Any]:
        return {"googleSearch": {}}

    @property
    def _must_search(self) -> bool:
        """Whether the search, and no function, is demanded."""
        choice = self.request.tool_choice
        return choice is not None and choice.mode == "required" and [*map(self.is_search, choice.names)] == [True]

    def _function(self, tool: Tool, path: str) -> dict[str, Any]:
        extras = self.extras(tool.extras)
        self._no_mark(tool.cache)
        if tool.kind == "custom":
            tool = self.as_function(tool)
        parameters = tool.parameters if self.own else tool.parameters or None
        declaration = given(name=self.tool_name(tool.name), description=tool.description)
        return merged(declaration | self._schema(parameters, tool.native_parameters, PARAMETER_FORMS, path), extras)

    def tool_config(self, choice: ToolChoice | None) -> dict[str, Any] | None:
        functions = [] if self._must_search else [tool for tool in self.request.tools if tool.kind != "server"]
        strict = any(tool.strict for tool in functions)
        if choice is None:
            return {"functionCallingConfig": {"mode": VALIDATED}} if strict else None
        if choice.parallel is False:
            self.lose("tool_choice", "parallel")
        extras = self.extras(choice.extras, "tool_choice")
        if not functions and not self.own and choice.mode != "required":
            return None  # a choice without functions is refused, and this one says nothing
        if not functions and not self.own:  # what can be demanded is functions
            self.lose("tool_choice", "required")
            return None
        mode = MODES[choice.mode]
        if choice.mode == "auto" and not self.own and (strict or choice.names):
            mode = VALIDATED
        names = [self.tool_name(name) for name in choice.names]
        calling = given(mode=extras.get("mode", mode), allowedFunctionNames=names or None)
        return {"functionCallingConfig": merged(calling, extras)}
