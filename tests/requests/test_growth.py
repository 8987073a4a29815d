"""Reading and writing a request takes work in proportion to its size: bytecode instructions are counted, never seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from streamkit import decode_request, encode_request
from streamkit.dialects import DIALECTS
from streamkit.events import Aside, Opaque
from streamkit.messages import Media, Part, Reasoning, Request, Text, ToolCall, ToolResult, Turn

#: By which factor the work may grow when the input doubles.
FACTOR = 2.3


def work(function: Callable[[], Any]) -> int:
    """How many bytecode instructions a call takes."""
    count = 0

    def step(frame, event, _arg):
        nonlocal count
        if event == "opcode":
            count += 1
        else:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def grows(make: Callable[[int], Callable[[], Any]], size: int = 300) -> float:
    """By which factor the work grows from ``size`` to twice of it."""
    make(4)()  # what is imported and compiled once
    return work(make(2 * size)) / work(make(size))


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


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("shape", SHAPES)
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

    assert [grows(writing) < FACTOR, grows(reading) < FACTOR, grows(writing_again) < FACTOR] == [True] * 3
