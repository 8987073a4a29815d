"""Members that are put together of pieces, in work that is proportional to the pieces: nothing is copied once a piece.

A list or an object is copied when its first piece comes, since it may belong to somebody else, and grows in its place from
then on. The pieces of a text are kept and joined at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Growing:
    """The members of one body that grow. Call ``finish`` before anybody reads the texts among them."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}  # lists and objects that are our own, by identity
        self._texts: dict[tuple[int, str], tuple[dict[str, Any], list[str]]] = {}

    def extend(self, place: dict[str, Any], name: str, values: Iterable[Any]) -> None:
        """Put values behind those of a list, which is made if there is none."""
        before: Any = place.get(name)
        if not self.owns(before):
            before = self._own(place, name, [*(before or ())])
        before.extend(values)

    def owns(self, value: Any) -> bool:
        """Whether a list or an object was copied before."""
        return id(value) in self._copies

    def inner(self, place: dict[str, Any], name: str) -> dict[str, Any]:
        """The object there, to be changed."""
        before: dict[str, Any] = place[name]
        return before if self.owns(before) else self._own(place, name, dict(before))

    def append(self, place: dict[str, Any], name: str, text: str) -> None:
        """Put a piece behind a text that is there."""
        key = id(place), name
        if key not in self._texts:
            self._texts[key] = place, [place[name]]
        self._texts[key][1].append(text)

    def put(self, place: dict[str, Any], name: str, value: Any) -> None:
        """Put another value in the place of whatever is there."""
        self._texts.pop((id(place), name), None)
        place[name] = value

    def finish(self) -> None:
        """Join the pieces of texts."""
        for (_, name), (place, pieces) in self._texts.items():
            place[name] = "".join(pieces)
        self._texts.clear()

    def _own(self, place: dict[str, Any], name: str, value: Any) -> Any:
        place[name] = self._copies[id(value)] = value
        return value
