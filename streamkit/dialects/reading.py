"""Reading request bodies: each member is taken once, by type, and what nobody took is the dialect's own.

A request comes from a program, and a program can be told: a member of the wrong type is a ``BadRequest`` with the path to it,
never a guess. Members that are not known are kept, in ``rest``, so that nothing is lost within the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import orjson

from streamkit.errors import BadRequest
from streamkit.tool_calls.value_text import value_text

T = TypeVar("T")
#: A number that does not survive being parsed: more digits than a double has, or an exponent.
_LONG_NUMBER: Final = re.compile(rb"\d{16}|\d\.?\d*[eE]")
_NAMES: Final = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class Body:
    """The JSON text of a request or response, for values whose own text counts."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._exact: bool | None = None

    def text_of(self, value: Any, path: tuple[str | int, ...]) -> str:
        """The JSON text of the value at ``path``: its own where writing it again could change a number."""
        if self._exact is None:
            self._exact = _LONG_NUMBER.search(self.text) is not None
        return value_text(self.text, *path) if self._exact else orjson.dumps(value).decode()


class Fields:
    """The members of one JSON object, and where it stands. Null is absent."""

    def __init__(self, members: Mapping[str, Any], path: tuple[str | int, ...], body: Body) -> None:
        self._members = dict(members)
        self.path = path
        self.body = body

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    def at(self, name: str) -> str:
        """The path to a member, for messages: ``messages[3].content``."""
        return shown((*self.path, name))

    def take(self, name: str) -> Any:
        """Any value."""
        return self._members.pop(name, None)

    def string(self, name: str) -> str | None:
        return self._typed(name, str)

    def needed(self, name: str) -> str:
        """A string that must be there."""
        value = self.string(name)
        if value is None:
            raise BadRequest(self.at(name), "text is needed, and there is none")
        return value

    def integer(self, name: str) -> int | None:
        value = self.number(name)
        if value is None or not float(value).is_integer():
            if value is None:
                return None
            raise BadRequest(self.at(name), f"a whole number is needed, not {value}")
        return int(value)

    def number(self, name: str) -> float | None:
        value = self.take(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, value, float)

    def boolean(self, name: str) -> bool | None:
        return self._typed(name, bool)

    def listed(self, name: str) -> list[Any]:
        return self._typed(name, list) or []

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object as it is."""
        return self._typed(name, dict)

    def fields(self, name: str) -> Fields | None:
        """An object, to be read member by member."""
        value = self.mapping(name)
        return None if value is None else Fields(value, (*self.path, name), self.body)

    def each(self, name: str) -> Iterator[Fields]:
        """The objects of a list."""
        for number, value in enumerate(self.listed(name)):
            if not isinstance(value, dict):
                raise BadRequest(f"{self.at(name)}[{number}]", f"an object is needed, not {kind_of(value)}")
            yield Fields(value, (*self.path, name, number), self.body)

    def text_of(self, name: str) -> str:
        """The JSON text of a member."""
        return self.body.text_of(self.take(name), (*self.path, name))

    def rest(self) -> dict[str, Any]:
        """What nobody took."""
        rest = {name: value for name, value in self._members.items() if value is not None}
        self._members.clear()
        return rest

    def wrong(self, reason: str, name: str | None = None) -> BadRequest:
        """The error for a member, or for the object, whose value can't be."""
        return BadRequest(shown(self.path) if name is None else self.at(name), reason)

    def _typed(self, name: str, kind: type[T]) -> T | None:
        value = self.take(name)
        if value is None or type(value) is kind:
            return value
        raise self._wrong(name, value, kind)

    def _wrong(self, name: str, value: Any, kind: type) -> BadRequest:
        return BadRequest(self.at(name), f"{_NAMES[kind]} is needed, not {kind_of(value)}")


def fields_of(body: bytes) -> Fields:
    """The members of a whole body. Raises BadRequest for what is no JSON object."""
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest("", f"the body is no JSON: {error}") from error
    if not isinstance(members, dict):
        raise BadRequest("", f"the body is {kind_of(members)}, and an object is needed")
    return Fields(members, (), Body(body))


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    return "null" if value is None else _NAMES[type(value)]


def shown(path: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
