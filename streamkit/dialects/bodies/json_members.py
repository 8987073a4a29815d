"""Small helpers for bodies as JSON values: drop absent members, merge objects, simplify contents to one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BLANK_LINE: Final = "\n\n"  #: The separator between joined texts, unless they are fragments of one text.
PLAIN_TEXT: Final = frozenset({"type", "text"})  #: the members of a text part that has nothing but its text


def add_missing(body: dict[str, Any], extras: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add to ``body`` the members of ``extras`` that ``body`` lacks, also inside nested objects. Return ``body``."""
    for name, value in (extras or {}).items():
        written = body.get(name)
        if isinstance(written, dict) and isinstance(value, Mapping):
            add_missing(written, value)
        elif written is None:
            body[name] = value
    return body


def without_none(**members: Any) -> dict[str, Any]:
    """Return an object of the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def members_of(value: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with attributes of ``value``: ``names`` maps an attribute to its member. None and () are left out."""
    said = {theirs: getattr(value, ours) for ours, theirs in names.items()}
    return {name: each for name, each in said.items() if each is not None and each != ()}


def plain_or_list(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return content as a string if it is empty or one text without other members; otherwise as the list of its parts."""
    if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
        return str(content[0]["text"])
    return content or ""
