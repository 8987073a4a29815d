"""Walk the subschemas of a JSON schema as a graph: where each applies, and what each reference means.

A keyword applies its subschemas either to the value itself (``allOf``, ``$ref``, …) or to values inside it (``properties``,
``items``, …). The library looks at a value once for each way from the root to a subschema. This module counts and limits the
ways that lead to one value without a step into the value. How ways multiply along a path depends on the value
(``schema_cost.py``).

If several base URIs make a reference ambiguous, every possible target is counted. This module does not validate the schema
itself, which the library does, and never follows a reference to another document.

Source: JSON Schema 2020-12 core §8.2, §10, §11; the keywords of older drafts count in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from streamkit.errors import UsageError

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
HERE: Final = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
INSIDE: Final = (
    "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
    "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
)  # fmt: skip
MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
#: Maximum number of digits of an index in a JSON pointer. A longer index leads to nothing, and Python rejects 4,301 digits.
MAX_INDEX_DIGITS: Final = 18
#: Maximum number of ways to subschemas for one value. A union of a thousand variants has a thousand.
MAX_WAYS: Final = 10_000
#: Maximum length of a chain of references and combinations without a step into the value.
MAX_CHAIN: Final = 100
#: Maximum number of base URIs and anchors: a reference may have to be looked up under each.
MAX_NAMES: Final = 256


class Endless(UsageError):
    """Raised for a schema that applies itself to the same value, or too many subschemas to one value."""


Trail: TypeAlias = "tuple[Trail, str | int] | None"
"""The steps to a value, the last step outermost. A pointer as text would repeat a long key for each inner value."""


def nodes(document: Any) -> Iterator[tuple[Trail, Any, int]]:
    """Yield every value of a JSON document, the document first, with its trail and its depth."""
    waiting: list[tuple[Trail, Any, int]] = [(None, document, 1)]
    while waiting:
        trail, value, depth = waiting.pop()
        yield trail, value, depth
        if isinstance(value, dict | list):
            steps = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((trail, step), inner, depth + 1) for step, inner in steps]


def pointer(trail: Trail) -> str:
    """Return the JSON pointer for a trail from ``nodes``."""
    steps = []
    while trail is not None:
        trail, step = trail
        escaped = str(step).replace("~", "~0").replace("/", "~1")
        steps.append(f"/{escaped}")
    return "".join(reversed(steps))


def follow(document: Any, fragment: str) -> Any:
    """Return the value that a reference's JSON pointer leads to. Raise LookupError if there is none."""
    value = document
    for step in fragment.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdecimal() and len(key) <= MAX_INDEX_DIGITS:
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value[key]
        else:
            raise LookupError(fragment)
    return value


def subschemas(schema: dict[str, Any], keywords: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the subschemas under these keywords, except ``true`` and ``false``, which cost nothing."""
    for keyword in keywords:
        if keyword not in schema:
            continue
        value = schema[keyword]
        if isinstance(value, dict):
            found = list(value.values()) if keyword in MAPS else [value]
        else:
            found = value if isinstance(value, list) else []
        yield from (inner for inner in found if isinstance(inner, dict))


class SchemaGraph:
    """Counts the ways through one schema. The schema must consist of ``json`` values and must not change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._resources: dict[str, list[Any]] = {}  # keyed by the last segment of their URI
        self._anchors: dict[str, list[Any]] = {}
        self._ways: dict[int, int] = {}
        for _, node, _ in nodes(root):
            if isinstance(node, dict):
                self._name(node)

    def _name(self, node: dict[str, Any]) -> None:
        for keyword in ("$id", "id"):
            if isinstance(uri := node.get(keyword), str):
                base, _, anchor = uri.partition("#")
                self._resources.setdefault(_last_segment(base), []).append(node)
                if anchor:
                    self._anchors.setdefault(anchor, []).append(node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                self._anchors.setdefault(name, []).append(node)

    def _targets(self, reference: str) -> list[dict[str, Any]]:
        """Return every subschema that a reference may mean; none for a reference to another document."""
        base, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if base:
            resources = self._resources.get(_last_segment(base), [])
        else:
            resources = [self.root, *(node for group in self._resources.values() for node in group)]
        found = []
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get(fragment, [])
        else:
            for resource in resources if fragment or base else resources[:1]:
                try:
                    found.append(follow(resource, fragment))
                except LookupError:
                    continue
        return [node for node in {id(node): node for node in found}.values() if isinstance(node, dict)]

    def referred(self, node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield every subschema that the references in ``node`` may mean."""
        for keyword in REFERENCES:
            if isinstance(reference := node.get(keyword), str) and keyword != "$recursiveRef":
                yield from self._targets(reference)
        if "$recursiveRef" in node and isinstance(self.root, dict):
            yield self.root

    def check(self) -> None:
        """Raise ``Endless`` if a subschema applies itself to the same value, or if too many apply to one value."""
        names = sum(map(len, self._resources.values())) + sum(map(len, self._anchors.values()))
        if names > MAX_NAMES:
            raise Endless(f"more than {MAX_NAMES} base URIs and anchors")
        for _, node, _ in nodes(self.root):
            if isinstance(node, dict):
                self._count(node, set())

    def _count(self, node: dict[str, Any], above: set[int]) -> int:
        key = id(node)
        if key in above:
            raise Endless("a reference leads back to itself without a step into the value")
        if key not in self._ways:
            if len(above) >= MAX_CHAIN:
                raise Endless(f"more than {MAX_CHAIN} references and combinations behind one another")
            here = [*subschemas(node, HERE), *self.referred(node)]
            ways = 1 + sum(self._count(inner, above | {key}) for inner in here)
            if ways > MAX_WAYS:
                raise Endless(f"more than {MAX_WAYS:,} subschemas apply to one value")
            self._ways[key] = ways
        return self._ways[key]


def _last_segment(uri: str) -> str:
    segment = unquote(uri.rsplit("/", 1)[-1])
    return "" if segment in {".", ".."} else segment
