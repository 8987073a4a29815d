"""What only Anthropic has a form for, though it says text, is text for everybody else."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamkit import StreamReport, decode_request, encode_request

OTHERS = ["openai-chat", "openai-responses", "gemini", "bedrock", "ollama", "mistral", "cohere"]
SEARCH = {
    "type": "search_result", "source": "https://example.com/a", "title": "Trains",
    "content": [{"type": "text", "text": "The train leaves at nine."}],
}  # fmt: skip
BLOCKS = {
    "search_result": (SEARCH, "The train leaves at nine."),
    "tool_reference": ({"type": "tool_reference", "tool_name": "timetable"}, "timetable"),
    "document": (
        {"type": "document", "title": "Plan", "source": {"type": "content", "content": [{"type": "text", "text": "Go east."}]}},
        "Go east.",
    ),
    "document of one text": ({"type": "document", "source": {"type": "content", "content": "Go east."}}, "Go east."),
}  # fmt: skip
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


def written(content: list[dict[str, Any]], to: str, *, in_result: bool = False) -> tuple[str, StreamReport]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if in_result:
        call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": content}
        messages = [
            {"role": "user", "content": "Look it up."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    body = {"model": "m", "max_tokens": 100, "messages": messages, "tools": [TOOL]}
    report = StreamReport()
    request = decode_request(json.dumps(body).encode(), "anthropic", report=report)
    return bytes(encode_request(request, to, report=report)).decode(), report


@pytest.mark.parametrize("to", OTHERS)
@pytest.mark.parametrize("in_result", [False, True])
@pytest.mark.parametrize(("block", "said"), BLOCKS.values(), ids=BLOCKS)
def test_its_text_is_written_and_its_form_counted(block: dict[str, Any], said: str, in_result: bool, to: str):
    body, report = written([block], to, in_result=in_result)
    assert said in body
    assert report.losses["metadata"] == 1
    assert "unknown_event" not in report.losses


@pytest.mark.parametrize(("block", "said"), BLOCKS.values(), ids=BLOCKS)
def test_within_the_dialect_it_stays_what_it_is(block: dict[str, Any], said: str):
    body, report = written([block], "anthropic", in_result=True)
    assert json.loads(body)["messages"][2]["content"][0]["content"] == [block]
    assert said in body
    assert not report.losses


@pytest.mark.parametrize("to", ["openai-chat", "ollama", "cohere"])
@pytest.mark.parametrize("in_result", [False, True])
def test_a_file_of_text_is_text_where_no_such_file_is_taken(to: str, in_result: bool):
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Zug um neun"}}
    body, report = written([{**document, "title": "Fahrplan"}], to, in_result=in_result)
    assert "Zug um neun" in body
    assert "Fahrplan" in body
    assert report.losses == {"metadata": 1}


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"%PDF-"])
def test_a_file_that_is_no_text_is_none(data: bytes):
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
    _, report = written([{"type": "document", "source": source}, {"type": "text", "text": "What is it?"}], "ollama")
    assert report.losses == {"media": 1}
