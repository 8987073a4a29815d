"""What OpenAI's two dialects write alike: effort and the form of an answer, each in an envelope of its own."""

from __future__ import annotations

import orjson
import pytest

from streamkit import StreamReport, decode_request, encode_request

ASKED = {
    "model": "gpt-5.1",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "hi"}],
    "thinking": {"type": "disabled"},
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
}
SCHEMA = {"name": "response", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("to", "effort", "form"),
    [
        (
            "openai-chat",
            {"reasoning_effort": "none"},
            {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        ),
        (
            "openai-responses",
            {"reasoning": {"effort": "none"}},
            {"text": {"format": {"type": "json_schema", **SCHEMA}}},
        ),
    ],
)
def test_no_thinking_and_a_schema_are_said_in_each_dialects_members(to, effort, form):
    report = StreamReport()
    body = orjson.loads(encode_request(decode_request(orjson.dumps(ASKED), "anthropic"), to, report=report))
    assert {name: body[name] for name in (*effort, *form)} == {**effort, **form}
    assert report.losses == {}
