"""Searches of deferred tools: a step with the names of the functions wanted, and a step with the definitions found.

The search has no words of its own, so the names stand for them.

Source: dialects.md §5.5; google-genai 3.6, ``ToolSearchCallStep``, ``ToolSearchResultStep``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamkit.conversation.messages import Tool, ToolsFound
from streamkit.dialects.base import ToolSearchForm
from streamkit.dialects.gemini_interactions.requests import write_tool
from streamkit.dialects.gemini_interactions.wire import STEP, VENDOR
from streamkit.dialects.members.values import details_of, objects_in
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

CALL, RESULT = "tool_search_call", "tool_search_result"
#: The label of the first step of a search of tools, so that no label is one of another step.
FIRST_LABEL: Final = 1_000_000


class ToolSearchReader:
    """Reads the steps of searches: those of a request or a body, and their events in a stream."""

    def __init__(self, _limits: Limits, report: StreamReport) -> None:
        self._report = report
        self._open: dict[int, dict[str, Any]] = {}  # steps that began in a stream, by block
        self._calls: dict[str, list[str]] = {}  # the names wanted by searches without a result, by call id

    def take(self, aside: Aside) -> tuple[list[ToolsFound], Aside | None]:
        """Return the search that an aside completes, and the aside if it belongs to no search of tools."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        step = raw if aside.type == STEP else details_of(raw, "step")
        if aside.type == STEP and step.get("type") in {CALL, RESULT}:
            return self._ended(step), None
        if aside.type == "step.start" and step.get("type") in {CALL, RESULT}:
            self._open[aside.block] = dict(step)
            return [], None
        if aside.block not in self._open:
            return [], aside
        if aside.type == "step.stop":
            return self._ended(self._open.pop(aside.block)), None
        delta = details_of(raw, "delta")
        self._open[aside.block].update({name: value for name, value in delta.items() if name != "type"})
        return [], None

    def finish(self) -> None:
        """Count as lost the searches without a result."""
        for _ in (*self._open, *self._calls):
            self._report.lose("server_tool", what=CALL)

    def _ended(self, step: Mapping[str, Any]) -> list[ToolsFound]:
        if step["type"] == CALL:
            wanted = details_of(step, "arguments").get("function_names")
            names = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else []
            self._calls[str(step.get("id"))] = names
            return []
        wanted = self._calls.pop(str(step.get("call_id")), [])
        found = [each["name"] for each in objects_in(step.get("result")) if isinstance(each.get("name"), str)]
        return [ToolsFound(" ".join(wanted or found), found)]


def write_tools_found(found: ToolsFound, number: int, choice: int, offered: Sequence[Tool]) -> list[Aside]:
    """Return the asides of the two steps of a search."""
    known = {tool.name: tool for tool in offered}
    call_id = f"search_{hashed(f'{number} {found.query} {found.names}', 22)}"
    steps: list[dict[str, Any]] = [
        {"type": CALL, "id": call_id, "arguments": {"function_names": found.names}},
        {
            "type": RESULT,
            "call_id": call_id,
            "result": [write_tool(known[name]) for name in found.names if name in known],
        },
    ]
    return [
        Aside(VENDOR, "server_tool", event, {"event_type": event, "index": 0, **members}, choice, label)
        for label, step in enumerate(steps, FIRST_LABEL + 2 * number)
        for event, members in (("step.start", {"step": step}), ("step.stop", {}))
    ]


TOOL_SEARCHES: Final = ToolSearchForm(vendor=VENDOR, reader=ToolSearchReader, write=write_tools_found)
