from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.errors import BrokenFrame, UsageError
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.web.upstream import Secret, Upstream, count_of, count_request

REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 10,
    "stream": True,
    "temperature": 0.5,
    "metadata": {"user_id": "u"},
    "system": "s",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "seen"}]},
    ],
    "tools": [
        {
            "name": "look",
            "description": "d",
            "input_schema": {"type": "object", "properties": {"at": {"type": "number"}}},
        }
    ],
    "tool_choice": {"type": "auto"},
}


def upstream(dialect: str) -> Upstream:
    return Upstream(name="up", dialect=dialect, base_url="https://h", key=Secret("0123456789"))


def counted(dialect: str) -> dict[str, Any]:
    written = encode_request(decode_request(orjson.dumps(REQUEST), "anthropic"), dialect, emulate=True)
    return orjson.loads(count_request(upstream(dialect), written, "m"))


@pytest.mark.parametrize(
    ("dialect", "path", "members"),
    [
        ("anthropic", [], {"model", "system", "messages", "tools", "tool_choice"}),
        ("openai-responses", [], {"model", "instructions", "input", "tools", "tool_choice"}),
        ("bedrock", ["input", "converse"], {"messages", "system", "toolConfig"}),
        (
            "gemini",
            ["generateContentRequest"],
            {"model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"},
        ),
    ],
)
def test_a_count_has_what_has_tokens_and_nothing_that_it_would_be_refused_for(
    dialect: str, path: list[str], members: set[str]
):
    body = counted(dialect)
    for name in path:
        assert set(body) == {name}
        body = body[name]
    assert set(body) == members


def test_gemini_is_told_the_model_in_the_body_too():
    assert counted("gemini")["generateContentRequest"]["model"] == "models/m"


def test_numbers_are_counted_as_they_are_written():
    body = b'{"messages":[{"n":18446744073709551616,"m":1.0,"e":1e21}],"max_tokens":1}'
    assert (
        count_request(upstream("anthropic"), body, "m") == b'{"messages":[{"n":18446744073709551616,"m":1.0,"e":1e21}]}'
    )


def test_who_cannot_count_is_not_asked():
    with pytest.raises(UsageError, match="up can't count tokens: openai-chat"):
        count_request(upstream("openai-chat"), b"{}", "m")


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("anthropic", b'{"input_tokens": 14}'),
        ("openai-responses", b'{"object": "response.input_tokens", "input_tokens": 14}'),
        ("gemini", b'{"totalTokens": 14, "promptTokensDetails": []}'),
        ("bedrock", b'{"inputTokens": 14}'),
    ],
)
def test_a_count_is_read(dialect: str, body: bytes):
    assert count_of(upstream(dialect), body) == 14


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"input_tokens": "14"}', b'{"input_tokens": true}', b'{"input_tokens": -1}'],
)
def test_an_answer_without_a_count_is_never_a_guess(body: bytes):
    with pytest.raises(BrokenFrame, match="the response to a token count"):
        count_of(upstream("anthropic"), body)
