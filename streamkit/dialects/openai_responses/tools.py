"""Read the definitions of tools: in the request, in namespaces, and in input items.

A namespace is a group of tools; Codex uses namespaces for MCP servers and sub-agents. Its tools become separate tools with
unique names: ``read`` in ``mcp__files`` becomes ``mcp__files__read`` (``flat_name``). If that name is taken, a hash of both
names is appended, so that later requests get the same name without a table.

Tools that were loaded in the conversation (``additional_tools``, the output of a tool search) are also tools of the request.
In other dialects, a tool that the client runs is a function: a tool search, or a row of ``vocabulary/client_tools.py``.

Source: dialects.md §2.2, §2.3; the types of openai 2.x; requests recorded from Codex 0.169.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from streamkit.conversation.messages import Namespace, Tool, WebSearch
from streamkit.dialects.members.fields import Fields, is_deferred, server_tool
from streamkit.dialects.members.values import objects_in
from streamkit.dialects.streams.client_calls import EXECUTION
from streamkit.dialects.vocabulary.client_tools import RESPONSES, SEARCHED
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import QualifiedName
from streamkit.text.identifiers import flat_name, hashed

SEARCHES: Final = frozenset(
    {"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"}
)
FINDER: Final = "tool_search"  #: the type and name of the search of tools
#: Input items that define tools, perhaps tools that the request defines nowhere else.
LOADING: Final = frozenset({"additional_tools", "tool_search_output"})

#: Tools of the provider whose calls look like calls of custom tools: xAI's search of X calls ``x_keyword_search``.
CALLED_AS_CUSTOM: Final = frozenset({"x_search"})


def custom_names(tools: Any) -> frozenset[str] | None:
    """Return the names of the client's custom tools if the provider, too, may make calls of custom tools; otherwise None."""
    found = objects_in(tools)
    if not any(str(tool.get("type")) in CALLED_AS_CUSTOM for tool in found):
        return None
    found += [member for tool in found for member in objects_in(tool.get("tools"))]
    return frozenset(str(tool.get("name")) for tool in found if tool.get("type") == "custom")


@define
class ToolNames:
    """The names of the tools of one request. ``take`` must be called first for all tools outside namespaces."""

    _flat: dict[QualifiedName, str] = field(factory=dict)
    _taken: set[str] = field(factory=set)
    _called: dict[str, list[str]] = field(factory=dict)  #: flat names by the tool's name in its namespace
    _within: dict[str, list[str]] = field(factory=dict)  #: flat names by namespace

    def take(self, name: str) -> None:
        self._taken.add(name)

    def flat(self, qualified: QualifiedName) -> str:
        """Return the flat name of a tool in a namespace, which may be defined or only called."""
        known = self._flat.get(qualified)
        if known is None:
            known = flat_name(qualified.namespace, qualified.name)
            if known in self._taken:
                known = f"{known}_{hashed(f'{qualified.namespace} {qualified.name}', 8)}"
            self._taken.add(known)
            self._flat[qualified] = known
            self._called.setdefault(qualified.name, []).append(known)
            self._within.setdefault(qualified.namespace, []).append(known)
        return known

    def chosen(self, namespace: str | None, name: str) -> str:
        """Return the name of the tool that a choice means. Without a namespace: a tool outside, or the only tool so named."""
        if namespace is not None:
            return self.flat(QualifiedName(namespace, name))
        found = self._called.get(name, ())
        return found[0] if len(found) == 1 and name not in self._taken else name

    def within(self, namespace: str) -> Sequence[str]:
        """Return the names of the tools in a namespace. If it has none, return the namespace's own name, which no tool has."""
        return self._within.get(namespace) or (namespace,)


