"""Emulate a search of deferred tools, for a model that has none.

Deferred tools stay out of the request. One function that searches them is offered instead of the vendor's search. A call of
it is answered from the definitions (``tool_ranking.py``), and the model is asked once more with the tools found. The client
gets its vendor's own items of a search, and sends them back in later requests. There, each search is a call of the function
with its result, and the tools found are defined. So are deferred tools that the history calls or adds, that the tool choice
names, and to which results of the client's own search refer. A client that searches itself needs no function of ours. A tool
that the history withdrew is not found.

Tools are defined in the order in which they were found, after all others, so that what a provider caches stays the same.

Source: dialects.md §2.2, §2.3, §3.1, §3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from attrs import define, evolve, field

from streamkit.conversation.messages import (
    Part,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolsFound,
    Turn,
)
from streamkit.dialects.members.fields import CONTENT
from streamkit.dialects.members.values import details_of, json_object
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed
from streamkit.translation.tool_ranking import Ranking
from streamkit.translation.tool_searches import form_of, read_parts

MOST_FOUND: Final = 5  #: tools that one search finds; the vendors' searches find three to five
NAME: Final = "tool_search"
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words."}},
    "required": ["query"],
}
DESCRIPTION: Final = (
    "Search {} more tools, which are not defined here yet. Search before you say that no tool can do something. "
    "The tools found are then defined and can be called."
)
NOTHING: Final = "No tool matches. Search with other words."


@define
class DeferredTools:
    """The deferred tools of one request, of which some are found."""

    request: Request  #: the client's request, in whose history searches are calls
    search: Tool | None  #: the function to offer; None: the client searches, or nothing is left to find
    searches: int  #: how many searches the history has
    _known: dict[str, Tool]  #: the deferred tools by name
    _found: dict[str, None]  #: the names of those that are found, in that order
    _ranking: Ranking | None = field(default=None, repr=False)
    _searched: bool = False  #: whether this response has searched

    @property
    def hidden(self) -> list[Tool]:
        """The tools that stay out of the request."""
        return [tool for name, tool in self._known.items() if name not in self._found]

    def visible(self) -> Request:
        """Return the request for a model without a search of tools."""
        request = self.request.copy()
        request.tool_choice = self._choice(request)
        tools: list[Tool] = []
        for tool in request.tools:
            if tool.finds_tools:
                tools += [self.search] if self.search is not None else []
            elif tool.withdrawn or tool.name not in self._known:
                tools.append(evolve(tool, deferred=False) if tool.deferred else tool)
        found = (self._known[name] for name in self._found)
        request.tools = [*tools, *(evolve(tool, deferred=False) for tool in found)]
        return request

    def _choice(self, request: Request) -> ToolChoice | None:
        """Return the tool choice, in which the vendor's search is the function.

        A choice that requires the search and nothing else is met by one search: the model may go on then.
        """
        choice = request.tool_choice
        finders = {tool.name for tool in request.tools if tool.finds_tools}
        if choice is None or self.search is None or finders.isdisjoint(choice.names):
            return choice
        if self._searched and finders.issuperset(choice.names):
            return evolve(choice, mode="auto", names=(), native=None)
        names = dict.fromkeys(self.search.name if name in finders else name for name in choice.names)
        return evolve(choice, names=tuple(names), native=None)

    def find(self, arguments: str) -> ToolsFound:
        """Search the tools. ``arguments`` are those of a call of the function."""
        query = (json_object(arguments) or {}).get("query")
        query = query if isinstance(query, str) else arguments
        if self._ranking is None:
            self._ranking = Ranking([*self._known.values()])
        found = ToolsFound(query, self._ranking.best(query, MOST_FOUND))
        self._found |= dict.fromkeys(found.names)
        return found

    def go_on(self, parts: Sequence[Part], searches: Mapping[str, ToolsFound]) -> None:
        """Add to the request the model's ``parts``, and the results of its ``searches``, by the ids of their calls."""
        turns, results = self.request.turns, list[Part]()
        taken = {part.id for turn in turns for part in turn.parts if isinstance(part, ToolCall)}
        said = [*parts]
        for at, part in enumerate(said):
            if isinstance(part, ToolCall) and part.id in searches:
                # some upstreams use an id again in their next response
                call_id = part.id if part.id not in taken else _call_id(f"{len(turns)} {part.id}")
                said[at] = evolve(part, id=call_id)
                results.append(ToolResult(call_id, [Text(listing(searches[part.id], self._known))], NAME))
        turns = [*turns, Turn("assistant", said), Turn("user", results)]
        self._searched = True
        self.request = evolve(self.request, turns=turns)


