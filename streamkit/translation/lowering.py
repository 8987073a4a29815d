"""Lower a request: change what one dialect can express into what another dialect can express.

A request is read into the neutral conversation, then lowered for the dialect that it is written in. ``foreign`` lists the
passes for a request of another dialect, in order; each pass changes the request, counts what it leaves out as a loss and what
it repairs as a repair. ``Capabilities`` is data: what the servers of a dialect accept for one model and provider. A pass that
the capabilities make needless (``when``) is skipped. Within one dialect only the passes of ``own`` run: they remove what
servers refuse even from clients of their dialect.

The passes over tools and options are in this module, those over parts and turns in ``content_passes.py``.

Tools: a tool that cannot be defined must not leave traces: providers refuse a choice among no tools, and a model that is made
to call a missing tool invents its result. A request that requires such a tool is refused. Otherwise the choice is limited to
the tools that are left, and dropped if none is left.

Options: a server refuses a whole request for one option that its model does not accept, and a client that requested another
model cannot know that. The table of models (``vocabulary/model_table.py``) says which options a model refuses, and when.

Source: dialects.md §1.3, §1.8, §3.0, §7.3, §7.4; the providers' pages on each parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, cast

from attrs import evolve, fields

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    WebSearch,
)
from streamkit.dialects.lowering import (
    Capabilities,
    Lowering,
    OfParts,
    Pass,
    TellsCapabilities,
    asked_effort,
    chosen_of,
    has_part,
    needed_by,
    of_tools,
    when,
)
from streamkit.dialects.members.values import has_value
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.vocabulary.client_tools import form_lost, unknown_version
from streamkit.dialects.vocabulary.model_names import LONGEST
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.identifiers import PORTABLE_IDS, hashed, portable_name
from streamkit.text.quoting import quoted, quoted_all
from streamkit.translation import content_passes as content
from streamkit.translation.cache_marks import prompt_marked, tools_marked
from streamkit.translation.content_passes import portable_tool_name, with_mark, without_extras
from streamkit.translation.documents import documents_cited
from streamkit.translation.tool_searches import tool_searches_carried

#: Getters of all members of a request and of its options, in the order of their constructors: they make the lowered copy.
_options: Final = attrgetter(*(member.name for member in fields(Options)))
#: Drop the native forms that parts had in another dialect.
NATIVE_FORMS_LOST: Final = OfParts(dict.fromkeys((Media, ToolCall, ToolResult), (content.native_form,)))
#: Drop parts that the dialect lacks, and signatures that this dialect can't send back to their vendors.
KNOWN_PARTS: Final = OfParts(
    {
        **dict.fromkeys((Text, Reasoning, RedactedReasoning, ToolCall), (content.signature,)),
        Refusal: (content.refusal_as_text,),
        Media: (content.media,),
        ToolResult: (content.error_in_words,),
        Aside: (content.aside,),
    }
)
#: Drop extra members and cache marks of parts, if the target's servers refuse them. Rewrite call ids and tool names to a
#: form that these servers accept.
KNOWN_WORDS: Final = OfParts(
    {
        **dict.fromkeys((Refusal, Reasoning, RedactedReasoning), (content.extras,)),
        **dict.fromkeys((Text, Media), (content.extras, content.cache_mark)),
        ToolCall: (content.extras, content.arguments, content.cache_mark, content.portable_words),
        ToolResult: (content.extras, content.cache_mark, content.portable_words),
    }
)
#: The steps of ``KNOWN_WORDS`` for a request of the same dialect: its servers refuse these forms from every client.
OWN_WORDS: Final = OfParts(
    {ToolCall: (content.arguments, content.portable_words), ToolResult: (content.portable_words,)}
)
#: The schema of a function that replaces a custom tool: one text parameter (dialects.md §1.8).
INPUT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
#: All options except ``native_max_tokens`` (the member for ``max_tokens``) and ``choices`` (see ``one_choice``).
_OPTIONS: Final = tuple(
    option.name for option in fields(Options) if option.name not in {"native_max_tokens", "choices"}
)


# -- the passes in order -----------------------------------------------------------------------------------------------


def own(takes: Capabilities) -> Sequence[Pass]:
    """Return the passes for a request of the same dialect, in order."""
    return (
        one_choice,
        marks_counted,
        only_callable_offered,
        no_strict_tools,
        no_custom_tools,
        *takes.first,
        choice_narrowed,
        parallel_counted,
        content.turns_counted,
        KNOWN_PARTS,
        OWN_WORDS,
        content.no_made_ids,
        content.no_blank_texts,
        prompt_marked,
        *takes.said,
        content.no_empty_turns,
        content.neighbours_joined,
        content.results_placed,
        *takes.arranged,
        called_tools_defined,
        tools_marked,
        options_with_place,
        *takes.last,
    )


def foreign(takes: Capabilities) -> Sequence[Pass]:
    """Return the passes for a request of another dialect, in order."""
    return (
        namespaces_lost,
        search_found,
        tool_searches_carried,
        # content
        documents_cited,
        content.readable,
        content.telling,
        content.no_silent_turns,
        content.answerable,
        content.continuable,
        choice_feasible,
        unthinking_with_tools,
        options_fit,
        form_or_tools,
        marks_counted,
        NATIVE_FORMS_LOST,
        *takes.first,
        one_choice,
        only_callable_offered,
        no_strict_tools,
        choice_narrowed,
        parallel_counted,
        content.turns_counted,
        content.no_extras,
        content.no_native_roles,
        KNOWN_PARTS,
        content.no_blank_texts,
        KNOWN_WORDS,
        prompt_marked,
        *takes.said,
        # order
        content.no_empty_answers,
        content.no_empty_turns,
        content.system_in_place,
        content.user_speaks,
        content.neighbours_joined,
        content.results_placed,
        content.user_speaks_first,
        content.calls_excused,
        *takes.arranged,
        # tools and options
        tools_fit,
        called_tools_defined,
        tools_marked,
        schemas_with_properties,
        no_choice_among_none,
        options_with_place,
        no_members_of_others,
        *takes.last,
    )


def lower(request: Request, tell: TellsCapabilities, target: Target, report: StreamReport) -> Request:
    """Return a copy of the request with only what the dialect can say. Raises BadRequest if something needed has no form."""
    name = target.model_like or request.model
    plan = (
        _planned if len(name or "") <= LONGEST else _planned.__wrapped__
    )  # clients choose names: a cache of long ones grows
    takes, passes = plan(tell, request.dialect, name, target.provider)
    to = Lowering(takes, target, report, request.dialect)
    lowered = request.copy()
    lowered.options = Options(*_options(request.options))
    lowered.model = name
    for each in passes:
        each(lowered, to)
    lowered.model = request.model
    return lowered


@lru_cache(1024)
def _planned(
    tell: TellsCapabilities, source: str, model: str | None, provider: Provider | None
) -> tuple[Capabilities, Sequence[Pass]]:
    """Return the capabilities for a ``source`` dialect, model and provider, and the passes that a request then needs."""
    takes = tell(source, model, provider)
    return takes, needed_by(takes, own(takes) if source == takes.dialect else foreign(takes))


# -- tools -------------------------------------------------------------------------------------------------------------


def namespaces_lost(request: Request, to: Lowering) -> None:
    """Count each group of tools (namespace) as a loss; only Responses has them."""
    counted: set[str] = set()
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
    return tool.kind != "server" or tool is to.search or tool is to.finder


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
        raise BadRequest("tool_choice", f"{dialect} cannot define the required tool {quoted_all(choice.names)}")
    if choice.mode == "required" and not there:
        why = f"{dialect} cannot define {quoted_all([*missing])}" if missing else "the request defines no tools"
        raise BadRequest("tool_choice", f"a tool call is required, but {why}")
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
        raise BadRequest(
            "tool_choice", f"{to.takes.title} cannot limit the choice to some of the tools; offer only those"
        )
    to.lose("tool_choice", "names")
    request.tools = [*chosen_of(request.tools, choice)]
    request.tool_choice = evolve(choice, names=())


@when(lambda takes: not (takes.parallel and takes.model.parallel_option))
def parallel_counted(request: Request, to: Lowering) -> None:
    """Count a loss if the request forbids parallel calls and the dialect's tool choice, or the model, can't do so."""
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
            raise BadRequest("tool_choice", f"{asked} cannot be required to call a tool")
        to.lose("tool_choice", "required")
    if choice.mode != "none" and choice.parallel is False:
        to.lose("tool_choice", "parallel")
    request.tools = [] if choice.mode == "none" else [*chosen_of(request.tools, choice)]
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
    for loss in losses_of_forms(request.tools):
        to.lose(*loss)
    for tool in request.tools:
        fit = _hosted(tool, to) if tool.kind == "server" else _function(tool, to)
        if fit is not None:
            tools.append(fit)
            if (tool is to.search or tool is to.finder) and not any(
                each.name == tool.name for each in request.tools if each.kind != "server"
            ):
                names[tool.name] = fit.name
    choice = request.tool_choice
    if choice is not None:
        made = tuple(names.get(name) or portable_tool_name(name, to) for name in choice.names)
        choice = evolve(without_extras(choice, to, to.takes.choice_extras), names=made, native=None)
    request.tools = tools
    request.tool_choice = choice


def _function(tool: Tool, to: Lowering) -> Tool:
    tool = tool if tool.raw is None else evolve(tool, raw=None)
    tool = _not_custom(with_mark(without_extras(tool, to), to, tool.name), to)
    name = portable_tool_name(tool.name, to)
    return tool if name == tool.name else evolve(tool, name=name)


def losses_of_forms(tools: Sequence[Tool]) -> Iterator[tuple[str, str]]:
    """Yield what tools lose that another vendor defines and the client runs. Functions of one definition count once."""
    before: Any = None
    for tool in tools:
        if tool.raw is not None and tool.raw is not before and tool.kind != "server":
            yield from form_lost(tool.raw)
        before = tool.raw


def _not_custom(tool: Tool, to: Lowering) -> Tool:
    """Replace a custom tool with a function that takes the input as text, if the dialect has no custom tools."""
    if tool.kind != "custom" or to.takes.custom_tools:
        return tool
    to.lose("custom_tool_wrapped", tool.name)
    return Tool(tool.name, tool.description, INPUT_SCHEMA, cache=tool.cache)


no_custom_tools: Final = when(lambda takes: not takes.custom_tools)(of_tools(_not_custom))


def _hosted(tool: Tool, to: Lowering) -> Tool | None:
    """Return another dialect's web search, or search of tools, as this dialect's; None for any other tool of a provider."""
    if tool is to.finder and to.takes.finder is not None:
        raw = dict(to.takes.finder)
        return evolve(tool, name=raw.get("name", raw["type"]), raw=raw)
    search, written = tool.search, to.takes.search
    if search is None or tool is not to.search or written is None:
        kind = str((tool.raw or {}).get("type"))
        if wrong := unknown_version(kind):
            raise BadRequest("tools", f"{quoted(kind)}: {wrong}; use one of these, or a function of your own")
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
    request.tools = [Tool(name, parameters={"type": "object"}) for name in names]
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
    if not request.tools and choice is not None and choice.mode != "required":
        request.tool_choice = None


# -- options -----------------------------------------------------------------------------------------------------------


@when(lambda takes: takes.unthinking_tools)
def unthinking_with_tools(request: Request, to: Lowering) -> None:
    """Turn thinking off in a request with tools, for a model that accepts no tools while it thinks."""
    model, thinking = to.takes.model, request.options.thinking or Thinking()
    if "none" not in model.efforts or all(tool.kind == "server" for tool in request.tools):
        return
    if model.is_thinking(asked_effort(thinking) or thinking.enabled or None, off=thinking.enabled is False):
        to.lose("parameter", "thinking")
    # the server refuses an effort other than ``none``, and of a model that only thinks if asked any effort
    effort = "none" if model.thinks == "unasked" else None
    request.options.thinking = evolve(thinking, effort=effort, budget_tokens=None, enabled=None)


def options_fit(request: Request, to: Lowering) -> None:
    """Drop the options that the model refuses, and adapt the user's id and the output format to what the servers take."""
    takes, options = to.takes, request.options
    bound, most = options.max_tokens, takes.model.output
    if most is not None and bound is not None and bound > most and "max_tokens" in takes.options:
        to.lose("parameter", "max_tokens")
        options.max_tokens = most
    kept = tuple(stop for stop in options.stop if (stop.strip() if takes.is_claude else stop))[: takes.most_stops]
    if len(kept) < len(options.stop):
        to.lose("parameter", "stop")
    options.stop, thinking = kept, options.thinking
    if thinking is not None and thinking.enabled is False and thinking.effort not in {None, "none"}:
        to.lose("parameter", "thinking.effort")  # the client asked for no thinking, so the effort means nothing
        options.thinking = evolve(thinking, effort=None)
    for name in dict.fromkeys(_refused(options, to)):
        value = _dropped(options, name)
        if value is not None and _DEFAULTS.get(name) != value:
            to.lose("parameter", name)
    if options.user is not None and takes.users is not None:
        user = options.user if takes.users.fullmatch(options.user) else f"user_{hashed(options.user, 22)}"
        options.user = to.rewrite(options.user, user, "id_rewritten")
    options.output = _asked_form(options.output, to)


