"""Options that the server of another dialect refuses are left out and counted; what it knows by another name is carried."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import StreamReport, decode_request, encode_request

CLAUDE_CODE = json.dumps(
    {"device_id": "a" * 64, "account_uuid": "", "session_id": "2f614ef6-0f8d-413d-ba56-3dfe4b02fa88"}
)


def translated(
    source: str, to: str, provider: str | None = None, **members: Any
) -> tuple[dict[str, Any], StreamReport]:
    body: dict[str, Any] = {"model": "m", **members}
    if source == "openai-responses":
        body["input"] = "Hello"
    else:
        body["messages"] = [{"role": "user", "content": "Hello"}]
    if source == "anthropic":
        body.setdefault("max_tokens", 16_000)
    report = StreamReport()
    request = decode_request(json.dumps(body).encode(), source, report=report)
    return json.loads(encode_request(request, provider or to, report=report)), report


def lost(report: StreamReport) -> list[str]:
    return [what for _, what in report.lost]


# -- sampling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini-2025-08-07", "o3", "openai/o4-mini"])
def test_models_that_always_reason_get_no_temperature(model: str, to: str):
    body, report = translated("anthropic", to, model=model, temperature=0.2, top_p=0.9, stop_sequences=["X"])
    assert not body.keys() & {"temperature", "top_p", "stop"}
    assert lost(report) == ["temperature", "top_p", "stop"]


def test_a_default_that_is_left_out_is_no_loss():
    body, report = translated("anthropic", "openai-chat", model="gpt-5", temperature=1)
    assert "temperature" not in body
    assert not report.losses


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-4.1", "gpt-5-chat-latest", "qwen3"])
def test_models_that_do_not_reason_unasked_get_it(model: str):
    body, report = translated("anthropic", "openai-chat", model=model, temperature=0.2)
    assert body["temperature"] == 0.2
    assert not report.losses


def test_from_5_1_on_reasoning_that_was_asked_for_takes_it_away():
    asked = {"output_config": {"effort": "high"}, "temperature": 0.2}
    body, _ = translated("anthropic", "openai-chat", model="gpt-5.2", **asked)
    assert "temperature" not in body
    assert body["reasoning_effort"] == "high"


@pytest.mark.parametrize(
    ("model", "members", "kept"),
    [
        ("claude-opus-4-7", {"temperature": 0.0, "top_p": 0.5}, {}),
        ("us.anthropic.claude-sonnet-5-v1:0", {"temperature": 0.0}, {}),
        ("claude-sonnet-4-5", {"temperature": 0.2, "top_p": 0.5, "reasoning_effort": "high"}, {}),
        ("claude-sonnet-4-5", {"top_p": 0.97, "reasoning_effort": "high"}, {"topP": 0.97}),
        ("claude-sonnet-4-5", {"temperature": 0.2, "top_p": 0.5}, {"temperature": 0.2}),
        ("claude-3-5-sonnet-20241022", {"temperature": 0.2, "top_p": 0.5}, {"temperature": 0.2, "topP": 0.5}),
        ("amazon.nova-pro-v1:0", {"temperature": 0.2, "top_p": 0.5}, {"temperature": 0.2, "topP": 0.5}),
    ],
)
def test_claude_behind_bedrock(model: str, members: dict[str, Any], kept: dict[str, Any]):
    body, report = translated("openai-chat", "bedrock", model=model, **members)
    assert body.get("inferenceConfig", {}) == kept
    dropped = {"temperature", "top_p"} & members.keys() - {
        "temperature" if "temperature" in kept else "",
        "top_p" if "topP" in kept else "",
    }
    assert dropped <= set(lost(report))


# -- stop sequences, users ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("to", "name", "count"), [("openai-chat", "stop", 4), ("cohere", "stop_sequences", 5)])
def test_no_more_stop_sequences_than_the_server_takes(to: str, name: str, count: int):
    body, report = translated("anthropic", to, stop_sequences=list("abcdefg"))
    assert body[name] == list("abcdefg")[:count]
    assert lost(report) == ["stop"]


def test_blank_stop_sequences_are_left_out_for_claude():
    body, report = translated("openai-chat", "anthropic", stop=["\n", "END", ""])
    assert body["stop_sequences"] == ["END"]
    assert lost(report) == ["stop"]


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses"])
def test_a_long_id_of_a_user_stays_one_that_tells_users_apart(to: str):
    body, report = translated("anthropic", to, metadata={"user_id": CLAUDE_CODE})
    again, _ = translated("anthropic", to, metadata={"user_id": CLAUDE_CODE})
    other, _ = translated("anthropic", to, metadata={"user_id": CLAUDE_CODE + "x"})
    assert len(body["user"]) <= 64
    assert body["user"] == again["user"] != other["user"]
    assert report.repairs == {"id_rewritten": 1}


def test_an_address_is_no_id_for_anthropic():
    body, report = translated("openai-chat", "anthropic", user="jane@example.com")
    assert "@" not in body["metadata"]["user_id"]
    assert report.repairs == {"id_rewritten": 1}


# -- thinking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "effort", "losses"),
    [("gpt-5.2", "none", []), ("gpt-5-mini", "minimal", ["thinking.enabled"]), ("glm-5", None, ["thinking.enabled"])],
)
@pytest.mark.parametrize("to", ["openai-chat", "openai-responses"])
def test_no_thinking_is_said_where_the_model_has_a_word_for_it(
    to: str, model: str, effort: str | None, losses: list[str]
):
    body, report = translated("anthropic", to, model=model, thinking={"type": "disabled"})
    said = body.get("reasoning_effort") if to == "openai-chat" else body.get("reasoning", {}).get("effort")
    assert said == effort
    assert lost(report) == losses


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "gemini", "ollama", "mistral", "cohere", "bedrock"])
def test_an_effort_beside_no_thinking_does_not_turn_it_on(to: str):
    members = {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}
    body, report = translated("anthropic", to, model="claude-opus-4-8", **members)
    alone, _ = translated("anthropic", to, model="claude-opus-4-8", thinking={"type": "disabled"})
    assert body == alone
    assert "thinking.effort" in lost(report)


# -- members that both know --------------------------------------------------------------------------------------------

SHARED = {"prompt_cache_key": "k", "safety_identifier": "s", "store": False, "metadata": {"a": "b"}}


def test_chat_and_responses_share_members():
    body, report = translated("openai-chat", "openai-responses", **SHARED, verbosity="low")
    assert {name: body[name] for name in SHARED} == SHARED
    assert body["text"] == {"verbosity": "low"}
    assert not report.losses
    back, report = translated("openai-responses", "openai-chat", "openai", **SHARED, text={"verbosity": "low"})
    assert {name: back[name] for name in SHARED} == SHARED
    assert back["verbosity"] == "low"
    assert not report.losses


def test_other_servers_of_chat_refuse_members_that_they_do_not_know():
    body, report = translated("openai-responses", "openai-chat", **SHARED)
    assert not body.keys() & SHARED.keys()
    assert sorted(lost(report)) == sorted(SHARED)


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "gemini", "ollama", "mistral", "cohere", "bedrock"])
def test_anthropics_older_name_for_the_form_of_an_answer_is_the_same(to: str):
    form = {"type": "json_schema", "schema": {"type": "object", "properties": {"n": {"type": "string"}}}}
    old, report = translated("anthropic", to, output_format=form)
    new, _ = translated("anthropic", to, output_config={"format": form})
    assert old == new
    assert "output_format" not in lost(report)


# -- custom tools ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("provider", "kind"), [("deepseek", "function"), ("vllm", "function"), ("openai", "custom")])
def test_a_custom_tool_is_a_function_for_servers_of_chat_that_know_no_others(provider: str, kind: str):
    call = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}
    said = [
        {"role": "user", "content": "Go."},
        call,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    ]
    tool = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
    choice = {"type": "custom", "name": "apply_patch"}
    request = {"model": "m", "input": said, "tools": [tool], "tool_choice": choice}
    report = StreamReport()
    read = decode_request(json.dumps(request).encode(), "openai-responses", report=report)
    body = json.loads(encode_request(read, provider, report=report))
    assert body["tools"][0]["type"] == body["tool_choice"]["type"] == kind
    (written,) = body["messages"][1]["tool_calls"]
    assert written["type"] == kind
    if kind == "function":
        assert json.loads(written["function"]["arguments"]) == {"input": "*** Begin"}
        assert report.losses["custom_tool_wrapped"] == 2
