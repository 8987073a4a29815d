"""The choice among tools, for a dialect that can't define all of them.

A tool that can't be defined must not leave its traces: providers refuse a choice among no tools, and a model that is made to
call what it does not have invents the result. A request that demands such a tool is one that the dialect can't carry; where it
was not demanded, the choice is one among those that are left, and there is none where none is left.

Source: dialects.md §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from streamkit.conversation.messages import Tool, ToolChoice
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted_all


def feasible(
    choice: ToolChoice | None,
    tools: Sequence[Tool],
    defines: Callable[[Tool], bool],
    dialect: str,
    report: StreamReport,
) -> ToolChoice | None:
    """The choice among the tools that ``dialect`` can define; None where there is nothing to choose.

    Raises BadRequest where a tool is demanded that it can't define, or any tool where it can define none.
    """
    if choice is None:
        return None
    there = {tool.name for tool in tools if defines(tool)}
    missing = dict.fromkeys(tool.name for tool in tools if tool.name not in there)
    if choice.native is not None:  # what it names beside the request's tools is defined nowhere
        missing |= dict.fromkeys(name for name in choice.names if name not in there)
    left = tuple(name for name in choice.names if name not in missing)
    if choice.mode == "required" and choice.names and not left:
        raise BadRequest("tool_choice", f"{quoted_all(choice.names)} must be called, and {dialect} can't define it")
    if choice.mode == "required" and not there:
        why = f"{dialect} can't define {quoted_all([*missing])}" if missing else "the request defines none"
        raise BadRequest("tool_choice", f"a tool must be called, and {why}")
    if not there:
        return None
    for name in choice.names:
        if name in missing and choice.mode != "none":
            report.lose("tool_choice", what=name)
    if choice.names and not left:
        return ToolChoice("none")
    return choice if left == choice.names else evolve(choice, names=left)


def chosen_of(tools: Sequence[Tool], choice: ToolChoice | None) -> Sequence[Tool]:
    """The tools that a choice names, in their order; all where it names none, or none may be called."""
    if choice is None or not choice.names or choice.mode == "none":
        return tools
    names = {*choice.names}
    return [tool for tool in tools if tool.name in names]
