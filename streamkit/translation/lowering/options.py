"""Passes over the options of a request: drop those that the dialect can't express. See ``lowering/__init__.py``.

A server answers 400 to a whole request for one option that its model does not take, and a client that asked for another model
can't know that. The table of models (``vocabulary/models.py``) says which options a model refuses, and when. The dialect sets
the most stop sequences; Claude takes no blank one.

Source: dialects.md §1.3, §3.0, §7.4; the providers' pages on each parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from attrs import evolve, fields

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from streamkit.dialects.lowering import Capabilities, Lowering, when
from streamkit.dialects.members.values import has_value
from streamkit.errors import BadRequest
from streamkit.text.identifiers import PORTABLE_IDS, hashed, portable_name
from streamkit.translation.lowering.tools import defines

_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
#: All options except ``native_max_tokens`` (the member for ``max_tokens``) and ``choices`` (see ``one_choice``).
_OPTIONS: Final = tuple(
    option.name for option in fields(Options) if option.name not in {"native_max_tokens", "choices"}
)


def options_fit(request: Request, to: Lowering) -> None:
    """Drop the options that the model refuses, and adapt the user's id and the output format to what the servers take."""
    takes, options = to.takes, request.options
    kept = tuple(stop for stop in options.stop if (stop.strip() if takes.is_claude else stop))[: takes.most_stops]
    if len(kept) < len(options.stop):
        to.lose("parameter", "stop")
    options.stop, thinking = kept, options.thinking
    if thinking is not None and thinking.enabled is False and thinking.effort not in {None, "none"}:
        to.lose("parameter", "thinking.effort")  # the client asked for no thinking, so the effort means nothing
        options.thinking = evolve(thinking, effort=None)
    _leave_out(options, dict.fromkeys(_refused(options, to)), to)
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


def _leave_out(options: Options, names: Iterable[str], to: Lowering) -> None:
    """Drop these options; each is a loss unless its value is the default."""
    for name in names:
        value = getattr(options, name)
        if value is None or value == ():
            continue
        setattr(options, name, () if name == "stop" else None)
        if _DEFAULTS.get(name) != value:
            to.lose("parameter", name)


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


@when(lambda takes: not _form_with_tools(takes))
def form_or_tools(request: Request, to: Lowering) -> None:
    """Keep either the tools or the JSON output format, for a model that does not take both."""
    output, choice = request.options.output, request.tool_choice
    if output is None or output.kind == "text":
        return
    if choice is not None and choice.mode == "none":
        to.lose("tool_choice", "none")
        request.tools = []
        request.tool_choice = None
        return
    if not any(defines(tool, to) for tool in request.tools):
        return
    to.lose("parameter", "output")
    request.options.output = None


def _form_with_tools(takes: Capabilities) -> bool:
    return takes.model.form_with_tools if takes.form_with_tools is None else takes.form_with_tools


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
    tools = [evolve(tool, cache=None) if id(tool) in dropped else tool for tool in request.tools]
    turns = [evolve(turn, parts=[_unmarked(part, dropped) for part in turn.parts]) for turn in request.turns]
    request.tools = tools
    request.turns = turns


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
        raise BadRequest("n", f"{to.takes.title} gives one choice, and {choices} are asked for")


def options_with_place(request: Request, to: Lowering) -> None:
    """Drop the options that the dialect has no member for, and a service tier that its server does not know."""
    takes, options = to.takes, request.options
    for name in _OPTIONS:
        value = getattr(options, name)
        if value is not None and value != () and name not in takes.options:
            to.lose("parameter", name)
            setattr(options, name, () if name == "stop" else None)
    tier, known = options.service_tier, takes.service_tiers
    if tier is not None and known is not None and tier not in known:
        to.lose("parameter", "service_tier")
        options.service_tier = None


def no_members_of_others(request: Request, to: Lowering) -> None:
    """Drop the request's members that only another dialect knows, and its ``exchange`` (metadata the model never sees)."""
    fit = to.takes.request_extras
    kept, rest = ({}, request.extras) if fit is None else fit(request.extras)
    for name, said in rest.items():
        if has_value(said):
            to.lose("parameter", name)
    request.options.native_max_tokens = None
    request.extras = dict(kept)
    request.exchange = {}
