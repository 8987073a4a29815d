"""The text of arguments, and of what a tool gave as JSON, is that of the body: numbers keep their digits, and spaces stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from streamkit.conversation.messages import Request, Response, ToolCall, ToolResult
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response

TEXT = '{"z":  1.0, "a": 1e21, "n": 18446744073709551616,\n "z": 1E2}'
CALL = {"id": "aaaaaaaa1", "type": "function", "function": {"name": "f", "arguments": "@"}}
CLAUDE = {"type": "tool_use", "id": "t", "name": "f", "input": "@"}
BEDROCK = {"toolUse": {"toolUseId": "i", "name": "f", "input": "@"}}
GEMINI = {"functionCall": {"name": "f", "args": "@"}}
RESULT = {"role": "tool", "tool_call_id": "aaaaaaaa1", "content": [{"type": "document", "document": {"data": "@"}}]}

#: Requests with a value at each @.
REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [
        {"role": "assistant", "content": [CLAUDE]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
    ]},
    "bedrock": {"messages": [
        {"role": "assistant", "content": [BEDROCK]}, {"role": "user", "content": [{"toolResult": {"toolUseId": "i", "content": [{"json": "@"}]}}]},
    ]},
    "cohere": {"model": "m", "messages": [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{}"}}]}, RESULT]},
    "gemini": {"contents": [
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": "@"}}]},
        {"parts": [{"function_response": {"name": "f", "response": "@"}}]},
    ]},
    "mistral": {"model": "m", "messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "aaaaaaaa1", "content": "a"}]},
    "ollama": {"model": "m", "messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "content": "a"}]},
}  # fmt: skip
#: Responses with a value at each @.
RESPONSES: dict[str, dict[str, Any]] = {
    "bedrock": {"output": {"message": {"role": "assistant", "content": [BEDROCK]}}, "stopReason": "tool_use"},
    "cohere": {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [CALL]}},
    "gemini": {"candidates": [{"content": {"parts": [GEMINI, GEMINI]}, "finishReason": "STOP"}]},
    "mistral": {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},
    "ollama": {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "done": True, "done_reason": "stop"},
    "openai-chat": {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},
    "openai-responses": {"object": "response", "status": "completed", "output": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "@"},
    ]},
}  # fmt: skip


def spaced(texts: list[str]) -> list[str]:
    """Texts whose line feeds are spaces, as bodies that are one line write them."""
    return [" ".join(text.splitlines()) for text in texts]


def of_request(request: Request) -> list[str]:
    parts = [part for turn in request.turns for part in turn.parts]
    return [
        part.arguments if isinstance(part, ToolCall) else part.text
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def of_response(response: Response) -> list[str]:
    return [call.arguments for call in response.tool_calls]


@pytest.mark.parametrize(
    ("bodies", "dialect", "decode", "encode", "texts"),
    [
        *[(REQUESTS, dialect, decode_request, encode_request, of_request) for dialect in REQUESTS],
        *[(RESPONSES, dialect, decode_response, encode_response, of_response) for dialect in RESPONSES],
    ],
)
def test_it_is_kept(
    bodies: dict[str, Any],
    dialect: str,
    decode: Callable[..., Any],
    encode: Callable[..., bytes],
    texts: Callable[[Any], list[str]],
) -> None:
    body = json.dumps(bodies[dialect])
    read = decode(body.replace('"@"', TEXT).encode(), dialect)
    assert texts(read).count(TEXT) == body.count('"@"')
    assert spaced(texts(decode(encode(read, dialect), dialect))) == spaced(texts(read))
