"""Read request bodies. Each member is taken once, by type; members that nothing took are kept for the same dialect.

A request comes from a program that can be corrected, so a member of the wrong type raises ``BadRequest`` with its path, and
is never guessed. Unknown members are kept in ``rest``, so nothing is lost within the dialect.
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
Spelling: TypeAlias = Callable[[str], str]  #: returns the name by which a member is read
#: A number that parsing may change: it has more digits than a double, or an exponent.
_LONG_NUMBER: Final = re.compile(rb"\d{16}|\d\.?\d*[eE]")
#: An escape in JSON text. The group ``half`` is half of a surrogate pair without its other half; it is replaced.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACED: Final = rb"\ufffd"
_NAMES: Final = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    list: "a list",
    dict: "an object",
}


class Body:
    """The JSON text of a request or response, for values whose exact text matters."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._texts: ValueTexts | None = None
        self._exact: bool | None = None

    def text_of(self, value: Any, path: tuple[str | int, ...]) -> str:
        """Return the JSON text of the value at ``path``, with plain escapes: the original if rewriting could change a number.

        The result does not depend on the rest of the body. So a history has the same text in each request, and providers find
        it in their caches.
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
    exact = get_origin(kind) or kind

    def taken(self: Fields, name: str) -> T | None:
        value = self._members.pop(name, None)
        if value is None or type(value) is exact:
            return value
        raise self._wrong(name, value, exact)

    return taken


class Fields:
    """The members of one JSON object, and its path in the body. Null counts as absent.

    If a member has several names on the wire, ``spell`` returns the name by which it is read. Paths contain the original
    name.
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
                    other = shortened(self._came_as[known], STEP_CHARS)
                    raise BadRequest(shown((*path, name)), f"the member is also given as {other}")
                self._members[known], self._came_as[known] = value, name

    def spelled(self, spell: Spelling) -> Fields:
        """Return the same members, and all objects opened from them, under the names that ``spell`` returns."""
        return Fields(self._members, self.path, self.body, spell)

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    @property
    def names(self) -> list[str]:
        """The names of members that are present and were not taken. They show which type of a union this is."""
        return [name for name, value in self._members.items() if value is not None]

    @property
    def place(self) -> str:
        """The path to the object, for messages: ``messages[3]``."""
        return shown(self.path)

    def at(self, name: str) -> str:
        """Return the path to a member, for messages: ``messages[3].content``."""
        return shown(self._path_of(name))

    def peek(self, name: str) -> Any:
        """Return a value without taking it, to find out which type of object this is."""
        return self._members.get(name)

    def peek_all(self) -> Mapping[str, Any]:
        """Return all members that were not taken, without taking them."""
        return dict(self._members)

    def take(self, name: str) -> Any:
        return self._members.pop(name, None)

    #: Take a text, a boolean, or an object as it is.
    string, boolean, mapping = _of_type(str), _of_type(bool), _of_type(dict[str, Any])
    _list = _of_type(list[Any])

    def replace(self, name: str, value: Any) -> None:
        """Put another value in place of a member, such as the unread rest of a value."""
        self._members[name] = value

    def needed(self, name: str) -> str:
        """Take a string. Raises BadRequest if it is missing."""
        return self._there(name, self.string(name), str)

    def integer(self, name: str) -> int | None:
        value = self.number(name)
        if value is None:
            return None
        if not float(value).is_integer():
            raise BadRequest(self.at(name), f"must be an integer, not {value}")
        if not -(2**63) <= value < 2**64:  # it was read as a float, and cannot be written as an integer
            raise BadRequest(self.at(name), "must be an integer of at most 64 bits")
        return int(value)

    def number(self, name: str) -> float | None:
        value = self._members.pop(name, None)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, value, float)

    def listed(self, name: str) -> list[Any]:
        return self._list(name) or []

    def strings(self, name: str) -> tuple[str, ...]:
        """Take a list of strings."""
        values = self.listed(name)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise BadRequest(f"{self.at(name)}[{number}]", f"must be a string, not {kind_of(value)}")
        return tuple(values)

    def fields(self, name: str) -> Fields | None:
        """Take an object to read its members. Members that are not taken from it are in the ``rest`` of this object."""
        value = self.mapping(name)
        if value is None:
            return None
        opened = self._opened[name] = Fields(value, self._path_of(name), self.body, self._spell)
        return opened

    def needed_fields(self, name: str) -> Fields:
        """Take an object to read its members. Raises BadRequest if it is missing."""
        return self._there(name, self.fields(name), dict)

    def fields_of_type(self, name: str, types: Container[str]) -> Fields | None:
        """Take an object if its ``type``, if any, is among ``types``. Others belong to the dialect, and stay."""
        value = self.peek(name)
        kind = value.get("type") if isinstance(value, dict) else None
        return None if isinstance(kind, str) and kind not in types else self.fields(name)

    def each(self, name: str) -> list[Fields]:
        """Take the objects of a list."""
        values = self._list(name)
        if not values:
            return []
        opened, path = list[Fields](), self._path_of(name)
        for value in values:
            if type(value) is not dict:
                raise BadRequest(f"{self.at(name)}[{len(opened)}]", f"must be an object, not {kind_of(value)}")
            opened.append(Fields(value, (*path, len(opened)), self.body, self._spell))
        return opened

    def needed_each(self, name: str) -> list[Fields]:
        """Take the objects of a list. Raises BadRequest if it is missing."""
        self._there(name, self._members.get(name), list)
        return self.each(name)

    def text_or_each(self, name: str) -> str | list[Fields]:
        """Take a text, or the objects of a list, for content that may have both forms. ``""`` if it is missing."""
        return self.each(name) if type(self._members.get(name)) is list else self.string(name) or ""

    def text_of(self, name: str) -> str:
        """Take the JSON text of a member."""
        return self.body.text_of(self.take(name), self._path_of(name))

    def object_text(self, name: str) -> str | None:
        """Take the JSON text of an object."""
        value = self.mapping(name)
        return None if value is None else self.body.text_of(value, self._path_of(name))

    def rest(self) -> dict[str, Any]:
        """Take all members that are left, in this object and in those that were opened with ``fields``."""
        rest, self._members = self._members, {}
        if None in rest.values():
            rest = {name: value for name, value in rest.items() if value is not None}
        for name, opened in self._opened.items():
            if left := opened.rest():
                rest[name] = left
        return rest

    def wrong(self, reason: str, name: str | None = None) -> BadRequest:
        """Return the error for a wrong value of a member, or of the whole object."""
        return BadRequest(shown(self.path) if name is None else self.at(name), reason)

    def _path_of(self, name: str) -> tuple[str | int, ...]:
        return (*self.path, self._came_as.get(name, name))

    def _there(self, name: str, value: T | None, kind: type) -> T:
        if value is None:
            raise BadRequest(self.at(name), f"is missing; must be {_NAMES[kind]}")
        return value

    def _wrong(self, name: str, value: Any, kind: type) -> BadRequest:
        return BadRequest(self.at(name), f"must be {_NAMES[kind]}, not {kind_of(value)}")


