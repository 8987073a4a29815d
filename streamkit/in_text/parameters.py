"""The arguments of a call in text: where a JSON value ends, and how the text of a parameter becomes JSON.

``JSONValue`` only scans brackets and strings; ``check_json`` validates the value later. A character that JSON never has
outside strings is a fault, since an unclosed value would otherwise take all text after it.

A parameter between tags is plain text. If the tool's schema has the type string, or no type, the text becomes a JSON string.
For another type, the text is used unchanged if it is JSON of that type. Otherwise it becomes a string, so that nothing is
lost, and ``check_json`` with schemas reports the wrong type.

Source: JSON Schema 2020-12 (validation) §6.1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Tool
from streamkit.text.identifiers import portable_name
from streamkit.tool_calls.json_scanner import JSONScanner, runs
from streamkit.tool_calls.schema import Tools, ToolSchemas, definition

_outside: Final = runs(r"[\s:,\w.+-]*")
_inside: Final = runs(r'[^"\\]*')
_scalar: Final = runs(r"[\w.+-]*")


class JSONValue:
    """Finds the end of one value, which begins with the first character fed."""

    __slots__ = ("_depth", "_escaped", "_in_string", "done", "faulty", "kind")

    def __init__(self) -> None:
        self.done = False
        self.faulty = False
        self.kind = ""  #: ``object``, ``array``, ``string`` or ``scalar``; empty before the first character
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> int:
        """Return how many characters belong to the value. If not all do, the value is ``done`` or ``faulty`` there."""
        at, size = 0, len(text)
        if not self.kind and text:
            self.kind = {"{": "object", "[": "array", '"': "string"}.get(text[0], "scalar")
            self.faulty = self.kind == "scalar" and not _scalar(text, 0).end()
        while at < size and not self.done and not self.faulty:
            if self._in_string:
                at = self._string(text, at)
            elif self.kind == "scalar":
                end = _scalar(text, at).end()
                at, self.done = end, end < size
            else:
                at = self._structure(text, at)
        return at

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        at = _inside(text, at).end()
        if at == len(text):
            return at
        if text[at] == '"':
            self._in_string = False
            self.done = not self._depth
        else:
            self._escaped = True
        return at + 1

    def _structure(self, text: str, at: int) -> int:
        at = _outside(text, at).end() if self._depth else at
        if at == len(text):
            return at
        letter = text[at]
        if letter == '"':
            self._in_string = True
        elif letter in "{[":
            self._depth += 1
        elif letter in "}]":
            self._depth -= 1
            self.done = not self._depth
        else:
            self.faulty = True
            return at
        return at + 1


_NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,127}", re.ASCII)  #: plausible, if the request's tools are not known
STRING: Final = frozenset({"string"})
#: The type of root that ``JSONScanner`` reports for each schema type.
_ROOTS: Final = {"object": "object", "array": "array", "number": "number", "integer": "number"}
_FREE_TEXT: Final = {"properties": {"input": {"type": "string"}}}  #: for a custom tool


class OfferedTools:
    """The tools of a request. If they are not known, any plausible name is accepted."""

    def __init__(self, tools: Tools | None) -> None:
        self._schemas: dict[str, Any] | ToolSchemas | None = None
        if isinstance(tools, ToolSchemas):
            self._schemas = tools
        elif tools is not None:
            self._schemas = {}
            for tool in tools:
                if isinstance(tool, Tool) and tool.kind == "server":
                    continue  # the provider runs this tool
                name, schema = (tool.name, tool.parameters) if isinstance(tool, Tool) else definition(tool)
                if isinstance(tool, Tool) and tool.kind == "custom":
                    schema = _FREE_TEXT
                self._schemas[name] = schema
                self._schemas.setdefault(portable_name(name), schema)  # the name that the provider may have received

    def has(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None if self._schemas is None else name in self._schemas

    def types(self, name: str, parameter: str) -> frozenset[str]:
        """Return the JSON types that a parameter may have; ``string`` for an unknown parameter."""
        if self._schemas is None:
            return STRING
        schema = self._schemas.schema(name) if isinstance(self._schemas, ToolSchemas) else self._schemas[name]
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        found = _types(properties.get(parameter)) if isinstance(properties, Mapping) else frozenset()
        return found or STRING


def _types(schema: Any, depth: int = 4) -> frozenset[str]:
    if not isinstance(schema, Mapping) or not depth:
        return frozenset()
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(one for one in declared if isinstance(one, str))
    found: set[str] = set()
    for key in ("anyOf", "oneOf", "allOf"):
        several = schema.get(key)
        for one in several if isinstance(several, list) else ():
            found |= _types(one, depth - 1)
    return frozenset(found)


def json_of(text: str, types: frozenset[str], depth: int) -> str:
    """Return the JSON for a parameter's text. A JSON value of the right type keeps its spelling."""
    value = text.strip()
    if "boolean" in types and value.lower() in {"true", "false"}:
        return value.lower()
    if "null" in types and value.lower() in {"null", "none"}:
        return "null"
    roots = {_ROOTS[one] for one in types if one in _ROOTS}
    return value if "string" not in types and _root(value, depth) in roots else quoted(text)


def json_or_text(text: str, depth: int) -> str:
    """Return the text unchanged if it is JSON, else as a JSON string."""
    value = text.strip()
    return value if _root(value, depth) is not None else quoted(text)


def _root(value: str, depth: int) -> str | None:
    scanner = JSONScanner(depth=depth)
    scanner.feed(value)
    return scanner.root if value and scanner.finish() == "complete" else None


def quoted(text: str) -> str:
    """Return a text as a JSON string, without escaping non-ASCII characters."""
    return json.dumps(text, ensure_ascii=False)
