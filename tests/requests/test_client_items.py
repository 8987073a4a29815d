"""Items of Responses that the client runs or approves: calls and results in other dialects, as they came within their own."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.report import StreamReport
from tests.laws.running import read

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
        "roll", {"sides": 6.0}, "not approved: no games",
    ),
}  # fmt: skip
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
CLICKED = (
    {"type": "computer_call", "id": "cu", "call_id": "c1", "status": "completed", "actions": [{"type": "wait"}]},
    {"type": "computer_call_output", "call_id": "c1", "output": SCREENSHOT},
)


def written(items: list[Any], target: str) -> tuple[Any, StreamReport]:
    report = StreamReport()
    request = decode_request(orjson.dumps({"model": "m", "input": items}), "openai-responses")
    return orjson.loads(encode_request(request, target, max_tokens=9, report=report)), report


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


@pytest.mark.parametrize("name", [*ITEMS, "a computer"])
def test_an_answer_that_waits_for_the_client_ends_for_calls_and_is_no_tool_of_the_server(name):
    item = CLICKED[0] if name == "a computer" else ITEMS[name][0]
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
    response = decode_response(orjson.dumps(body), "openai-responses")
    assert response.choices[0].stop_reason == "tool_calls"
    report = StreamReport()
    encode_response(response, "openai-chat", report=report)
    assert {"client_tool", "stop_reason"} <= set(
        report.losses
    )  # the call has no form there, and its client waits for none
    assert not report.losses["server_tool"]
    again = orjson.loads(encode_response(response, "openai-responses"))
    assert (again["status"], again["output"]) == ("completed", [item])


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
