"""Values of a provider's JSON, as far as they are what they should be: numbers, texts, counts, times."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

import orjson

#: Levels of a payload; what is carried on is written a few levels deeper.
DEPTH = 200
CONTAINERS: Final = frozenset({dict, list})
#: Of an index that comes as text; more are none.
DIGITS: Final = 18
#: What an unknown field says nothing by.
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
#: Members of an object that stands where a text should.
TEXT_MEMBERS: Final = ("text", "content", "reasoning_content", "reasoning", "thinking", "summary")


def is_deep(container: Any) -> bool:
    """Whether an object or a list has more than ``DEPTH`` levels. Gain: nine tenths of the time of looking at each token."""
    level = [container]
    for _ in range(DEPTH):
        inner = [value for outer in level for value in (outer.values() if type(outer) is dict else outer)]
        level = [value for value in inner if type(value) in CONTAINERS]
        if not level:
            return False
    return True


def number_in(value: object) -> int | None:
    """A number that may be written as text or with a fraction of nothing; None if it is no whole number, or a long one."""
    if type(value) is str and value.strip().isdecimal() and len(value) <= DIGITS:
        return int(value)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def text_in(value: Any, depth: int = 4) -> str:
    """The text of an object or a list that stands where a text should; blank if it has none."""
    if type(value) is str:
        return value
    if depth and type(value) is list:
        return "".join(text_in(item, depth - 1) for item in value)
    if depth and type(value) is dict:
        return next((text for name in TEXT_MEMBERS if (text := text_in(value.get(name), depth - 1))), "")
    return ""


def text_of(value: object) -> str | None:
    """A non-blank string as it is; None for what counts as absent (quirks.md R2)."""
    if isinstance(value, str) and value.strip() and value not in {"null", "None"}:
        return value
    return None


def is_base64(text: str) -> bool:
    """Whether a client can decode a text."""
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None for any other text."""
    value = json_value(text)
    return value if isinstance(value, dict) else None


def has_member(text: str, name: str) -> bool:
    """Return whether an object at any depth of a JSON text has a member of that name; True for a text that is no JSON."""
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
    """Whether an unknown field says anything: null and empty values do not."""
    return value not in NOTHING


def others_of(fields: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """The members that are not ``known`` and say anything."""
    if fields.keys() <= known:  # as nearly always
        return {}
    return {name: value for name, value in fields.items() if name not in known and (value or value == 0)}


def count_of(raw: Mapping[str, Any], name: str) -> int | None:
    """A token count; None if there is none, or what can't be one."""
    value = raw.get(name)
    if value is None:  # most details, in usage that comes with each chunk
        return None
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**53 else None


def counts_of(raw: Mapping[str, Any], names: Collection[str]) -> list[int | None]:
    """Several counts as ``count_of`` has them, which are nearly always numbers: a third of the time."""
    if not raw:
        return [None] * len(names)
    values = [*map(raw.get, names)]
    for value in values:
        if value is not None and (type(value) is not int or not 0 <= value < 2**53):
            return [count_of(raw, name) for name in names]
    return values


def decode_time(text: object) -> int | None:
    """Seconds since the epoch of an RFC 3339 time; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        seconds = int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None  # the zero time of Go says nothing


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none where there is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def details_of(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested object of counts; empty if there is none."""
    value = raw.get(name)
    return value if type(value) is dict else {}
