"""Passes over tools and the tool choice: change what the dialect can't express. See ``lowering/__init__.py``.

A tool that can't be defined must not leave traces: providers refuse a choice among no tools, and a model that is made to call
a missing tool invents its result. A request that requires such a tool is refused. Otherwise the choice is limited to the
tools that are left, and dropped if none is left.

Source: dialects.md §1.8, §7.3, §7.4 (the tools of each dialect).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, fields

from streamkit.conversation.messages import Request, Tool, ToolCall, ToolChoice, WebSearch
from streamkit.dialects.lowering import Lowering, chosen_of, has_part, of_tools, when
from streamkit.errors import BadRequest
from streamkit.text.quoting import quoted_all
from streamkit.translation.lowering.parts import portable_tool_name, with_mark, without_extras

#: The schema of a function that replaces a custom tool: one text parameter (dialects.md §1.8).
INPUT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def namespaces_lost(request: Request, to: Lowering) -> None:
    """Count each group of tools (namespace) as a loss; only Responses has them."""
    counted = set[str]()
    for tool in request.tools:
        if tool.namespace is not None and tool.namespace.name not in counted:
            counted.add(tool.namespace.name)
            to.lose("tool_namespace", tool.namespace.name)


@when(lambda takes: takes.can_search)
def search_found(request: Request, to: Lowering) -> None:
    """Set ``to.search`` to the request's web search tool, if this dialect's provider can run one for this request."""
    can_search = to.takes.can_search
    for tool in request.tools:
        if can_search and tool.search is not None and not tool.search.stored_only:
            to.search = tool if can_search(request) else None
            return


def defines(tool: Tool, to: Lowering) -> bool:
    """Return whether the dialect can define a tool: a tool that the client runs, or the search that its provider can run."""
    return tool.kind != "server" or tool is to.search


def choice_feasible(request: Request, to: Lowering) -> None:
    """Limit the tool choice to the tools that the dialect can define.

    Raises BadRequest if the choice requires a tool that it can't define, or any tool where it can define none.
    """
    choice, dialect = request.tool_choice, to.takes.dialect
    if choice is None:
        return
    there = {tool.name for tool in request.tools if defines(tool, to)}
    missing = dict.fromkeys(tool.name for tool in request.tools if tool.name not in there)
    if choice.native is not None:  # a native choice may name tools that the request does not define
        missing |= dict.fromkeys(name for name in choice.names if name not in there)
    left = tuple(name for name in choice.names if name not in missing)
    if choice.mode == "required" and choice.names and not left:
        raise BadRequest("tool_choice", f"{quoted_all(choice.names)} must be called, and {dialect} can't define it")
    if choice.mode == "required" and not there:
        why = f"{dialect} can't define {quoted_all([*missing])}" if missing else "the request defines none"
        raise BadRequest("tool_choice", f"a tool must be called, and {why}")
    if not there:
        request.tool_choice = None
        return
    for name in choice.names:
        if name in missing and choice.mode != "none":
            to.lose("tool_choice", name)
    if choice.names and not left:
        choice = ToolChoice("none")
    elif left != choice.names:
        choice = evolve(choice, names=left)
    request.tool_choice = choice


@when(lambda takes: not takes.some_tools)
def choice_narrowed(request: Request, to: Lowering) -> None:
    """Offer only the tools that the choice names, for a dialect whose choice can name one tool or none.

    Raises BadRequest if the target does not emulate what the dialect lacks.
    """
    choice = request.tool_choice
    named = choice is not None and choice.mode == "required" and len(choice.names) == 1
    if choice is None or not choice.names or named or choice.mode == "none":
        return
    if not to.target.emulate:
        raise BadRequest("tool_choice", f"{to.takes.title} can't be told to choose among some of the tools only")
    to.lose("tool_choice", "names")
    request.tools = [*chosen_of(request.tools, choice)]
    request.tool_choice = evolve(choice, names=())


@when(lambda takes: not takes.parallel)
def parallel_counted(request: Request, to: Lowering) -> None:
    """Count a loss if the request forbids parallel calls and the dialect's tool choice can't do so."""
    choice = request.tool_choice
    if choice is None or choice.parallel is None:
        return
    if choice.parallel is False:
        to.lose("tool_choice", "parallel")
    request.tool_choice = evolve(choice, parallel=None)


@when(lambda takes: takes.offered_to)
def only_callable_offered(request: Request, to: Lowering) -> None:
    """Offer only the tools that may be called, and drop the choice, for a dialect without a tool choice.

    Raises BadRequest if a tool must be called and the target does not emulate what the dialect lacks.
    """
    choice, asked = request.tool_choice, to.takes.offered_to
    if choice is None:
        return
    choice = without_extras(choice, to, to.takes.choice_extras)
    if choice.mode == "required":
        if not to.target.emulate:
            raise BadRequest("tool_choice", f"{asked} can't be made to call a tool, only be offered fewer")
        to.lose("tool_choice", "required")
    if choice.mode != "none" and choice.parallel is False:
        to.lose("tool_choice", "parallel")
    tools = [] if choice.mode == "none" else [*chosen_of(request.tools, choice)]
    request.tools = tools
    request.tool_choice = None


@when(lambda takes: not takes.strict_tools)
@of_tools
def no_strict_tools(tool: Tool, to: Lowering) -> Tool:
    """Drop ``strict`` from a tool (its schema must be followed), for a dialect without such a member; this is a loss."""
    if tool.strict:
        to.lose("tool_strict", tool.name)
    return evolve(tool, strict=None)


def tools_fit(request: Request, to: Lowering) -> None:
    """Adapt tools: drop other providers' tools, make names portable, and turn custom tools into functions where needed."""
    tools, names = [], {}
    for tool in request.tools:
        fit = _hosted(tool, to) if tool.kind == "server" else _function(tool, to)
        if fit is not None:
            tools.append(fit)
            if tool is to.search and tool.name not in functions_of(request):
                names[tool.name] = fit.name
    choice = request.tool_choice
    if choice is not None:
        made = tuple(names.get(name) or portable_tool_name(name, to) for name in choice.names)
        choice = evolve(without_extras(choice, to, to.takes.choice_extras), names=made, native=None)
    request.tools = tools
    request.tool_choice = choice


