"""Prompts are marked for the cache of a provider that needs marks, for clients that set none."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request

MARK = {"cache_control": {"type": "ephemeral"}}
WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
POINT = {"cachePoint": {"type": "default"}}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CALLS = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in ("c1", "c2")]
#: A system prompt, a question, two calls with their results, and a tool.
CHAT: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "messages": [
        {"role": "system", "content": "be"},
        {"role": "user", "content": "zero"},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": CALLS},
        *({"role": "tool", "tool_call_id": call["id"], "content": call["id"]} for call in CALLS),
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
}
CLAUDE: dict[str, Any] = {
    "model": "claude-sonnet-4-5", "max_tokens": 9, "system": "be", "messages": [{"role": "user", "content": "one"}],
}  # fmt: skip


def written(body: dict[str, Any], source: str, target: str, model: str | None = None, cache: Any = "auto"):
    request, report = decode_request(orjson.dumps(body), source), StreamReport()
    request.model = model or request.model
    return orjson.loads(encode_request(request, target, cache=cache, report=report)), report


def marked(value: Any) -> list[str]:
    """What stands before each mark, in the order of the body: the text or the name next to it."""
    found: list[str] = []
    if isinstance(value, dict):
        for inner in value.values():
            found += marked(inner)
        if "cache_control" in value:
            found.append(str(value.get("text") or value.get("name") or value.get("content")))
    for at, item in enumerate(value if isinstance(value, list) else ()):
        found += [orjson.dumps(value[at - 1]).decode()] if item == POINT else marked(item)
    return found


@pytest.mark.parametrize(
    ("target", "model", "marks"),
    [
        ("anthropic", None, ["be", "one", "c2", "f"]),
        ("openrouter", "anthropic/claude-sonnet-4.5", ["be", "one", "c2"]),
        ("bedrock", "anthropic.claude-sonnet-4-5-v1:0", ['{"text":"one"}', "c2", '{"text":"be"}', "toolSpec"]),
        ("bedrock", "amazon.nova-pro-v1:0", ['{"text":"one"}', "c2", '{"text":"be"}']),
        ("bedrock", "meta.llama4-maverick", []),
        ("openai-chat", "gpt-6", []),
        ("openai-responses", "gpt-6.1", []),
        ("gemini", "gemini-2.5-pro", []),
    ],
)
def test_the_tools_the_system_prompt_and_the_last_two_user_turns_are_marked(target, model, marks):
    body, report = written(CHAT, "openai-chat", target, model)
    found = marked(body)
    assert len(found) == len(marks)
    assert all(mark in text for mark, text in zip(marks, found, strict=True))
    assert "cache_mark" not in report.losses
    assert marked(written(CHAT, "openai-chat", target, model, "off")[0]) == []


def test_results_and_what_the_user_said_after_them_are_one_turn():
    body, _ = written(
        {**CHAT, "messages": [*CHAT["messages"], {"role": "user", "content": "more"}]}, "openai-chat", "anthropic"
    )
    assert marked(body) == ["be", "one", "more", "f"]


@pytest.mark.parametrize(
    ("source", "target", "body", "marks"),
    [
        ("anthropic", "anthropic", CLAUDE, 2),
        ("anthropic", "openrouter", CLAUDE, 2),
        ("openai-chat", "openrouter", CHAT, 3),
        ("anthropic", "anthropic", {**CLAUDE, **MARK}, 1),  # the client asks for marks where the provider puts them
        ("anthropic", "anthropic", {**CLAUDE, "system": [{"type": "text", "text": "be", **MARK}]}, 1),
        ("anthropic", "anthropic", {**CLAUDE, "tools": [{"name": "f", "input_schema": {"type": "object"}, **MARK}]}, 1),
        ("openai-chat", "openrouter", {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **MARK}]}]}, 1),
        ("anthropic", "anthropic", {**CLAUDE, "tools": [{"name": "f", "input_schema": {"type": "object"}}, WEB_SEARCH]}, 3),
        ("bedrock", "bedrock", {"messages": [{"role": "user", "content": [{"text": "a"}, POINT]}], "system": [{"text": "b"}]}, 1),
        ("bedrock", "bedrock", {"messages": [{"role": "user", "content": [{"text": "a"}]}], "system": [{"text": "b"}]}, 2),
    ],
)  # fmt: skip
def test_a_client_that_sets_a_mark_gets_no_other(source, target, body, marks):
    found, report = written(body, source, target, "anthropic.claude-sonnet-4-5-v1:0" if source == "bedrock" else None)
    assert len(marked(found)) == marks
    assert "cache_mark" not in report.losses
