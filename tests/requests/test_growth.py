"""Reading and writing a request takes work in proportion to its size: bytecode instructions are counted, never seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamkit import decode_request, encode_request
from streamkit.conversation.messages import Media, Part, Reasoning, Request, Text, ToolCall, ToolResult, Turn
from streamkit.dialects import DIALECTS
from streamkit.events import Aside, Opaque
from tests.sampling import by_turns
from tests.working import FACTOR, growth

#: Above it a body is deep enough to be looked through for its depth.
SIZE = 300


def calls(count: int) -> list[Turn]:
    said: list[Part] = [ToolCall(number, f"call_{number}", "f", '{"a":1.50}') for number in range(count)]
    return [Turn("assistant", said), Turn("user", [ToolResult(f"call_{n}", [Text("ok")]) for n in range(count)])]


def answers_between(count: int) -> list[Turn]:
    """What the user says and what tools say, by turns."""
    said, results = calls(count)
    return [said, *(turn for part in results.parts for turn in (Turn("user", [Text("x")]), Turn("user", [part])))]


def documents(count: int) -> list[Turn]:
    files: list[Part] = [Media("file", "application/pdf", data="JVBERi0=", name="a.pdf") for _ in range(count)]
    return [Turn("user", files)]


def thoughts(count: int) -> list[Turn]:
    said: list[Part] = [Reasoning("x", "summary", Opaque("mistral", "c2lnbmVk")) for _ in range(count)]
    return [Turn("assistant", [*said, Text("y")]), Turn("user", [Text("x")])]


def cited(count: int) -> list[Turn]:
    citation = {"type": "url_citation", "url": "https://x.example", "title": "t", "start_index": 0, "end_index": 1}
    asides: list[Part] = [Aside("openai", "citation", "annotation", citation) for _ in range(count)]
    return [Turn("assistant", [Text("a"), *asides]), Turn("user", [Text("x")])]


SHAPES = {made.__name__: made for made in (calls, answers_between, documents, thoughts, cited)}


def of(turns: list[Turn], dialect: str = "") -> Request:
    return Request(dialect, "m", [Turn("user", [Text("hi")]), *turns])


@pytest.mark.parametrize(("dialect", "shape"), by_turns(DIALECTS, SHAPES, 1, "requests grow"))
def test_writing_and_reading_take_work_in_proportion_to_the_size(shape, dialect):
    make = SHAPES[shape]

    def writing(size: int) -> Callable[[], Any]:
        request = of(make(size))
        return lambda: encode_request(request, dialect)

    def reading(size: int) -> Callable[[], Any]:
        body = encode_request(of(make(size), dialect), dialect)
        return lambda: decode_request(body, dialect)

    def writing_again(size: int) -> Callable[[], Any]:
        request = decode_request(encode_request(of(make(size), dialect), dialect), dialect)
        return lambda: encode_request(request, dialect)

    grown = {made.__name__: growth(made, SIZE) for made in (writing, reading, writing_again)}
    assert max(grown.values()) < FACTOR, grown
