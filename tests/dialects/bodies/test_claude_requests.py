"""What each provider of Claude takes alike is written alike: tools, the choice among them, the form of an answer, thinking."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit import BadRequest, StreamReport, decode_request, encode_request
from streamkit.conversation.messages import Thinking
from streamkit.dialects.bodies.claude import read_thinking
from streamkit.dialects.members.fields import fields_of

LOOK = {"type": "function", "function": {"name": "look", "parameters": {}}}
FIND = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MODELS = {"anthropic": "claude-sonnet-4-5", "bedrock": "anthropic.claude-sonnet-4-5-v1:0"}


def written(to: str, **members: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    body = {"model": MODELS[to], "messages": [{"role": "user", "content": "Hello"}], **members}
    request = decode_request(orjson.dumps(body), "openai-chat", report=report)
    return orjson.loads(encode_request(request, to, report=report)), report


def tools_of(body: dict[str, Any]) -> list[tuple[str, Any]]:
    if "toolConfig" in body:
        specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]
        return [(spec["name"], spec["inputSchema"]["json"]) for spec in specs]
    return [(tool["name"], tool["input_schema"]) for tool in body["tools"]]


@pytest.mark.parametrize("to", MODELS)
def test_a_tool_without_parameters_has_the_schema_of_an_object(to):
    body, _ = written(to, tools=[LOOK])
    assert tools_of(body) == [("look", {"type": "object"})]


@pytest.mark.parametrize("to", MODELS)
def test_tools_that_the_history_calls_are_defined_though_none_is_offered(to):
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "Seen."},
    ]
    body, report = written(to, messages=messages)
    assert tools_of(body) == [("look", {"type": "object"})]
    assert report.repairs["tool_declared"] == 1


@pytest.mark.parametrize("to", MODELS)
def test_several_choices_are_refused(to):
    with pytest.raises(BadRequest, match="returns one choice, not 2"):
        written(to, n=2)


@pytest.mark.parametrize("to", MODELS)
def test_json_without_a_schema_is_a_loss(to):
    body, report = written(to, response_format={"type": "json_object"})
    assert not body.keys() & {"output_config", "outputConfig"}
    assert report.losses["parameter"] == 1


@pytest.mark.parametrize(
    ("member", "thinking"),
    [
        (None, Thinking("high")),
        ({"type": "adaptive", "display": "omitted"}, Thinking("high", enabled=True, summary="none")),
        ({"type": "enabled", "budget_tokens": 2048}, Thinking("high", enabled=True, budget_tokens=2048)),
        ({"type": "disabled"}, Thinking("high", enabled=False)),
        ({"type": "between_tools"}, Thinking("high")),
    ],
)
def test_how_to_think_is_read_from_the_member_and_the_effort(member, thinking):
    assert read_thinking(fields_of(orjson.dumps({"thinking": member})), "high") == thinking


def test_a_budget_that_is_missing_is_an_error_of_the_client():
    with pytest.raises(BadRequest, match="budget_tokens"):
        read_thinking(fields_of(b'{"thinking":{"type":"enabled"}}'), None)
