"""Documents that a text may cite, and the cited places in them, in the members of each dialect.

Cohere has no places, but a citation names the id of a document: so an id can contain the place, as ``char:0:120:560``.

Source: dialects.md §3.1, §6.1, §6.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import define

from streamkit.conversation.messages import CacheMark, DocumentPlace

#: The unit of a place, and the members with the document's number, the start and the end.
DocumentForm: TypeAlias = tuple[Literal["char", "page", "block", "search"], str, str, str]
PLACE_ID: Final = re.compile(r"(char|page|block|search):(\d{1,9}):(\d{1,9}):(\d{1,9})", re.ASCII)


@define
class Document:
    """A document or a search result with the texts of its blocks. ``cited``: None if the request does not say."""

    kind: Literal["char", "block", "search"]
    texts: list[str]
    title: str | None = None
    source: str | None = None
    context: str | None = None
    cited: bool | None = None
    cache: CacheMark | None = None

    def members(self) -> dict[str, Any]:
        """Return the members that blocks of all dialects have in common: of a search result also its title and source."""
        members: dict[str, Any] = {}
        if self.kind == "search":
            source = self.source or self.title or "document"
            members = {"title": self.title or source, "source": source}
        if self.context is not None:
            members["context"] = self.context
        if self.cited is not None:
            members["citations"] = {"enabled": self.cited}
        return members


def read_place(form: DocumentForm, raw: Mapping[str, Any], source: Any = None) -> DocumentPlace | None:
    """Return the place in these members; None if they name no document."""
    kind, *names = form
    index, start, end = (value if type(value := raw.get(name)) is int else None for name in names)
    if index is None:
        return None
    return DocumentPlace(kind, index, start, end, source if isinstance(source, str) else None)


def write_place(forms: Mapping[str, DocumentForm], place: DocumentPlace) -> tuple[str, dict[str, Any]]:
    """Return a cited place in one of a dialect's forms: the form's name, and the members that say where the place is."""
    name, (_, index, start, end) = next((name, form) for name, form in forms.items() if form[0] == place.kind)
    return name, {index: place.index, start: place.start or 0, end: place.end or 0}


def place_id(place: DocumentPlace) -> str:
    """Return the id of a document that is the text at a place."""
    return f"{place.kind}:{place.index}:{place.start or 0}:{place.end or 0}"


def place_of_id(text: str) -> DocumentPlace | None:
    """Return the place that ``place_id`` wrote as an id; None for any other id."""
    found = PLACE_ID.fullmatch(text)
    if found is None:
        return None
    kind, index, start, end = found.groups()
    return DocumentPlace(cast("Any", kind), int(index), int(start), int(end))
