"""Mark a prompt for the provider's cache, for clients whose dialect has no such marks.

Some providers cache a prompt only up to a mark. The marks are at the end of the tools, of the system prompt, and of the last
two user turns: the earlier one is the end of the previous request, whose prefix is read from the cache, and the later one is
written for the next request. These are four marks, the most that a request may have. They last for minutes, and each request
that reads them renews them. Providers ignore marks in prompts that are too short (about 1,000 tokens).

Source: dialects.md §8.12.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from streamkit.conversation.messages import Media, Part, Request, Text, Tool, ToolCall, ToolResult, Turn
from streamkit.dialects.lowering import Capabilities, Lowering, when
from streamkit.events import Aside

#: The members that mark a prompt, in all dialects. A reader keeps unknown members with their part.
MEMBERS: Final = frozenset({"cache_control", "cachePoint", "prompt_cache_breakpoint"})


def has_marks(request: Request) -> bool:
    """Return whether the client marked its prompt itself."""
    parts = [part for turn in request.turns for each in turn.parts for part in (each, *_inside(each))]
    return not MEMBERS.isdisjoint(request.extras) or any(map(_is_marked, [*parts, *request.tools]))


def _inside(part: Part) -> list[Text | Media | Aside]:
    return part.parts if isinstance(part, ToolResult) else []


def _is_marked(value: Part | Tool) -> bool:
    members = value.raw if isinstance(value, Aside) else getattr(value, "extras", None)
    return getattr(value, "cache", None) is not None or (isinstance(members, dict) and not MEMBERS.isdisjoint(members))


@when(lambda takes: takes.needs_marks)
def prompt_marked(request: Request, to: Lowering) -> None:
    """Add the marks of the system prompt and of the turns, if the settings want marks (``Target.cache``)."""
    if not to.target.cache:
        return
    turns = list(request.turns)
    for place in _ends(turns):
        turns[place] = _marked(turns[place], to.takes)
    request.turns = turns


@when(lambda takes: takes.needs_marks and Tool in takes.marked and takes.model.cached_tools)
def tools_marked(request: Request, to: Lowering) -> None:
    """Add a mark to the last tool that may have one. Run this when all tools are in the dialect's form."""
    tools = request.tools
    last = next((at for at in range(len(tools) - 1, -1, -1) if tools[at].raw is None), None)
    if to.target.cache and last is not None:
        request.tools = [*tools[:last], evolve(tools[last], cache="short"), *tools[last + 1 :]]


def _ends(turns: list[Turn]) -> list[int]:
    """Return the indices of the last turn of the system prompt, and of the last turn of each of the last two user turns.

    Adjacent turns that are not the assistant's, such as several results, are one user turn.
    """
    first = next((index for index, turn in enumerate(turns) if turn.role != "system"), len(turns))
    said = [index for index in range(first, len(turns)) if turns[index].role != "assistant"]
    ends = [index for index in said if index + 1 not in said]
    return [*([first - 1] if first else []), *ends[-2:]]


def _marked(turn: Turn, takes: Capabilities) -> Turn:
    """Return the turn with a mark on its last part that may have one."""
    for at in range(len(turn.parts) - 1, -1, -1):
        part = _with_mark(turn.parts[at], takes)
        if part is not None:
            return evolve(turn, parts=[*turn.parts[:at], part, *turn.parts[at + 1 :]])
    return turn


def _with_mark(part: Part, takes: Capabilities) -> Part | None:
    if isinstance(part, ToolResult) and ToolResult not in takes.marked:
        last = part.parts[-1] if part.parts else None
        marked = _with_mark(last, takes) if isinstance(last, Text) else None
        return evolve(part, parts=[*part.parts[:-1], marked]) if isinstance(marked, Text) else None
    if isinstance(part, Text) and (not part.text.strip() or part.item is not None):
        return None
    if not isinstance(part, Text | Media | ToolCall | ToolResult) or not isinstance(part, takes.marked):
        return None
    return evolve(part, cache="short")
