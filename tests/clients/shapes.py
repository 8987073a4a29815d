"""What every client's reading of a stream looks like, and what a reader is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

ASK: list[Any] = [{"role": "user", "content": "?"}]


class StreamFailed(Exception):
    """Raised by a fold whose client hands the provider's error on as an event."""


@define
class Call:
    name: str
    arguments: Any  #: as the client parses them; None for text that is no JSON
    id: str | None = None  #: None where the client has no place for it
    text: str | None = None  #: None where the client keeps the parsed value only


@define
class Choice:
    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: list[Call] = field(factory=list)
    stop: str | None = None  #: the dialect's own word


@define
class Usage:
    """In neutral terms: the input with its cache, the output with its reasoning. None is what the client was not told."""

    given: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


@define
class Reading:
    choices: dict[int, Choice] = field(factory=dict)
    usage: Usage | None = None


@frozen
class Reader:
    """``read(client, name)`` asks for the stream of that name."""

    name: str
    dialect: str
    package: str
    read: Callable[[Any, str], Reading]


def parsed(text: str) -> Any:
    """Argument text as a program takes it: none at all means no arguments."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return None
