"""Carry searches of deferred tools from one dialect to another.

A client may define tools as *deferred*: the model does not see their definitions until a search of tools that the provider
runs has found them. Two vendors have this. Between these two, the definitions, the search and its history are carried in the
other's form. For all other models, each tool is defined up front, and the searches of the history are lost.

Source: dialects.md §2.2, §2.3, §3.1, §3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve

from streamkit.conversation.messages import Part, Request, Response, Tool, ToolsFound
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Dialect, ToolSearchForm
from streamkit.dialects.lowering import Lowering
from streamkit.events import Aside, Event
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport
from streamkit.translation.citations import SearchCarrier, carry_each_choice


def read_parts(parts: Iterable[Part], form: ToolSearchForm, report: StreamReport) -> list[Part | ToolsFound]:
    """Return the parts of a turn, in which the asides of each search of tools are replaced by the search."""
    reader = form.reader(DEFAULT_LIMITS, report)
    read: list[Part | ToolsFound] = []
    for part in parts:
        if not isinstance(part, Aside) or part.vendor != form.vendor:
            read.append(part)
            continue
        found, left = reader.take(part)
        read += [*found, *([] if left is None else [left])]
    reader.finish()
    return read


def tool_searches_carried(request: Request, to: Lowering) -> None:
    """Set ``to.finder``, and write the searches of the history in this dialect's form, if its provider can search tools.

    Otherwise the tools are defined up front; that they were deferred is a loss.
    """
    takes, finder = to.takes, next((tool for tool in request.tools if tool.finds_tools), None)
    if not any(tool.deferred or tool.loaded for tool in request.tools):
        finder = None  # nothing can be found
    read = form_of(to.source)
    write = form_of(takes.dialect)
    if finder is None or takes.finder is None or not takes.model.finds_tools or read is None or write is None:
        for tool in request.tools:
            if tool.deferred:
                to.lose("metadata", "defer_loading")
        request.tools = [evolve(tool, deferred=False) if tool.deferred else tool for tool in request.tools]
        return
    to.finder = finder
    number, turns = 0, []
    for turn in request.turns:
        parts: list[Part] = []
        for part in read_parts(turn.parts, read, to.report) if turn.role != "system" else turn.parts:
            if isinstance(part, ToolsFound):
                parts += write.write(part, number, 0, request.tools)
                number += 1
            else:
                parts.append(part)
        turns.append(evolve(turn, parts=parts))
    request.turns = turns
    # a tool that a search of the history defined is found by its name here, where the request has its definition
    request.tools = [evolve(tool, deferred=True) if tool.loaded else tool for tool in request.tools]


def form_of(dialect: str) -> ToolSearchForm | None:
    """Return how a dialect reports searches of tools; None if it does not."""
    known = DIALECTS.built_in.get(dialect)
    return None if known is None else known.tool_searches


def _carrier(
    source: Dialect, to: Dialect, offered: Sequence[Tool], limits: Limits = DEFAULT_LIMITS
) -> Callable[[StreamReport], SearchCarrier] | None:
    """Return what makes the machine that translates searches of tools; None if the request offers none, or for one dialect."""
    read, form = source.tool_searches, to.tool_searches
    if read is None or form is None or source is to or not any(tool.finds_tools for tool in offered):
        return None
    reader, vendor, write = read.reader, read.vendor, form.write
    return lambda report: SearchCarrier(
        reader(limits, report), vendor, lambda found, number, choice: write(found, number, choice, offered)
    )


def carry_tool_searches(
    source: Dialect, to: Dialect, offered: Sequence[Tool], *, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]] | None:
    """Return the stage before ``encode`` that translates searches of tools to the dialect ``to``; None if none is needed."""
    carrier = _carrier(source, to, offered, limits)
    return None if carrier is None else stage_within("events", "carry_tool_searches", carrier)


def carry_tool_searches_of(response: Response, to: str, offered: Sequence[Tool]) -> None:
    """Translate the searches of tools of a whole response to the dialect ``to``, in place."""
    carry_each_choice(response, _carrier(DIALECTS[response.dialect], DIALECTS[to], offered))
