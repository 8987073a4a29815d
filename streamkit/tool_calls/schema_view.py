"""What can be said for certain of a schema before the value is whole: which kinds of value, which scalars, which subschemas.

Theory: every keyword only refuses, so the keywords known here give what is allowed at most, and ignoring one widens it. Wider
is the safe side: whoever acts on it acts only on what is not allowed.

``$ref`` (by JSON pointer into the schema), ``allOf``, ``anyOf`` and ``oneOf`` are looked through. Of a union the one branch
that allows the kind of a value applies, and none if there are several. Of a schema with more than one base URI, or of a draft
that is not in ``DRAFTS``, nothing is certain.

Source: JSON Schema 2020-12 core §10, validation §6.1; draft-07 §8.3 (what stands beside ``$ref`` is ignored).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from streamkit.tool_calls.schema_walk import MAX_CHAIN, follow, nodes

Allowed: TypeAlias = dict[str, frozenset[Any] | None]
"""The kinds of value that may be valid, and of each the values; None: any. A number is ``integer`` or ``fraction``."""

KINDS: Final = ("object", "array", "string", "integer", "fraction", "boolean", "null")
ANYTHING: Final[Allowed] = dict.fromkeys(KINDS)
NOTHING: Final[Allowed] = {}
_KINDS_OF_TYPES: Final = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null",
}  # fmt: skip
#: Subschemas and listed values that are worked through for one schema; what is past them is not looked at.
MAX_WORK: Final = 1_000_000
#: Whether ``prefixItems`` counts, for the drafts whose keywords mean what is assumed here. (In draft 4 1.0 is no integer.)
DRAFTS: Final = {
    "https://json-schema.org/draft/2020-12/schema": True,
    "https://json-schema.org/draft/2019-09/schema": False,
    "http://json-schema.org/draft-07/schema": False,
    "http://json-schema.org/draft-06/schema": False,
}


def kind_of(value: Any) -> str | None:
    """The kind of a JSON value; None for a number of which it is not sure."""
    if isinstance(value, float):
        return None if value in {float("inf"), float("-inf")} else "integer" if value.is_integer() else "fraction"
    return _KINDS_OF_TYPES.get(type(value))


def both(a: Allowed, b: Allowed) -> Allowed:
    """What two schemas together allow."""
    return {kind: _narrower(a[kind], b[kind]) for kind in a if kind in b}


def _narrower(a: frozenset[Any] | None, b: frozenset[Any] | None) -> frozenset[Any] | None:
    return b if a is None else a if b is None else a & b


def any_of(branches: Iterable[Allowed]) -> Allowed:
    """What at least one of several schemas allows; the values of a kind are gathered once, however many schemas there are."""
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
    """What ``enum`` allows. Containers are not compared, and numbers only as floats: then unequal is unequal."""
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
    """A scalar as ``Allowed`` has it; None for a number that is no float."""
    if isinstance(value, int):
        try:
            return frozenset({float(value)})
        except OverflowError:
            return None
    return frozenset({value})


class SchemaView:
    """What can be said for certain of one tool's schema. Subschemas are known by identity: the schema must not change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._prefix_items = _draft(root)
        self._allowed: dict[int, Allowed] = {}
        self._sorted: dict[frozenset[Any], list[str]] = {}
        self._work = 0
        self._applying: dict[tuple[int, str], list[dict[str, Any]]] = {}

    def allowed(self, schema: Any, chain: int = 0) -> Allowed:
        """The kinds and values that a schema may allow."""
        if not isinstance(schema, dict) or self._prefix_items is None or chain > MAX_CHAIN or self._work > MAX_WORK:
            return NOTHING if schema is False else ANYTHING
        if id(schema) not in self._allowed:
            # a chain that is cut short allows more, so it may be kept; schemas that were checked have none so long
            self._allowed[id(schema)] = self._work_out(schema, chain + 1)
        return self._allowed[id(schema)]

    def _work_out(self, schema: dict[str, Any], chain: int) -> Allowed:
        if "$ref" in schema:
            return self.allowed(self._target(schema["$ref"]), chain)  # older drafts ignore what stands beside it
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
        """What a branch allows; reading its lists of values to combine them with others is counted as work."""
        allowed = self.allowed(branch, chain)
        self._work += 1 + sum(map(len, filter(None, allowed.values())))
        return allowed

    def strings(self, schema: Any) -> list[str] | None:
        """In order, the strings that a schema may allow; None: any."""
        values = self.allowed(schema).get("string", frozenset())
        if values is None:
            return None
        if values not in self._sorted:
            self._sorted[values] = sorted(values)
        return self._sorted[values]

    def applying(self, schema: Any, kind: str) -> list[dict[str, Any]]:
        """The subschemas that all apply to a value of this kind."""
        key = id(schema), kind
        if key not in self._applying:
            found: dict[int, dict[str, Any]] = {}
            self._gather(schema, kind, 0, found)
            self._applying[key] = list(found.values())
        return self._applying[key]

    def _gather(self, schema: Any, kind: str, chain: int, found: dict[int, dict[str, Any]]) -> None:
        """Add to ``found``, by identity, a subschema and those that it applies to the same value."""
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
        """The subschema for the value at a key or position; ``true`` where nothing is known."""
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
    """Whether ``prefixItems`` counts; None for a schema of which nothing is certain."""
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
