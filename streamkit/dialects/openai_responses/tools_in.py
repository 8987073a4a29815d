"""Definitions of tools: those of the request, those in namespaces, and those that an item of the input brings.

A namespace is a group; its tools stand side by side here, each with a name of its own (``namespaces.py``). Tools that were
loaded while the conversation went on (``additional_tools``, the output of a tool search) are tools of the request, too: the
model may call them, and elsewhere they can't be defined in any other place.

Source: dialects.md §2.2, §2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Namespace, Tool, WebSearch
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.openai_responses.namespaces import ToolNames
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import QualifiedName

#: Types of the search of the web.
SEARCHES: Final = frozenset(
    {"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"}
)

#: Items that bring tools which the request does not define elsewhere.
LOADING: Final = frozenset({"additional_tools", "tool_search_output"})


class ToolReader:
    """The part of the reader of requests that reads tools."""

    def __init__(self) -> None:
        super().__init__()
        self.names = ToolNames()
        self.loaded: list[Tool] = []  #: that items of the input brought
        self._defined: set[str] = set()  # the names of all tools so far

    def tools(self, fields: Fields) -> list[Tool]:
        """The tools of the request; ``fields`` still has the input, whose items may bring more."""
        for name in _names_outside(fields.peek("tools"), fields.peek("input")):
            self.names.take(name)
        tools = [read for tool in fields.each("tools") for read in self._read(tool)]
        self._defined |= {tool.name for tool in tools}
        return tools

    def load(self, item: Fields) -> None:
        """Add the tools of an item, unless they are there already."""
        for tool in item.each("tools"):
            for read in self._read(tool):
                if read.name not in self._defined:
                    self._defined.add(read.name)
                    self.loaded.append(evolve(read, loaded=True))

    def _read(self, tool: Fields) -> Iterator[Tool]:
        if not _is_group(tool.peek_all()):
            yield self._tool(tool)
            return
        tool.take("type")
        namespace = Namespace(tool.needed("name"), tool.string("description"))
        members = [self._member(member, namespace) for member in tool.each("tools")]
        namespace.extras = tool.rest() or None
        yield from members

    def _member(self, tool: Fields, namespace: Namespace) -> Tool:
        read = self._tool(tool)
        qualified = QualifiedName(namespace.name, read.name)
        return evolve(read, name=self.names.flat(qualified), namespace=namespace, qualified=qualified)

    def _tool(self, tool: Fields) -> Tool:
        kind = tool.needed("type")
        match kind:
            case "function":
                read = Tool(tool.needed("name"), tool.string("description"))
                read.parameters, read.strict = tool.mapping("parameters"), tool.boolean("strict")
            case "custom":
                read = Tool(tool.needed("name"), tool.string("description"), kind="custom")
                read.format = tool.mapping("format")
            case _:
                raw = {"type": kind, **tool.rest()}
                name = raw.get("name")
                read = Tool(name if isinstance(name, str) else kind, kind="server", raw=raw)
                if kind in SEARCHES:
                    read.search = _search(raw)
                return read
        read.extras = tool.rest() or None
        return read


def _search(raw: Mapping[str, Any]) -> WebSearch:
    """A search of the web; its filters stand in an object of their own."""
    options = {name: value for name, value in raw.items() if name != "type"}
    if isinstance(raw.get("filters"), dict):
        options |= options.pop("filters")
    return read_search(options)


def _is_group(tool: Mapping[str, Any]) -> bool:
    """Whether this is a namespace with tools in it; one without any is for its own server only."""
    return tool.get("type") == "namespace" and bool(tool.get("tools"))


def _names_outside(tools: Any, items: Any) -> Iterator[str]:
    """The names of the tools outside of namespaces: of the request's ``tools``, and of those that items of the input bring."""
    brought = [item.get("tools") for item in _objects(items) if str(item.get("type")) in LOADING]
    for tool in (tool for group in (tools, *brought) for tool in _objects(group) if not _is_group(tool)):
        name = tool.get("name") or tool.get("type")
        if isinstance(name, str):
            yield name


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
