"""Reading request bodies: each member is taken once, by type, and what nobody took is the dialect's own.

A request comes from a program, and a program can be told: a member of the wrong type is a ``BadRequest`` with the path to it,
never a guess. Members that are not known are kept, in ``rest``, so that nothing is lost within the dialect.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Container, Mapping
from typing import Any, Final, TypeAlias, TypeVar, get_origin

import orjson

from streamkit.dialects.members.values import CONTAINERS, DEPTH, is_deep
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import STEP_CHARS, shortened, steps
from streamkit.tool_calls.value_text import ValueTexts, plain_text

T = TypeVar("T")
#: The name that a member is read by.
Spelling: TypeAlias = Callable[[str], str]
#: A number that does not survive being parsed: more digits than a double has, or an exponent.
_LONG_NUMBER: Final = re.compile(rb"\d{16}|\d\.?\d*[eE]")
#: An escape in JSON text, and by name what half of a surrogate pair, without its other half, is written as.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACED: Final = rb"\ufffd"
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
        self._texts: ValueTexts | None = None
        self._exact: bool | None = None

    def text_of(self, value: Any, path: tuple[str | int, ...]) -> str:
        """Return the JSON text of the value at ``path``: its own if writing it again could change a number, escapes plain.

        The rest of the body changes nothing: a history has the same text each time, and the provider's cache knows it.
        """
        if self._exact is None:
            self._exact = _LONG_NUMBER.search(self.text) is not None
        if self._exact:
            if self._texts is None:
                self._texts = ValueTexts(self.text)
            own = self.text[self._texts.span(*path)]
            if _LONG_NUMBER.search(own) is not None:
                return plain_text(own.decode())
        return orjson.dumps(value).decode()


def _of_type(kind: type[T]) -> Callable[[Fields, str], T | None]:
    """The method that takes a member of one type."""
    exact = get_origin(kind) or kind

    def taken(self: Fields, name: str) -> T | None:
        value = self._members.pop(name, None)
        if value is None or type(value) is exact:
            return value
        raise self._wrong(name, value, exact)

    return taken


class Fields:
    """The members of one JSON object, and where it stands. Null is absent.

    Where a wire takes a member by several names, ``spell`` gives the one that it is read by; paths have the one that came.
    """

    def __init__(
        self, members: Mapping[str, Any], path: tuple[str | int, ...], body: Body, spell: Spelling | None = None
    ) -> None:
        self._members = dict(members)
        self._came_as: dict[str, str] = {}
        self._opened: dict[str, Fields] = {}
        self._spell = spell
        self.path = path
        self.body = body
        if spell is not None:
            self._members = {}
            for name, value in members.items():
                known = spell(name)
                if known in self._members:
                    raise BadRequest(
                        shown((*path, name)), f"{shortened(self._came_as[known], STEP_CHARS)} is the same member"
                    )
                self._members[known], self._came_as[known] = value, name

    def spelled(self, spell: Spelling) -> Fields:
        """The same members, and all that are opened of them, by the names that ``spell`` gives."""
        return Fields(self._members, self.path, self.body, spell)

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    @property
    def names(self) -> list[str]:
        """The members that are said and that nobody took: to tell of which kind a union is."""
        return [name for name, value in self._members.items() if value is not None]

    @property
    def place(self) -> str:
        """The path to the object, for messages: ``messages[3]``."""
        return shown(self.path)

    def at(self, name: str) -> str:
        """The path to a member, for messages: ``messages[3].content``."""
        return shown(self._path_of(name))

    def peek(self, name: str) -> Any:
        """A value that stays where it is: to tell of which kind the object is."""
        return self._members.get(name)

    def peek_all(self) -> Mapping[str, Any]:
        """What nobody took, which stays where it is."""
        return dict(self._members)

    def take(self, name: str) -> Any:
        return self._members.pop(name, None)

    #: A text; true or false; an object as it is.
    string, boolean, mapping = _of_type(str), _of_type(bool), _of_type(dict[str, Any])
    _list = _of_type(list[Any])

    def replace(self, name: str, value: Any) -> None:
        """Leave another value there: what is left of one that was read in part."""
        self._members[name] = value

    def needed(self, name: str) -> str:
        """A string that must be there."""
        value = self.string(name)
        if value is None:
            raise self._absent(name, str)
        return value

    def integer(self, name: str) -> int | None:
        value = self.number(name)
        if value is None:
            return None
        if not float(value).is_integer():
            raise BadRequest(self.at(name), f"a whole number is needed, not {value}")
        if not -(2**63) <= value < 2**64:  # read as a float, and can't be written as a whole number
            raise BadRequest(self.at(name), "a whole number of at most 64 bits is needed")
        return int(value)

    def number(self, name: str) -> float | None:
        value = self._members.pop(name, None)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, value, float)

    def listed(self, name: str) -> list[Any]:
        return self._list(name) or []

    def strings(self, name: str) -> tuple[str, ...]:
        """The texts of a list."""
        values = self.listed(name)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise BadRequest(f"{self.at(name)}[{number}]", f"text is needed, not {kind_of(value)}")
        return tuple(values)

    def fields(self, name: str) -> Fields | None:
        """An object, to be read member by member. What nobody takes of it is in the ``rest`` of this one."""
        value = self.mapping(name)
        if value is None:
            return None
        opened = self._opened[name] = Fields(value, self._path_of(name), self.body, self._spell)
        return opened

    def needed_fields(self, name: str) -> Fields:
        """An object that must be there."""
        opened = self.fields(name)
        if opened is None:
            raise self._absent(name, dict)
        return opened

    def fields_of_type(self, name: str, types: Container[str]) -> Fields | None:
        """An object whose ``type``, if it has one, is among ``types``; one of another is the dialect's own and stays there."""
        value = self.peek(name)
        kind = value.get("type") if isinstance(value, dict) else None
        return None if isinstance(kind, str) and kind not in types else self.fields(name)

    def each(self, name: str) -> list[Fields]:
        """The objects of a list."""
        values = self._list(name)
        if not values:
            return []
        opened, path = list[Fields](), self._path_of(name)
        for value in values:
            if type(value) is not dict:
                raise BadRequest(f"{self.at(name)}[{len(opened)}]", f"an object is needed, not {kind_of(value)}")
            opened.append(Fields(value, (*path, len(opened)), self.body, self._spell))
        return opened

    def needed_each(self, name: str) -> list[Fields]:
        """The objects of a list that must be there."""
        if self._members.get(name) is None:
            raise self._absent(name, list)
        return self.each(name)

    def text_or_each(self, name: str) -> str | list[Fields]:
        """Text, or the objects of a list: content in the dialects that have both forms. ``""`` where there is none."""
        return self.each(name) if type(self._members.get(name)) is list else self.string(name) or ""

    def text_of(self, name: str) -> str:
        """The JSON text of a member."""
        return self.body.text_of(self.take(name), self._path_of(name))

    def object_text(self, name: str) -> str | None:
        """The JSON text of an object."""
        value = self.mapping(name)
        return None if value is None else self.body.text_of(value, self._path_of(name))

    def rest(self) -> dict[str, Any]:
        """What nobody took, of this object and of those that were read as ``fields`` of it."""
        rest, self._members = self._members, {}
        if None in rest.values():
            rest = {name: value for name, value in rest.items() if value is not None}
        for name, opened in self._opened.items():
            if left := opened.rest():
                rest[name] = left
        return rest

    def wrong(self, reason: str, name: str | None = None) -> BadRequest:
        """The error for a member, or for the object, whose value can't be."""
        return BadRequest(shown(self.path) if name is None else self.at(name), reason)

    def _path_of(self, name: str) -> tuple[str | int, ...]:
        return (*self.path, self._came_as.get(name, name))

    def _absent(self, name: str, kind: type) -> BadRequest:
        return BadRequest(self.at(name), f"{_NAMES[kind]} is needed, and there is none")

    def _wrong(self, name: str, value: Any, kind: type) -> BadRequest:
        return BadRequest(self.at(name), f"{_NAMES[kind]} is needed, not {kind_of(value)}")


