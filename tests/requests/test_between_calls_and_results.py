"""What is said between calls and their results: Responses takes it there, and Chat's servers answer 400."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest

from streamkit import StreamReport, decode_request, encode_request

USER = {"role": "user", "content": "What is in the pictures?"}
PICTURE = "data:image/png;base64,aGk="


def called(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def gave(call_id: str, output: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def said(role: str, text: str = "words") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


IMAGE = [{"type": "input_image", "image_url": PICTURE}]
HISTORIES = {
    "the user": [called("a"), said("user"), gave("a")],
    "the developer": [called("a"), said("developer"), gave("a")],
    "the system": [called("a"), said("system"), gave("a")],
    "the user between two results": [called("a"), called("b"), gave("a"), said("user"), gave("b")],
    "a picture that the first of two tools gave": [called("a"), called("b"), gave("a", IMAGE), gave("b")],
    "pictures of both tools, each as a message": [
        called("a"), called("b"), gave("a"), {"role": "user", "content": IMAGE}, gave("b"), {"role": "user", "content": IMAGE},
    ],
}  # fmt: skip


@pytest.mark.parametrize("to", ["openai-chat", "ollama", "mistral", "cohere"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_results_stand_right_behind_their_calls(history: list[dict[str, Any]], to: str):
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
    request = {"model": "m", "input": [USER, *history, said("assistant", "I see."), said("user")], "tools": tools}
    report = StreamReport()
    body = json.loads(
        encode_request(
            decode_request(json.dumps(request).encode(), "openai-responses", report=report), to, report=report
        )
    )
    calls = sum(item.get("type") == "function_call" for item in history)
    messages = body["messages"]
    at = next(number for number, message in enumerate(messages) if message.get("tool_calls"))
    assert len(messages[at]["tool_calls"]) == calls
    assert [message["role"] for message in messages[at + 1 : at + 1 + calls]] == ["tool"] * calls
    assert "tool" not in {message["role"] for message in messages[at + 1 + calls :]}
    roles = [role for role, _ in groupby(message["role"] for message in messages)]
    assert roles.count("tool") == 1


def test_a_request_of_chat_stays_as_it_came():
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "wait"},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]
    report = StreamReport()
    request = decode_request(json.dumps({"model": "m", "messages": messages}).encode(), "openai-chat", report=report)
    assert json.loads(encode_request(request, "openai-chat", report=report))["messages"] == messages
    assert not report.repairs
