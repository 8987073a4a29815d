"""Detect while a call or a text streams that it can no longer match its schema.

``SchemaView`` knows a few keywords and leaves the rest to the final verdict, which this module must never contradict. Every
keyword only restricts, so the known ones give an upper bound of the allowed values, and only values outside it are reported.
Of a union, the only branch that allows the type of a value applies; with several such branches none does. Nothing is certain
for a schema with more than one base URI, or of a draft that is not in ``DRAFTS``.

Detected are: an unknown tool; text that is not JSON; a value of a type that the schema forbids (a container or a string at its
first fragment, a number or a literal at its end); a key that ``additionalProperties: false`` forbids; a string with which no
value of ``enum`` or ``const`` begins, or another scalar that equals none of them.

A text is followed in its first block only: other blocks may continue it in another order. It is no longer followed once the
choice refuses or calls a tool.

The time is linear in the text, plus a binary search in the allowed strings for each fragment of a string. After ``MAX_LOOKS``
checks, counted at whole values, a call or a text is no longer followed.

Source: JSON Schema 2020-12 core §10, validation §6.1; draft-07 §8.3 (keywords next to ``$ref`` are ignored); design.md §4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote

from attrs import define, frozen

from streamkit.events import (
    Event,
    OutputDoomed,
    RefusalDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.tool_calls.output import OUTPUT, AskedFormat, OutputCheck, output_check
from streamkit.tool_calls.partial_arguments import Change, PartialJSON, Path
from streamkit.tool_calls.schema import UNKNOWN_TOOL, Tools, ToolSchemas, compiled
from streamkit.tool_calls.schema_cost import MAX_CHAIN, follow, nodes

Allowed: TypeAlias = dict[str, frozenset[Any] | None]
"""The types of value that may be valid, each with its values or None for any. A number is ``integer`` or ``fraction``."""

KINDS: Final = ("object", "array", "string", "integer", "fraction", "boolean", "null")
ANYTHING: Final[Allowed] = dict.fromkeys(KINDS)
NOTHING: Final[Allowed] = {}
_KINDS_OF_TYPES: Final = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null",
}  # fmt: skip
MAX_WORK: Final = 1_000_000  #: subschemas and listed values that are read for one schema; the rest is ignored
#: Drafts with the keywords assumed here, and whether they have ``prefixItems``. (Not draft 4, in which 1.0 is no integer.)
DRAFTS: Final = {
    "https://json-schema.org/draft/2020-12/schema": True,
    "https://json-schema.org/draft/2019-09/schema": False,
    "http://json-schema.org/draft-07/schema": False,
    "http://json-schema.org/draft-06/schema": False,
}


def kind_of(value: Any) -> str | None:
    """Return the type of a JSON value, or None for a number of uncertain type (infinite, or a ``Decimal``)."""
    if isinstance(value, float):
        return None if value in {float("inf"), float("-inf")} else "integer" if value.is_integer() else "fraction"
    return _KINDS_OF_TYPES.get(type(value))


def both(a: Allowed, b: Allowed) -> Allowed:
    """Return the types and values that both schemas allow."""
    return {kind: _narrower(a[kind], b[kind]) for kind in a if kind in b}


def _narrower(a: frozenset[Any] | None, b: frozenset[Any] | None) -> frozenset[Any] | None:
    return b if a is None else a if b is None else a & b


def any_of(branches: Iterable[Allowed]) -> Allowed:
    """Return the types and values that any of the schemas allows. Values are collected once, for any number of schemas."""
    gathered: dict[str, list[frozenset[Any] | None]] = {}
    for branch in branches:
        for kind, values in branch.items():
            gathered.setdefault(kind, []).append(values)
    return {kind: _union(found) for kind, found in gathered.items()}


def _union(found: list[frozenset[Any] | None]) -> frozenset[Any] | None:
    if len(found) == 1:
        return found[0]
    sets = [values for values in found if values is not None]
    return frozenset().union(*sets) if len(sets) == len(found) else None


def _one_of(values: Iterable[Any]) -> Allowed:
    """Return the types and values that ``enum`` allows. Containers are not compared; numbers differ if their floats differ."""
    any_value: set[str] = set()
    listed: dict[str, set[Any]] = {}
    for value in values:
        kind = kind_of(value)
        if kind is None:
            any_value |= {"integer", "fraction"}
        elif kind in {"object", "array"} or (found := values_of(value)) is None:
            any_value.add(kind)
        else:
            listed.setdefault(kind, set()).update(found)
    return {
        kind: None if kind in any_value else frozenset(listed[kind])
        for kind in KINDS
        if kind in any_value or kind in listed
    }


def values_of(value: Any) -> frozenset[Any] | None:
    """Return a scalar as ``Allowed`` stores it, or None for a number too large for a float."""
    if isinstance(value, int):
        try:
            return frozenset({float(value)})
        except OverflowError:
            return None
    return frozenset({value})


class SchemaView:
    """The certain facts about one tool's schema. Subschemas are looked up by identity, so the schema must not change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._prefix_items = _draft(root)
        self._allowed: dict[int, Allowed] = {}
        self._sorted: dict[frozenset[Any], list[str]] = {}
        self._work = 0
        self._applying: dict[tuple[int, str], list[dict[str, Any]]] = {}

    def allowed(self, schema: Any, chain: int = 0) -> Allowed:
        if not isinstance(schema, dict) or self._prefix_items is None or chain > MAX_CHAIN or self._work > MAX_WORK:
            return NOTHING if schema is False else ANYTHING
        if id(schema) not in self._allowed:
            # a chain that is stopped early allows more, so caching it is safe; checked schemas have no chain that long
            self._allowed[id(schema)] = self._work_out(schema, chain + 1)
        return self._allowed[id(schema)]

    def _work_out(self, schema: dict[str, Any], chain: int) -> Allowed:
        if "$ref" in schema:
            return self.allowed(self._target(schema["$ref"]), chain)  # older drafts ignore keywords next to ``$ref``
        allowed = ANYTHING
        if "type" in schema:
            allowed = both(allowed, _of_types(schema["type"]))
        if isinstance(schema.get("enum"), list):
            self._work += len(schema["enum"])
            allowed = both(allowed, _one_of(schema["enum"]))
        if "const" in schema:
            allowed = both(allowed, _one_of([schema["const"]]))
        for branch in _list(schema, "allOf"):
            allowed = both(allowed, self._looked_at(branch, chain))
        for keyword in ("anyOf", "oneOf"):
            if branches := _list(schema, keyword):
                allowed = both(allowed, any_of([self._looked_at(branch, chain) for branch in branches]))
        return allowed

    def _looked_at(self, branch: Any, chain: int) -> Allowed:
        """Return the types and values that a branch allows, and count the reading of its values as work."""
        allowed = self.allowed(branch, chain)
        self._work += 1 + sum(map(len, filter(None, allowed.values())))
        return allowed

    def strings(self, schema: Any) -> list[str] | None:
        """Return the sorted strings that a schema may allow, or None for any string."""
        values = self.allowed(schema).get("string", frozenset())
        if values is None:
            return None
        if values not in self._sorted:
            self._sorted[values] = sorted(values)
        return self._sorted[values]

    def applying(self, schema: Any, kind: str) -> list[dict[str, Any]]:
        """Return the subschemas that all apply to a value of this type."""
        key = id(schema), kind
        if key not in self._applying:
            found: dict[int, dict[str, Any]] = {}
            self._gather(schema, kind, 0, found)
            self._applying[key] = list(found.values())
        return self._applying[key]

    def _gather(self, schema: Any, kind: str, chain: int, found: dict[int, dict[str, Any]]) -> None:
        """Add a subschema, and all subschemas that it applies to the same value, to ``found``, which is keyed by ``id()``."""
        if not isinstance(schema, dict) or self._prefix_items is None or chain > MAX_CHAIN or self._work > MAX_WORK:
            return
        if id(schema) in found:
            return
        self._work += 1
        if "$ref" in schema:
            self._gather(self._target(schema["$ref"]), kind, chain + 1, found)
            return
        found[id(schema)] = schema
        inner = list(_list(schema, "allOf"))
        for keyword in ("anyOf", "oneOf"):
            possible = [branch for branch in _list(schema, keyword) if kind in self.allowed(branch)]
            inner += possible if len(possible) == 1 else []
        for branch in inner:
            self._gather(branch, kind, chain + 1, found)

    def inside(self, schema: dict[str, Any], step: str | int) -> Any:
        """Return the subschema for the value at a key or index, or True if nothing is known."""
        if isinstance(step, str):
            properties = schema.get("properties")
            if isinstance(properties, dict) and step in properties:
                return properties[step]
            return True if "patternProperties" in schema else schema.get("additionalProperties", True)
        prefix, items = schema.get("prefixItems"), schema.get("items", True)
        if isinstance(prefix, list):
            if not self._prefix_items:
                return True
            if step < len(prefix):
                return prefix[step]
        if isinstance(items, list):
            return items[step] if step < len(items) else True
        return items

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
            return True
        try:
            return follow(self.root, unquote(reference[1:]))
        except LookupError:
            return True


