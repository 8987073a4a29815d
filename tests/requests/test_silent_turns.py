"""What says nothing makes no message, and what is said twice makes one call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import StreamReport
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

TARGETS = ["openai-chat", "anthropic", "bedrock", "gemini", "gemini-interactions", "cohere", "mistral", "ollama"]
TOOL = {"type": "function", "name": "exec", "description": "d", "parameters": {"type": "object", "properties": {}}}
CHAT_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def turns_of(body: dict[str, Any]) -> list[Any]:
    return next(body[name] for name in ("messages", "contents", "input") if name in body)


#: Items of Responses that are no message and no call.
ITEMS = [
    {"type": "additional_tools", "role": "developer", "tools": [{**TOOL, "strict": False}]},
    {"type": "configuration_update", "reasoning": {"effort": "low"}},
    {"type": "message", "role": "user", "content": []},
    {"type": "message", "role": "user", "content": ""},
    {"type": "message", "role": "assistant", "content": []},
    {"type": "reasoning", "summary": [], "encrypted_content": "x"},
    {"type": "reasoning", "summary": []},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "hologram_call", "x": 1},
]


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["type"])
def test_an_item_that_says_nothing_makes_no_message(item, to):
    said = [{"role": "user", "content": "pwd"}]
    plain, _ = translate({"model": "m", "input": said}, "openai-responses", to)
    for placed in ([item, *said], [*said, item, {"role": "user", "content": "now"}]):
        found, report = translate({"model": "m", "input": placed}, "openai-responses", to)
        texts = json.dumps(turns_of(found))
        assert '""' not in texts, found
        assert texts.count("pwd") == 1
        assert report.losses or report.repairs or item == {"type": "reasoning", "summary": []}
    if to != "gemini-interactions":  # which writes a lone text as the input
        assert turns_of(translate({"model": "m", "input": [item, *said]}, "openai-responses", to)[0]) == turns_of(plain)


def test_the_tools_of_an_item_are_offered():
    body = {"model": "m", "input": [ITEMS[0], {"role": "user", "content": "pwd"}]}
    found, _ = translate(body, "openai-responses", "openai-chat")
    assert [tool["function"]["name"] for tool in found["tools"]] == ["exec"]
    assert faults("openai-chat", found) == []


#: A turn without content in each dialect that can say one, between two that say something.
EMPTY = {
    "openai-chat": {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": ""}, {"role": "user", "content": "b"}]},
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": []}, {"role": "user", "content": "b"}]},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": []}, {"role": "user", "content": [{"text": "b"}]}]},
    "gemini": {"contents": [{"parts": [{"text": "a"}]}, {"role": "model", "parts": []}, {"parts": [{"text": "b"}]}]},
    "ollama": {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}]},
    "ag-ui": {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "a"}, {"id": "2", "role": "user", "content": ""}, {"id": "3", "role": "user", "content": "b"}]},
    "ai-sdk": {"messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "a"}]}, {"id": "2", "role": "assistant", "parts": []}, {"id": "3", "role": "user", "parts": [{"type": "data-x", "data": 1}]}, {"id": "4", "role": "user", "parts": [{"type": "text", "text": "b"}]}]},
}  # fmt: skip


@pytest.mark.parametrize("to", [*TARGETS, "openai-responses"])
@pytest.mark.parametrize("source", EMPTY)
def test_a_turn_without_content_makes_no_message(source, to):
    if source == to:
        return
    found, report = translate({"model": "m", **EMPTY[source]}, source, to)
    assert '""' not in json.dumps(turns_of(found))
    assert report.repairs["turn_empty"] == 1
    assert DIALECTS[to].bodies is not None


# -- states of one call ------------------------------------------------------------------------------------------------


def part(state: str, call_id: str = "t1", given: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": "tool-f", "toolCallId": call_id, "state": state, "input": {"a": given}, **more}


APPROVED = part("approval-responded", approval={"id": "ap1", "approved": True})
DONE = part("output-available", output={"ok": 1})
FAILED = part("output-error", errorText="no")
STEP = {"type": "step-start"}
#: Parts of one message, and what is left of them: the calls, and what their tools said.
STATES = {
    "approved, and done": ([STEP, APPROVED, DONE], ["t1"], ['{"ok":1}']),
    "done, and approved": ([STEP, DONE, APPROVED], ["t1"], ['{"ok":1}']),
    "done in the next step": ([STEP, APPROVED, STEP, DONE], ["t1"], ['{"ok":1}']),
    "from the first to the last": (
        [part("input-streaming"), part("input-available"), part("approval-requested"), APPROVED, DONE],
        ["t1"],
        ['{"ok":1}'],
    ),
    "two outcomes": ([FAILED, DONE], ["t1"], ['{"ok":1}']),
    "another name for the same tool": (
        [APPROVED, {**DONE, "type": "dynamic-tool", "toolName": "f"}],
        ["t1"],
        ['{"ok":1}'],
    ),
    "an output on its way": ([part("output-available", output=0, preliminary=True), DONE], ["t1"], ['{"ok":1}']),
}


@pytest.mark.parametrize("name", STATES)
def test_several_states_of_a_call_are_one_call(name):
    parts, calls, outputs = STATES[name]
    found, report = ui(parts)
    blocks = [block for message in found["messages"] for block in message["content"] if isinstance(block, dict)]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == calls
    assert [block["content"] for block in blocks if block["type"] == "tool_result"] == outputs
    assert report.repairs["said_twice"] == len([each for each in parts if "toolCallId" in each]) - 1
    assert not report.losses["call_withheld"]


def ui(parts: list[Any], **options: Any) -> tuple[Any, StreamReport]:
    said = [{"type": "text", "text": "Go"}]
    messages = [{"id": "1", "role": "user", "parts": said}, {"id": "2", "role": "assistant", "parts": parts}]
    return translate(
        {"messages": [*messages, {"id": "3", "role": "user", "parts": said}]}, "ai-sdk", "anthropic", **options
    )


def test_an_id_that_a_provider_gave_to_two_calls_is_of_two():
    found, report = ui([STEP, DONE, STEP, part("output-available", given=2, output="x")], repair=True)
    calls = [block for message in found["messages"] for block in message["content"] if isinstance(block, dict)]
    assert [block["input"] for block in calls if block["type"] == "tool_use"] == [{"a": 1}, {"a": 2}]
    assert report.repairs["id_duplicate"] == 1
    assert "said_twice" not in report.repairs


# -- calls and results that are said again -----------------------------------------------------------------------------


def chat_call(arguments: str = "{}", call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def chat_turn(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def chat_answer(content: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


GO = {"role": "user", "content": "Go"}
#: Messages of Chat, the ids of the calls that are left, what is left of their results, and how much was said again.
AGAIN = {
    "a call twice in a message": ([GO, chat_turn(chat_call(), chat_call()), chat_answer("1")], ["c1"], ["1"], 1),
    "a call in two messages": ([GO, chat_turn(chat_call()), chat_turn(chat_call()), chat_answer("1")], ["c1"], ["1"], 1),
    "a call again behind its result": ([GO, chat_turn(chat_call()), chat_answer("1"), chat_turn(chat_call())], ["c1"], ["1"], 1),
    "a call that waits": ([GO, chat_turn(chat_call()), chat_turn(chat_call())], ["c1"], [], 1),
    "a result twice": ([GO, chat_turn(chat_call()), chat_answer("1"), chat_answer("1")], ["c1"], ["1"], 1),
    "two states of a result": ([GO, chat_turn(chat_call()), chat_answer("wait"), chat_answer("1")], ["c1"], ["1"], 1),
    "of two calls": (
        [GO, chat_turn(chat_call(), chat_call(call_id="c2")), chat_answer("1"), chat_answer("2", "c2"), chat_answer("3")],
        ["c1", "c2"],
        ["2", "3"],
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGAIN)
def test_what_a_client_says_again_is_said_once(name):
    messages, calls, answers, again = AGAIN[name]
    found, report = translate({"model": "m", "messages": messages, "tools": [CHAT_TOOL]}, "openai-chat", "anthropic")
    blocks = [block for message in found["messages"] for block in message["content"] if isinstance(block, dict)]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == calls
    assert [block["content"] for block in blocks if block["type"] == "tool_result"] == answers
    assert report.repairs["said_twice"] == again
    assert faults("anthropic", found) == []


#: The same in the dialects of user interfaces, of agents, and of Claude: a call, and its result, each twice.
TWICE = {
    "openai-responses": {"model": "m", "input": [
        {"role": "user", "content": "Go"},
        *[{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}] * 2,
        *[{"type": "function_call_output", "call_id": "c1", "output": "1"}] * 1,
    ]},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}] * 2},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1"}]},
    ]},
    "ag-ui": {"threadId": "t", "runId": "r", "messages": [
        {"id": "1", "role": "user", "content": "Go"},
        {"id": "2", "role": "assistant", "toolCalls": [chat_call()]},
        {"id": "3", "role": "assistant", "toolCalls": [chat_call()]},
        {"id": "4", "role": "tool", "toolCallId": "c1", "content": "1"},
    ]},
    "bedrock": {"messages": [
        {"role": "user", "content": [{"text": "Go"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}] * 2},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "1"}]}}]},
    ]},
}  # fmt: skip


@pytest.mark.parametrize("source", TWICE)
def test_so_in_every_dialect(source):
    found, report = translate(TWICE[source], source, "openai-chat")
    assert json.dumps(found).count('"c1"') == 2  # the call and its result
    assert report.repairs["said_twice"] == 1


def test_calls_that_share_an_id_and_have_a_result_each_stay_two():
    messages = [GO, chat_turn(chat_call(), chat_call()), chat_answer("1"), chat_answer("2")]
    found, report = translate({"model": "m", "messages": messages}, "openai-chat", "anthropic", repair=True)
    assert report.repairs["id_duplicate"] == 1
    assert json.dumps(found).count('"tool_use"') == 2


def test_within_a_dialect_its_server_judges():
    messages = [GO, chat_turn(chat_call()), chat_answer("1"), chat_answer("2")]
    with pytest.raises(BadRequest, match="has two results"):
        translate({"model": "m", "messages": messages}, "openai-chat", "openai-chat")
