"""L5 for values of the wrong kind: a list where an object should stand, an object for a list, a text, a number, a truth value.

Each container of each frame of each conforming vector, and of each whole body, is replaced by another kind. Where the meaning is
plain (an object for a list of it, a list of one object for the object), all that the stream said is read, and the tolerance is
counted. Everything else may lose text or a call, but not in silence: a repair, an aside, an error or an unclean end tells of it.
What may be another kind stands in ``ACCEPTED`` with its reason.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest
from attrs import frozen

from streamkit.dialects import DIALECTS
from streamkit.errors import StreamError
from streamkit.events import (
    Aside,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
)
from streamkit.framing.frame import Frame
from streamkit.report import StreamReport
from tests.laws.running import Stream
from tests.laws.test_l5_no_member_is_silent import body_of, document_of, frames_of, read, read_body, replaced, written
from tests.vectors import VECTORS
from tests.vectors.vector import Vector
from tests.whole_answers import ANSWERING_WHOLE

#: Ends of paths whose value may be of any kind, or of another one: why.
ACCEPTED: Final[Mapping[str, str]] = {
    "arguments": "arguments of a call: its verdict says that they are no object",
    "args": "arguments of a call, as Gemini names them",
    "input": "arguments of a call, as Anthropic and Bedrock name them",
    "delta.content": "Mistral's content is text as well as a list",
    "message.content": "the same, whole",
}
PLAIN: Final = "plain"


@frozen
class Place:
    """A container of one frame of a stream, or of a body."""

    dialect: str
    name: str
    frames: tuple[Frame, ...]
    number: int
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return f"{self.dialect} {self.name} {self.number} {named(self.path)}"


@frozen
class Outcome:
    """What a reading said."""

    texts: Mapping[str, str]
    calls: tuple[tuple[str, str], ...]
    stops: tuple[str, ...]
    clean: bool
    asides: tuple[Aside, ...]
    repairs: Mapping[str, int]


def named(path: tuple[str | int, ...]) -> str:
    return ".".join("[]" if isinstance(step, int) else step for step in path)


def containers(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each list and object that has anything in it, beside the document itself."""
    if path and value and isinstance(value, dict | list):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield from containers(member, (*path, step))


def others(value: Any) -> Iterator[tuple[str, Any]]:
    """Values of other kinds than a container is; those of which the meaning is plain first."""
    if isinstance(value, dict):
        yield PLAIN, [value]
        yield "an empty list", []
    else:
        yield "another object", {"zz_unread": 1}
        if len(value) == 1 and isinstance(value[0], dict):
            yield PLAIN, value[0]
        elif all(isinstance(item, dict) for item in value):
            yield PLAIN, {str(number): item for number, item in enumerate(value)}
    yield "text", "x"
    yield "a number", 7
    yield "a truth value", True


def value_at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def outcome(events: list[Any], report: StreamReport) -> Outcome:
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
            texts[type(event).__name__] = texts.get(type(event).__name__, "") + event.text
    ends = [event.clean for event in events if isinstance(event, StreamEnded)]
    return Outcome(
        texts,
        tuple((event.name, event.arguments) for event in events if isinstance(event, ToolCallFinished)),
        tuple(event.reason for event in events if isinstance(event, ResponseFinished)),
        ends == [True] and not any(isinstance(event, ProviderFailed) for event in events),
        tuple(event for event in events if isinstance(event, Aside)),
        dict(report.repairs),
    )


def read_place(place: Place, document: Any) -> Outcome | None:
    """What a place's stream or body says with another ``document`` in its frame; None if that is a fault."""
    frames = [*place.frames]
    frames[place.number] = written(frames[place.number], document)
    if place.name == "body":
        try:
            return outcome(*read_body(place.dialect, frames[0].data))
        except StreamError:
            return None
    events, report, fault = read(place.dialect, frames)
    return None if fault is not None else outcome(events, report)


def check(place: Place) -> None:
    document = document_of(place.frames[place.number])
    before = read_place(place, document)
    assert before is not None
    if f".{named(place.path)}".endswith(tuple(f".{end}" for end in ACCEPTED)) or any(
        step in {"arguments", "args", "input"} for step in place.path
    ):
        return
    for kind, value in others(value_at(document, place.path)):
        after = read_place(place, replaced(document, place.path, value))
        if kind == PLAIN:
            assert after is not None, f"{place}: {value}"
            same = (after.texts, after.calls, after.stops) == (before.texts, before.calls, before.stops)
            assert same, f"{place}: {value}: {after}"
            assert after.clean, f"{place}: {value}: {after}"
        elif after is not None and after.clean:
            same = (after.texts, after.calls, after.stops) == (before.texts, before.calls, before.stops)
            told = after.repairs != before.repairs or any(aside not in before.asides for aside in after.asides)
            assert same or told, f"{place}: {kind}: {after}"


def conforming(dialect: str) -> list[Vector]:
    return [v for v in VECTORS if v.dialect == dialect and v.clean and v.fault is None and not v.repairs]


@cache
def places_of_streams(dialect: str) -> list[Place]:
    found = []
    for vector in conforming(dialect):
        frames = frames_of(Stream(vector.name, vector.dialect, vector.body))
        for number, frame in enumerate(frames):
            if isinstance(document := document_of(frame), dict):
                found += [Place(dialect, vector.name, frames, number, path) for path in containers(document)]
    return found


@cache
def places_of_bodies(dialect: str) -> list[Place]:
    bodies = {body for vector in conforming(dialect) if (body := body_of(vector.name, dialect)) is not None}
    return [
        Place(dialect, "body", (Frame(body),), 0, path)
        for body in sorted(bodies)
        for path in containers(document_of(Frame(body)))
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_value_of_another_kind_is_read_where_it_is_plain_and_counted_where_it_is_not(dialect):
    found = places_of_streams(dialect)
    for place in random.Random(dialect).sample(found, min(len(found), 400)):
        check(place)


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_so_it_is_in_whole_bodies(dialect):
    found = places_of_bodies(dialect)
    for place in random.Random(dialect).sample(found, min(len(found), 200)):
        check(place)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", DIALECTS)
def test_so_it_is_with_every_value(dialect):
    bodies = places_of_bodies(dialect) if dialect in ANSWERING_WHOLE else []
    for place in places_of_streams(dialect) + bodies:
        check(place)