def _refused(options: Options, to: Lowering) -> Iterable[str]:
    """Return the names of options that the model refuses next to the request's other options."""
    model, thinking, refused = to.takes.model, options.thinking, to.takes.model.refuses
    off, asked = False, None
    if thinking is not None:
        off = thinking.enabled is False
        enabled = (thinking.enabled and to.takes.is_claude and "enabled") or None
        asked = thinking.effort or thinking.budget_tokens or enabled
    if model.is_thinking(asked, off=off):
        least = model.least_top_p
        fits = least is not None and options.top_p is not None and options.top_p >= least
        return (*refused, *(name for name in model.refuses_thinking if name != "top_p" or not fits))
    return refused if model.both or options.temperature is None else (*refused, "top_p")


def _dropped(options: Options, name: str) -> Any:
    """Remove an option and return its value; None if it is not set."""
    value = getattr(options, name)
    if value is None or value == ():
        return None
    setattr(options, name, () if name == "stop" else None)
    return value


def _asked_form(output: OutputFormat | None, to: Lowering) -> OutputFormat | None:
    """Return the output format as the servers take it: with a portable name, and as plain JSON if it has no schema."""
    if output is None or output.kind != "schema":
        return output
    if output.schema is None:
        to.lose_members(output, "output", "name", "description", "strict")
        return OutputFormat("json")
    if output.name is None or to.takes.names is None:
        return output
    return evolve(output, name=to.rewrite(output.name, portable_name(output.name, PORTABLE_IDS), "name_rewritten"))