class ToolReader:
    """Reads the tools of one request."""

    def __init__(self, names: ToolNames) -> None:
        self.names = names
        self.loaded: list[Tool] = []  #: tools from input items
        self.customs: frozenset[str] | None = None  #: see ``custom_names``
        self._defined: set[str] = set()  # the names of all tools so far

    def tools(self, fields: Fields) -> list[Tool]:
        """Return the tools of the request. Call this before the input is read, because input items may define more tools."""
        known = [*objects_in(fields.peek("tools")), *_tools_in(fields.peek("input"))]
        self.customs = custom_names(known)
        for name in _names_outside(known):
            self.names.take(name)
        tools = [read for tool in fields.each("tools") for read in self._read(tool)]
        # a tool without a name, such as a shell, has that of its function, which one of the client's functions may have, too
        named = {tool.name for tool in tools if tool.called is None}
        for tool in tools:
            while tool.called is not None and tool.name in named:
                tool.name += "_"
            named.add(tool.name)
        self._defined |= {tool.name for tool in tools}
        return tools

    def load(self, item: Fields) -> list[Tool]:
        """Add those tools of an item that are not yet defined. Return all tools of the item."""
        brought = [read for tool in item.each("tools") for read in self._read(tool)]
        for read in brought:
            if read.name not in self._defined:
                self._defined.add(read.name)
                self.loaded.append(evolve(read, loaded=True))
        return brought

    def _read(self, tool: Fields) -> Iterator[Tool]:
        if not _is_group(tool.peek_all()):
            yield self._tool(tool)
            return
        tool.take("type")
        namespace = Namespace(tool.needed("name"), tool.string("description"))
        members = [self._tool(member) for member in tool.each("tools")]
        namespace.extras = tool.rest() or None
        for read in members:
            qualified = QualifiedName(namespace.name, read.name)
            yield evolve(read, name=self.names.flat(qualified), namespace=namespace, qualified=qualified)

    def _tool(self, tool: Fields) -> Tool:
        kind = tool.needed("type")
        match kind:
            case "function":
                read = Tool(tool.needed("name"), tool.string("description"))
                read.parameters, read.strict = tool.mapping("parameters"), tool.boolean("strict")
                read.deferred = is_deferred(tool)
            case "custom":
                read = Tool(tool.needed("name"), tool.string("description"), kind="custom")
                read.format = tool.mapping("format")
                read.deferred = is_deferred(tool)
            case "tool_search" if tool.peek(EXECUTION) == "client":
                raw = {"type": kind, **tool.peek_all()}
                read = Tool(kind, tool.string("description"), tool.mapping("parameters"), raw=raw, called=SEARCHED)
                tool.rest()
                return read
            case _ if kind in RESPONSES and not _is_hosted(tool.peek("environment")):
                return RESPONSES[kind].tool({"type": kind, **tool.rest()})
            case _:
                read = server_tool(kind, tool)
                read.finds_tools = kind == FINDER
                if kind in SEARCHES:
                    read.search = _search(read.raw or {})
                return read
        read.extras = tool.rest() or None
        return read


def _search(raw: Mapping[str, Any]) -> WebSearch:
    """Read a web search tool; its filters are in a nested object."""
    options = {name: value for name, value in raw.items() if name != "type"}
    if isinstance(raw.get("filters"), dict):
        options |= options.pop("filters")
    return read_search(options)


def function_of(kind: str) -> str:
    """Return the name of the tool that a choice means by its type."""
    kind = "computer" if kind == "computer_use" else kind
    return RESPONSES[kind].name if kind in RESPONSES else kind


def _is_hosted(environment: Any) -> bool:
    """Return whether the provider runs a shell, in a container."""
    return isinstance(environment, Mapping) and environment.get("type") != "local"


def _is_group(tool: Mapping[str, Any]) -> bool:
    """Return whether this is a namespace that contains tools. A namespace without tools is a tool of the server."""
    return tool.get("type") == "namespace" and bool(tool.get("tools"))


def _tools_in(items: Any) -> list[dict[str, Any]]:
    """Return the definitions of tools in input items."""
    groups = [item.get("tools") for item in objects_in(items) if str(item.get("type")) in LOADING]
    return [tool for group in groups for tool in objects_in(group)]


def _names_outside(tools: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of all tools that are in no namespace."""
    for tool in tools:
        name = tool.get("name") or tool.get("type")
        if isinstance(name, str) and not _is_group(tool):
            yield name
