"""The tools of a request as calls in a text need them: which names there are, and of what type each parameter is.

A parameter between tags is letters. What JSON it stands for is for the tool's schema to say: of type string it is that text,
of another type the text is its JSON, where it is JSON of that type; else it is a string, so that nothing is lost and the
verdict of ``check_json`` with schemas says so. Without a schema every value is a string.

Source: JSON Schema 2020-12 (validation) §6.1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Tool
from streamkit.text.identifiers import portable_name
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.schema import Tools, ToolSchemas, definition

#: A name of a tool, where it is not known which there are.
_NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,127}", re.ASCII)
STRING: Final = frozenset({"string"})
#: The roots that ``JSONScanner`` tells apart, by the schema's types.
_ROOTS: Final = {"object": "object", "array": "array", "number": "number", "integer": "number"}
_FREE_TEXT: Final = {"properties": {"input": {"type": "string"}}}


class OfferedTools:
    """The tools of a request. Where they are not known, any name may be one."""

    def __init__(self, tools: Tools | None) -> None:
        self._schemas: dict[str, Any] | ToolSchemas | None = None
        if isinstance(tools, ToolSchemas):
            self._schemas = tools
        elif tools is not None:
            self._schemas = {}
            for tool in tools:
                if isinstance(tool, Tool) and tool.kind == "server":
                    continue  # its provider runs it
                name, schema = (tool.name, tool.parameters) if isinstance(tool, Tool) else definition(tool)
                if isinstance(tool, Tool) and tool.kind == "custom":
                    schema = _FREE_TEXT
                self._schemas[name] = schema
                self._schemas.setdefault(portable_name(name), schema)  # as an upstream may have been told

    def has(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None if self._schemas is None else name in self._schemas

    def types(self, name: str, parameter: str) -> frozenset[str]:
        """The JSON types that a parameter may have; of an unknown one ``string``."""
        if self._schemas is None:
            return STRING
        schema = self._schemas.schema(name) if isinstance(self._schemas, ToolSchemas) else self._schemas[name]
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        found = _types(properties.get(parameter)) if isinstance(properties, Mapping) else frozenset()
        return found or STRING


def _types(schema: Any, depth: int = 4) -> frozenset[str]:
    """What a schema says of types: its own word, or those of its alternatives."""
    if not isinstance(schema, Mapping) or not depth:
        return frozenset()
    said = schema.get("type")
    if isinstance(said, str):
        return frozenset({said})
    if isinstance(said, list):
        return frozenset(one for one in said if isinstance(one, str))
    found: set[str] = set()
    for key in ("anyOf", "oneOf", "allOf"):
        several = schema.get(key)
        for one in several if isinstance(several, list) else ():
            found |= _types(one, depth - 1)
    return frozenset(found)


def json_of(text: str, types: frozenset[str], depth: int) -> str:
    """The JSON that a parameter's text stands for. A JSON value of its type keeps its spelling."""
    value = text.strip()
    if "boolean" in types and value.lower() in {"true", "false"}:
        return value.lower()
    if "null" in types and value.lower() in {"null", "none"}:
        return "null"
    roots = {_ROOTS[one] for one in types if one in _ROOTS}
    return value if "string" not in types and _root(value, depth) in roots else quoted(text)


def json_or_text(text: str, depth: int) -> str:
    """The text itself if it is JSON, as it stands there; else a string."""
    value = text.strip()
    return value if _root(value, depth) is not None else quoted(text)


def _root(value: str, depth: int) -> str | None:
    """What kind of JSON value a text is; None for none."""
    scanner = JSONScanner(depth=depth)
    scanner.feed(value)
    return scanner.root if value and scanner.finish() == "complete" else None


def quoted(text: str) -> str:
    """A text as a JSON string, with its letters as they are."""
    return json.dumps(text, ensure_ascii=False)