def _draft(root: Any) -> bool | None:
    """Return whether the draft has ``prefixItems``; None for a schema about which nothing is certain."""
    if not isinstance(root, dict):
        return True
    for trail, node, _ in nodes(root):
        if trail and isinstance(node, dict) and any(isinstance(node.get(k), str) for k in ("$id", "id", "$schema")):
            return None
    declared = root.get("$schema", next(iter(DRAFTS)))
    return DRAFTS.get(declared.rstrip("#")) if isinstance(declared, str) else None


def _list(schema: dict[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _of_types(types: Any) -> Allowed:
    allowed: Allowed = {}
    for name in types if isinstance(types, list) else [types]:
        allowed |= {"integer": None, "fraction": None} if name == "number" else {name: None}
    return allowed


MAX_LOOKS: Final = 100_000  #: maximum number of checks of a subschema against a value in one call, 0.5 µs each
MAX_LISTS: Final = 8  #: with more lists of allowed strings, a growing string is compared with none
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
    """Follows one JSON text until it can no longer become valid. ``is_object``: its value must be an object."""

    def __init__(self, view: SchemaView, depth: int, *, is_object: bool = True) -> None:
        self.view = view
        self._root = [_AN_OBJECT, view.root] if is_object else [view.root]
        self.partial = PartialJSON(depth=depth)
        #: For each open container, outermost first, the subschemas that apply to it.
        self._open: list[list[dict[str, Any]]] = []
        self._growing: list[_Alternatives] = []
        self._looks = MAX_LOOKS

    @property
    def is_spent(self) -> bool:
        return self._looks < 0

    def feed(self, fragment: str) -> tuple[Path, str] | None:
        """Take a fragment. Return the path and the reason if the text can no longer become valid, else None."""
        self.partial.feed(fragment)
        for change in self.partial.changes:
            if self.is_spent:
                return None
            reason = self._refused(change)
            if reason is not None:
                return change.path, reason
        if self.partial.state == "malformed":
            return self.partial.path, f"not valid JSON: {self.partial.reason}"
        return None

    def _refused(self, change: Change) -> str | None:
        depth = len(change.path)
        if change.kind == "grown":
            narrowed = [alternatives.narrow(change.value) for alternatives in self._growing]
            return None if all(narrowed) else "no allowed value begins with this text"
        is_container = isinstance(change.value, dict | list)
        if change.kind == "ended" and is_container:
            return None
        value = change.value if is_container or change.kind == "ended" else ""
        schemas = self._schemas(change.path)
        if is_container or change.kind == "ended":
            self._looks -= len(self._open[depth - 1]) if depth else 1
        if schemas is None:
            return "the key is not allowed" if isinstance(change.path[-1], str) else "the item is not allowed"
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
            return self._root
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
    return list({id(one): one for one in found}.values()) if len(found) > 1 else found


def _expected(allowed: Allowed, kind: str) -> str:
    if not allowed:
        return "no value is allowed"
    names = dict.fromkeys("number" if name == "fraction" else name for name in allowed)
    if "number" in names:
        names.pop("integer", None)
    return f"{' or '.join(names)} expected, not {'number' if kind == 'fraction' else kind}"


@frozen
class OutputView:
    """The part of a request's output format that an early check can use."""

    view: SchemaView
    is_object: bool

    @classmethod
    def of(cls, check: OutputCheck) -> OutputView:
        root = True if check.schemas is None else check.schemas.schema(OUTPUT)
        return cls(SchemaView(root), check.root == "object")


class EarlySchemaChecker(Link):
    """The machine of ``check_schema_early``: events to events."""

    def __init__(
        self,
        tools: ToolSchemas | None,
        views: dict[str, SchemaView],
        *,
        output: OutputView | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._tools = tools
        self._views = views
        self._output = output
        self._limits = limits
        self._depth = limits.json_depth
        #: By choice, the block that is followed; None: the choice's text is no longer followed.
        self._texts: dict[int, tuple[int, _Doubt] | None] = {}
        self._open: dict[tuple[int, int], _Doubt] = {}  # keyed by choice and call; a doomed call is removed

    def push(self, event: Event, /) -> None:
        self.emit(event)
        if isinstance(event, TextDelta):
            if self._output is not None:
                self._text(event, self._output)
        elif isinstance(event, RefusalDelta):
            self._texts[event.choice] = None
        elif isinstance(event, ToolCallStarted):
            self._texts[event.choice] = None
            if self._tools is not None and event.kind == "function" and event.name:
                self._start(event, self._tools)
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._open:
            doubt = self._open[event.choice, event.call]
            doom = doubt.feed(event.fragment)
            if doom or doubt.is_spent:
                del self._open[event.choice, event.call]
            if doom:
                self.emit(ToolCallDoomed(event.call, event.choice, *doom))
        elif isinstance(event, ToolCallFinished):
            self._open.pop((event.choice, event.call), None)

    def _text(self, event: TextDelta, output: OutputView) -> None:
        choice = event.choice
        if choice not in self._texts:
            self._texts[choice] = event.block, _Doubt(output.view, self._depth, is_object=output.is_object)
        followed = self._texts[choice]
        if followed is None:
            return
        block, doubt = followed
        doom = doubt.feed(event.text) if event.block == block else None
        is_too_long = doubt.partial.position > self._limits.arguments_chars
        if doom or doubt.is_spent or is_too_long or event.block != block:
            self._texts[choice] = None
        if doom:
            self.emit(OutputDoomed(choice, *doom))

    def _start(self, event: ToolCallStarted, tools: ToolSchemas) -> None:
        if event.name not in tools:
            self.emit(ToolCallDoomed(event.call, event.choice, (), UNKNOWN_TOOL))
            return
        view = self._views.get(event.name)
        if view is None:
            view = self._views[event.name] = SchemaView(tools.schema(event.name))
        self._open[event.choice, event.call] = _Doubt(view, self._depth)


def check_schema_early(
    tools: Tools | None = None, *, output: AskedFormat | OutputCheck | None = None, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]]:
    """Create a stage that reports that an unfinished call or text can't become valid any more.

    Put the stage after ``accumulate_tool_calls``. Use the stage if you want to stop a response before you pay for the
    rest of it. For a call that can't become valid, the stage adds one ``ToolCallDoomed`` after the event with the
    fault. The stage does not end the call. ``output`` is the output format of the request. If the request asks for
    JSON, the stage adds one ``OutputDoomed`` for a choice whose text can't become valid. The stage adds this event even
    if the choice calls a tool after the text, although ``check_output`` gives such a choice no verdict. ``check_json``
    and ``check_output`` never contradict these events, if all three functions get the same ``tools``, ``output`` and
    ``limits``. The stage makes only cheap checks, so it does not find every fault. A schema needs the extra ``schema``.
    If the extra is missing or a schema is invalid, ``check_schema_early`` itself raises UsageError.
    """
    schemas = None if tools is None else compiled(tools, limits)
    check = output_check(output, limits)
    seen = None if check is None else OutputView.of(check)
    views: dict[str, SchemaView] = {}
    return stage_within(
        "events", "check_schema_early", lambda _report: EarlySchemaChecker(schemas, views, output=seen, limits=limits)
    )