def deferred_tools(request: Request, report: StreamReport) -> DeferredTools | None:
    """Return the deferred tools of a request; None if it defers none, or asks for several choices.

    A search of the history without a result counts as lost in ``report``.
    """
    known = {tool.name: tool for tool in request.tools if tool.deferred and not tool.withdrawn}
    if not known or (request.options.choices or 1) > 1:
        return None
    names = {tool.name for tool in request.tools if not tool.finds_tools}
    name = NAME
    while name in names:
        name += "_"
    searches: list[ToolsFound] = []
    form = form_of(request.dialect)
    turns: list[Turn] = []
    for turn in request.turns:
        read = [*turn.parts] if form is None else read_parts(turn.parts, form, report)
        turns += _split(turn, read, name, known, len(searches))
        searches += (part for part in read if isinstance(part, ToolsFound))
    loaded = {tool.name for tool in request.tools if tool.loaded}
    searched = {name for search in searches for name in search.names}
    found = [*(name for search in searches for name in search.names), *loaded, *_referenced(turns)]
    if request.tool_choice is not None:
        found += request.tool_choice.names
    # the item of a search that defined such a tool is no longer in the history
    known = {key: evolve(tool, loaded=tool.loaded and key not in searched) for key, tool in known.items()}
    search = None
    finders = [tool for tool in request.tools if tool.finds_tools]
    if finders:
        search = Tool(name, DESCRIPTION.format(len(known)), SCHEMA, cache=finders[-1].cache)
    told = evolve(request, turns=turns)
    return DeferredTools(told, search, len(searches), known, dict.fromkeys(name for name in found if name in known))


def listing(found: ToolsFound, tools: Mapping[str, Tool]) -> str:
    """Return the result of a search for the model: names and descriptions. It also sees their definitions from now on."""
    known = [(name, tools[name].description if name in tools else None) for name in found.names]
    listed = [{"name": name, **({"description": words} if words else {})} for name, words in known]
    return orjson.dumps(listed).decode() if listed else NOTHING


def _call_id(seed: str) -> str:
    return f"call_{hashed(seed, 22)}"


def _split(
    turn: Turn, read: Iterable[Part | ToolsFound], name: str, tools: Mapping[str, Tool], number: int
) -> list[Turn]:
    """Return a turn as several turns: each search in it is a call, with its result in a user's turn.

    ``number`` is that of its first search in the conversation, so that no two calls have one id.
    """
    turns, parts = list[Turn](), list[Part]()
    for part in read:
        if not isinstance(part, ToolsFound):
            parts.append(part)
            continue
        arguments = orjson.dumps({"query": part.query}).decode()
        call_id = _call_id(f"{number} {part.query} {part.names}")
        number += 1
        parts.append(ToolCall(0, call_id, name, arguments))
        result = ToolResult(call_id, [Text(listing(part, tools))], name, is_error=part.failed)
        turns += [evolve(turn, parts=parts), Turn("user", [result])]
        turn, parts = Turn("assistant"), []
    return [*turns, evolve(turn, parts=parts)] if parts or not turns else turns


def _referenced(turns: Iterable[Turn]) -> Iterable[str]:
    """Yield the names of the tools that the history calls or adds, and those that results of the client's tools refer to."""
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ToolCall):
                yield part.name
            if isinstance(part, Aside) and part.type == f"{CONTENT}tool_addition":
                yield str(details_of(part.raw, "tool").get("name"))
            for inner in part.parts if isinstance(part, ToolResult) else ():
                if isinstance(inner, Aside) and inner.type == f"{CONTENT}tool_reference":
                    yield str(inner.raw.get("tool_name"))
