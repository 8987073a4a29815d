"""Rewrite JSON schemas for Claude's structured output and strict tools: Claude answers 400 to unsupported keywords.

Objects must be closed; arrays may only have ``minItems`` 0 or 1; strings may only have a known format. ``oneOf`` becomes
``anyOf``, and a list of types becomes one ``anyOf`` schema for each. No keyword may be next to ``$ref``, and no type next to
``enum``. Dropped keywords are appended to the description, where the model can read them, and each is counted with its path.

Source: anthropic 2.12, ``lib/_parse/_transform.py``; platform.claude.com and AWS, "Structured outputs".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.dialects.members.values import DEPTH
from streamkit.errors import BadRequest
from streamkit.text.quoting import STEP_CHARS, shortened

#: String formats that Claude takes.
FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
#: Keywords whose value is a list of schemas. Of several in one schema, only the first in this order is kept.
UNIONS: Final = ("anyOf", "oneOf", "allOf")
#: Keywords that concern one type. If a list of types is split into schemas, each schema gets the keywords of its type.
OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains"),
    "string": ("format", "minLength", "maxLength", "pattern"),
}
#: Keywords that do not restrict a value. They are dropped, and not counted as lost.
NAMES: Final = ("$schema", "$id", "$comment")
#: The deepest nesting of schemas. Each schema inside another adds up to four levels of JSON.
SCHEMAS_DEEP: Final = DEPTH // 4
_PRIMITIVE: Final = (str, int, float, bool, type(None))


@frozen
class ClaudeSchemas:
    """Rewrites schemas. Calls ``lose`` with the path of each dropped keyword, and ``closed`` for each closed object."""

    lose: Callable[[str], None]
    closed: Callable[[], None]

    def write(self, schema: Any, path: str, depth: int = 1) -> Any:
        """Return the schema at ``path`` as Claude takes it. Raises BadRequest for a schema that is nested too deep."""
        if depth > SCHEMAS_DEEP:
            raise BadRequest(path, f"a schema nested deeper than {SCHEMAS_DEEP}")
        if not isinstance(schema, Mapping):
            return schema
        left = {keyword: value for keyword, value in schema.items() if keyword not in NAMES}
        kept: dict[str, Any] = {}

        def inner(value: Any, step: str) -> Any:
            return self.write(value, f"{path}.{shortened(step, STEP_CHARS)}", depth + 1)

        for keyword in ("$defs", "definitions"):
            if isinstance(left.get(keyword), Mapping):
                kept[keyword] = {name: inner(value, f"{keyword}.{name}") for name, value in left.pop(keyword).items()}
        if "$ref" in left:
            kept["$ref"] = left.pop("$ref")
            self._lose(path, left)
            return kept
        kind = _type_of(left)
        union = next((keyword for keyword in UNIONS if isinstance(left.get(keyword), list)), None)
        kept |= _literals(left)
        if kept.keys() & {"enum", "const"}:
            kind = None
        elif union is not None:
            several = [inner(value, f"{union}[{number}]") for number, value in enumerate(left.pop(union))]
            kept["allOf" if union == "allOf" else "anyOf"] = several
            if union == "oneOf":
                self._lose(path, [union])
        elif isinstance(kind, list):
            kept["anyOf"] = [inner({"type": each, **_taken(left, OF_TYPE.get(each, ()))}, each) for each in kind]
        elif kind is not None:
            kept["type"] = kind
        kept |= _taken(left, ("description", "title"))
        if kind == "object":
            kept |= self._object(left, path, inner)
        elif kind == "array":
            if isinstance(left.get("items"), Mapping) or left.get("items") is True:  # no list: one schema for all items
                kept["items"] = inner(left.pop("items"), "items")
            kept |= _taken(left, ("minItems",) if left.get("minItems") in (0, 1) else ())
        elif kind == "string" and left.get("format") in FORMATS:
            kept |= _taken(left, ("format",))
        return self._described(kept, left, path)

    def _object(self, left: dict[str, Any], path: str, inner: Callable[[Any, str], Any]) -> dict[str, Any]:
        """Return the keywords of a closed object: its properties, and which are required."""
        named = left.pop("properties", None)
        if not isinstance(named, Mapping):
            named = {}
        properties = {name: inner(value, f"properties.{name}") for name, value in named.items()}
        more = left.pop("additionalProperties", None)
        if more is None:
            self.closed()
        elif more is not False:
            self._lose(path, ["additionalProperties"])
        return {"properties": properties, "additionalProperties": False, **_taken(left, ("required",))}

    def _described(self, kept: dict[str, Any], left: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the schema ``kept``, with the refused keywords in ``left`` written at the end of its description."""
        if left:
            self._lose(path, left)
            refused = ", ".join(f"{keyword}: {_shown(value)}" for keyword, value in left.items())
            before = kept.get("description")
            kept["description"] = f"{before}\n\n{{{refused}}}" if before else f"{{{refused}}}"
        return kept

    def _lose(self, path: str, keywords: Iterable[str]) -> None:
        for keyword in keywords:
            self.lose(f"{path}.{shortened(keyword, STEP_CHARS)}")


def _literals(left: dict[str, Any]) -> dict[str, Any]:
    """Remove ``enum`` and ``const`` from ``left`` and return them, unless they have objects or lists, which Claude refuses."""
    enum = left.get("enum")
    takes_enum = isinstance(enum, list) and enum and all(isinstance(value, _PRIMITIVE) for value in enum)
    literals = {"enum": left.pop("enum")} if takes_enum else {}
    if "const" in left and isinstance(left["const"], _PRIMITIVE):
        literals["const"] = left.pop("const")
    return literals


def _type_of(left: dict[str, Any]) -> Any:
    """Remove the type from ``left`` and return it. Without a type, return the type that the other keywords imply."""
    kind = left.pop("type", None)
    if isinstance(kind, list):
        if odd := [each for each in kind if not isinstance(each, str)]:
            left["type"] = odd
        kind = [each for each in kind if isinstance(each, str)]
        return kind[0] if len(kind) == 1 else kind or None
    if kind is not None or any(isinstance(left.get(keyword), list) for keyword in UNIONS):
        return kind
    return "object" if isinstance(left.get("properties"), Mapping) else "array" if "items" in left else None


def _taken(left: dict[str, Any], keywords: tuple[str, ...]) -> dict[str, Any]:
    """Remove these keywords from ``left`` and return those that have a value."""
    return {keyword: left.pop(keyword) for keyword in keywords if left.get(keyword) is not None}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
