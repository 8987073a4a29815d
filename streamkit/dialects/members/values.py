"""Read values of a provider's JSON if they have the expected form: numbers, texts, counts, times."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

import orjson

#: The most levels of a payload that is read. It is written again with a few more levels, and orjson writes at most 254.
DEPTH = 200
CONTAINERS: Final = frozenset({dict, list})
DIGITS: Final = 18  #: the most digits of an index that is written as text
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})  #: values of an unknown field that have no meaning
#: Members that may contain the text, if an object is sent in place of a text.
TEXT_MEMBERS: Final = ("text", "content", "reasoning_content", "reasoning", "thinking", "summary")


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
