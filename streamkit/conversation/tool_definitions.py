"""Check a request's tool definitions before it is sent, and report every fault with its path.

A provider rejects the whole request for one bad definition, often without naming the tool, and some drop a keyword silently.
The rules of a dialect are data (``ToolRules``). The provider rejects an ``error``. It accepts a ``note``, which is probably a
mistake or does not reach the model. Only the shape of schemas is checked; ``tool_calls/schema.py`` compiles them. ``$ref`` is
not followed. Tools that the provider runs are skipped.

Source: dialects.md §1.3, §3.2, §4.1, §5.3, §6.1, §7.3; seeds.md S3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, frozen

from streamkit.conversation.messages import Tool
from streamkit.errors import BadRequest
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.text.identifiers import PORTABLE_NAMES
from streamkit.text.quoting import STEP_CHARS, quoted, shortened, steps

Keywords: TypeAlias = frozenset[str]
Path: TypeAlias = tuple[str | int, ...]
MAX_SUBSCHEMAS: Final = 100_000  #: maximum number in one request; ``schema_bytes`` holds so many at ten bytes each
REPAIRED: Final = frozenset({"name_unfit", "properties_missing"})  #: rules that writing a request repairs
MAX_LISTED: Final = 5  #: number of findings that an error message lists; the others are counted

TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
#: Keywords that hold one subschema.
ONE: Final = (
    "items", "additionalProperties", "unevaluatedProperties", "propertyNames", "additionalItems", "unevaluatedItems",
    "contains", "not", "if", "then", "else",
)  # fmt: skip
MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")  #: keywords that hold a list of subschemas
#: Keywords that hold a mapping of names to subschemas.
NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
#: The required type of these keywords' values.
_SHAPES: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(NAMED, (Mapping, "an object of schemas")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), (list, "a list of schemas")),
}
#: Keywords whose subschemas apply to the same value as the schema around them.
HERE: Final = frozenset({"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"})
#: Keywords that may define a property that is not in ``properties``.
ELSEWHERE: Final = (*HERE, "$ref", "$dynamicRef", "patternProperties")


@frozen(kw_only=True)
class ToolRules:
    """A dialect's rules for tool definitions. The defaults are what all dialects accept."""

    names: re.Pattern[str] = PORTABLE_NAMES  #: pattern for a tool's whole name
    properties: bool = False  #: True if an object schema must have ``properties``, even if empty
    not_at_root: Keywords = frozenset()  #: keywords that are forbidden in the schema itself and allowed in subschemas
    keywords: Keywords | None = None  #: keywords that have an effect; None: all, as far as is known
    root_keywords: Keywords | None = None  #: ``keywords`` for the schema itself, if they differ there
    whole: Keywords = frozenset()  #: keywords whose value is passed on unchecked, whatever is in it


PORTABLE_TOOLS: Final = ToolRules()  #: the rules for a dialect that has none of its own


@frozen
class ToolFinding:
    """A fault in a tool's definition. ``path`` leads to the fault: ``tools[2].parameters.properties.city.type``."""

    rule: str  #: short name, stable
    path: str
    message: str
    severity: Literal["error", "note"] = "error"


def check_tools(
    tools: Sequence[Tool], rules: ToolRules = PORTABLE_TOOLS, *, limits: Limits = DEFAULT_LIMITS
) -> list[ToolFinding]:
    """Return all faults in the tools of a request, in order, by a dialect's rules (``Dialect.tools``).

    Violations of ``REPAIRED`` are repaired when a request is written (repairs ``name_rewritten``, ``properties_added``): drop
    those findings if you rely on the repair.
    """
    checker = _Checker(rules, limits)
    for number, tool in enumerate(tools):
        if tool.raw is None:
            checker.check_name(tool.name, ("tools", number, "name"))
            if tool.kind == "function":
                checker.check_schema(tool.parameters, ("tools", number, "parameters"))
    return checker.findings


