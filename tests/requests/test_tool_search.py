"""A search of tools that the client of Responses runs: a function elsewhere, and an item again in what its client gets."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.restore import restore_response_calls
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.testing import FaultySource
from streamkit.translation.bodies import decode_request, decode_response, encode_response
from tests.requests.rows import translate
from tests.requests.sdk_types import faults
from tests.whole_answers import ANSWERING_WHOLE

RESPONSES = "openai-responses"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": SCHEMA}
ADD = {"type": "function", "name": "add", "description": "Adds.", "parameters": SCHEMA, "strict": False}
CALL = {
    "type": "tool_search_call", "call_id": "s1", "execution": "client", "status": "completed", "arguments": {"query": "sum"},
}  # fmt: skip
FOUND = {
    "type": "tool_search_output", "call_id": "s1", "execution": "client", "status": "completed",
    "tools": [{"type": "namespace", "name": "mcp__sums", "description": "d", "tools": [ADD]}],
}  # fmt: skip
BODY = {"model": "m", "tools": [SEARCH], "input": [{"role": "user", "content": "Go"}, CALL, FOUND]}
#: Dialects of providers, each with official types.
OTHERS = ["openai-chat", "anthropic", "gemini", "gemini-interactions", "bedrock", "ollama", "mistral", "cohere"]


@pytest.mark.parametrize("target", OTHERS)
def test_the_search_is_a_function_and_what_it_found_its_result(target):
    body, report = translate(BODY, RESPONSES, target, emulate=True)
    assert faults(target, body) == []
    again = decode_request(orjson.dumps(body), target)
    assert [tool.name for tool in again.tools] == ["tool_search", "mcp__sums__add"]
    assert (again.tools[0].description, again.tools[0].parameters) == ("Finds tools.", SCHEMA)
    (call,) = [part for part in again.turns[1].parts if hasattr(part, "arguments")]
    (result,) = again.turns[2].parts
    assert (call.name, orjson.loads(call.arguments)) == ("tool_search", {"query": "sum"})
    said = orjson.loads(result.text)
    assert (said.get("output") if isinstance(said, dict) else said) == [
        {"name": "mcp__sums__add", "description": "Adds."}
    ]
    assert not report.losses.keys() & {"tool_definition", "client_tool", "server_tool", "unknown_event"}


def test_within_responses_all_stays_as_it_came():
    body, report = translate(BODY, RESPONSES, RESPONSES, emulate=True)
    assert body == BODY
    assert not report.losses


def test_a_search_that_the_server_runs_is_no_function():
    tool, call = {"type": "tool_search"}, {**CALL, "execution": "server", "call_id": None, "id": "ts_1"}
    body, report = translate(
        {**BODY, "tools": [tool], "input": [BODY["input"][0], call]}, RESPONSES, "openai-chat", emulate=True
    )
    assert "tools" not in body
    assert report.losses == {"tool_definition": 1, "server_tool": 1}


def test_it_can_be_demanded_by_name():
    body, _ = translate({**BODY, "tool_choice": {"type": "tool_search"}}, RESPONSES, "openai-chat", emulate=True)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "tool_search"}}


# -- what the model calls ----------------------------------------------------------------------------------------------


def chat(arguments: str, *, stream: bool, finish: str = "tool_calls") -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "tool_search", "arguments": arguments}}
    head = {"id": "x", "created": 1, "model": "m"}
    if not stream:
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return orjson.dumps({**head, "object": "chat.completion", "choices": [choice]})
    deltas = [({"role": "assistant", "tool_calls": [{"index": 0, **call}]}, None), ({}, finish)]
    frames = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    return b"".join(b"data: %b\n\n" % orjson.dumps(frame) for frame in frames) + b"data: [DONE]\n\n"


async def answered(arguments: str, *, stream: bool, finish: str = "tool_calls") -> dict[str, Any]:
    """The response that the client gets for what another dialect's model called."""
    tools = decode_request(orjson.dumps(BODY), RESPONSES).tools
    body = chat(arguments, stream=stream, finish=finish)
    if not stream:
        response = decode_response(body, "openai-chat")
        restore_response_calls(response, tools)
        return orjson.loads(encode_response(response, RESPONSES))
    out = b""
    async with transcode(FaultySource([body]), "openai-chat", RESPONSES, ReadOptions(tools=tools)) as pipe:
        async for each in pipe:
            out += each
    (last,) = [line for line in out.split(b"\n") if line.startswith(b"data: ") and b'"type":"response.' in line][-1:]
    return orjson.loads(last.removeprefix(b"data: "))["response"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_of_it_is_the_item_for_its_client(stream):
    response = await answered('{"query": "sum"}', stream=stream)
    (item,) = response["output"]
    assert {**item, "id": None} == {**CALL, "call_id": "c1", "id": None}
    assert response["status"] == "completed"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_was_cut_is_no_item_that_a_client_runs(stream):
    response = await answered('{"query": "su', stream=stream, finish="length")
    assert response["status"] == "incomplete"
    assert [(item["type"], item["status"]) for item in response["output"]] == [("function_call", "incomplete")]


@pytest.mark.parametrize("target", ANSWERING_WHOLE)
def test_a_whole_interaction_that_waits_for_it_is_an_error_elsewhere(target):
    step = {"type": "tool_search_call", "id": "t1", "arguments": {"query": "sum"}}
    body = {"id": "i", "object": "interaction", "status": "requires_action", "model": "m", "steps": [step]}
    response = decode_response(orjson.dumps(body), "gemini-interactions")
    assert (response.choices[0].stop_reason, response.report.repairs) == ("tool_calls", {})
    written = encode_response(response, target)
    if target == "gemini-interactions":
        assert orjson.loads(written) == body
    else:
        assert b"the model called tool_search_call" in written
        assert not decode_response(written, target).clean
