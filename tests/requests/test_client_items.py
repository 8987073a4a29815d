"""Items of Responses that the client runs or approves: calls and results in other dialects, as they came within their own."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Media, Request, Response, Text, ToolCall, ToolResult, Turn
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response, encode_request, encode_response
from tests.laws.running import read
from tests.requests.rows import translate
from tests.whole_answers import ANSWERING_WHOLE

ASKED = {"role": "user", "content": "Do it."}
#: The item, its answer, the name and arguments of the call, and the text of the result.
ITEMS: dict[str, tuple[dict[str, Any], dict[str, Any], str, dict[str, Any], str]] = {
    "a local shell": (
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
        "local_shell", {"type": "exec", "command": ["ls"], "env": {}}, "a.txt",
    ),
    "a shell": (
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        "shell", {"commands": ["ls", "pwd"], "timeout_ms": 1000},
        '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]',
    ),
    "a patch": (
        {"type": "apply_patch_call", "call_id": "c1", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "gone"},
        "apply_patch", {"type": "delete_file", "path": "a"}, "gone",
    ),
    "an approval": (
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "roll", "arguments": '{"sides": 6.0}', "server_label": "dice"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "no games"},
        "mcp_approval_request", {"server_label": "dice", "name": "roll", "arguments": {"sides": 6.0}}, "not approved: no games",
    ),
}  # fmt: skip
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
CLICKED = (
    {"type": "computer_call", "id": "cu", "call_id": "c1", "status": "completed", "actions": [{"type": "wait"}]},
    {"type": "computer_call_output", "call_id": "c1", "output": SCREENSHOT},
)


def written(items: list[Any], target: str) -> tuple[Any, StreamReport]:
    return translate({"model": "m", "input": items}, "openai-responses", target, max_tokens=9)


@pytest.mark.parametrize("name", ITEMS)
def test_in_a_history_for_another_dialect_they_are_a_call_and_its_result(name):
    item, answer, tool, arguments, said = ITEMS[name]
    body, report = written([ASKED, item, answer], "openai-chat")
    _, call, result = body["messages"]
    function = call["tool_calls"][0]["function"]
    assert (function["name"], orjson.loads(function["arguments"])) == (tool, arguments)
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert result["content"] == said
    assert not report.losses["server_tool"] + report.losses["client_tool"] + report.losses["unknown_event"]


def test_what_a_computer_showed_is_the_image_of_a_result():
    body, _ = written([ASKED, *CLICKED], "anthropic")
    use = body["messages"][1]["content"][0]
    assert (use["name"], use["input"]) == ("computer", {"actions": [{"type": "wait"}]})
    assert body["messages"][2]["content"][0]["content"][0]["type"] == "image"


@pytest.mark.parametrize("name", ITEMS)
def test_within_their_dialect_they_stay_as_they_came(name):
    item, answer, *_ = ITEMS[name]
    assert written([ASKED, item, answer], "openai-responses")[0]["input"] == [ASKED, item, answer]
    assert written([ASKED, item], "openai-responses")[0]["input"] == [ASKED, item]  # that nobody answered yet


def answered(name: str) -> Response:
    """A whole answer that asks its client for one of them."""
    item = CLICKED[0] if name == "a computer" else ITEMS[name][0]
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
    return decode_response(orjson.dumps(body), "openai-responses")


@pytest.mark.parametrize("name", [*ITEMS, "a computer"])
def test_an_answer_that_waits_for_the_client_ends_for_calls_and_is_no_tool_of_the_server(name):
    item = CLICKED[0] if name == "a computer" else ITEMS[name][0]
    response = answered(name)
    assert response.choices[0].stop_reason == "tool_calls"
    report = StreamReport()
    told = orjson.loads(encode_response(response, "openai-chat", report=report))["choices"][0]
    [call] = told["message"]["tool_calls"]
    expected = ITEMS[name][2:4] if name in ITEMS else ("computer", {"actions": [{"type": "wait"}]})
    assert (call["function"]["name"], orjson.loads(call["function"]["arguments"])) == expected
    assert told["finish_reason"] == "tool_calls"
    assert report.losses == {"client_tool": 1}  # its form
    again = orjson.loads(encode_response(response, "openai-responses"))
    assert (again["status"], again["output"]) == ("completed", [item])


@pytest.mark.parametrize("target", [name for name in ANSWERING_WHOLE if name != "openai-responses"])
@pytest.mark.parametrize("name", [*ITEMS, "a computer"])
def test_no_dialect_says_that_the_turn_is_done(name, target):
    report = StreamReport()
    body = encode_response(answered(name), target, report=report)
    again = decode_response(body, target)
    assert (again.choices[0].stop_reason, len(again.tool_calls)) == ("tool_calls", 1)
    assert again.clean
    assert not report.losses["stop_reason"] + report.losses["server_tool"]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "bedrock", "cohere"])
@pytest.mark.parametrize("name", [*ITEMS, "a computer"])
def test_what_was_a_call_in_an_answer_is_the_item_again(name, target):
    """A client of another dialect answers the call, and sends both back."""
    item, output = CLICKED if name == "a computer" else ITEMS[name][:2]
    [call] = decode_response(encode_response(answered(name), target), target).tool_calls
    said = [Text(ITEMS[name][4])] if name in ITEMS else [Media("image", "image/png", "iVBORw0KGgo=")]
    turns = [Turn("user", [Text("Do it.")]), Turn("assistant", [call]), Turn("user", [ToolResult(call.id, said)])]
    report = StreamReport()
    written = encode_request(Request(target, "m", turns), "openai-responses", report=report)
    _, item_again, output_again = orjson.loads(written)["input"]
    made = {"pending_safety_checks": []} if name == "a computer" else {}
    assert {**item_again, "id": None} == {**item, **made, "id": None}
    assert output_again == output
    assert not report.losses


APPROVAL = ToolCall(
    0,
    "streamkit_mcp_approval_request_mcpr_1",
    "mcp_approval_request",
    '{"server_label":"dice","name":"roll","arguments":{}}',
)
OUTPUTS: dict[str, tuple[ToolCall, ToolResult, dict[str, Any]]] = {
    "a plain word approves": (APPROVAL, ToolResult("", [Text("approved")]), {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}),
    "an object approves": (APPROVAL, ToolResult("", [Text('{"approve": true}')]), {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}),
    "an error approves nothing": (APPROVAL, ToolResult("", [Text("approved")], is_error=True), {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "approved"}),
    "any other text is a reason": (APPROVAL, ToolResult("", [Text("Unknown tool")]), {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "Unknown tool"}),
    "a text of a shell": (ToolCall(0, "streamkit_shell_c1", "shell", '{"commands":["ls"]}'), ToolResult("", [Text("a")]), {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
    "a shell that failed": (ToolCall(0, "streamkit_shell_c1", "shell", '{"commands":["ls"]}'), ToolResult("", [Text("a")], is_error=True), {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]}),
    "a patch that failed": (ToolCall(0, "streamkit_apply_patch_c1", "apply_patch", '{"type":"delete_file","path":"a"}'), ToolResult("", [Text("no")], is_error=True), {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no"}),
    "a computer that showed nothing": (ToolCall(0, "streamkit_computer_c1", "computer", '{"type":"wait"}'), ToolResult("", [Text("no")]), {"type": "function_call_output", "call_id": "streamkit_computer_c1", "output": "no"}),
    "another tool": (ToolCall(0, "streamkit_shell_c1", "f", '{"x":1}'), ToolResult("", [Text("a")]), {"type": "function_call_output", "call_id": "streamkit_shell_c1", "output": "a"}),
    "no arguments that an item could have": (ToolCall(0, "streamkit_mcp_approval_request_c1", "mcp_approval_request", '{"x":1}'), ToolResult("", [Text("approved")]), {"type": "function_call_output", "call_id": "streamkit_mcp_approval_request_c1", "output": "approved"}),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_result_is_what_answers_the_item(name):
    call, result, output = OUTPUTS[name]
    result = evolve(result, call_id=call.id)
    turns = [Turn("user", [Text("Do it.")]), Turn("assistant", [call]), Turn("user", [result])]
    _, item, answer = orjson.loads(encode_request(Request("openai-chat", "m", turns), "openai-responses"))["input"]
    assert answer == output
    assert (item["type"] == "function_call") == (output["type"] == "function_call_output")


@pytest.mark.parametrize("name", [*ITEMS, "a computer"])
def test_a_stream_that_waits_for_the_client_ends_for_calls(name):
    item = CLICKED[0] if name == "a computer" else ITEMS[name][0]
    response = {"id": "r", "object": "response", "model": "m", "output": []}
    events = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}},
    ]
    body = b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps({**event, "sequence_number": number}))
        for number, event in enumerate(events)
    )
    found = read("openai-responses", [body])
    assert (found.stops[0], found.clean) == ("tool_calls", True)
    assert not found.report.repairs


def test_a_shell_that_the_server_ran_is_its_own():
    call, output, *_ = ITEMS["a shell"]
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [call, output]}
    response = decode_response(orjson.dumps(body), "openai-responses")
    assert response.choices[0].stop_reason == "stop"
