"""Requests between all dialects: the recorded ones into each, and random conversations there and back."""

from __future__ import annotations

from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.conversation.messages import Options, Part, Request, Text, Tool, ToolCall, ToolChoice, ToolResult, Turn
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.corpora import requests

WITH_BODIES = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]
PAIRS = list(product(WITH_BODIES, WITH_BODIES))
#: What a dialect rightly refuses: each is an error with its path, and no request is half translated.
REFUSED = (
    "cannot be required to call a tool",
    "requires a user message",
    "requires a user content",
    "requires a user step",
    "more than one choice",
    "one choice",
    "at a URL",
)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_requests_become_requests_of_every_dialect(source, target):
    """Or are refused for what the dialect can't do; then nothing but that is wrong with them, and imitating it is enough."""
    written = 0
    for recording in requests(source):
        request = decode_request(orjson.dumps(recording.body), source)
        request.model = request.model or "m-1"  # some have it in the URL
        body, refusal = written_or_refused(request, target)
        if body is None:
            assert refusal.path
            assert any(reason in refusal.reason for reason in REFUSED), (recording.name, str(refusal))
            continue
        written += 1
        again = decode_request(body, target)
        assert calls_of(again) == calls_of(request), recording.name
        assert len(results_of(again)) == len(results_of(request)), recording.name
    assert written >= len(requests(source)) * 0.9


def written_or_refused(request: Request, target: str) -> tuple[bytes | None, Any]:
    try:
        return encode_request(request, target, repair=True), None
    except BadRequest as error:
        return None, error


# -- random conversations ----------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12).map(
    lambda s: f"w{s}w"
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3).map(lambda value: orjson.dumps(value).decode())
TOOLS = ("get_weather", "add", "look_up")


@st.composite
def conversations(draw):
    """Well-paired ones: a user speaks, the assistant answers and may call, each call is answered by its own result."""
    turns: list[Turn] = []
    if draw(st.booleans()):
        turns.append(Turn("system", [Text(draw(WORDS))]))
    calls = 0
    for _ in range(draw(st.integers(1, 3))):
        turns.append(Turn("user", [Text(draw(WORDS))]))
        made = [
            ToolCall(number, f"call_{calls + number:04d}x", draw(st.sampled_from(TOOLS)), draw(ARGUMENTS))
            for number in range(draw(st.integers(0, 3)))
        ]
        said: list[Part] = [Text(draw(WORDS))] if draw(st.booleans()) or not made else []
        turns.append(Turn("assistant", [*said, *made]))
        if made:
            turns.append(Turn("user", [ToolResult(call.id, [Text(draw(WORDS))], call.name) for call in made]))
            turns.append(Turn("assistant", [Text(draw(WORDS))]))
        calls += len(made)
    turns.append(Turn("user", [Text(draw(WORDS))]))
    schema = {"type": "object", "properties": {"x": {"type": "string", "description": draw(WORDS)}}}
    tools = [Tool(name, draw(WORDS), schema) for name in TOOLS]
    choice = draw(st.none() | st.just(ToolChoice("auto")))
    options = Options(max_tokens=draw(st.integers(16, 9999)))
    return Request("neutral", "m-1", turns, tools, choice, options)


@pytest.mark.parametrize("first", WITH_BODIES)
@settings(max_examples=8, deadline=None)
@given(request=conversations())
def test_a_conversation_comes_back(first: str, request: Request):
    one = decode_request(encode_request(request, first), first)
    one.model = "m-1"  # some have it in the URL
    for through in WITH_BODIES:
        check_back(one, first, through)


def check_back(one: Request, first: str, through: str) -> None:
    there = StreamReport()
    two = decode_request(encode_request(one, through, report=there), through)
    two.model = "m-1"
    back = decode_request(encode_request(two, first), first)
    assert said(back) == said(one), (through, there.lost)
    if ("parameter", "max_tokens") not in there.lost:  # an agent chooses it itself
        assert options_of(back) == options_of(one), through
    if "tool_definition" not in there.losses and "schema_keyword" not in there.losses:
        assert [(tool.name, tool.description, tool.parameters) for tool in back.tools] == [
            (tool.name, tool.description, tool.parameters) for tool in one.tools
        ], through


def said(request: Request) -> list[Any]:
    """Turns by role, neighbours of one role as one; ids by their order, since some dialects rewrite them."""
    ids: dict[str, int] = {}
    turns: list[tuple[str, list[Any]]] = []
    for turn in request.turns:
        if not turns or turns[-1][0] != turn.role:
            turns.append((turn.role, []))
        for part in turn.parts:
            if isinstance(part, Text):
                turns[-1][1].append(part.text)
            elif isinstance(part, ToolCall):
                number = ids.setdefault(part.id, len(ids))
                turns[-1][1].append(("call", number, part.name, orjson.loads(part.arguments or "{}")))
            elif isinstance(part, ToolResult):
                turns[-1][1].append(("result", ids.get(part.call_id), part.text, part.is_error))
    return turns


def options_of(request: Request) -> Any:
    return request.options.max_tokens


def calls_of(request: Request) -> list[tuple[str, Any]]:
    """Names and arguments; what is no JSON object arrives wrapped where the dialect has objects."""
    found = []
    for turn in request.turns:
        for part in turn.parts:
            if isinstance(part, ToolCall):
                try:
                    value = orjson.loads(part.arguments or "{}")
                except orjson.JSONDecodeError:
                    value = part.arguments
                found.append((part.name, value))
    return found


def results_of(request: Request) -> list[ToolResult]:
    return [part for turn in request.turns for part in turn.parts if isinstance(part, ToolResult)]


def test_text_between_dialects_of_text_keeps_every_byte():
    text = '{ "a" : 1.0,\n"b": 18446744073709551616, "c": 1e2 }'
    turns = [Turn("user", [Text("Hi")]), Turn("assistant", [ToolCall(0, "call_1abcd", "f", text)])]
    turns.append(Turn("user", [ToolResult("call_1abcd", [Text("ok")], "f")]))
    request = Request("neutral", "m-1", turns, [Tool("f", None, {"type": "object", "properties": {}})])
    of_text = [name for name in WITH_BODIES if name in {"openai-chat", "openai-responses", "mistral", "cohere"}]
    for one, other in product(of_text, of_text):
        back = decode_request(encode_request(decode_request(encode_request(request, one), one), other), other)
        assert [part.arguments for turn in back.turns for part in turn.parts if isinstance(part, ToolCall)] == [text]
