"""Calls of another model, or of a client that keeps no signatures, in a history for Gemini from version 3 on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import StreamReport, decode_request, encode_request
from tests.requests.rows import translate

WORD = "skip_thought_signature_validator"
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


def uses(*ids: str) -> list[dict[str, Any]]:
    results = [{"type": "tool_result", "tool_use_id": each, "content": "done"} for each in ids]
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def written(model: str, to: str) -> tuple[dict[str, Any], StreamReport]:
    messages = [{"role": "user", "content": "Look."}, *uses("a", "b"), *uses("c")]
    body = {"model": model, "max_tokens": 100, "messages": messages, "tools": [TOOL]}
    return translate(body, "anthropic", to)


@pytest.mark.parametrize("model", ["gemini-3-pro-preview", "gemini-3.6-flash", "models/gemini-4-pro"])
def test_the_first_call_of_each_turn_says_that_it_has_no_signature(model: str):
    body, report = written(model, "gemini")
    parts = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in parts] == [WORD, None, WORD]
    assert report.repairs == {"signature_excused": 2}


def test_behind_googles_openai_endpoint_as_well():
    body, report = written("gemini-3-pro-preview", "gemini-openai")
    calls = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    said = [call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in calls]
    assert said == [WORD, None, WORD]
    assert report.repairs == {"signature_excused": 2}


@pytest.mark.parametrize(
    ("model", "to"), [("gemini-2.5-pro", "gemini"), ("m", "gemini"), ("gemini-3-pro", "openai-chat")]
)
def test_nobody_else_is_told(model: str, to: str):
    body, report = written(model, to)
    assert WORD not in json.dumps(body)
    assert not report.repairs


def test_a_signature_that_came_stays():
    call = {"functionCall": {"id": "a", "name": "look", "args": {}}, "thoughtSignature": "QUJD"}
    result = {"functionResponse": {"id": "a", "name": "look", "response": {"output": "done"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
    ]
    report = StreamReport()
    request = decode_request(json.dumps({"contents": contents}).encode(), "gemini", report=report)
    assert json.loads(encode_request(request, "gemini", report=report))["contents"] == contents
    assert not report.repairs
