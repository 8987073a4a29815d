"""The tools of a request in ``ReadOptions``: what each way to give them does."""

from __future__ import annotations

import json

import pytest

from streamkit import ReadOptions, ToolSchemas, UsageError, collect, decode_request, transcode
from streamkit.testing import source_of

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
RAW = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
RESPONSES = {
    "model": "m",
    "input": "Hi",
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "custom", "name": "patch"},
        {"type": "web_search"},
        {
            "type": "namespace",
            "name": "mcp__files",
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}],
        },
    ],
}
READ = decode_request(json.dumps(RESPONSES).encode(), "openai-responses").tools


def stream(name: str, arguments: str = '{"x":"no"}') -> bytes:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    deltas = [{"tool_calls": [call]}, {}]
    reasons = [None, "tool_calls"]
    chunks = [
        {"id": "i", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in zip(deltas, reasons, strict=True)
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


async def verdict(name: str, tools, arguments: str = '{"x":"no"}') -> str:
    answer = await collect(source_of([stream(name, arguments)]), "openai-chat", ReadOptions(tools=tools))
    return answer.tool_calls[0].verdict.kind


async def written(name: str, tools) -> bytes:
    async with transcode(
        source_of([stream(name)]), "openai-chat", "openai-responses", ReadOptions(tools=tools)
    ) as output:
        return b"".join([piece async for piece in output])


@pytest.mark.parametrize(
    ("tools", "kind"),
    [
        (None, "complete"),
        ([], "complete"),
        (READ, "complete"),
        (RAW, "schema_invalid"),
        (ToolSchemas(RAW), "schema_invalid"),
        (ToolSchemas({"f": SCHEMA}), "schema_invalid"),
        (ToolSchemas(READ), "schema_invalid"),
        (ToolSchemas([]), "schema_invalid"),
    ],
    ids=["none", "empty", "as read", "as they stand", "schemas", "a mapping", "schemas of what was read", "no schemas"],
)
async def test_arguments_are_checked_where_definitions_or_schemas_are_given(tools, kind):
    assert await verdict("f", tools) == kind


@pytest.mark.parametrize("tools", [READ, ToolSchemas(READ)], ids=["as read", "schemas"])
async def test_calls_get_the_names_back_that_the_client_gave_where_the_tools_were_read(tools):
    found = await written("mcp__files__read", tools)
    assert b'"namespace":"mcp__files"' in found
    assert b'"name":"read"' in found
    assert b'"namespace"' not in await written("mcp__files__read", None)


@pytest.mark.parametrize("name", ["f", "mcp__files__read", "read"])
async def test_schemas_of_tools_that_were_read_know_each_name_that_a_call_may_have(name):
    schemas = ToolSchemas(READ)
    assert await verdict(name, schemas) == "schema_invalid"
    assert await verdict(name, schemas, '{"x":1}') == "complete"


async def test_a_custom_tool_takes_any_object_and_a_tool_of_the_provider_is_not_called():
    schemas = ToolSchemas(READ)
    assert await verdict("patch", schemas, '{"input":"x"}') == "complete"
    assert "web_search" not in schemas


def test_what_is_no_definition_is_refused():
    with pytest.raises(UsageError, match="not a tool definition"):
        transcode(source_of([]), "openai-chat", "anthropic", ReadOptions(tools=[{"type": "function", "function": 1}]))
