"""Check the arguments of a call against the JSON schema that the request has for its tool.

jsonschema-rs, an optional dependency, validates against draft 2020-12 or the draft that ``$schema`` names. This module adds
the limits that a schema from a client needs. **Nothing is fetched**: all references to other documents are rejected. The work
of a check is estimated before it (``schema_cost.py``), since the library can't be stopped. Above ``MAX_UNITS`` and
``UNITS_PER_CHAR`` the verdict is ``unchecked``: don't run such a call. To list violations the library walks every branch again
(a recursive union of four operators, nested eight deep: 16 s), so above ``MAX_EXPLAINED`` they are not listed.

JSON readers disagree on four kinds of text, so a schema can't vouch for them, and they are ``schema_invalid``: a repeated key
in one object, half of a surrogate pair, a number of more digits than the interpreter converts, and a number whose exponent no
decimal number can have.

No defaults are filled in, and no values converted or quoted: violations name what the schema wanted, and where.

Source: JSON Schema 2020-12; design.md §4; limits.md T14.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeAlias, runtime_checkable

from attrs import define, field

from streamkit.errors import UsageError
from streamkit.events import QualifiedName, Verdict
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.text.identifiers import flat_name, portable_name
from streamkit.text.quoting import quoted, shortened
from streamkit.tool_calls.schema_cost import BACKTRACKS, Endless, SchemaCost, SchemaGraph, Trail, nodes, pointer

if TYPE_CHECKING:
    import jsonschema_rs

MAX_PATTERNS: Final = 128  #: maximum number of patterns in all schemas together
PATTERN_BYTES: Final = 2 * 1024 * 1024  #: maximum compiled size of one pattern (the library allows 10 MiB)
MAX_UNITS: Final = 1_000_000  #: maximum number of times that one check may look at a value (25 ns each)
UNITS_PER_CHAR: Final = 4  #: number of further looks that are allowed for each character of the arguments
MAX_EXPLAINED: Final = 8_000  #: looks of a check whose violations are listed (25 µs each: each copies its value)
COPIED_CHARS: Final = 32_768  #: for each so many characters a look counts once more: a violation copies its value
MAX_DIGITS: Final = 4300  #: as ``sys.get_int_max_str_digits``: comparing longer numbers is quadratic
MAX_VIOLATIONS: Final = 5  #: maximum number of violations in a verdict
VIOLATION_CHARS: Final = 200  #: maximum length in characters of a violation, or of another reason that is quoted
REASON_CHARS: Final = 4096  #: of the library's message, in which a reference is searched for

UNKNOWN_TOOL: Final = "unknown_tool"
NAMED: Final = frozenset({"name", "function", "custom"})  #: a tool that the client runs has one of these
#: Reasons in a verdict, where no violation is named.
UNEXPLAINED: Final = "the value does not match the schema (too large or too branched to say where)"
UNCHECKED: Final = "not checked further: budget (the schema applies too often to this value to be checked in time)"
_surrogates: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class BadToolSchema(UsageError):
    """A tool's schema is unusable. ``tool`` is the tool's name, ``path`` the JSON pointer to the fault in the schema."""

    def __init__(self, tool: str, path: str, reason: str) -> None:
        super().__init__(f"the schema of tool {quoted(tool)}, at {path or 'its root'}: {reason}")
        self.tool = tool
        self.path = path
        self.reason = reason


class _Unfit(Exception):
    """Raised for arguments that JSON readers read differently, so that no schema can vouch for them."""


@runtime_checkable
class ReadTool(Protocol):
    """A tool definition that was already decoded: ``conversation.messages.Tool``."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def parameters(self) -> Any: ...
    @property
    def qualified(self) -> QualifiedName | None: ...


@define
class _Tool:
    """One tool. ``schema`` is a copy made by ``json``, so the caller may change the original. None: no schema to match."""

    name: str
    schema: Any
    cost: SchemaCost
    cost_remembered: SchemaCost
    validator: jsonschema_rs.Validator | None = field(default=None)


