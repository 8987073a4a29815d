"""What reports of 2026 say that gateways write of a request, and what is written here. Rows of the catalogue name this test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request

A = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = [{"name": "f", "input_schema": A}]
FUNCTIONS = [{"type": "function", "function": {"name": name, "parameters": A}} for name in "fg"]
GO, AND = {"role": "user", "content": "Go"}, {"role": "user", "content": "And?"}


def use(id: str, value: int = 1) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "f", "input": {"a": value}}


def result(id: str, content: Any = "42", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def claude(*blocks: Any, results: Any = (), **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": [*blocks]}
    answered = [{"role": "user", "content": [*results]}] if results else [AND]
    return {"model": "m", "max_tokens": 99, "messages": [GO, said, *answered], "tools": TOOLS, **more}


def call(id: str, value: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": f'{{"a":{value}}}'}, **more}


def chat(*calls: Any, **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, "tool_calls": [*calls]}
    answered = [{"role": "tool", "tool_call_id": each["id"], "content": "42"} for each in calls]
    return {"model": "m", "messages": [GO, *([said, *answered] if calls else []), AND], **more}


def signed(blob: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": blob}}}


THOUGHT = {"type": "thinking", "thinking": "Look.", "signature": seal("reasoning", "openai", "gAAA")}
LIMITED = {"type": "object", "properties": {"mode": {"const": "safe"}, "n": {"type": "integer", "exclusiveMinimum": 0}}}
SEARCH = {
    "type": "tool-web_search", "toolCallId": "srvtoolu_1", "state": "output-error", "providerExecuted": True, "rawInput": '{"q":',
    "errorText": "Invalid input",
}  # fmt: skip
KIMI = claude(use("Bash:0"), use("Bash:1", 2), results=[result("Bash:0"), result("Bash:1")])

#: By report: the dialects, the request, what must stand in what is written and what must not, and what is counted.
ROWS: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...], tuple[str, ...], Mapping[str, int]]] = {
    "results of tool references, and of nothing (litellm#37463)": (
        "anthropic", "gemini",
        claude(use("t1"), use("t2"), results=[result("t1", [{"type": "tool_reference", "tool_name": "Read"}]), result("t2", [])], model="gemini-3.5-flash"),
        ('"functionResponse":{"id":"t1","name":"f","response":{"output":"Found the tool Read."}}', '"functionResponse":{"id":"t2","name":"f","response":{"output":""}}'),
        (), {"signature_excused": 1, "metadata": 1},
    ),
    "a result that is an error (sglang#32610)": (
        "anthropic", "openai-chat", claude(use("t1"), results=[result("t1", "exit 1", is_error=True)]), ('"content":"Error: exit 1"',), (), {"result_error": 1},
    ),
    "a choice of some tools (any-llm#1352)": (
        "openai-chat", "gemini",
        chat(tools=FUNCTIONS, tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}}),
        ('"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}',), (), {"turns_joined": 1},
    ),
    "a result without its call (agno#9376)": (
        "openai-responses", "anthropic", {"model": "m", "input": [{"type": "function_call_output", "call_id": "c0", "output": "42"}, AND]},
        ('"messages":[{"role":"user","content":"And?"}]',), (), {"result_orphaned": 1},
    ),
    "reasoning that nothing follows (qwen-code#8169)": (
        "anthropic", "openai-responses", claude(THOUGHT), ('"content":"And?"',), ('"reasoning"',), {"reasoning_history": 1},
    ),
    "reasoning that a call follows (qwen-code#8169)": (
        "anthropic", "openai-responses", claude(THOUGHT, use("t1"), results=[result("t1")]), ('"encrypted_content":"gAAA"},{"type":"function_call"',), (), {},
    ),
    "reasoning in two items, before a text (qwen-code#8169)": (
        "anthropic", "openai-responses", claude(THOUGHT, THOUGHT, {"type": "text", "text": "Hi"}), ('"gAAA"},{"type":"reasoning"', '"gAAA"},{"role":"assistant"'), (), {},
    ),
    "a schema that allows one value (new-api#7455)": (
        "openai-chat", "gemini", chat(tools=[{"type": "function", "function": {"name": "f", "parameters": LIMITED}}]), ('"mode":{"enum":["safe"]}',), (),
        {"turns_joined": 1, "schema_keyword": 1},
    ),
    "calls without tools (ironclaw#1710)": (
        "openai-chat", "bedrock", chat(call("c1")), ('"toolUseId":"c1"', '"toolConfig":{"tools":[{"toolSpec":{"name":"f"'), (), {"tool_declared": 1},
    ),
    "signatures of parallel calls (OmniRoute#11510)": (
        "openai-chat", "gemini", chat(call("c1", **signed("c2lnMQ==")), call("c2", 2, **signed("c2lnMg==")), tools=FUNCTIONS),
        ('"args":{"a":1}},"thoughtSignature":"c2lnMQ=="', '"args":{"a":2}},"thoughtSignature":"c2lnMg=="'), (), {},
    ),
    "a failed search of the provider's own (ai#17366)": (
        "ai-sdk", "anthropic",
        {"model": "m", "messages": [
            {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Go"}]},
            {"id": "2", "role": "assistant", "parts": [{"type": "step-start"}, SEARCH, {"type": "text", "text": "I could not."}]},
            {"id": "3", "role": "user", "parts": [{"type": "text", "text": "And?"}]},
        ]},
        ('"content":"I could not."',), ("srvtoolu_1",), {"server_tool": 1},
    ),
    "ids of another provider's, back to Claude (claude-code-router#1808)": (
        "anthropic", "anthropic", KIMI | {"model": "claude-opus-4-7"}, ('"tool_use_id":"call_',), ("Bash:0", "Bash:1"), {"id_rewritten": 2},
    ),
    "the same, for their own model (claude-code-router#1808)": ("anthropic", "anthropic", KIMI | {"model": "kimi-k3"}, ('"id":"Bash:0"', '"tool_use_id":"Bash:1"'), (), {}),
}  # fmt: skip


@pytest.mark.parametrize(("source", "target", "body", "holds", "lacks", "counted"), ROWS.values(), ids=ROWS)
def test_what_is_written_of_a_request(source, target, body, holds, lacks, counted):
    report = StreamReport()
    request = decode_request(orjson.dumps(body), source, report=report)
    written = orjson.dumps(orjson.loads(encode_request(request, target, repair=True, report=report))).decode()
    assert [part for part in holds if part not in written] == []
    assert [part for part in lacks if part in written] == []
    assert {**report.repairs, **report.losses} == counted
