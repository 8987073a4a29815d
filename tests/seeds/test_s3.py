"""S3: the second leg of a tool conversation, and definitions that are named before they are sent.

What concerns providers without tools, and waiting as ``Retry-After`` says, is the gateway's.
"""

from __future__ import annotations

import json

import pytest

from streamkit import BadRequest, collect, decode_request, encode_request, request_with_results
from streamkit.conversation.checks import check_tools
from streamkit.conversation.messages import Tool
from streamkit.dialects import DIALECTS
from streamkit.testing import source_of
from tests.cli.command import run
from tests.vectors.vector import sse

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
ASKED = {
    "model": "m-1",
    "messages": [{"role": "user", "content": "How warm is it in Reykjavík?"}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
        }
    ],
}


def chunk(delta, finish=None):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


FIRST_LEG = sse(
    chunk({"role": "assistant", "content": None}),
    chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"Reykjav\u00edk"}'}}]}),
    chunk({}, "tool_calls"),
    b"[DONE]",
)  # fmt: skip


async def leg():
    response = await collect(source_of([FIRST_LEG]), "openai-chat")
    return request_with_results(
        decode_request(json.dumps(ASKED).encode(), "openai-chat"), response, {"call_1": "11 °C"}
    )


async def test_the_second_leg_has_the_call_as_it_was_and_its_result():
    messages = json.loads(encode_request(await leg(), "openai-chat"))["messages"]
    assert messages[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Reykjavík"}'},
            }
        ],
    }
    assert messages[2] == {"role": "tool", "tool_call_id": "call_1", "content": "11 °C"}


@pytest.mark.parametrize("dialect", [name for name, one in DIALECTS.items() if one.bodies is not None])
async def test_the_second_leg_goes_to_every_dialect(dialect):
    request = await leg()
    again = decode_request(encode_request(request, dialect), dialect)
    call, result = again.turns[-2].parts[-1], again.turns[-1].parts[0]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Reykjavík"})
    assert result.call_id == call.id
    assert "11 °C" in result.text


INCOMPLETE = [
    ({"properties": {}}, "tools[0].parameters", "type"),
    ({"type": "object"}, "tools[0].parameters", "properties"),
    ({"type": "object", "properties": {"city": {}}, "required": ["town"]}, "tools[0].parameters.required", "town"),
]


@pytest.mark.parametrize(("schema", "path", "word"), INCOMPLETE)
def test_an_incomplete_definition_is_named(schema, path, word):
    found = check_tools([Tool("f", "does", schema)], DIALECTS["openai-chat"].tools)
    assert any(one.path.startswith(path) and word in one.message for one in found)


async def test_one_that_would_be_refused_is_an_error_before_it_is_sent():
    request = await leg()
    request.tools = [Tool("get_weather", None, {"properties": {}})]
    with pytest.raises(BadRequest, match=r'tools\[0\]\.parameters: the type is missing; it must be "object"'):
        encode_request(request, "anthropic")


async def test_from_the_command_line(tmp_path):
    (tmp_path / "second.json").write_bytes(encode_request(await leg(), "openai-chat"))
    done = run("convert-request", "--from", "openai-chat", "--to", "anthropic", str(tmp_path / "second.json"))
    assert done.returncode == 0
    messages = json.loads(done.stdout)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"][-1] == {
        "type": "tool_use",
        "id": "call_1",
        "name": "get_weather",
        "input": {"city": "Reykjavík"},
    }
    assert messages[2]["content"][0]["tool_use_id"] == "call_1"
