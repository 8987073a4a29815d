"""Members that are joined from pieces. The time is proportional to the pieces: what was joined before is not copied again.

A list or an object is copied once, at its first piece, because other code may also use it; then it grows in place. The pieces
of a text are kept, and joined at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Growing:
    """The growing members of one body. Call ``finish`` before a text among them is read."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}  # lists and objects that were copied, by identity
        self._texts: dict[tuple[int, str], tuple[dict[str, Any], list[str]]] = {}

    def extend(self, place: dict[str, Any], name: str, values: Iterable[Any]) -> None:
        """Append values to a list, which is made if it is missing."""
        before: Any = place.get(name)
        if not self.owns(before):
            before = self._own(place, name, [*(before or ())])
        before.extend(values)

    def owns(self, value: Any) -> bool:
        """Return whether this list or object is a copy that this class made."""
        return id(value) in self._copies

    def inner(self, place: dict[str, Any], name: str) -> dict[str, Any]:
        """Return a copy of the object in this member, which may be changed."""
        before: dict[str, Any] = place[name]
        return before if self.owns(before) else self._own(place, name, dict(before))

    def append(self, place: dict[str, Any], name: str, text: str) -> None:
        """Append a piece to the text in this member."""
        key = id(place), name
        if key not in self._texts:
            self._texts[key] = place, [place[name]]
        self._texts[key][1].append(text)

    def put(self, place: dict[str, Any], name: str, value: Any) -> None:
        """Replace the value of this member, and forget the pieces of its text."""
        self._texts.pop((id(place), name), None)
        place[name] = value

    def finish(self) -> None:
        for (_, name), (place, pieces) in self._texts.items():
            place[name] = "".join(pieces)
        self._texts.clear()

    def _own(self, place: dict[str, Any], name: str, value: Any) -> Any:
        place[name] = self._copies[id(value)] = value
        return value
