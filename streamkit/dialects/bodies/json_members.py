"""Small helpers for bodies as JSON values: objects without what is not said, contents that are one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: What stands between texts that become one, unless they are pieces of what a model wrote.
BLANK_LINE: Final = "\n\n"
#: The members of a text that has nothing beside it.
PLAIN_TEXT: Final = frozenset({"type", "text"})


def add_missing(body: dict[str, Any], extras: Mapping[str, Any] | None) -> dict[str, Any]:
    """``body`` with the members that it lacks, those of nested objects included."""
    for name, value in (extras or {}).items():
        written = body.get(name)
        if isinstance(written, dict) and isinstance(value, Mapping):
            add_missing(written, value)
        elif written is None:
            body[name] = value
    return body


def without_none(**members: Any) -> dict[str, Any]:
    """An object of the members that are said: None is absent."""
    return {name: value for name, value in members.items() if value is not None}


def members_of(value: object, names: Mapping[str, str]) -> dict[str, Any]:
    """What a value says under our ``names``, as an object by the dialect's."""
    said = {theirs: getattr(value, ours) for ours, theirs in names.items()}
    return {name: each for name, each in said.items() if each is not None and each != ()}


def plain_or_list(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A content as text where it is one plain text, or nothing; else as the list of its parts."""
    if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
        return str(content[0]["text"])
    return content or ""
