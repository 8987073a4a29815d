"""Make a small object that is valid for a JSON schema, as the arguments of the demo model's tool calls.

A value in the schema is used if there is one (``const``, ``default``, ``examples``, ``enum``, in this order). Otherwise a
value of the type is made, and an object gets its required members only. ``$ref`` within the schema and ``allOf`` are followed.
Of a union the first branch that has a value is used. A reference that leads back to itself has no value.

Keywords that need a search (``pattern``, ``not``, ``if``, ``contains``, ``uniqueItems``, …) are ignored, so a schema with
them may refuse the value. The work is limited, since a short schema can require an endless value.

Source: JSON Schema 2020-12 core §8.2, §10; validation §6, §7.3, §9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from streamkit.errors import UsageError
from streamkit.text.quoting import quoted
from streamkit.tool_calls.schema_cost import follow

#: Most subschemas visited for one value. Twenty that each refer twice to the next one would need a million visits.
MAX_SUBSCHEMAS: Final = 2_000
MAX_REFERENCES: Final = 64  #: the longest chain of ``$ref`` that is followed
MAX_CHARS: Final = 4_096
#: The text of a string value. It is harmless: neither a command nor the path of a file.
TEXT: Final = "demo"
FORMATS: Final = {
    "date-time": "2026-01-01T12:00:00Z",
    "date": "2026-01-01",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "demo@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


class NoValue(UsageError):
    """No value was found for a schema."""


def minimal_object(schema: Any) -> dict[str, Any]:
    """Return a small object that is valid for ``schema``, the parsed parameters of a tool. Raises NoValue."""
    root = {"type": "object", **schema} if isinstance(schema, dict) else schema
    try:
        value = _Maker(root).value(root)
    except (AttributeError, TypeError, ArithmeticError) as error:
        # a client sent the schema, and nothing has validated it
        raise NoValue("a keyword of the schema has an invalid value") from error
    except RecursionError:
        raise NoValue("the schema is nested too deeply") from None
    if not isinstance(value, dict):
        raise NoValue("the schema allows no object")
    return value


class _Maker:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MAX_SUBSCHEMAS

    def value(self, schema: Any, within: frozenset[str] = frozenset()) -> Any:
        """Return a value for ``schema``. ``within`` are the references that were followed to reach it."""
        flat, within = self._flat(schema, within)
        for named in _named(flat):
            return named
        for union in ("anyOf", "oneOf"):
            if branches := flat.get(union):
                rest = {key: inner for key, inner in flat.items() if key != union}
                return self._first(rest, branches, within)
        return self._of_type(flat, within)

    def _first(self, rest: dict[str, Any], branches: list[Any], within: frozenset[str]) -> Any:
        for branch in branches:
            try:
                return self.value({**rest, "allOf": [branch]}, within)
            except NoValue:
                if self._left < 0:
                    raise
        raise NoValue("no branch of a union has a value")

    def _flat(self, schema: Any, within: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the schema merged with its ``$ref`` and ``allOf`` parts. If a keyword occurs twice, the outer one counts."""
        self._left -= 1
        if self._left < 0:
            raise NoValue(f"the schema has more than {MAX_SUBSCHEMAS:,} subschemas")
        if schema is True:
            return {}, within
        if not isinstance(schema, dict):
            raise NoValue(f"nothing matches the schema {quoted(schema)}")
        flat = {key: inner for key, inner in schema.items() if key not in {"$ref", "allOf"}}
        parts = [(part, within) for part in schema.get("allOf", ())]
        if "$ref" in schema:
            parts.append((self._target(schema["$ref"], within), within | {schema["$ref"]}))
        for part, led in parts:
            inner, seen = self._flat(part, led)
            flat = _combined(inner, flat)
            within |= seen
        return flat, within

    def _target(self, reference: Any, within: frozenset[str]) -> Any:
        if reference in within or len(within) >= MAX_REFERENCES:
            raise NoValue(f"the reference {quoted(reference)} is circular or too deep")
        try:
            base, _, fragment = reference.partition("#")
            if base:
                raise LookupError
            return follow(self._root, unquote(fragment))
        except (AttributeError, LookupError):
            raise NoValue(f"the reference {quoted(reference)} is not in the schema") from None

    def _of_type(self, flat: dict[str, Any], within: frozenset[str]) -> Any:
        match _type(flat):
            case "object":
                return self._object(flat, within)
            case "array":
                return [self.value(_item(flat, position), within) for position in range(flat.get("minItems", 0))]
            case "string":
                return _text(flat)
            case "integer" | "number" as kind:
                return _number(flat, whole=kind == "integer")
            case "boolean":
                return True
            case "null":
                return None
            case kind:
                raise NoValue(f"unknown type {quoted(kind)}")

    def _object(self, flat: dict[str, Any], within: frozenset[str]) -> dict[str, Any]:
        properties, other = flat.get("properties", {}), flat.get("additionalProperties", True)
        return {name: self.value(properties.get(name, other), within) for name in flat.get("required", ())}


def _combined(inner: dict[str, Any], outer: dict[str, Any]) -> dict[str, Any]:
    both = {**inner, **outer}
    if "properties" in inner and "properties" in outer:
        both["properties"] = {**inner["properties"], **outer["properties"]}
    if "required" in inner and "required" in outer:
        both["required"] = [*inner["required"], *outer["required"]]
    return both


def _named(flat: dict[str, Any]) -> Iterator[Any]:
    yield from (flat[key] for key in ("const", "default") if key in flat)
    for key in ("examples", "enum"):
        yield from flat.get(key) or ()


def _type(flat: dict[str, Any]) -> Any:
    kind = flat.get("type")
    if isinstance(kind, list):
        return kind[0] if kind else None
    if kind is None:
        return "object" if "properties" in flat else "array" if "items" in flat else "string"
    return kind


def _item(flat: dict[str, Any], position: int) -> Any:
    items = flat.get("items", True)
    first, rest = flat.get("prefixItems", []), items
    if isinstance(items, list):  # drafts before 2020-12 list the first items here
        first, rest = items, flat.get("additionalItems", True)
    return first[position] if position < len(first) else rest


def _text(flat: dict[str, Any]) -> str:
    fewest, most = flat.get("minLength", 0), flat.get("maxLength", MAX_CHARS)
    if fewest > MAX_CHARS:
        raise NoValue(f"the schema requires a string of {fewest:,} characters")
    return FORMATS.get(flat.get("format", ""), TEXT).ljust(fewest, ".")[:most]


def _number(flat: dict[str, Any], *, whole: bool) -> int | float:
    """Return 1 or 0 if allowed, else a number at or near a bound, or the mean of the bounds."""
    low, high = flat.get("minimum", -math.inf), flat.get("maximum", math.inf)
    above, below = flat.get("exclusiveMinimum", -math.inf), flat.get("exclusiveMaximum", math.inf)
    step = flat.get("multipleOf", 1 if whole else None)
    bounds = [bound for bound in (low, above, high, below) if math.isfinite(bound)]
    candidates = [1, 0, *bounds, sum(bounds) / max(len(bounds), 1)]
    for bound in bounds:
        steps = math.floor(bound / (step or 1))
        candidates += [number * (step or 1) for number in (steps - 1, steps, steps + 1)]
    for value in candidates:
        if low <= value <= high and above < value < below and not (step and value % step):
            return int(value) if whole else value
    raise NoValue("no number between the bounds was found")
