"""Tools in namespaces, as Codex sends those of its MCP servers and sub-agents, by names that no other tool of a request has.

A name is the namespace's and the tool's (``flat_name``): ``mcp__files`` and ``read`` are ``mcp__files__read``. Where another
tool has that name already, a hash of both stands behind it, so that a call of the history and a later request get the same
name without a table being kept.

Source: dialects.md §2.2, §2.3; the types of openai 2.x; what Codex 0.169 was seen to send.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from streamkit.events import QualifiedName
from streamkit.text.identifiers import flat_name, hashed

_HASH = 8


@define
class ToolNames:
    """The names of the tools of one request. Those outside of namespaces must be told first."""

    _flat: dict[QualifiedName, str] = field(factory=dict)
    _taken: set[str] = field(factory=set)
    _called: dict[str, list[str]] = field(
        factory=dict
    )  #: the flat names of the tools that are called so in a namespace
    _within: dict[str, list[str]] = field(factory=dict)  #: the flat names of the tools of a namespace

    def take(self, name: str) -> None:
        """A tool outside of namespaces is called so."""
        self._taken.add(name)

    def flat(self, qualified: QualifiedName) -> str:
        """The name of a tool in a namespace, defined or only called."""
        known = self._flat.get(qualified)
        if known is None:
            known = flat_name(qualified.namespace, qualified.name)
            if known in self._taken:
                known = f"{known}_{hashed(f'{qualified.namespace} {qualified.name}', _HASH)}"
            self._taken.add(known)
            self._flat[qualified] = known
            self._called.setdefault(qualified.name, []).append(known)
            self._within.setdefault(qualified.namespace, []).append(known)
        return known

    def chosen(self, namespace: str | None, name: str) -> str:
        """The tool that a choice names: without a namespace one outside of them, else the only one that is called so."""
        if namespace is not None:
            return self.flat(QualifiedName(namespace, name))
        found = self._called.get(name, ())
        return found[0] if len(found) == 1 and name not in self._taken else name

    def within(self, namespace: str) -> Sequence[str]:
        """All that a namespace holds; its own name, which is no tool's, where it holds nothing."""
        return self._within.get(namespace) or (namespace,)
