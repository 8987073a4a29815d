"""Read values of a provider's JSON if they have the expected form, and keep the members that nobody reads.

``Members`` describes an object: the names that a decoder reads or that have no meaning, and the inner objects with their own
descriptions. Other members become asides of the dialect, so that none is dropped silently (law L5): encoders write those that
have a place, and count the rest as lost. ``Event`` is the row of one event in a dialect's table ``EVENTS``, which its decoder
and its checker share.

Members that arrive in pieces are joined in time proportional to the pieces: a list or an object is copied once, at its first
piece, because other code may also use it; then it grows in place.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.events import Aside

#: The most levels of a payload that is read. It is written again with a few more levels, and orjson writes at most 254.
DEPTH = 200
CONTAINERS: Final = frozenset({dict, list})
DIGITS: Final = 18  #: the most digits of an index that is written as text
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})  #: values of an unknown field that have no meaning
#: Members that may contain the text, if an object is sent in place of a text.
TEXT_MEMBERS: Final = ("text", "content", "reasoning_content", "reasoning", "thinking", "summary")


def name_of(aside: Aside) -> str:
    """Return the name of an aside for a report: the type of the block or item that its frame begins, else its own type."""
    for member in ("content_block", "item") if type(aside.raw) is dict else ():
        inner = aside.raw.get(member)
        if type(inner) is dict and type(inner.get("type")) is str:
            return str(inner["type"])
    return aside.type


def is_deep(container: Any) -> bool:
    """Return whether an object or list has more than ``DEPTH`` levels. This takes a tenth of the time of scanning tokens."""
    level = [container]
    for _ in range(DEPTH):
        inner = [value for outer in level for value in (outer.values() if type(outer) is dict else outer)]
        level = [value for value in inner if type(value) in CONTAINERS]
        if not level:
            return False
    return True


def number_in(value: object) -> int | None:
    """Return an integer that may be written as text or with the fraction .0; None for another value, or a long text."""
    if type(value) is str and value.strip().isdecimal() and len(value) <= DIGITS:
        return int(value)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def text_in(value: Any, depth: int = 4) -> str:
    """Return the text in an object or list that is in the place of a text; empty if there is none."""
    if type(value) is str:
        return value
    if depth and type(value) is list:
        return "".join(text_in(item, depth - 1) for item in value)
    if depth and type(value) is dict:
        return next((text for name in TEXT_MEMBERS if (text := text_in(value.get(name), depth - 1))), "")
    return ""


def text_of(value: object) -> str | None:
    """Return a string that has content; None if it is blank, "null" or "None" (quirks.md R2), or no string."""
    if isinstance(value, str) and value.strip() and value not in {"null", "None"}:
        return value
    return None


def is_base64(text: str) -> bool:
    """Return whether a text is valid base64, so that clients can decode it."""
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text; None if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object of a JSON text; None if it is not a JSON object."""
    value = json_value(text)
    return value if isinstance(value, dict) else None


def has_member(text: str, name: str) -> bool:
    """Return whether an object at any depth of a JSON text has this member; also True if the text is not JSON."""
    if name not in text and "\\u" not in text:
        return False
    level = [json_value(text)]
    if level == [None]:
        return True
    while level:
        if any(type(value) is dict and name in value for value in level):
            return True
        level = [
            inner
            for value in level
            if type(value) in CONTAINERS
            for inner in (value.values() if type(value) is dict else value)
        ]
    return False


def has_value(value: object) -> bool:
    """Return whether the value of an unknown field says something. Null and empty values do not."""
    return value not in NOTHING


def others_of(fields: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """Return the members that are not in ``known`` and are not empty. A 0 counts as a value."""
    if fields.keys() <= known:  # nearly always
        return {}
    return {name: value for name, value in fields.items() if name not in known and (value or value == 0)}


def count_of(raw: Mapping[str, Any], name: str) -> int | None:
    """Return a token count; None if it is missing or cannot be a count."""
    value = raw.get(name)
    if value is None:  # checked first, because most counts are absent
        return None
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**53 else None


def counts_of(raw: Mapping[str, Any], names: Collection[str]) -> list[int | None]:
    """Return several counts like ``count_of``, in a third of the time if all of them are plain integers."""
    if not raw:
        return [None] * len(names)
    values = [*map(raw.get, names)]
    for value in values:
        if value is not None and (type(value) is not int or not 0 <= value < 2**53):
            return [count_of(raw, name) for name in names]
    return values


def decode_time(text: object) -> int | None:
    """Return an RFC 3339 time in seconds since the epoch; None if it is malformed."""
    if not isinstance(text, str):
        return None
    try:
        seconds = int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None  # Go's zero time means unknown


def objects_in(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def details_of(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in the member ``name``, such as detailed counts; empty if there is none."""
    value = raw.get(name)
    return value if type(value) is dict else {}


UNREAD: Final = "unread:"  #: The beginning of the type of an aside for an unread member. The member's path follows.
#: The beginning of the type of an aside for an unknown event. The event's name follows. Without this prefix, the name could
#: equal a type that decoders use for encoders.
EVENT: Final = "event."


class Members:
    """The members of an object, or of each object of a list. ``inner`` are members with their own descriptions."""

    __slots__ = ("inner", "names", "open")

    def __init__(self, *names: str, **inner: Members) -> None:
        self.names = frozenset((*names, *inner))
        self.inner = tuple(inner.items())
        self.open = False

    def also(self, *names: str, **inner: Members) -> Members:
        """Return a copy of this description with additional names."""
        more = Members(*self.names, *names, **{**dict(self.inner), **inner})
        more.open = self.open
        return more

    def unread(self, value: Any) -> list[tuple[str, Any]]:
        """Return the path and value of each member of ``value`` that is not named here and is not empty."""
        if type(value) is list:
            return [found for each in value for found in self.unread(each)]
        unread: list[tuple[str, Any]] = []
        if type(value) is dict:
            if not self.open and not value.keys() <= self.names:
                unread += [each for each in value.items() if each[0] not in self.names and has_value(each[1])]
            for name, members in self.inner:
                if found := value.get(name):
                    unread += [(f"{name}.{path}", member) for path, member in members.unread(found)]
        return unread


def unknown_event(aside: Aside) -> str | None:
    """Return the original name of an unknown event, from its aside; None for any other aside."""
    if aside.kind != "unknown_event" or not aside.type.startswith(EVENT):
        return None
    return aside.type.removeprefix(EVENT)


def kept(*names: str, **inner: Members) -> Members:
    """Return a description of an object whose unknown members the decoder itself keeps, in extras or in its own asides."""
    members = Members(*names, **inner)
    members.open = True
    return members


KEPT: Final = kept()  #: Describes an object of which no member is known, and all members are kept.


@frozen
class Event:
    """An event of a dialect. ``method`` names the method of the decoder, and of the checker, that handles it."""

    method: str
    members: Members  #: the members that the decoder reads
    needs: tuple[str, ...] = ()  #: text members without which readers refuse the event


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
