"""Schemas: read the OpenAPI subset of ``parameters`` and ``responseSchema``, and reduce JSON schemas to what Gemini accepts.

OpenAPI writes types in capitals, uses ``nullable`` instead of the type ``null``, and its 64-bit integers may be text.
Otherwise both are the same, so a plain JSON schema is not changed.

Source: dialects.md §5.3, §7.3; google-genai's ``types.Schema``; ``wire.py`` for the keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from streamkit.conversation.checks import MANY, NAMED, ONE
from streamkit.dialects.gemini.wire import TOOLS, camel_case
from streamkit.dialects.members.fields import shown
from streamkit.dialects.members.values import DEPTH
from streamkit.errors import BadRequest

Path: TypeAlias = tuple[str | int, ...]  # the path steps to a schema, for messages
#: By the keyword of Google's OpenAPI subset: the keyword of JSON schema with the same meaning.
KEYWORDS: Final[Mapping[str, str]] = {"defs": "$defs", "ref": "$ref"}
#: Keywords whose value is a 64-bit integer, which protobuf's JSON may write as a string.
COUNTS: Final = frozenset({"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"})
NO_TYPE: Final = "TYPE_UNSPECIFIED"


def json_schema(schema: Any) -> Any:
    """Return a schema of the OpenAPI subset as JSON schema; any other value unchanged."""
    if not isinstance(schema, Mapping):
        return schema
    read: dict[str, Any] = {}
    for name, value in schema.items():
        keyword = camel_case(name)
        keyword = KEYWORDS.get(keyword, keyword)
        if keyword == "type" and isinstance(value, str):
            if value != NO_TYPE:
                read[keyword] = value.lower()
        elif keyword == "$ref" and isinstance(value, str):
            read[keyword] = value.replace("#/defs/", "#/$defs/", 1)
        elif keyword == "example":
            read["examples"] = [value]
        elif keyword in COUNTS and isinstance(value, str) and value.isdecimal():
            read[keyword] = int(value)
        elif keyword != "nullable":
            read[keyword] = _inner(keyword, value, (), lambda inner, _path: json_schema(inner))
    return _nullable(read) if schema.get("nullable") is True else read


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _inner(keyword: str, value: Any, path: Path, read: Callable[[Any, Path], Any]) -> Any:
    """Return the value of a keyword with ``read`` applied to each schema in it. ``path`` is the place of the value."""
    if keyword in NAMED and isinstance(value, Mapping):
        return {name: read(inner, (*path, name)) for name, inner in value.items()}
    if keyword in MANY and isinstance(value, list):
        return [read(inner, (*path, number)) for number, inner in enumerate(value)]
    return read(value, path) if keyword in ONE else value


def cut_schema(schema: Any, path: Path, lose: Callable[[str], None], depth: int = 1) -> Any:
    """Return a JSON schema with only the keywords that Gemini accepts. ``lose`` gets the path of each other keyword.

    Raises BadRequest if the schema is nested too deeply.
    """
    if depth > DEPTH:
        raise BadRequest(shown(path), f"the schema is nested deeper than {DEPTH} levels")
    if not isinstance(schema, Mapping):
        return schema

    def cut(inner: Any, where: Path) -> Any:
        return cut_schema(inner, where, lose, depth + 1)

    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        where = (*path, keyword)
        if keyword == "const" and isinstance(value, str | int | float) and not isinstance(value, bool):
            kept["enum"] = [value]
        elif keyword == "definitions":  # an older name
            kept["$defs"] = _inner("$defs", value, where, cut)
        elif keyword not in (TOOLS.keywords or ()) or ("$ref" in schema and keyword[:1] != "$"):
            lose(shown(where))  # next to a reference, no other keyword is allowed
        elif keyword == "$ref" and isinstance(value, str):
            kept[keyword] = value.replace("#/definitions/", "#/$defs/", 1)
        else:
            kept[keyword] = _inner(keyword, value, where, cut)
    return kept