@when(lambda takes: not (takes.model.form_with_tools if takes.form_with_tools is None else takes.form_with_tools))
def form_or_tools(request: Request, to: Lowering) -> None:
    """Keep either the tools or the JSON output format, for a model that does not take both."""
    output, choice = request.options.output, request.tool_choice
    if output is None or output.kind == "text":
        return
    if choice is not None and choice.mode == "none":
        to.lose("tool_choice", "none")
        request.tools = []
        request.tool_choice = None
    elif any(defines(tool, to) for tool in request.tools):
        to.lose("parameter", "output")
        request.options.output = None


@when(lambda takes: takes.most_marks is not None)
def marks_counted(request: Request, to: Lowering) -> None:
    """Keep the latest cache marks, as many as the server takes; each dropped mark is a loss."""
    most = to.takes.most_marks or 0
    turns = sorted(request.turns, key=lambda turn: turn.role != "system")
    parts = [each for turn in turns for part in turn.parts for each in _inner(part)]
    tools = [tool for tool in request.tools if tool.cache is not None]
    barred = [] if to.takes.model.cached_tools else tools
    marked = [*([] if barred else tools), *(each for each in parts if getattr(each, "cache", None) is not None)]
    over: list[Any] = [*barred, *marked[: max(0, len(marked) - most)]]
    if not over:
        return
    for each in over:
        to.lose("cache_mark", each.name if isinstance(each, Tool) else each.cache)
    dropped = {id(each) for each in over}
    request.tools = [evolve(tool, cache=None) if id(tool) in dropped else tool for tool in request.tools]
    request.turns = [evolve(turn, parts=[_unmarked(part, dropped) for part in turn.parts]) for turn in request.turns]