def functions_of(request: Request) -> set[str]:
    """Return the names of the tools that the client runs."""
    return {tool.name for tool in request.tools if tool.kind != "server"}


def _function(tool: Tool, to: Lowering) -> Tool:
    tool = _not_custom(with_mark(without_extras(tool, to), to, tool.name), to)
    name = portable_tool_name(tool.name, to)
    return tool if name == tool.name else evolve(tool, name=name)


def _not_custom(tool: Tool, to: Lowering) -> Tool:
    """Replace a custom tool with a function that takes the input as text, if the dialect has no custom tools."""
    if tool.kind != "custom" or to.takes.custom_tools:
        return tool
    to.lose("custom_tool_wrapped", tool.name)
    return Tool(tool.name, tool.description, INPUT_SCHEMA, cache=tool.cache)


no_custom_tools: Final = when(lambda takes: not takes.custom_tools)(of_tools(_not_custom))


def _hosted(tool: Tool, to: Lowering) -> Tool | None:
    """Return another dialect's web search as this dialect's; None for any other tool that a provider runs."""
    search, written = tool.search, to.takes.search
    if search is None or tool is not to.search or written is None:
        to.lose("tool_definition", tool.name)
        return None
    for option in fields(WebSearch):
        if getattr(search, option.name) and option.name not in {*to.takes.search_options, "extras"}:
            to.lose("parameter", f"web_search.{option.name}")
    for name in search.extras or ():
        to.lose("parameter", f"web_search.{name}")
    raw = written(search, to)
    return evolve(tool, name=raw.get("name", tool.name), raw=raw)


@when(lambda takes: takes.declares_called)
def called_tools_defined(request: Request, to: Lowering) -> None:
    """Define the tools that the history calls, for servers that demand it even when the request offers none."""
    if request.tools or not has_part(request.turns, ToolCall):
        return
    calls = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
    names = dict.fromkeys(call.name for call in calls)
    for _ in names:
        to.report.repair("tool_declared")
    tools = [Tool(name, parameters={"type": "object"}) for name in names]
    request.tools = tools
    request.tool_choice = ToolChoice("none")


@when(lambda takes: takes.needs_properties)
@of_tools
def schemas_with_properties(tool: Tool, to: Lowering) -> Tool:
    """Add ``properties`` to object schemas that lack it, for servers that refuse such schemas."""
    schema = tool.parameters
    is_object = isinstance(schema, Mapping) and schema.get("type") == "object"
    if tool.kind == "server" or not is_object or schema.get("properties") is not None:
        return tool
    to.report.repair("properties_added")
    return evolve(tool, parameters={**schema, "properties": {}})


def no_choice_among_none(request: Request, _to: Lowering) -> None:
    """Drop a choice that requires no call if there are no tools."""
    choice = request.tool_choice
    idle = not request.tools and choice is not None and choice.mode != "required"
    if idle:
        request.tool_choice = None