def refuse_tools(findings: Sequence[ToolFinding]) -> None:
    """Raise BadRequest if a finding is an error: with the path of the first error, and the messages of the first few."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        others = [f"{finding.path}: {finding.message}" for finding in errors[1:MAX_LISTED]]
        more = [f"and {len(errors) - MAX_LISTED} more"] if len(errors) > MAX_LISTED else []
        raise BadRequest(errors[0].path, "; ".join([errors[0].message, *others, *more]))


@define
class _Checker:
    rules: ToolRules
    limits: Limits
    findings: list[ToolFinding] = field(factory=list)
    _names: dict[str, Path] = field(factory=dict)
    _left: int = MAX_SUBSCHEMAS

    def _error(self, rule: str, path: Path, message: str) -> None:
        self.findings.append(ToolFinding(rule, _shown(path), message))

    def _note(self, rule: str, path: Path, message: str) -> None:
        self.findings.append(ToolFinding(rule, _shown(path), message, "note"))

    def check_name(self, name: str, path: Path) -> None:
        if not name:
            self._error("name_missing", path, "the tool has no name")
            return
        if not self.rules.names.fullmatch(name):
            self._error("name_unfit", path, f"the name {quoted(name)} does not match {self.rules.names.pattern}")
        if name in self._names:
            self._error("name_used_twice", path, f"{_shown(self._names[name])} has the same name, {quoted(name)}")
        self._names.setdefault(name, path)

    # -- the schema itself ---------------------------------------------------------------------------------------------

    def check_schema(self, schema: Any, path: Path) -> None:
        if schema is None or schema == {}:
            self._note("parameters_missing", path, "no parameters are defined: the tool takes none")
            return
        if not isinstance(schema, Mapping):
            self._error("schema_invalid", path, f"the parameters must be an object schema, not {_described(schema)}")
            return
        kind = schema.get("type")
        if kind is None:
            self._error("type_missing", path, 'the type is missing; it must be "object"')
        elif kind != "object":
            self._error("type_not_object", (*path, "type"), f'the type must be "object", not {_described(kind)}')
        if schema.get("properties") is None:
            say = self._error if self.rules.properties else self._note
            say("properties_missing", path, "the schema has no properties")
        elif schema["properties"] and schema.get("required") is None:
            self._note(
                "required_missing", path, "the schema has no required properties: the model may omit all of them"
            )
        for keyword in sorted(self.rules.not_at_root & schema.keys()):
            self._error("keyword_at_root", (*path, keyword), f"{keyword} is not allowed at the root of a schema")
        self._walk(schema, path)

    def _walk(self, schema: Any, path: Path) -> None:
        # the last item: whether the node applies to the same value as the schema around it
        waiting = [(schema, path, 1, False)]
        while waiting:
            node, path, depth, here = waiting.pop()
            if isinstance(node, bool):
                continue
            if not isinstance(node, Mapping):
                self._error("schema_invalid", path, f"a schema must be an object or a boolean, not {_described(node)}")
                continue
            if depth > self.limits.json_depth:
                self._error("schema_too_deep", path, f"nested deeper than {self.limits.json_depth} (json_depth)")
                continue
            if self._left == 0:
                self._error("schema_too_large", path, f"more than {MAX_SUBSCHEMAS:,} subschemas in all tools")
                return
            self._left -= 1
            self._check_node(node, path, root=depth == 1, here=here)
            taken = ((key, inner) for key, inner in _subschemas(node) if key[0] not in self.rules.whole)
            waiting += [(inner, (*path, *key), depth + 1, key[0] in HERE) for key, inner in reversed([*taken])]

    def _check_node(self, node: Mapping[str, Any], path: Path, *, root: bool, here: bool) -> None:
        kinds = None if root else node.get("type")  # the root's type is already checked
        for kind in kinds if isinstance(kinds, list) else [] if kinds is None else [kinds]:
            if kind not in TYPES:
                self._error(
                    "type_unknown",
                    (*path, "type"),
                    f"{_described(kind)} is not a type; write one of {', '.join(TYPES)}",
                )
        for keyword, (shape, needed) in _SHAPES.items():
            if keyword in node and not isinstance(node[keyword], shape):
                self._error(
                    "schema_invalid", (*path, keyword), f"{keyword} must be {needed}, not {_described(node[keyword])}"
                )
        self._check_required(node, path, root=root, here=here)
        allowed = self.rules.root_keywords if root and self.rules.root_keywords is not None else self.rules.keywords
        for keyword in node:
            if allowed is not None and keyword not in allowed:
                word = shortened(keyword, STEP_CHARS)
                self._note("keyword_unsupported", (*path, keyword), f"the dialect does not support {word}")

    def _check_required(self, node: Mapping[str, Any], path: Path, *, root: bool, here: bool) -> None:
        required = node.get("required")
        if required is None:
            return
        if not isinstance(required, list) or not {str}.issuperset(map(type, required)):
            self._error(
                "required_invalid", (*path, "required"), f"required must be a list of names, not {_described(required)}"
            )
            return
        properties = node.get("properties")
        if here or not isinstance(properties, Mapping | None) or not node.keys().isdisjoint(ELSEWHERE):
            return
        for name in required:
            if name not in (properties or {}):
                say = self._error if root else self._note
                say("required_unknown", (*path, "required"), f"{quoted(name)} is required but not in properties")


def _subschemas(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for keyword, value in node.items():
        if keyword in NAMED and isinstance(value, Mapping):
            yield from (((keyword, name), inner) for name, inner in value.items())
        elif keyword in MANY and isinstance(value, list):
            yield from (((keyword, number), inner) for number, inner in enumerate(value))
        elif keyword in ONE:
            yield (keyword,), value


def _described(value: Any) -> str:
    return quoted(value) if isinstance(value, str | bool | int | float | None) else f"a {type(value).__name__}"


def _shown(path: Path) -> str:
    return steps(path).removeprefix(".")