def _inner(part: Part) -> Sequence[Part]:
    """Return the parts inside a tool result, then the result; any other part alone."""
    return (*part.parts, part) if isinstance(part, ToolResult) else (part,)


def _unmarked(part: Part, dropped: set[int]) -> Part:
    """Return a part without the cache marks that belong to it, or to parts inside it, whose ``id()`` is in ``dropped``."""
    drops = id(part) in dropped
    if isinstance(part, ToolResult):
        inner = [_unmarked(each, dropped) for each in part.parts]
        return evolve(part, parts=cast("Any", inner), cache=None if drops else part.cache)
    return evolve(part, cache=None) if drops and isinstance(part, Text | Media | ToolCall) else part


@when(lambda takes: "choices" not in takes.options)
def one_choice(request: Request, to: Lowering) -> None:
    """Raise BadRequest if the request asks for several choices, for an API that gives only one."""
    choices = request.options.choices
    if choices is not None and choices > 1:
        raise BadRequest("n", f"{to.takes.title} returns one choice, not {choices}")


def options_with_place(request: Request, to: Lowering) -> None:
    """Drop the options that the dialect has no member for, and a service tier that its server does not know."""
    takes, options = to.takes, request.options
    for name in _OPTIONS:
        if name not in takes.options and _dropped(options, name) is not None:
            to.lose("parameter", name)
    tier, known = options.service_tier, takes.service_tiers
    if tier is not None and known is not None and tier not in known:
        to.lose("parameter", "service_tier")
        options.service_tier = None


def no_members_of_others(request: Request, to: Lowering) -> None:
    """Drop the request's members that only another dialect knows, and its ``exchange`` (metadata the model never sees)."""
    fit = to.takes.request_extras
    kept, rest = ({}, request.extras) if fit is None else fit(request.extras)
    for name, value in rest.items():
        if has_value(value):
            to.lose("parameter", name)
    request.options.native_max_tokens = None
    request.extras = dict(kept)
    request.exchange = {}
