"""Detect while a call streams that its arguments can no longer match their schema.

If a schema rejects a part for good, no later text can repair that. ``SchemaView`` knows a few keywords and leaves the rest to
the final verdict, which this module must never contradict: it reports nothing unless it is sure. A value that has ended can't
change, since the final check rejects a repeated key (``schema.py``).

Detected are: an unknown tool; text that is not JSON; a value of a type that the schema forbids (a container or a string at its
first fragment, a number or a literal at its end); a key that ``additionalProperties: false`` forbids; a string with which no
value of ``enum`` or ``const`` begins, or another scalar that equals none of them.

The time is linear in the text, plus a binary search in the allowed strings for each fragment of a string. Results for a
subschema are cached for the next call. A subschema that applies twice to a value is checked once. After ``MAX_LOOKS`` checks a
call is no longer followed, so nothing is reported before its end. Checks are counted at whole values, so the result does not
depend on how the text was split into fragments.

Source: JSON Schema 2020-12; design.md §4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final, TypeVar

from attrs import define

from streamkit.events import Event, ToolCallArguments, ToolCallDoomed, ToolCallFinished, ToolCallStarted
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.tool_calls.partial_json import Change, PartialJSON, Path
from streamkit.tool_calls.schema import UNKNOWN_TOOL, Tools, ToolSchemas, compiled
from streamkit.tool_calls.schema_view import Allowed, SchemaView, kind_of, values_of

#: Maximum number of times that a subschema is checked against a value in one call; each takes 0.5 µs.
MAX_LOOKS: Final = 100_000
#: Maximum number of lists of allowed strings to compare one growing string with; with more lists, compare with none.
MAX_LISTS: Final = 8
_AN_OBJECT: Final = {"type": "object"}
T = TypeVar("T")


@define
class _Alternatives:
    """The strings that one schema allows and that begin with the text received so far."""

    strings: list[str]
    last: int
    first: int = 0
    chars: int = 0

    def narrow(self, part: str) -> bool:
        """Keep the strings that continue with ``part``. Return whether any is left. All of them have the text before it."""
        start, end = self.chars, self.chars + len(part)
        self.chars = end
        key = lambda string: string[start:end]  # noqa: E731
        self.first = bisect_left(self.strings, part, self.first, self.last, key=key)
        self.last = bisect_right(self.strings, part, self.first, self.last, key=key)
        return self.first < self.last


class _Doubt:
    """Follows the arguments of one call until they can no longer become valid."""

    def __init__(self, view: SchemaView, depth: int) -> None:
        self.view = view
        self.partial = PartialJSON(depth=depth)
        #: For each open container, outermost first, the subschemas that apply to it.
        self._open: list[list[dict[str, Any]]] = []
        self._growing: list[_Alternatives] = []
        self._looks = MAX_LOOKS

    @property
    def is_spent(self) -> bool:
        """True if following the call further would take too long."""
        return self._looks < 0

    def feed(self, fragment: str) -> tuple[Path, str] | None:
        """Take a fragment. Return the path and the reason if the arguments can no longer become valid, else None."""
        self.partial.feed(fragment)
        for change in self.partial.changes:
            if self.is_spent:
                return None
            reason = self._refused(change)
            if reason is not None:
                return change.path, reason
        if self.partial.state == "malformed":
            return self.partial.path, f"no JSON: {self.partial.reason}"
        return None

    def _refused(self, change: Change) -> str | None:
        depth = len(change.path)
        if change.kind == "grown":
            narrowed = [alternatives.narrow(change.value) for alternatives in self._growing]
            return None if all(narrowed) else "no allowed value begins so"
        is_container = isinstance(change.value, dict | list)
        if change.kind == "ended" and is_container:
            return None
        value = change.value if is_container or change.kind == "ended" else ""
        schemas = self._schemas(change.path)
        if is_container or change.kind == "ended":
            self._looks -= len(self._open[depth - 1]) if depth else 1
        if schemas is None:
            return "no such key is allowed" if isinstance(change.path[-1], str) else "no such item is allowed"
        if reason := self._unfit(schemas, value, whole=change.kind == "ended"):
            return reason
        if is_container:
            kind = "object" if isinstance(value, dict) else "array"
            applying = [one for schema in schemas for one in self.view.applying(schema, kind)]
            self._looks -= len(applying)
            self._open[depth:] = [_distinct(applying)]
        elif change.kind == "begun":
            strings = _distinct([found for schema in schemas if (found := self.view.strings(schema)) is not None])
            self._growing = [_Alternatives(found, len(found)) for found in strings] if len(strings) <= MAX_LISTS else []
        return None

    def _schemas(self, path: Path) -> list[Any] | None:
        """Return the schemas of the value at ``path``, or None if its key is forbidden."""
        if not path:
            return [_AN_OBJECT, self.view.root]
        around = self._open[len(path) - 1]
        schemas = [self.view.inside(schema, path[-1]) for schema in around]
        return None if any(schema is False for schema in schemas) else _distinct(schemas)

    def _unfit(self, schemas: list[Any], value: Any, *, whole: bool) -> str | None:
        kind = kind_of(value)
        for schema in schemas:
            allowed = self.view.allowed(schema)
            if kind is None:
                if not {"integer", "fraction"} & allowed.keys():
                    return _expected(allowed, "number")
                continue
            if kind not in allowed:
                return _expected(allowed, kind)
            values = allowed[kind]
            if whole and values is not None and not (values_of(value) or frozenset()) & values:
                return "not one of the allowed values"
        return None


def _distinct(found: list[T]) -> list[T]:
    """Return each object once, in order of first appearance."""
    return list({id(one): one for one in found}.values()) if len(found) > 1 else found


def _expected(allowed: Allowed, kind: str) -> str:
    if not allowed:
        return "no value is allowed"
    names = dict.fromkeys("number" if name == "fraction" else name for name in allowed)
    if "number" in names:
        names.pop("integer", None)
    return f"{' or '.join(names)} expected, not {'number' if kind == 'fraction' else kind}"


class EarlySchemaChecker(Link):
    """The machine of ``check_schema_early``: events to events."""

    def __init__(self, tools: ToolSchemas, views: dict[str, SchemaView], *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._tools = tools
        self._views = views
        self._depth = limits.json_depth
        self._open: dict[tuple[int, int], _Doubt] = {}  # keyed by choice and call; a doomed call is removed

    def push(self, event: Event, /) -> None:
        self.emit(event)
        if isinstance(event, ToolCallStarted) and event.kind == "function" and event.name:
            self._start(event)
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._open:
            doubt = self._open[event.choice, event.call]
            doom = doubt.feed(event.fragment)
            if doom or doubt.is_spent:
                del self._open[event.choice, event.call]
            if doom:
                self.emit(ToolCallDoomed(event.call, event.choice, *doom))
        elif isinstance(event, ToolCallFinished):
            self._open.pop((event.choice, event.call), None)

    def _start(self, event: ToolCallStarted) -> None:
        if event.name not in self._tools:
            self.emit(ToolCallDoomed(event.call, event.choice, (), UNKNOWN_TOOL))
            return
        view = self._views.get(event.name)
        if view is None:
            view = self._views[event.name] = SchemaView(self._tools.schema(event.name))
        self._open[event.choice, event.call] = _Doubt(view, self._depth)


def check_schema_early(tools: Tools, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Event], list[Event]]:
    """Create the stage after ``accumulate_tool_calls`` that reports early which calls can't become valid.

    Use it to stop a response before you pay for the rest. The stage adds one ``ToolCallDoomed`` for such a call, after the
    event that decided it; the call itself continues. ``check_json`` with the same tools never contradicts this event. The
    absence of the event means nothing, since only cheap checks are made. Needs the extra ``schema``; raise BadToolSchema at
    once for an invalid schema.
    """
    schemas = compiled(tools, limits)
    views: dict[str, SchemaView] = {}
    return stage_within(
        "events", "check_schema_early", lambda _report: EarlySchemaChecker(schemas, views, limits=limits)
    )
