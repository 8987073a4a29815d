"""The places in documents that a text cites, in the members of each dialect.

Source: dialects.md §3.1, §6.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from streamkit.conversation.messages import DocumentPlace

#: The unit of a place, and the members with the document's number, the start and the end.
DocumentForm: TypeAlias = tuple[Literal["char", "page", "block", "search"], str, str, str]


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
