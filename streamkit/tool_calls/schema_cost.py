"""Walk a JSON schema as a graph, and estimate the cost of checking a value before the check: the library can't be stopped.

The library looks at a value once for each way from the schema's root to a subschema that applies to the value. Ways multiply
along a path: a chain of n definitions that each apply the next one twice to the inner value leads to 2^n looks. So
``SchemaCost`` counts the ways for the values of the given document. Values at which the same subschemas apply equally often
share one ``_Place``, which follows from the place of the container and from the key: one look-up for each value. One unit is
one look at one value, about 25 ns.

``not``, ``if`` and the combinations count as if every branch were taken, and an ambiguous reference as if it meant every
target. ``unevaluated…`` reads its neighbouring keywords once more, so nesting it triples the cost at each level. For objects
and arrays, the library caches the result for a reference target that leads back to itself, except while listing violations;
``remembered`` counts such a target once for each value. A pattern costs the characters of the string times the size of its
automaton; a pattern with look-around or a back-reference scans the rest of the string at every position and every backtracking
step. The count is at least the library's cost, as far as measured.

Source: JSON Schema 2020-12 core §8.2, §10, §11; the keywords of older drafts; jsonschema-rs 0.60 (measured).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from attrs import define, field

from streamkit.errors import UsageError

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
HERE: Final = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
INSIDE: Final = (
    "properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
    "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
)  # fmt: skip
MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
MAX_INDEX_DIGITS: Final = 18  #: of an index in a JSON pointer; Python rejects 4,301 digits
MAX_WAYS: Final = 10_000  #: ways to subschemas for one value; a union of a thousand variants has a thousand
MAX_CHAIN: Final = 100  #: maximum length of a chain of references and combinations without a step into the value
MAX_NAMES: Final = 256  #: maximum number of base URIs and anchors: a reference may have to be looked up under each


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
                raise Endless(f"more than {MAX_CHAIN} nested references and combinations")
            here = [*subschemas(node, HERE), *self.referred(node)]
            ways = 1 + sum(self._count(inner, above | {key}) for inner in here)
            if ways > MAX_WAYS:
                raise Endless(f"more than {MAX_WAYS:,} subschemas apply to one value")
            self._ways[key] = ways
        return self._ways[key]


def _last_segment(uri: str) -> str:
    segment = unquote(uri.rsplit("/", 1)[-1])
    return "" if segment in {".", ".."} else segment


BACKTRACKS: Final = 10_000  #: steps of one match of a pattern with look-around; then the match counts as failed
MAX_LISTED: Final = 50_000  #: subschemas that all places of one schema may list together, each once
MAX_TRACED: Final = 200_000  #: maximum number of steps for finding out which references lead back to themselves
ASKED: Final = 16  #: visits after which the library caches a reference target's result (``MEMO_MIN_VISITS``)
_PER_VALUE: Final = frozenset({"enum", "const"})  #: their cost grows with the values that they list
_PER_NAME: Final = frozenset({"properties", "dependentRequired", "dependentSchemas", "dependencies"})  #: with the names
_INSIDE_OBJECTS: Final = ("additionalProperties", "unevaluatedProperties")
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_backtracking: Final = re.compile(r"\(\?(?:[=!>(]|<[=!])|\\[1-9kGK]|[*+?}]\+").search
#: Look-arounds without groups at the beginning of a pattern, with nothing after them that backtracks.
_looks_first: Final = re.compile(r"\^(?:\(\?[=!](?:[^()\\]|\\[^1-9kGK])*+\))*+").match
_repetition: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}").finditer
_repetition_of: Final = re.compile(r"\{\d").search
_repeated_group: Final = re.compile(r"\)\{").search
_large_class: Final = re.compile(r"\\[pPwWDS]|\(\?[a-z]*i").search
MAX_STATES: Final = 16_384


class TooCostly(Exception):
    """Raised if counting the cost would itself take too long."""


@define
class PatternCost:
    """The cost of one pattern for strings of any length."""

    states: int
    looks: int = 0
    backtracks: bool = False

    @classmethod
    def of(cls, pattern: str) -> PatternCost:
        states = len(pattern)
        for found in _repetition(pattern):
            most = max(int(digits[:6]) for digits in (found[1], found[2] or "0"))
            states = states * most if _repeated_group(pattern) else states + most
            states = min(states, MAX_STATES)
        if _large_class(pattern) and _repetition_of(pattern):
            states *= 8
        if not _backtracking(pattern):
            return cls(states)
        first = _looks_first(pattern)
        rest = pattern[first.end() :] if first else pattern
        if first and not _backtracking(rest) and "|" not in rest:
            return cls(states, looks=first[0].count("(?") + 1)
        return cls(states, backtracks=True)

    def units(self, chars: int) -> int:
        if self.backtracks:
            return (chars + min(BACKTRACKS, 1 << min(chars, 20))) * (1 + chars // 32)
        looks = 1 + self.looks
        return 1 + looks * chars * (self.states // 4 if self.states > 64 else 1)


@define
class _Place:
    """The subschemas that apply to a value, the number of ways to each, and the places of the values inside."""

    weight: int = 1
    lengths: int = 0
    numbers: int = 0
    unique: int = 0
    patterns: list[tuple[int, PatternCost]] = field(factory=list)
    key_patterns: list[tuple[int, PatternCost]] = field(factory=list)
    nodes: list[tuple[dict[str, Any], int, int]] = field(factory=list)
    named: frozenset[str] = frozenset()
    positions: int = 0
    steps: dict[Any, _Place] = field(factory=dict)
    names: _Place | None = None


class SchemaCost:
    """Counts the cost of checking values against the schema of ``graph``, whose ``check`` must have passed."""

    def __init__(self, graph: SchemaGraph, *, remembered: bool) -> None:
        self._graph = graph
        self._remembered = remembered
        self._links: dict[int, list[tuple[dict[str, Any], bool]]] = {}
        self._looping: dict[int, set[int]] = {}
        self._traced = 0
        self._listed = 0
        self._places: dict[tuple[Any, ...], _Place] = {}
        self._weights: dict[int, int] = {}
        self._pattern_costs: dict[str, PatternCost] = {}
        self._root: _Place | None = None

    def units(self, value: Any, most: int) -> int:
        """Return the cost of checking ``value``, as ``json`` parses it; counting stops above ``most``."""
        if not isinstance(self._graph.root, dict):
            return 1
        try:
            return self._counted(value, most)
        except TooCostly:
            self._places.clear()  # the next value starts anew, since it may need fewer places
            self._root, self._listed = None, 0
            return most + 1

    def _counted(self, value: Any, most: int) -> int:
        if self._root is None:
            self._root = self._place([(self._graph.root, 1, 0)], 0)
        total = 0
        waiting = [(value, self._root)]
        while waiting and total <= most:
            value, place = waiting.pop()
            total += place.weight
            kind = type(value)
            if kind is str:
                total += _string_units(place, len(value))
            elif kind is dict:
                for key, inner in value.items():
                    waiting.append((inner, self._step(place, key if key in place.named else None)))
                    total += sum(ways * cost.units(len(key)) for ways, cost in place.key_patterns)
                    if place.names is not None:
                        total += place.names.weight + _string_units(place.names, len(key))
            elif kind is list:
                positions = place.positions
                waiting += [(inner, self._step(place, min(at, positions))) for at, inner in enumerate(value)]
            elif place.numbers and kind is int and value.bit_length() > 512:
                total += place.numbers * (value.bit_length() // 100) ** 2 // 100
        return total

    def _step(self, place: _Place, step: str | int | None) -> _Place:
        """Return the place of the member or item ``step``. None means a key that no ``properties`` names."""
        known = place.steps.get(step)
        if known is None:
            entries = [(inner, ways, 0) for inner, ways in self._inside(place, step)]
            known = place.steps[step] = self._place(entries, place.unique)
        return known

    def _inside(self, place: _Place, step: str | int | None) -> Iterable[tuple[dict[str, Any], int]]:
        for node, ways, marked in place.nodes:
            if isinstance(step, int):
                yield from self._items(node, ways, marked, step)
                continue
            properties = node.get("properties")
            named = isinstance(properties, dict) and step in properties
            if isinstance(properties, dict) and isinstance(inner := properties.get(step), dict):
                yield inner, ways
            yield from ((inner, ways) for inner in subschemas(node, ("patternProperties",)))
            if not named:
                yield from ((inner, ways) for inner in subschemas(node, _INSIDE_OBJECTS))

    def _items(self, node: dict[str, Any], ways: int, marked: int, at: int) -> Iterable[tuple[dict[str, Any], int]]:
        for keyword in ("items", "prefixItems"):
            found = node.get(keyword)
            if isinstance(found, list):
                found = found[at] if at < len(found) else None
            if isinstance(found, dict):
                yield found, ways
        yield from ((inner, ways) for inner in subschemas(node, ("additionalItems", "unevaluatedItems")))
        yield from ((inner, ways + marked) for inner in subschemas(node, ("contains",)))

    def _place(self, entries: list[tuple[dict[str, Any], int, int]], unique: int) -> _Place:
        """Return the place where these subschemas apply, and the subschemas that these apply to the same value."""
        first: dict[int, tuple[dict[str, Any], int, int]] = {}
        for node, ways, marked in entries:
            _, before, before_marked = first.get(id(node), (node, 0, 0))
            first[id(node)] = node, before + ways, before_marked + marked
        name = (unique, *sorted((key, ways, marked) for key, (_, ways, marked) in first.items()))
        if name not in self._places:
            self._listed += len(name)
            self._places[name] = self._worked_out(first, unique)
        return self._places[name]

    def _worked_out(self, first: dict[int, tuple[dict[str, Any], int, int]], unique: int) -> _Place:
        place = _Place(unique=unique)
        ways = {key: found[1:] for key, found in first.items()}
        asked: dict[int, int] = {}
        for node in self._ordered([found[0] for found in first.values()]):
            here, marking = ways[id(node)]
            place.weight += asked.get(id(node), 0) * ASKED + (here + marking) * self._weight(node)
            if not _UNEVALUATED.isdisjoint(node):
                marking += here
            place.nodes.append((node, here, marking))
            for inner, guarded in self._here(node):
                before, before_marking = ways.get(id(inner), (0, 0))
                more = here + marking
                if guarded:
                    first_time = id(inner) not in asked
                    asked[id(inner)] = asked.get(id(inner), 0) + more
                    more = min(1, more) if first_time else 0
                ways[id(inner)] = before + more, before_marking + marking
        self._listed += len(place.nodes)
        if self._listed > MAX_LISTED:
            raise TooCostly
        self._describe(place)
        return place

    def _describe(self, place: _Place) -> None:
        named: set[str] = set()
        names = []
        for node, ways, marked in place.nodes:
            looks = ways + marked
            if isinstance(pattern := node.get("pattern"), str):
                place.patterns.append((looks, self._pattern(pattern)))
            keyed = node.get("patternProperties")
            for pattern in keyed if isinstance(keyed, dict) else ():
                place.key_patterns.append((looks, self._pattern(pattern)))
            if isinstance(properties := node.get("properties"), dict):
                named.update(properties)
            for keyword in ("prefixItems", "items"):
                if isinstance(items := node.get(keyword), list):
                    place.positions = max(place.positions, len(items))
            place.lengths += looks * len(node.keys() & {"minLength", "maxLength", "format"})
            place.numbers += looks
            place.unique += looks if node.get("uniqueItems") is True else 0
            names += [(inner, ways, 0) for inner in subschemas(node, ("propertyNames",))]
        place.weight += 8 * place.unique
        place.named = frozenset(named)
        if names:
            place.names = self._place(names, 0)

    def _pattern(self, pattern: str) -> PatternCost:
        if pattern not in self._pattern_costs:
            self._pattern_costs[pattern] = PatternCost.of(pattern)
        return self._pattern_costs[pattern]

    def _weight(self, node: dict[str, Any]) -> int:
        """Return the cost of one look of a subschema at a value, without other subschemas and strings."""
        if id(node) not in self._weights:
            weight = 1 + len(node)
            for keyword in node.keys() & _PER_VALUE:
                values = [inner for _, inner, _ in nodes(node[keyword])]
                weight += sum(1 + (len(value) // 128 if isinstance(value, str) else 0) for value in values) // 2
            for keyword in node.keys() & _PER_NAME:
                weight += len(found) // 4 if isinstance(found := node.get(keyword), dict | list) else 0
            # each missing name is a separate violation
            weight += len(names) if isinstance(names := node.get("required"), list) else 0
            self._weights[id(node)] = weight
        return self._weights[id(node)]

    # -- which subschemas apply to the same value ----------------------------------------------------------------------

    def _ordered(self, roots: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return ``roots`` and all subschemas that they apply to the same value, each before the subschemas it applies."""
        done: set[int] = set()
        order: list[dict[str, Any]] = []
        waiting = [(node, False) for node in roots]
        while waiting:
            node, left = waiting.pop()
            if left:
                order.append(node)
            elif id(node) not in done:
                done.add(id(node))
                waiting.append((node, True))
                waiting += [(inner, False) for inner, _ in self._here(node)]
        return order[::-1]

    def _here(self, node: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
        """Return the subschemas that ``node`` applies to the same value, and whether the library caches each result."""
        if id(node) not in self._links:
            links = [(inner, False) for inner in subschemas(node, HERE)]
            links += [
                (target, self._remembered and self._leads_back(node, target)) for target in self._graph.referred(node)
            ]
            self._links[id(node)] = links
            self._listed += len(links)
        return self._links[id(node)]

    def _leads_back(self, node: dict[str, Any], target: dict[str, Any]) -> bool:
        """Return whether every way from the root to ``node`` leads through ``target``; False if finding out takes too long."""
        if id(target) not in self._looping:
            try:
                self._looping[id(target)] = self._reached(target, None) - self._reached(self._graph.root, target)
            except TooCostly:
                self._looping[id(target)] = set()
        return id(node) in self._looping[id(target)]

    def _reached(self, start: dict[str, Any], gate: dict[str, Any] | None) -> set[int]:
        reached: set[int] = set()
        waiting = [] if start is gate else [start]
        while waiting:
            node = waiting.pop()
            if id(node) in reached or node is gate:
                continue
            self._traced += 1
            if self._traced > MAX_TRACED:
                raise TooCostly
            reached.add(id(node))
            waiting += subschemas(node, HERE + INSIDE)
            waiting += self._graph.referred(node)
        return reached


def _string_units(place: _Place, chars: int) -> int:
    return place.lengths * (chars // 64) + sum(ways * cost.units(chars) for ways, cost in place.patterns)