class ToolSchemas:
    """The schemas of a request's tools, for checking the arguments of finished calls.

    ``tools`` may be ``Request.tools``, or a mapping of names to schemas. It may also be the list of definitions from a
    request of OpenAI (either dialect), Anthropic or Ollama. A definition without a schema accepts any object; examples
    are a custom tool and a tool that the provider runs. If a tool must be renamed for another dialect, the tool is
    found by the new name too. A tool in a namespace is also found by its name without the namespace, unless another
    tool has that name.

    Needs the extra ``schema``. Raises UsageError if the extra is missing or a definition is invalid. Raises
    BadToolSchema if the schemas together exceed ``limits.schema_bytes`` or have more than 128 patterns. Also raises
    BadToolSchema if a schema exceeds ``limits.json_depth``, or if too many of its parts apply to one value, for example
    because a reference leads back to itself. Each schema is compiled when a call of its tool is first checked. The
    method ``compile`` compiles all schemas immediately.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]] | Sequence[ReadTool] | Mapping[str, Any],
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._library = schema_library(OFFERED_INSTEAD)
        #: The definitions given, or empty if a mapping was given.
        self.definitions: Sequence[Any] = () if isinstance(tools, Mapping) else tools
        self._limits = limits
        self._bytes = self._patterns = 0
        self._tools: dict[str, _Tool] = {}
        for name, schema in tools.items() if isinstance(tools, Mapping) else _definitions(tools):
            if name in self._tools:
                raise BadToolSchema(name, "", "another tool has this name")
            self._tools[name] = self._bounded(name, schema)
        for name, tool in list(self._tools.items()):
            self._tools.setdefault(portable_name(name), tool)  # the name that the provider may have received

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def schema(self, name: str) -> Any:
        """Return the schema of a tool; don't change it. Raise KeyError for an unknown tool."""
        return self._tools[name].schema

    def compile(self) -> None:
        """Compile every schema now. Raise BadToolSchema for an invalid schema, or one that refers to another document."""
        for tool in self._tools.values():
            self._compiled(tool)

    def check(self, name: str, text: str) -> Verdict:
        """Return the verdict on argument text that is one JSON object, or empty, which means ``{}``.

        ``complete`` or ``empty`` if the text matches, else ``schema_invalid`` with ``unknown_tool`` or the first violations;
        ``unchecked`` if the check would take too long. Raise ValueError for text that is not JSON, and BadToolSchema for a
        schema that does not compile.
        """
        tool = self._tools.get(name)
        if tool is None:
            return Verdict("schema_invalid", UNKNOWN_TOOL)
        validator = self._compiled(tool)
        empty = not text.strip()
        try:
            value = {} if empty else _value(text)
        except _Unfit as unfit:
            return Verdict("schema_invalid", str(unfit))
        budget = MAX_UNITS + UNITS_PER_CHAR * len(text)
        units = tool.cost.units(value, budget)
        if units > budget and tool.cost_remembered.units(value, budget) > budget:
            return Verdict("unchecked", UNCHECKED)
        if validator.is_valid(value):
            return Verdict("empty" if empty else "complete")
        explained = units * (1 + len(text) // COPIED_CHARS) <= MAX_EXPLAINED
        return Verdict("schema_invalid", _violations(validator, value) if explained else UNEXPLAINED)

    def _bounded(self, name: str, schema: Any) -> _Tool:
        def bad(reason: str, trail: Trail = None) -> BadToolSchema:
            return BadToolSchema(name, pointer(trail)[:VIOLATION_CHARS], reason)

        try:
            text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
            self._bytes += len(text.encode())
        except (TypeError, ValueError, RecursionError) as error:
            raise bad(f"not valid JSON: {str(error)[:VIOLATION_CHARS]}") from None
        if self._bytes > self._limits.schema_bytes:
            raise bad(f"more than {self._limits.schema_bytes:,} bytes in the schemas so far (schema_bytes)")
        document = json.loads(text)
        for trail, node, depth in nodes(document):
            if depth > self._limits.json_depth:
                raise bad(f"nested deeper than {self._limits.json_depth} (json_depth)", trail)
            self._patterns += _patterns(node)
            if self._patterns > MAX_PATTERNS:
                raise bad(f"more than {MAX_PATTERNS} patterns in the schemas so far", trail)
        graph = SchemaGraph(document)
        try:
            graph.check()
        except Endless as error:
            raise bad(str(error)) from None
        return _Tool(name, document, SchemaCost(graph, remembered=False), SchemaCost(graph, remembered=True))

    def _compiled(self, tool: _Tool) -> jsonschema_rs.Validator:
        if tool.validator is None:
            options = self._library.FancyRegexOptions(
                backtrack_limit=BACKTRACKS, size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES
            )
            try:
                tool.validator = self._library.validator_for(
                    tool.schema, retriever=_refuse, pattern_options=options, mask="the value"
                )
            except self._library.ValidationError as error:
                raise BadToolSchema(tool.name, *_located(tool.schema, error)) from None
            except ValueError as error:
                raise BadToolSchema(tool.name, "", _shortened(str(error))) from None
        return tool.validator


Tools: TypeAlias = ToolSchemas | Sequence[Mapping[str, Any]] | Sequence[ReadTool]
"""The tools of a request: definitions from its body, decoded definitions, or existing ``ToolSchemas``."""


def compiled(tools: Tools, limits: Limits) -> ToolSchemas:
    """Return the compiled schemas of a request's tools. Raise the errors of ``ToolSchemas`` and its ``compile``."""
    schemas = tools if isinstance(tools, ToolSchemas) else ToolSchemas(tools, limits=limits)
    schemas.compile()
    return schemas


OFFERED_INSTEAD: Final = (
    "without a check, give the tools as ReadOptions(offered=request.tools), which restores the client's tool names"
)


def schema_library(instead: str) -> Any:
    """Return the module ``jsonschema_rs``. Raise UsageError without the extra, with what to write ``instead``."""
    try:
        return importlib.import_module("jsonschema_rs")
    except ImportError:
        raise UsageError(
            f"checking against schemas needs an extra: pip install 'streamkit-llm[schema]'; {instead}"
        ) from None


def _refuse(_uri: str) -> NoReturn:
    raise ValueError("references to other documents are not allowed")


def _definitions(tools: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and schema of each tool; a tool in a namespace has several names, since a call may use any of them."""
    grouped: dict[str, Any] = {}
    plain: set[str] = set()
    for tool in tools:
        if isinstance(tool, ReadTool):
            # the provider runs a ``server`` tool: the model's calls of it never reach the client
            if tool.kind != "server":
                schema = (tool.parameters if tool.kind == "function" else None) or {}
                plain.add(tool.name)
                yield tool.name, schema
                if tool.qualified is not None:
                    grouped[tool.qualified.name] = {} if tool.qualified.name in grouped else schema
        elif not isinstance(tool, Mapping) or tool.get("type") != "namespace":
            if not (isinstance(tool, Mapping) and "type" in tool and tool.keys().isdisjoint(NAMED)):
                name, schema = definition(tool)
                plain.add(name)
                yield name, schema
            # the provider runs a tool without a name, so no call names the tool
        else:
            members = tool.get("tools")
            for name, schema in map(definition, members if isinstance(members, list) else ()):
                for known in dict.fromkeys((name, flat_name(str(tool.get("name")), name))):
                    # two tools share this name, and a call may mean either
                    grouped[known] = {} if known in grouped else schema
    yield from ((name, schema) for name, schema in grouped.items() if name not in plain)


def definition(tool: Any) -> tuple[str, Any]:
    """Return the name and schema of a tool definition in any dialect's shape."""
    body = tool
    for key in ("function", "custom"):
        if isinstance(tool, Mapping) and isinstance(tool.get(key), Mapping):
            body = tool[key]
    if not isinstance(body, Mapping) or not isinstance(body.get("name"), str):
        raise UsageError(f"not a tool definition: {repr(tool)[:VIOLATION_CHARS]}")
    schemas = [body[key] for key in ("parameters", "input_schema") if body.get(key) is not None]
    return body["name"], schemas[0] if schemas else {}


def _patterns(node: Any) -> int:
    if not isinstance(node, dict):
        return 0
    keyed = node.get("patternProperties")
    return isinstance(node.get("pattern"), str) + (len(keyed) if isinstance(keyed, dict) else 0)


def _located(schema: Any, error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    """Return where a schema is invalid, and why. The library does not report the place of a reference."""
    path = "".join(f"/{step}" for step in error.instance_path)
    reason = error.message
    if not path:
        for trail, node, _ in nodes(schema):
            is_reference = trail is not None and trail[1] in ("$ref", "$dynamicRef")
            if is_reference and isinstance(node, str) and node and node in reason[:REASON_CHARS]:
                return pointer(trail), _shortened(reason)
    too_large = f", or larger than {PATTERN_BYTES:,} bytes when compiled" if reason.endswith('"regex"') else ""
    return path, _shortened(reason) + too_large


# -- values ------------------------------------------------------------------------------------------------------------


def _value(text: str) -> Any:
    """Parse JSON text, keeping numbers exact enough to compare them."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_float, parse_constant=_no_number)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise _Unfit("the value is nested too deep to be checked") from None
    except ValueError as error:
        raise _Unfit("a whole number with more digits than can be checked") from error
    if _surrogates.search(text):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise _Unfit("a string with half of a surrogate pair, which is not valid Unicode") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Unfit(f"the key {_shortened(repr(twice))} is repeated in one object")
    return value


def _float(text: str) -> float | Decimal:
    number = float(text)
    if number not in {float("inf"), float("-inf")}:
        return number
    if len(text) > MAX_DIGITS:
        raise _Unfit("a number with more digits than can be checked")
    try:
        return Decimal(text)  # the library would check an infinite number as null
    except InvalidOperation:
        raise _Unfit("a number too large to be checked") from None


def _no_number(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not valid JSON", constant, 0)


# -- reasons -----------------------------------------------------------------------------------------------------------


def _violations(validator: jsonschema_rs.Validator, value: Any) -> str:
    violations = validator.iter_errors(value)
    reasons = [_violation(error) for error in islice(violations, MAX_VIOLATIONS)]
    more = sum(1 for _ in violations)
    return "; ".join(reasons) + (f"; and {more} more" if more else "")


def _violation(error: jsonschema_rs.ValidationError) -> str:
    path = "".join(f"/{step}" for step in error.instance_path)
    where = f"at {_shortened(path)}: " if path else ""
    return where + _shortened(error.message)


def _shortened(text: str) -> str:
    return shortened(text.partition("\n")[0], VIOLATION_CHARS)
