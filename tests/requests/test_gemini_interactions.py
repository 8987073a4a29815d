"""Requests for interactions: what is read of them, and what is written."""

from __future__ import annotations

from typing import Any

import pytest

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    WebSearch,
)
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import Aside, Opaque
from tests.requests.rows import NONE, Counts, Dialect, Members, Row, by_model, by_system, by_user, rows

NAME = "gemini-interactions"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
HI: dict[str, Any] = {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}
CALL: dict[str, Any] = {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}}
USER = by_user(Text("Hi"))
CALLED = ToolCall(0, "a", "f", '{"x":1.0}')
OK = ToolResult("a", [Text("ok")], "f")
INTERACTIONS = Dialect(
    NAME, {"model": "m", "input": "Hi"}, Request(NAME, "m", [USER]), Request("openai-chat", "m", [USER])
)


def said(*texts: str) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text} for text in texts]}


def result(value: Any = "ok", **members: Any) -> dict[str, Any]:
    return {"type": "function_result", "call_id": "a", "name": "f", "result": value, **members}


def sealed(kind: Any) -> dict[str, Any]:
    return {"type": "thought", "signature": seal(kind, "anthropic", kind)}


def foreign(members: Members, written: Members, losses: Counts = NONE, **more: Any) -> Row:
    """A request of another dialect. Nothing of it is stored."""
    return INTERACTIONS.of_another(members, {"store": False, **written}, losses, **more)


