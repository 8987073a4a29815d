"""Give calls the names and forms of the client's tools, after the request had to change them for another dialect.

A request to another dialect may rename a tool (``files.read`` is not a valid name everywhere), and may offer a custom tool,
which takes free text, as a function with one string. This module restores the client's name, the namespace, the free text, and
the item that replaces a call of the tool in the client's dialect (``Tool.called``). Free text is emitted as it arrives.
Arguments that are not an object with that one string are emitted unchanged (repair ``custom_input_bare``).

Source: dialects.md §1.8, §7.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from attrs import define, evolve, field, frozen

from streamkit.conversation.messages import CallForm, Part, Response, Tool, ToolCall
from streamkit.events import Aside, Event, QualifiedName, ToolCallArguments, ToolCallFinished, ToolCallStarted, Verdict
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed, portable_name
from streamkit.text.quoting import writable
from streamkit.tool_calls.partial_arguments import GrowingText, PartialJSON

INPUT: Final = "input"  #: name of the argument that has the free text, when a custom tool is offered as a function
BARE: Final = "custom_input_bare"
MEMBERS: Final = "custom_tool_members"
COMPLETE: Final = Verdict("complete")


@frozen
class ToolNames:
    """The tools of a request, looked up by the name that the provider may have received."""

    _rewritten: dict[str, str]
    custom: frozenset[str]  #: the client's names of custom tools
    qualified: dict[str, QualifiedName]  #: the qualified names of tools in a namespace, keyed by the client's name
    items: dict[str, tuple[CallForm, Any]]  #: the forms of calls that are no function calls, and the schemas, same keys

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> ToolNames:
        own = {tool.name for tool in tools}
        return cls(
            {new: name for name in own if (new := portable_name(name)) not in own},
            frozenset(tool.name for tool in tools if tool.kind == "custom"),
            {tool.name: tool.qualified for tool in tools if tool.qualified is not None},
            {tool.name: (tool.called, tool.parameters) for tool in tools if tool.called is not None},
        )

    def __bool__(self) -> bool:
        """Return whether any call may need to be restored."""
        return bool(self._rewritten or self.custom or self.qualified or self.items)

    def client_name(self, name: str) -> str:
        return self._rewritten.get(name, name)

    def item_of(self, call: ToolCallFinished | ToolCall, number: int, choice: int = 0) -> list[Aside]:
        """Return a whole call as an item of the client's dialect; empty for a function call.

        It is empty too for a call that is incomplete, or whose arguments the item cannot have: a client that cannot read
        the item would wait for nothing.
        """
        form, schema = self.items.get(call.name, (None, None))
        if form is None or not call.ended or call.verdict is None or not call.verdict.ok:
            return []
        value = _object(call.arguments)
        if value is None or not _fits(value, schema):
            return []
        arguments = {**form.defaults, **value}
        members = arguments if form.own and arguments.keys() <= form.own else {form.member: arguments}
        item = {**form.item, "id": f"{form.prefix}_{hashed(call.id, 22)}", "call_id": call.id, **members}
        return [
            evolve(event, raw={"type": event.type, "item": {**event.raw, **item}}, choice=choice, block=-number - 1)
            for event in form.events
        ]


@define
class _FreeText:
    """The free text of a custom tool's call, read from a function's arguments while they arrive."""

    partial: PartialJSON
    sent: list[str] = field(factory=list)  #: text already emitted
    begun: bool = False

    def feed(self, fragment: str) -> str:
        """Return the text that this fragment of the arguments' JSON adds to the tool's free text."""
        self.partial.feed(fragment)
        grown: list[str] = []
        for change in self.partial.changes:
            if change.path == (INPUT,) and isinstance(change.value, str | GrowingText):
                if change.kind == "begun":
                    self.begun = True
                elif change.kind == "grown" or not self.begun:  # else the string arrived in one piece
                    grown.append(str(change.value))
        made = writable("".join(grown))  # ``PartialJSON`` joins surrogate pairs that were split
        if made:
            self.sent.append(made)
        return made

    def settle(self, call: ToolCallFinished | ToolCall, report: StreamReport) -> tuple[str, Verdict | None, bool]:
        """Return the whole text, the verdict, and whether the call ended, once all arguments were fed."""
        sent, value, state = "".join(self.sent), self.partial.value, self.partial.state
        text = value.get(INPUT) if state == "complete" and isinstance(value, dict) else None
        if isinstance(text, str) and writable(text) == sent:
            if text != sent:
                report.repair("lone_surrogate")
            if len(value) > 1:
                report.withhold(MEMBERS, call.id, call.name, call.arguments)
            return sent, COMPLETE if call.ended else call.verdict, call.ended
        if sent and state == "complete":
            return sent, Verdict("malformed", f"{INPUT!r} is repeated"), False
        if sent or not call.ended or (state == "incomplete" and call.arguments.strip()):
            return sent, call.verdict, False
        if call.arguments:
            report.repair(BARE)
        return call.arguments, COMPLETE, True


class ToolRestorer(Link):
    """The machine of ``restore_calls``: events to events."""

    def __init__(
        self, names: ToolNames, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None
    ) -> None:
        self._names = names
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._free: dict[tuple[int, int], _FreeText] = {}  # the open calls of custom tools, keyed by choice and call
        self._items: dict[tuple[int, int], ToolCallStarted] = {}  # the same for calls that may become items

    def push(self, event: Event, /) -> None:
        if isinstance(event, ToolCallStarted):
            started = self._started(event)
            if started.name in self._names.items:
                self._items[event.choice, event.call] = started
            else:
                self.emit(started)
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._items:
            pass  # ignored: the event at the call's end has all arguments
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._free:
            grown = self._free[event.choice, event.call].feed(event.fragment)
            if grown:
                self.emit(evolve(event, fragment=grown))
        elif isinstance(event, ToolCallFinished):
            for made in self._finished(event):
                self.emit(made)
        else:
            self.emit(event)

    def _started(self, event: ToolCallStarted) -> ToolCallStarted:
        name = self._names.client_name(event.name)
        qualified = self._names.qualified.get(name)
        if event.kind == "function" and name in self._names.custom:
            self._free[event.choice, event.call] = _FreeText(PartialJSON(depth=self._limits.json_depth))
            return evolve(event, name=name, kind="custom", qualified=qualified)
        return event if name == event.name and qualified is None else evolve(event, name=name, qualified=qualified)

    def _finished(self, event: ToolCallFinished) -> list[Event]:
        name = self._names.client_name(event.name)
        started = self._items.pop((event.choice, event.call), None)
        if started is not None:
            arguments = ToolCallArguments(event.call, event.arguments, event.choice)
            return [*self._names.item_of(event, event.call, event.choice)] or [started, arguments, event]
        free = self._free.pop((event.choice, event.call), None)
        if free is None:
            return [event if name == event.name else evolve(event, name=name)]
        text, verdict, ended = free.settle(event, self._report)
        finished = evolve(event, name=name, kind="custom", arguments=text, verdict=verdict, ended=ended)
        late = text if not free.sent else ""
        return [ToolCallArguments(event.call, late, event.choice), finished] if late else [finished]


def restore_calls(offered: Sequence[Tool], *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Event], list[Event]]:
    """Create a stage that gives each call the name and kind that the tool has in the client's request.

    When a request is translated into another dialect, a tool may get another name, and a custom tool may become a
    function. This stage undoes such changes. Put the stage after ``check_json``. ``offered`` are the ``Request.tools``
    of the client's request. The stage checks no arguments.
    """
    names = ToolNames.of(offered)
    return stage_within("events", "restore_calls", lambda report: ToolRestorer(names, limits=limits, report=report))


def _as_items(part: Part, names: ToolNames) -> Sequence[Part]:
    return (names.item_of(part, part.index) if isinstance(part, ToolCall) else ()) or (part,)


def _object(text: str) -> dict[str, Any] | None:
    """Return arguments as an object, or None if orjson can't parse their numbers."""
    try:
        value = orjson.loads(text.strip() or "{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


_TYPES: Final[Mapping[str, type]] = {"array": list, "object": dict, "string": str}


def _fits(arguments: Mapping[str, Any], schema: Any) -> bool:
    """Return whether arguments have what the schema requires, in the right JSON types."""
    if not isinstance(schema, Mapping):
        return True
    for name in schema.get("required", ()):
        kind = _TYPES.get(str(schema.get("properties", {}).get(name, {}).get("type")), object)
        if not isinstance(arguments.get(name), kind) or arguments[name] is None:
            return False
    return True


def restore_response_calls(response: Response, offered: Sequence[Tool], *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Give each call of a whole response the name and kind that the tool has in the client's request.

    The function changes ``response``, which ``decode_response`` or ``collect`` returned. For a stream, use
    ``restore_calls``. ``offered`` means the same as in ``restore_calls``. Repairs are counted in the response's report.
    """
    if not offered:
        return
    names = ToolNames.of(offered)
    for choice in response.choices:
        if names.items:
            choice.parts = [each for part in choice.parts for each in _as_items(part, names)]
        for call in choice.tool_calls:
            call.name = names.client_name(call.name)
            call.qualified = names.qualified.get(call.name)
            if call.kind == "function" and call.name in names.custom:
                free = _FreeText(PartialJSON(depth=limits.json_depth))
                free.feed(call.arguments)
                call.arguments, call.verdict, call.ended = free.settle(call, response.report)
                call.kind = "custom"