def media_of(uri: str, path: str) -> tuple[str, str]:
    """The media type and the base64 text of a ``data:`` URI (RFC 2397). Raises BadRequest for a bad one."""
    head, comma, data = uri.partition(",")
    media_type, *parameters = head[len("data:") :].split(";")
    if not comma or "base64" not in (parameter.strip().lower() for parameter in parameters):
        raise BadRequest(path, "a data: URI is needed with its content in base64")
    return media_type.strip().lower() or "text/plain", base64_of(data, path)


def base64_of(text: str, path: str) -> str:
    """A text that must be base64, as it is. Raises BadRequest."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        reason = "base64 is needed, without data: in front" if is_data_uri(text) else f"this is no base64: {error}"
        raise BadRequest(path, reason) from error
    return text


def is_data_uri(text: str) -> bool:
    """Whether a URL has its content in itself; the scheme may be in capitals (RFC 3986 §3.1)."""
    return text[:5].lower() == "data:"


def fields_of(body: bytes, report: StreamReport | None = None) -> Fields:
    """The members of a whole body. Raises BadRequest for what is no JSON object.

    Half of a surrogate pair, which a client leaves where it cuts a text inside an emoji, is U+FFFD: a history holds it in
    every later request, and providers refuse the whole body for it.
    """
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        whole = whole_characters(body)
        if whole == body:
            raise BadRequest("", f"the body is no JSON: {error}") from error
        if report is not None:
            report.repair("lone_surrogate")
        return fields_of(whole)
    if not isinstance(members, dict):
        raise BadRequest("", f"the body is {kind_of(members)}, and an object is needed")
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(members)
    return Fields(members, (), Body(body))


def whole_characters(text: bytes) -> bytes:
    """JSON text with U+FFFD, as long an escape, for each escape of half a surrogate pair; the same where there is none."""
    return _ESCAPE.sub(lambda escape: _REPLACED if escape["half"] else escape[0], text)


def _check_depth(members: Mapping[str, Any]) -> None:
    """Refuse a body that could not be written again: orjson reads 1,024 levels and writes 254."""
    for name, value in members.items():
        if type(value) in CONTAINERS and is_deep(value):
            raise BadRequest(name, f"nested deeper than {DEPTH} levels")


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    return "null" if value is None else _NAMES[type(value)]


def shown(path: tuple[str | int, ...]) -> str:
    """A path as an error message has it, ``messages[0].content``."""
    return steps(path).removeprefix(".")