#: Members of a body that is written as it was.
SAME: dict[str, dict[str, Any]] = {
    "a text": {"input": "Hi"},
    "steps": {"input": [HI, said("a", "b"), said("c"), HI]},
    "an output of nothing": {"input": [HI, {"type": "model_output"}]},
    "calls": {"input": [HI, {"type": "thought", "signature": "c2ln"}, CALL, {**CALL, "id": "b"}, result(), {**result({"y": 2}), "call_id": "b"}]},
    "a signed call": {"input": [HI, {**CALL, "signature": "c2ln"}, result()]},
    "thoughts": {"input": [HI, {"type": "thought", "summary": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "signature": "c2ln"}, {"type": "thought", "summary": [{"type": "text", "text": "c"}]}, said("d")]},
    "an image in a thought": {"input": [HI, {"type": "thought", "summary": [{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}]}]},
    "media": {"input": [{"type": "user_input", "content": [{"type": "image", "mime_type": "image/png", "data": "AA==", "resolution": "low"}, {"type": "document", "uri": "gs://b/d"}, {"type": "video", "uri": "https://youtu.be/1"}]}]},
    "an image that the model made": {"input": [HI, {"type": "model_output", "content": [{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}]}]},
    "a result of contents": {"input": [HI, CALL, result([{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}], is_error=True)]},
    "a search that Google ran": {"input": [HI, {"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}}, {"type": "google_search_result", "call_id": "s", "result": []}, said("a")]},
    "members of its own": {"input": [{**HI, "mine": 1}, {**said("a"), "mine": 2}, {**CALL, "mine": 3}, result(mine=4), {"type": "thought", "signature": "c2ln", "mine": 5}]},
    "a content that nobody knows": {"input": [{"type": "user_input", "content": [{"type": "novelty", "a": 1}]}]},
    "a previous interaction": {"input": [result()], "previous_interaction_id": "v1_1"},
    "nothing but a previous interaction": {"previous_interaction_id": "v1_1", "continuation_token": "t"},
    "settings": {
        "input": "Hi", "stream": True, "store": False, "system_instruction": "rules", "service_tier": "flex", "labels": {"a": "b"}, "safety_settings": [{"type": "a", "threshold": "off"}],
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "defer_loading": True}, {"type": "google_search"}, {"type": "mcp_server", "name": "s", "url": "https://a.example"}],
        "generation_config": {"max_output_tokens": 9, "temperature": 0.5, "top_p": 0.5, "seed": 1, "stop_sequences": ["a"], "thinking_level": "low", "thinking_summaries": "auto", "tool_choice": {"allowed_tools": {"mode": "validated", "tools": ["f"], "mine": 1}}, "image_config": {"image_size": "1K"}},
        "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
    },
    "a choice": {"input": "Hi", "generation_config": {"tool_choice": "any"}, "tools": [{"type": "function", "name": "f"}]},
    "any JSON": {"input": "Hi", "response_format": {"type": "text", "mime_type": "application/json"}},
    "a form of its own": {"input": "Hi", "response_format": [{"type": "image", "image_size": "1K"}], "response_modalities": ["image"]},
    "an older form": {"input": "Hi", "response_format": SCHEMA, "response_mime_type": "application/json"},
}  # fmt: skip
#: Forms of the input, and the steps that they are.
FORMS: list[tuple[Any, Any]] = [
    ({"type": "text", "text": "Hi"}, "Hi"),
    (
        [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}],
        [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]}],
    ),
    (
        [HI, CALL, {"type": "user_input", "content": [result(), {"type": "text", "text": "so?"}]}],
        [HI, CALL, result(), {"type": "user_input", "content": [{"type": "text", "text": "so?"}]}],
    ),
    # turns, as before revision 2026-05-20
    (
        [
            {"role": "user", "content": "Hi"},
            {
                "role": "model",
                "content": [
                    {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b"},
                    CALL,
                ],
            },
            {"role": "user", "content": [result()]},
            {"role": "model", "content": "c"},
        ],
        [
            HI,
            {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
            said("a", "b"),
            CALL,
            result(),
            said("c"),
        ],
    ),
]
THOUGHT = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]}
#: Members of a body, and what they are in a request.
READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "steps": (
        {"input": [HI, THOUGHT, said("a", "b"), CALL, result(), HI], "system_instruction": "rules"},
        {"turns": [
            by_system(Text("rules")), USER, by_model(Reasoning("hm", "summary", Opaque("google", "c2ln")), Text("a"), Text("b"), CALLED),
            by_user(OK), USER,
        ]},
    ),
    "what another vendor signed": (
        {"input": [
            HI, {**sealed("reasoning"), "summary": [{"type": "text", "text": "hm"}]}, sealed("opaque"), said("a"), sealed("text"), sealed("call"),
            CALL, sealed("part"),
        ]},
        {"turns": [USER, by_model(
            Reasoning("hm", "summary", Opaque("anthropic", "reasoning")), RedactedReasoning(Opaque("anthropic", "opaque")),
            Text("a", Opaque("anthropic", "text")), ToolCall(0, "a", "f", '{"x":1.0}', signature=Opaque("anthropic", "call")),
            Text("", Opaque("anthropic", "part")),
        )]},
    ),
    "what was signed of a call that is gone": (
        {"input": [HI, sealed("call")]}, {"turns": [USER, by_model(RedactedReasoning(Opaque("anthropic", "call")))]},
    ),
    "settings": (
        {
            "stream": True, "service_tier": "flex", "labels": {"a": "b"},
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}, {"type": "google_search"}],
            "generation_config": {
                "max_output_tokens": 9, "thinking_level": "LOW", "thinking_summaries": "none",
                "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}},
            },
            "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
        },
        {
            "stream": True, "stream_usage": True, "extras": {"labels": {"a": "b"}}, "tool_choice": ToolChoice("required", ("f",)),
            "tools": [Tool("f", parameters=SCHEMA), Tool("google_search", kind="server", raw={"type": "google_search"})],
            "options": Options(9, thinking=Thinking("low", summary="none"), output=OutputFormat("schema", SCHEMA), service_tier="flex"),
        },
    ),
}  # fmt: skip
BAD = [
    ({"input": 7}, "input"),
    ({"input": [7]}, "input[0]"),
    ({"input": [{"content": []}]}, "input[0].type"),
    ({"input": [{"role": "system", "content": "Hi"}]}, "input[0].role"),
    ({"input": [{"type": "user_input", "content": [{"text": "Hi"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "image"}]}, "input[0]"),
    ({"input": [{"type": "image", "data": "?"}]}, "input[0].data"),
    ({"input": [{**CALL, "arguments": "{}"}]}, "input[0].arguments"),
    ({"input": [{**CALL, "name": None}]}, "input[0].name"),
    ({"input": [result(7)]}, "input[0].result"),
    ({"input": [{"type": "function_result", "result": "ok"}]}, "input[0].call_id"),
    ({"generation_config": {"thinking_level": "extreme"}}, "generation_config.thinking_level"),
    ({"generation_config": {"tool_choice": "some"}}, "generation_config.tool_choice"),
    ({"generation_config": {"tool_choice": {}}}, "generation_config.tool_choice.allowed_tools"),
    ({"tools": [{"name": "f"}]}, "tools[0].type"),
    ({"system_instruction": []}, "system_instruction"),
]
#: How much to think is a level.
LEVELS: list[tuple[Thinking, dict[str, str], list[str]]] = [
    (Thinking("max"), {"thinking_level": "high"}, ["thinking.effort"]),
    (Thinking("none"), {"thinking_level": "low"}, ["thinking.enabled"]),
    (Thinking(enabled=False), {"thinking_level": "low"}, ["thinking.enabled"]),
    (Thinking(budget_tokens=1024), {"thinking_level": "low"}, ["thinking.budget_tokens"]),
    (
        Thinking("high", 1024, summary="detailed"), {"thinking_level": "high", "thinking_summaries": "auto"},
        ["thinking.budget_tokens", "thinking.summary"],
    ),
]  # fmt: skip
SIGNED = [
    Reasoning("hm", "summary", Opaque("google", "c2ln")), Reasoning("no", signature=Opaque("anthropic", "s")),
    RedactedReasoning(Opaque("anthropic", "r")), ToolCall(0, "a", "f", "{}", signature=Opaque("google", "c2s=")),
]  # fmt: skip
LOST = ["presence_penalty", "logprobs", "top_logprobs"]
STORED = {
    "previous_interaction_id": "v1_1",
    "cached_content": "cachedContents/1",
    "environment": "e",
    "continuation_token": "t",
}

ROWS = {
    **rows("same", SAME, lambda members: INTERACTIONS.alike({"input": ..., **members}, {"input": ..., **members})),
    **rows("forms", FORMS, lambda given, steps: INTERACTIONS.alike({"input": given}, {"input": steps})),
    **rows("read", READ, lambda members, read: INTERACTIONS.means(members, **read)),
    **rows("bad", BAD, lambda members, path: INTERACTIONS.refused(members, path, "")),
    "a conversation is steps": foreign(
        {
            "turns": [by_system(Text("rules")), USER, by_model(Text("Look"), CALLED), by_user(OK), by_user(Text("so?"))],
            "stream": True,
        },
        {
            "input": [HI, said("Look"), CALL, result(), {"type": "user_input", "content": [{"type": "text", "text": "so?"}]}],
            "system_instruction": "rules", "stream": True,
        },
    ),
    "Google's signatures go back in thoughts": foreign(
        {"turns": [USER, by_model(*SIGNED), by_user(OK)]},
        {"input": [
            HI, {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"}, {"type": "thought", "signature": "c2s="},
            {**CALL, "arguments": {}}, result(),
        ]},
        {"reasoning_signature": 1, "reasoning_history": 1, "reasoning_opaque": 1},
    ),
    **rows("levels", LEVELS, lambda thinking, config, lost: foreign(
        {"options": Options(thinking=thinking)}, {"generation_config": config}, [("parameter", name) for name in lost]
    )),
    "what it has no place for": foreign(
        {
            "options": Options(top_logprobs=2, logprobs=True, presence_penalty=1), "tool_choice": ToolChoice(parallel=False),
            "tools": [Tool("f", parameters=SCHEMA, strict=True)],
        },
        {"generation_config": {"tool_choice": "validated"}, "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
        [*[("parameter", name) for name in LOST], ("tool_choice", "parallel")],
    ),
    "several choices": INTERACTIONS.unwritable({"options": Options(choices=2)}, "n", "one choice"),
    "media, and ids of others": foreign(
        {"turns": [by_user(
            Media("image", "image/png", data="AA=="), Media("video", url="https://a.example/v"),
            Media("file", "application/pdf", file_id="file-1"), Aside("anthropic", "unknown_event", "x", {}),
        )]},
        {"input": [{"type": "user_input", "content": [
            {"type": "image", "mime_type": "image/png", "data": "AA=="}, {"type": "video", "uri": "https://a.example/v"},
        ]}]},
        {"media": 1, "unknown_event": 1}, target={"linked_media": "drop"},
    ),
    "what only a server has": INTERACTIONS.refused(
        {"input": ..., "previous_interaction_id": "v1_1"}, "previous_interaction_id", "send all earlier steps", to="anthropic"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    INTERACTIONS.check(ROWS[name])


def test_what_only_a_server_has_is_a_reference():
    places = [each.path for each in INTERACTIONS.read(**STORED).unreadable]
    assert places == ["previous_interaction_id", "continuation_token", "cached_content", "environment"]


def test_a_search_is_one_of_the_web():
    assert INTERACTIONS.read(tools=[{"type": "google_search"}]).tools[0].search == WebSearch()