def media_of(uri: str, path: str) -> tuple[str, str]:
    """Return the media type and the base64 text of a ``data:`` URI (RFC 2397). Raises BadRequest if it is malformed."""
    head, comma, data = uri.partition(",")
    media_type, *parameters = head[len("data:") :].split(";")
    if not comma or "base64" not in (parameter.strip().lower() for parameter in parameters):
        raise BadRequest(path, "the content of a data: URI must be base64")
    return media_type.strip().lower() or "text/plain", base64_of(data, path)


def base64_of(text: str, path: str) -> str:
    """Return a text unchanged if it is base64. Raises BadRequest if not."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        reason = "must be base64 without a data: prefix" if is_data_uri(text) else f"must be base64: {error}"
        raise BadRequest(path, reason) from error
    return text


def is_data_uri(text: str) -> bool:
    """Return whether a URL contains its content. The scheme may be in capitals (RFC 3986 §3.1)."""
    return text[:5].lower() == "data:"


def fields_of(body: bytes, report: StreamReport | None = None) -> Fields:
    """Return the members of a whole body. Raises BadRequest if it is not a JSON object.

    Half of a surrogate pair becomes U+FFFD. Clients that cut a text inside an emoji leave such halves in every later request,
    and providers refuse the whole body because of them.
    """
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        whole = whole_characters(body)
        if whole == body:
            raise BadRequest("", f"the body is not JSON: {error}") from error
        if report is not None:
            report.repair("lone_surrogate")
        return fields_of(whole)
    if not isinstance(members, dict):
        raise BadRequest("", f"the body must be an object, not {kind_of(members)}")
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(members)
    return Fields(members, (), Body(body))


def whole_characters(text: bytes) -> bytes:
    """Return JSON text in which each escaped half of a surrogate pair is an escaped U+FFFD, which has the same length."""
    return _ESCAPE.sub(lambda escape: _REPLACED if escape["half"] else escape[0], text)


def _check_depth(members: Mapping[str, Any]) -> None:
    """Refuse a body that could not be written again: orjson reads 1,024 levels but writes 254."""
    for name, value in members.items():
        if type(value) in CONTAINERS and is_deep(value):
            raise BadRequest(name, f"nested deeper than {DEPTH} levels")


def kind_of(value: Any) -> str:
    """Return the type of a JSON value, in words."""
    return "null" if value is None else _NAMES[type(value)]


def shown(path: tuple[str | int, ...]) -> str:
    """Return a path in the form of error messages, ``messages[0].content``."""
    return steps(path).removeprefix(".")
