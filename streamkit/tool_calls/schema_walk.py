"""The subschemas of a JSON schema as a graph: what applies where, and what a reference leads to.

Theory: a keyword applies its subschemas either to the value itself (``allOf``, ``$ref``, …) or to values inside it
(``properties``, ``items``, …). A value is looked at once for every way from the root to a subschema. How many ways lead to
one value without a step into it is counted here, and bounded; how they multiply along a path depends on the value
(``schema_cost.py``).

Where several base URIs make a reference ambiguous, every place it may mean is counted. Refuses: to judge a schema's grammar,
which is the library's business, and to follow a reference to another document.

Source: JSON Schema 2020-12 core §8.2, §10, §11; the older drafts' keywords count alike.
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
#: Of a position in a pointer: a longer one leads to nothing, and Python makes no ``int`` of 4,301.
MAX_INDEX_DIGITS: Final = 18
#: Ways at one value. A union of a thousand variants has a thousand.
MAX_WAYS: Final = 10_000
#: References and combinations behind one another, without a step into the value.
MAX_CHAIN: Final = 100
#: Base URIs and anchors: a reference may have to be looked up under each.
MAX_NAMES: Final = 256


class Endless(UsageError):
    """A schema applies itself to the same value, or too often."""


Trail: TypeAlias = "tuple[Trail, str | int] | None"
"""The steps to a value, the last one outermost: a pointer as text would repeat a long key for each value inside."""


def nodes(document: Any) -> Iterator[tuple[Trail, Any, int]]:
    """Every value of a JSON document with the trail to it and its depth, the document first."""
    waiting: list[tuple[Trail, Any, int]] = [(None, document, 1)]
    while waiting:
        trail, value, depth = waiting.pop()
        yield trail, value, depth
        if isinstance(value, dict | list):
            steps = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((trail, step), inner, depth + 1) for step, inner in steps]


def pointer(trail: Trail) -> str:
    """The JSON pointer of a value that ``nodes`` gave."""
    steps = []
    while trail is not None:
        trail, step = trail
        escaped = str(step).replace("~", "~0").replace("/", "~1")
        steps.append(f"/{escaped}")
    return "".join(reversed(steps))


def follow(document: Any, fragment: str) -> Any:
    """What a reference's JSON pointer leads to. Raises LookupError if nothing is there."""
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
    """The subschemas under these keywords; ``true`` and ``false`` cost nothing and are left out."""
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
    """Counts the ways through one schema. Made only of values that ``json`` makes, which must not change."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._resources: dict[str, list[Any]] = {}  # by the last segment of their URI
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
        """Every subschema that a reference may mean; none for one that leads out of the schema."""
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
        """Every subschema that the references of a subschema may mean."""
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
