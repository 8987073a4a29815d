"""Searches of deferred tools that the server ran: an item with the query, and an item with the definitions of the tools found.

Source: dialects.md §2.2, §2.3; openai 3.57, ``ResponseToolSearchCall``, ``ResponseToolSearchOutputItem``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from attrs import evolve

from streamkit.conversation.messages import Tool, ToolsFound
from streamkit.dialects.base import ToolSearchForm
from streamkit.dialects.members.values import json_object, objects_in
from streamkit.dialects.openai_responses.request_out import write_tools
from streamkit.dialects.openai_responses.wire import ITEM, VENDOR
from streamkit.dialects.streams.client_calls import EXECUTION
from streamkit.dialects.streams.client_calls import SEARCH as CALL
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import flat_name, hashed

FOUND: Final = "tool_search_output"
#: The label of the first item of a search of tools, so that no label is one of a web search.
FIRST_LABEL: Final = 1_000_000


class ToolSearchReader:
    """Reads the items of searches: those of a request, and their events in a stream."""

    def __init__(self, _limits: Limits, report: StreamReport) -> None:
        self._report = report
        self._queries: list[str] = []  # of the searches without an output

    def take(self, aside: Aside) -> tuple[list[ToolsFound], Aside | None]:
        """Return the search that an aside completes, and the aside if it belongs to no search of tools."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        item = raw if aside.type.startswith(ITEM) else raw.get("item") if aside.type in {ADDED, DONE} else None
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or kind not in {CALL, FOUND} or item.get(EXECUTION) == "client":
            return [], aside
        if aside.type == ADDED:
            return [], None
        if kind == CALL:
            self._queries.append(_query(item.get("arguments")))
            return [], None
        query = self._queries.pop(0) if self._queries else ""
        failed = item.get("status") == "incomplete"
        return [ToolsFound(query, [*_names(item.get("tools"))], failed)], None

    def finish(self) -> None:
        """Count as lost the searches without an output."""
        for _ in self._queries:
            self._report.lose("server_tool", what=CALL)


def _query(arguments: Any) -> str:
    """Return the words of a search. Its arguments have no fixed form; they may be text, too."""
    value = json_object(arguments) if isinstance(arguments, str) else arguments
    if isinstance(value, Mapping):
        query = value.get("query")
        return query if isinstance(query, str) else orjson.dumps(value).decode()
    return arguments if isinstance(arguments, str) else ""


def _names(tools: Any) -> list[str]:
    """Return the names of the tools in an output, as they are in the request: a tool in a namespace has it as a prefix."""
    names = []
    for tool in objects_in(tools):
        name, members = tool.get("name"), objects_in(tool.get("tools"))
        if tool.get("type") == "namespace":
            names += [flat_name(str(name), str(each.get("name"))) for each in members]
        elif isinstance(name, str):
            names.append(name)
    return names


def write_tools_found(found: ToolsFound, number: int, choice: int, offered: Sequence[Tool]) -> list[Aside]:
    """Return the asides of the two items of a search, each with its beginning and its end."""
    known = {tool.name: evolve(tool, loaded=False, strict=bool(tool.strict)) for tool in offered}
    tools = write_tools([known[name] for name in found.names if name in known])
    key = hashed(f"{number} {found.query} {found.names}", 22)
    both: dict[str, Any] = {"call_id": None, EXECUTION: "server"}
    items: list[dict[str, Any]] = [
        {"id": f"tsc_{key}", "type": CALL, **both, "arguments": {"query": found.query}},
        {"id": f"tso_{key}", "type": FOUND, **both, "tools": tools},
    ]
    ends = ["completed", "incomplete" if found.failed else "completed"]
    return [
        Aside(VENDOR, "server_tool", event, {"type": event, "item": {**item, "status": status}}, choice, label)
        for label, (item, end) in enumerate(zip(items, ends, strict=True), FIRST_LABEL + 2 * number)
        for event, status in ((ADDED, "in_progress"), (DONE, end))
    ]


TOOL_SEARCHES: Final = ToolSearchForm(vendor=VENDOR, reader=ToolSearchReader, write=write_tools_found)
