"""What a model takes: efforts, sampling, marks on the prompt and who speaks last, by one table for every target."""

from __future__ import annotations

import gc
import re
import tracemalloc
from datetime import date
from typing import Any, Literal, get_args, get_origin

import orjson
import pytest

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.profiles import Prefill
from streamkit.dialects.vocabulary.model_names import model_info, model_of
from streamkit.dialects.vocabulary.model_table import ROWS, SERVERS, SOURCES
from streamkit.dialects.vocabulary.models import BUDGETS, UNKNOWN
from streamkit.errors import BadRequest, UsageError
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request
from tests.requests.model_judge import name_of
from tests.requests.rows import write

EFFORT, ENABLED, TOKENS = "thinking.effort", "thinking.enabled", "thinking.budget_tokens"
OFF = Thinking(enabled=False)
SO_FAR = Turn("assistant", [Text("So far I have")])
ASKED = Turn("user", [Text("Go")])
ADDED = "(Go on from where your last message ends, without repeating it.)"


def written(target: str, request: Request, **options: Any) -> tuple[Any, StreamReport]:
    return write(request, target, **options)


def asked(model: str, *turns: Turn, dialect: str = "another", **options: Any) -> Request:
    return Request(dialect, model, list(turns) or [Turn("user", [Text("Hi")])], options=Options(**options))


def lost(report: StreamReport, kind: str = "parameter") -> list[str]:
    return [what for found, what in report.lost if found == kind]


# -- the table ---------------------------------------------------------------------------------------------------------


def test_every_effort_is_a_word_that_is_known_and_the_weakest_is_first():
    words = ["none", "default", *BUDGETS]
    for row in (*ROWS, *SERVERS):
        assert [word for word in words if word in row.efforts] == list(row.efforts), row


def test_every_row_is_the_first_for_a_name_that_it_matches():
    for row in ROWS:
        for pattern in row.names.split():
            assert model_of(name_of(pattern)) is row, pattern


def test_every_fact_has_a_source_with_a_place_and_a_date():
    cited = {name for row in (*ROWS, *SERVERS) for name in row.sources or pytest.fail(f"no source: {row}")}
    assert cited == {*SOURCES}
    for name, source in SOURCES.items():
        assert source.title, name
        assert re.match(r"https://|[\w.-]+ \d+\.\d+[\d.]*: |[\w-]+/[\w-]+#\d+", source.place), name
        assert date.fromisoformat(source.date), name


@pytest.mark.parametrize(
    ("module", "name", "vendor"),
    [
        ("openai.types.shared.chat_model", "ChatModel", "openai"),
        ("anthropic.types.model_param", "ModelParam", "anthropic"),
    ],
)
def test_every_model_that_a_vendors_client_lists_has_a_row_of_the_vendor(module, name, vendor):
    listed = getattr(pytest.importorskip(module, reason="the official types (extra `clients`)"), name)
    literal = next((part for part in get_args(listed) if get_origin(part) is Literal), listed)
    names = get_args(literal)
    assert len(names) > 20
    assert [name for name in names if model_of(name).vendor != vendor] == []


@pytest.mark.parametrize(
    ("ids", "efforts"),
    [
        (
            "claude-opus-4-7 us.anthropic.claude-opus-4-8-v1:0 anthropic/claude-opus-4.7 claude-sonnet-5 claude-opus-5 claude-haiku-5-5 claude-opus-4-10",
            "none low medium high xhigh max",
        ),
        (
            "claude-opus-4-6 claude-sonnet-4-6@20260218 anthropic/claude-opus-4.6 claude-4.6-opus anthropic.claude-opus-4-6-v1",
            "none low medium high max",
        ),
        ("claude-opus-5-5 claude-fable-5-1 claude-mythos-5 claude-sonnet-6", "low medium high xhigh max"),
        (
            "claude-opus-4-5-20251101 claude-haiku-4-5 claude-opus-4-20250514 claude-opus-4-1-20250805 claude-3-7-sonnet-20250219",
            "none low medium high",
        ),
        ("claude-3-5-sonnet-20240620 claude-3-haiku-20240307 anthropic.claude-v2:1 claude-instant-1.2", ""),
        ("gpt-5 gpt-5-mini-2025-08-07 openai/gpt-5-nano", "minimal low medium high"),
        ("gpt-5.1 gpt-5.1-2025-11-13", "none low medium high"),
        ("gpt-5.2 gpt-5.3-codex gpt-5.4-mini gpt-5.5", "none low medium high xhigh"),
        (
            "gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini codex-mini-latest o3 o4-mini openai/o3-pro o1 gpt-oss-120b openai.gpt-oss-20b-1:0",
            "low medium high",
        ),
        ("gpt-5.1-codex-max gpt-5.2-codex", "low medium high xhigh"),
        ("gpt-5-pro gpt-5-pro-2025-10-06", "high"),
        ("gpt-5.2-pro gpt-5.5-pro", "medium high xhigh"),
        ("gpt-5.6-sol gpt-6-luna gpt-6-sol gpt-5.10", "none low medium high xhigh max"),
        ("gpt-6-astra gpt-6.1-sol gpt-6.2-astra-law gpt-7", "low medium high xhigh max"),
        ("gpt-6.1-terra claude-sonnet-5-5", "none low medium high xhigh max"),
        ("gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-2024-11-20 chatgpt-4o-latest gpt-3.5-turbo gpt-5-chat-latest gpt-audio-mini o1-mini", ""),
        ("gpt-5.2-chat-latest o3-deep-research o4-mini-deep-research", "medium"),
        ("gemini-3-pro-preview google/gemini-3-pro", "low high"),
        ("gemini-3-flash-preview gemini-3.5-flash", "minimal low medium high"),
        ("gemini-3.1-pro-preview gemini-3.8-flash gemini-4-pro", "low medium high"),
        ("gemini-2.5-pro", "minimal low medium high"),
        ("gemini-2.5-flash gemini-2.5-flash-lite", "none minimal low medium high"),
        ("gemini-2.0-flash gemini-1.5-pro gemini-2.5-flash-image", ""),
        (
            "grok-4 x-ai/grok-4 grok-4-0709 grok-4-fast-reasoning grok-4-1-fast-reasoning grok-code-fast-1 grok-3 grok-4.20-0309-reasoning grok-4-fast-non-reasoning",
            "",
        ),
        ("grok-4.3", "none low medium high"),
        ("grok-4.5 glm-5.2 qwen3-32b m", "low medium high"),
        ("grok-4.6 grok-4.7 grok-4.20-multi-agent-0309", "low medium high xhigh"),
        ("grok-3-mini", "low high"),
        ("mistral-small-2603 mistral-medium-3-5", "none high"),
        (
            "magistral-medium-latest codestral-latest command-r-plus command-a-03-2025 amazon.nova-pro-v1:0 us.meta.llama3-3-70b-instruct-v1:0",
            "",
        ),
    ],
)  # fmt: skip
def test_the_efforts_of_a_family(ids, efforts):
    for name in ids.split():
        assert " ".join(model_of(name).efforts) == efforts, name


@pytest.mark.parametrize(("ids", "finds_tools"), [
    ("gpt-5.4 gpt-5.4-2026-03-05 gpt-5.4-mini gpt-5.4-mini-2026-03-17 gpt-5.5 gpt-5.6-sol gpt-6-luna gpt-7", True),
    ("gpt-5.3-codex gpt-5.4-nano gpt-5.4-nano-2026-03-17 gpt-5.2 gpt-5-mini o3 gpt-4.1", False),
])  # fmt: skip
def test_models_that_search_deferred_tools(ids, finds_tools):
    for name in ids.split():
        assert model_of(name).finds_tools is finds_tools, name


@pytest.mark.parametrize(
    ("same", "ids"),
    [
        ("claude-opus-4.6", "claude_opus_4_6 databricks-claude-opus-4-6 Claude-Opus-4.6 claude-opus-4-6[1m]"),
        ("gpt-5.5", "gpt-5-5 openai:gpt-5.5 databricks-gpt-5-5 openai/gpt-5.5:online gpt-5.5-2026-04-23"),
        ("gpt-5", "gpt-5-2025-08-07 ft:gpt-5-2025-08-07:org::id openai:gpt-5-mini"),
        ("gpt-5.2", "databricks-gpt-5-2 openai.gpt-5.2"),
        ("gpt-4.1", "ft:gpt-4.1-mini-2025-04-14:org::id gpt-41-mini"),
        ("gpt-3.5-turbo", "gpt-35-turbo gpt-35-turbo-16k ft:gpt-3.5-turbo-0125:org::id"),
        ("gpt-4o", "openai:gpt-4o azure/gpt-4o-2024-11-20 gpt-4o-mini"),
        ("o4-mini", "ft:o4-mini-2025-04-16:org::id openai:o3"),
        ("gemini-2.5-pro", "databricks-gemini-2-5-pro models/gemini-2.5-pro"),
        ("gemini-3.1-pro", "models/gemini-3.1-pro-preview databricks-gemini-3-1-pro google/gemini-3.1-pro"),
        ("gemini-3.8-flash", "gemini-flash-latest gemini-flash-lite-latest"),
        ("grok-4-fast", "grok-4-1-fast grok-4.1-fast x-ai/grok-4.1-fast"),
    ],
)  # fmt: skip
def test_a_model_is_the_same_in_whatever_way_its_id_is_written(same, ids):
    for name in ids.split():
        assert model_of(name) == model_of(same), name


def test_a_call_for_the_latest_gemini_has_the_excuse_for_its_signature():
    history = [Turn("assistant", [ToolCall(0, "c", "f", "{}")]), Turn("user", [ToolResult("c", [Text("r")])])]
    body, report = written("gemini", asked("gemini-flash-latest", Turn("user", [Text("Go")]), *history))
    assert body["contents"][1]["parts"][0]["thoughtSignature"]
    assert report.repairs["signature_excused"] == 1


def test_a_model_without_a_row_takes_what_nearly_all_take():
    assert model_of("m") is model_of(None) is UNKNOWN
    assert (UNKNOWN.efforts, UNKNOWN.cache_marks, UNKNOWN.refuses) == (("low", "medium", "high"), "", ())


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "bedrock", "gemini", "mistral"])
def test_a_name_that_says_nothing_takes_what_the_model_takes_that_it_is_like(target):
    for like in "gpt-5.5", "claude-opus-4-6", "gemini-2.5-pro", "mistral-small-2603", "o3":
        options = {"thinking": Thinking("max"), "temperature": 0.3, "max_tokens": 500_000}
        alike, report = written(target, with_tool("prod-1", **options), model_like=like)
        named, expected = written(target, with_tool(like, **options))
        assert alike.pop("model", "prod-1") == "prod-1"
        named.pop("model", None)
        assert (alike, report.lost) == (named, expected.lost)
    with pytest.raises(UsageError, match="model_like: no known model is called 'prod-1'; write the name of one"):
        written(target, asked("m"), model_like="prod-1")


def test_a_long_name_is_of_no_known_model():
    assert model_info("gpt-5" + "5" * 250) is not None
    assert model_info("gpt-5" + "5" * 252) is None
    assert model_info("my-deployment") is None


# -- efforts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "thinking", "effort", "losses"),
    [
        ("anthropic", "claude-opus-4-6", Thinking("xhigh"), "high", [EFFORT]),
        ("anthropic", "claude-opus-4-6", Thinking("max"), "max", []),
        ("anthropic", "claude-opus-4-7", Thinking("xhigh"), "xhigh", []),
        ("anthropic", "claude-opus-4-7", Thinking("minimal"), "low", [EFFORT]),
        ("anthropic", "kimi-k3", Thinking("xhigh"), "high", [EFFORT]),
        ("anthropic", "gpt-5", Thinking("minimal"), "low", [EFFORT]),
        ("bedrock", "us.anthropic.claude-sonnet-4-6", Thinking("xhigh"), "high", [EFFORT]),
        ("bedrock", "amazon.nova-2-lite-v1:0", Thinking("max"), "high", [EFFORT]),
        ("bedrock", "amazon.nova-pro-v1:0", Thinking("high"), None, [EFFORT]),
        ("openai-chat", "gpt-4.1", Thinking(budget_tokens=4000, enabled=True), None, [TOKENS, EFFORT]),
        ("openai-chat", "gpt-4o", Thinking("high"), None, [EFFORT]),
        ("openai-chat", "gpt-5", Thinking("xhigh"), "high", [EFFORT]),
        ("openai-chat", "gpt-5", Thinking("none"), "minimal", [EFFORT]),
        ("openai-chat", "gpt-5", OFF, "minimal", [ENABLED]),
        ("openai-responses", "gpt-5-pro", Thinking("low"), "high", [EFFORT]),
        ("openai-responses", "gpt-5.1", Thinking("xhigh"), "high", [EFFORT]),
        ("openai-responses", "gpt-5.1", Thinking("minimal"), "low", [EFFORT]),
        ("openai-responses", "gpt-5.1-codex", OFF, "low", [ENABLED]),
        ("openai-responses", "gpt-5.1-codex-max", Thinking("max"), "xhigh", [EFFORT]),
        ("openai-responses", "o3", Thinking("minimal"), "low", [EFFORT]),
        ("openai-responses", "gpt-6-sol", Thinking("max"), "max", []),
        ("openai-responses", "gpt-6-astra", OFF, "low", [ENABLED]),
        ("openai-chat", "glm-5.2", Thinking("max"), "high", [EFFORT]),
        ("openai-chat", "glm-5.2", Thinking("none"), None, [EFFORT]),
        ("openai-chat", "glm-5.2", Thinking("heroic"), None, [EFFORT]),
        ("openai-chat", "claude-opus-4.6", Thinking("xhigh"), "high", [EFFORT]),
        ("groq", "openai/gpt-oss-120b", Thinking("xhigh"), "high", [EFFORT]),
        ("groq", "qwen/qwen3-32b", Thinking("high"), "default", [EFFORT]),
        ("groq", "qwen/qwen3-32b", OFF, "none", []),
        ("groq", "llama-3.3-70b-versatile", Thinking("high"), None, [EFFORT]),
        ("xai", "grok-4", Thinking("high"), None, [EFFORT]),
        ("xai", "grok-3-mini", Thinking("medium"), "low", [EFFORT]),
        ("xai", "grok-4.5", OFF, "low", [ENABLED]),
        ("vllm", "gpt-5-look-alike", Thinking("minimal"), "low", [EFFORT]),
        ("sglang", "glm-5", Thinking("xhigh"), "high", [EFFORT]),
        ("openrouter", "anthropic/claude-opus-4.6", Thinking("xhigh"), "xhigh", []),
        ("openrouter", "openai/gpt-5", Thinking("max"), "xhigh", [EFFORT]),
        ("gemini-openai", "gemini-3-pro-preview", Thinking("medium"), "low", [EFFORT]),
        ("gemini-openai", "gemini-2.5-flash", OFF, "none", []),
        ("gemini", "gemini-3-pro-preview", Thinking("medium"), "LOW", [EFFORT]),
        ("gemini", "gemini-3.1-pro-preview", Thinking("minimal"), "LOW", [EFFORT]),
        ("gemini", "gemini-3-flash", Thinking("xhigh"), "HIGH", [EFFORT]),
        ("gemini", "gemini-2.0-flash", Thinking("high"), None, ["thinking"]),
        ("gemini-interactions", "gemini-3-pro-preview", OFF, "low", [ENABLED]),
        ("gemini-interactions", "gemini-3-flash", Thinking("max"), "high", [EFFORT]),
        ("mistral", "mistral-small-2603", Thinking("medium"), "high", [EFFORT]),
        ("mistral", "magistral-medium-latest", Thinking("high"), None, [EFFORT]),
        ("cohere", "command-r-plus", Thinking("high"), None, ["thinking"]),
    ],
)  # fmt: skip
def test_an_effort_is_the_nearest_that_the_model_knows(target, model, thinking, effort, losses):
    body, report = written(target, asked(model, thinking=thinking))
    found = [
        body.get("reasoning_effort"), *[(body.get(name) or {}).get("effort") for name in ("reasoning", "output_config", "outputConfig")],
        body.get("generationConfig", {}).get("thinkingConfig", {}).get("thinkingLevel"),
        (body.get("generation_config") or {}).get("thinking_level"),
    ]  # fmt: skip
    assert next((word for word in found if word is not None), None) == effort
    assert sorted(lost(report)) == sorted(losses)


def test_within_a_dialect_an_effort_stays():
    body = {"model": "gpt-4.1", "reasoning_effort": "xhigh", "messages": [{"role": "user", "content": "Hi"}]}
    request = decode_request(orjson.dumps(body), "openai-chat")
    assert written("openai-chat", request)[0] == body


# -- sampling ----------------------------------------------------------------------------------------------------------


# gpt-4.1 does not take the effort either
@pytest.mark.parametrize(
    ("target", "model", "thinking", "kept"),
    [
        ("openai-chat", "gpt-5.5", None, False),
        ("openai-responses", "gpt-5.6-sol", None, False),
        ("openai-responses", "gpt-6-astra", OFF, False),
        ("openai-chat", "gpt-5.5", Thinking("none"), True),
        ("openai-chat", "gpt-5.4", None, True),
        ("openai-chat", "gpt-5.4", Thinking("low"), False),
        ("openai-chat", "gpt-4.1", Thinking("high"), True),
        ("openai-chat", "codex-mini-latest", None, False),
        ("openai-chat", "claude-opus-4.7", None, False),
        ("openrouter", "anthropic/claude-opus-4.7", None, False),
        ("xai", "grok-4", None, True),
    ],
)  # fmt: skip
def test_who_takes_a_temperature(target, model, thinking, kept):
    body, report = written(target, asked(model, thinking=thinking, temperature=0.3))
    assert ("temperature" in body) == kept
    assert ("temperature" in lost(report)) == (not kept)


def test_on_bedrock_only_claude_can_be_told_not_to_think():
    for model, kept in ("openai.gpt-6-sol", False), ("anthropic.claude-sonnet-4-6", True):
        body, report = written("bedrock", asked(model, thinking=Thinking("none"), temperature=0.3))
        assert ("inferenceConfig" in body, lost(report)) == (kept, [] if kept else ["temperature", EFFORT])


def test_grok_takes_neither_penalties_nor_stop_sequences_while_it_thinks():
    options = {"presence_penalty": 0.1, "frequency_penalty": 0.1, "stop": ("x",)}
    assert lost(written("xai", asked("grok-4", **options))[1]) == ["presence_penalty", "frequency_penalty", "stop"]
    assert lost(written("xai", asked("grok-4-fast-non-reasoning", **options))[1]) == []


@pytest.mark.parametrize("model", ["gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-flash-latest"])
def test_newer_gemini_takes_neither_sampling_nor_penalties_nor_a_prefill(model):
    request = asked(
        model, ASKED, SO_FAR, temperature=0.3, top_p=0.9, top_k=4, presence_penalty=0.1, frequency_penalty=0.1
    )
    body, report = written("gemini", request)
    assert "generationConfig" not in body
    assert lost(report) == ["temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"]
    assert (body["contents"][-1]["role"], report.repairs["turn_added"]) == ("user", 1)


# -- the length of a response ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "bound", "kept"),
    [
        ("openai-chat", "gpt-4o", 32_000, 16_384),
        ("openai-chat", "gpt-4o", 16_384, 16_384),
        ("openai-responses", "gpt-5.5", 200_000, 128_000),
        ("anthropic", "claude-opus-4-1", 64_000, 32_000),
        ("anthropic", "claude-sonnet-4-5", 128_000, 64_000),
        ("bedrock", "us.anthropic.claude-3-haiku-20240307-v1:0", 8192, 4096),
        ("gemini", "gemini-2.0-flash", 65_536, 8192),
        ("gemini-interactions", "gemini-3-pro-preview", 100_000, 65_536),
        ("cohere", "command-a-03-2025", 64_000, 8000),
        ("openai-chat", "claude-sonnet-9", 500_000, 500_000),
        ("openai-chat", "my-deployment", 500_000, 500_000),
        ("groq", "openai/gpt-oss-120b", 500_000, 500_000),
    ],
)
def test_a_response_may_be_as_long_as_the_model_can_write(target, model, bound, kept):
    body, report = written(target, asked(model, max_tokens=bound))
    members = {
        **body,
        **body.get("inferenceConfig", {}),
        **body.get("generationConfig", {}),
        **body.get("generation_config", {}),
    }
    names = {"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"}
    assert [members[name] for name in names & members.keys()] == [kept]
    assert lost(report) == (["max_tokens"] if kept < bound else [])


def test_a_budget_leaves_room_in_the_longest_response():
    thinking = Thinking(budget_tokens=60_000, enabled=True)
    body, report = written("anthropic", asked("claude-opus-4-1", thinking=thinking), max_tokens=30_000)
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (16_000, 32_000)
    assert lost(report) == [TOKENS]


# -- tools and formats -------------------------------------------------------------------------------------------------

FUNCTION = Tool("f", "d", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, strict=True)
SCHEMA = OutputFormat("schema", {"type": "object", "properties": {}, "additionalProperties": False})


def with_tool(model: str, choice: ToolChoice | None = None, dialect: str = "another", **options: Any) -> Request:
    request = asked(model, Turn("user", [Text("Hi")]), dialect=dialect, **options)
    request.tools, request.tool_choice = [FUNCTION], choice
    return request


@pytest.mark.parametrize(
    ("target", "model", "thinking", "effort", "losses"),
    [
        ("openai-chat", "gpt-5.6-sol", Thinking("high"), "none", ["thinking"]),
        ("azure", "gpt-5.5", None, "none", ["thinking"]),
        ("openai", "gpt-6-sol", OFF, "none", []),
        ("openai-chat", "gpt-5.4", Thinking("high"), None, ["thinking"]),
        ("openai-chat", "gpt-5.4", Thinking(enabled=True), None, ["thinking"]),
        (
            "openai-chat",
            "gpt-5.4",
            Thinking(budget_tokens=2000, summary="auto"),
            None,
            ["thinking", "thinking.summary"],
        ),
        ("openai-chat", "gpt-5.4", Thinking("none"), None, []),
        ("openai-chat", "gpt-5.2", None, None, []),
        ("openai-chat", "gpt-6-astra", Thinking("high"), "high", []),  # it cannot be told not to think
        ("openai-chat", "gpt-5.1", Thinking("high"), "high", []),
        ("openai-responses", "gpt-5.6-sol", Thinking("high"), "high", []),
        ("openrouter", "openai/gpt-5.5", Thinking("high"), "high", []),
    ],
)
def test_openais_chat_gives_newer_models_tools_only_while_they_do_not_think(target, model, thinking, effort, losses):
    body, report = written(target, with_tool(model, thinking=thinking))
    assert (body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort")) == effort
    assert lost(report) == losses
    assert body["tools"]


def test_sampling_stays_where_tools_turn_thinking_off():
    body, report = written("openai-chat", with_tool("gpt-5.6-sol", temperature=0.3))
    assert (body["temperature"], body["reasoning_effort"], lost(report)) == (0.3, "none", ["thinking"])


@pytest.mark.parametrize(("target", "effort"), [("openai-chat", "xhigh"), ("openai-responses", "max")])
def test_openais_chat_does_not_know_the_effort_max(target, effort):
    body, _ = written(target, asked("gpt-5.6-sol", thinking=Thinking("max")))
    assert (body.get("reasoning_effort") or body.get("reasoning", {}).get("effort")) == effort


@pytest.mark.parametrize(
    ("target", "model", "thinking", "mode", "thinks"),
    [
        ("anthropic", "claude-opus-5", Thinking("high"), "tool", "adaptive"),
        ("anthropic", "claude-opus-4-8", Thinking(enabled=True), "tool", "adaptive"),
        ("anthropic", "claude-opus-4-7", Thinking("high"), "tool", None),
        ("anthropic", "claude-opus-4-7", Thinking(enabled=True), "auto", "adaptive"),
        ("anthropic", "claude-sonnet-4-5", Thinking(budget_tokens=2000, enabled=True), "auto", "enabled"),
        ("anthropic", "claude-opus-5-5", None, "auto", None),
        ("anthropic", "claude-fable-5-1", Thinking("high"), "auto", "adaptive"),
        ("anthropic", "claude-fable-5", Thinking("high"), "tool", "adaptive"),
        ("anthropic", "kimi-k3", Thinking(enabled=True), "auto", "adaptive"),
    ],
)
def test_a_required_call_stays_where_claude_accepts_one(target, model, thinking, mode, thinks):
    request = with_tool(model, ToolChoice("required", ("f",)), thinking=thinking)
    body, report = written(target, request, emulate=True)
    assert body["tool_choice"]["type"] == mode
    assert body.get("thinking", {}).get("type") == thinks
    assert lost(report, "tool_choice") == (["required"] if mode == "auto" else [])
    if mode == "auto":
        with pytest.raises(BadRequest, match="cannot be required"):
            written(target, request)


def test_within_a_dialect_a_required_call_stays_where_claude_accepts_one_while_it_thinks():
    body = {
        "model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Go"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"},
        "thinking": {"type": "adaptive"},
    }  # fmt: skip
    assert written("anthropic", decode_request(orjson.dumps(body), "anthropic"))[0] == body
    with pytest.raises(BadRequest, match="while thinking is enabled"):
        written("anthropic", decode_request(orjson.dumps({**body, "model": "claude-opus-4-7"}), "anthropic"))


def test_sonnet_5_5_is_told_not_to_think_in_a_word_of_its_own():
    for model, word in ("claude-sonnet-5-5", "between_tools"), ("claude-sonnet-5", "disabled"):
        body, report = written("anthropic", asked(model, thinking=OFF))
        assert (body["thinking"], lost(report)) == ({"type": word}, [])


def test_claude_before_4_1_takes_neither_a_schema_for_its_answer_nor_strict_tools():
    for target, model in (
        ("anthropic", "claude-3-7-sonnet-20250219"),
        ("bedrock", "anthropic.claude-opus-4-20250514-v1:0"),
    ):
        body, report = written(target, with_tool(model, output=SCHEMA))
        assert not body.keys() & {"output_config", "outputConfig"}
        assert b"strict" not in orjson.dumps(body)
        assert (lost(report), lost(report, "tool_strict")) == (["output"], ["f"])
    body, report = written("anthropic", with_tool("claude-opus-4-1-20250805", output=SCHEMA))
    assert (body["tools"][0]["strict"], body["output_config"]["format"]["type"]) == (True, "json_schema")


@pytest.mark.parametrize(
    ("model", "kind", "kept"),
    [
        ("gpt-3.5-turbo", "schema", False),
        ("gpt-3.5-turbo", "json", True),
        ("gpt-4-0613", "json", False),
        ("gpt-4o", "schema", True),
        ("claude-3-haiku", "schema", True),
    ],
)
def test_openais_older_models_take_no_schema_and_the_oldest_no_json(model, kind, kept):
    for target, member in ("openai-chat", "response_format"), ("openai-responses", "text"):
        body, report = written(target, asked(model, output=SCHEMA if kind == "schema" else OutputFormat("json")))
        assert (member in body, lost(report)) == (kept, [] if kept else ["output"])


def objects(**more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
        **more,
    }


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (objects(), True),
        (objects(properties={"a": {"type": ["string", "null"], "minLength": 1, "description": "d"}}), True),
        (objects(properties={"a": objects()}, **{"$defs": {"b": objects()}}), True),
        (objects(properties={"a": {"type": "array", "items": {"anyOf": [objects(), {"$ref": "#/$defs/b"}]}}}), True),
        ({"type": "object", "properties": {}, "required": [], "additionalProperties": False}, True),
        (objects(required=[]), False),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, False),
        (objects(additionalProperties=True), False),
        (objects(properties={"a": objects(required=[])}), False),
        (objects(properties={"a": {"type": "array", "items": objects(required=[])}}), False),
        (objects(properties={"a": {"type": "array"}}), False),
        (objects(properties={"a": {"anyOf": [{"type": "string"}, objects(required=[])]}}), False),
        (objects(**{"$defs": {"b": objects(required=[])}}), False),
        (objects(properties={"a": {"$ref": "#/$defs/b", "description": "d"}}), False),
        (objects(properties={"a": {"type": "string", "format": "uri"}}), False),
        (objects(properties={"a": {"type": "string", "default": "x"}}), False),
        (objects(properties={"a": {"oneOf": [{"type": "string"}]}}), False),
        (objects(properties={"a": True}), False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_openai_holds_a_model_to_some_schemas_alone(target, schema, kept):
    request = with_tool("gpt-5.1", output=OutputFormat("schema", schema, "n", strict=True))
    request.tools = [Tool("f", "d", schema, strict=True)]
    body, report = written(target, request)
    tool, form = body["tools"][0], body.get("response_format", {}).get("json_schema") or body["text"]["format"]
    strict = tool.get("function", tool).get("strict"), form.get("strict")
    assert strict == (True, True) if kept else not any(strict)
    assert (lost(report, "tool_strict"), lost(report)) == (([], []) if kept else (["f"], ["output.strict"]))


@pytest.mark.parametrize(
    "odd", [{"anyOf": 5}, {"$defs": [1]}, {"required": 5}, {"required": [{}]}, {"type": {}}, {"items": []}]
)
def test_nor_to_a_schema_of_an_output_that_is_none(odd):
    schema = OutputFormat("schema", objects(**odd), "n", strict=True)
    body, report = written("openai-chat", asked("gpt-5.1", output=schema))
    assert "strict" not in body["response_format"]["json_schema"]
    assert lost(report) == ["output.strict"]


def test_strict_stays_between_openais_dialects_and_at_servers_that_enforce_more():
    schema = objects(required=[])
    for source, target in (
        ("openai-responses", "openai-chat"),
        ("openai-chat", "openai-responses"),
        ("anthropic", "vllm"),
    ):
        request = with_tool("m", dialect=source)
        request.tools = [Tool("f", "d", schema, strict=True)]
        body, report = written(target, request)
        tool = body["tools"][0]
        assert tool.get("function", tool)["strict"]
        assert not lost(report, "tool_strict")


def test_the_o_series_takes_no_option_for_parallel_calls():
    choice = ToolChoice("auto", parallel=False)
    body, report = written("openai-chat", with_tool("o3", choice))
    assert ("parallel_tool_calls" in body, lost(report, "tool_choice")) == (False, ["parallel"])
    body, report = written("openai-chat", with_tool("gpt-5.1", choice))
    assert (body["parallel_tool_calls"], lost(report, "tool_choice")) == (False, [])


@pytest.mark.parametrize(
    ("model", "thinking", "think", "losses"),
    [
        ("gpt-oss:20b", Thinking("max"), "high", [EFFORT]),
        ("qwen3.8:27b", Thinking("max"), "max", []),
        ("qwen3.8:27b", Thinking("minimal"), "low", [EFFORT]),
        ("llama3.2:3b", Thinking("high"), None, ["thinking"]),
        ("llama3.2:3b", OFF, False, []),
        ("magistral:24b", Thinking("high"), True, [EFFORT]),
    ],
)
def test_ollamas_models_think_in_their_own_words(model, thinking, think, losses):
    body, report = written("ollama", asked(model, thinking=thinking))
    assert (body.get("think"), lost(report)) == (think, losses)


# -- marks on the prompt -----------------------------------------------------------------------------------------------


def marked(model: str, dialect: str = "anthropic", marks: int = 6) -> Request:
    turns = [Turn("system", [Text("s", cache="short")])]
    for number in range(marks - 2):
        turns.append(Turn("user", [Text(str(number), cache="short")]))
        turns.append(Turn("assistant", [Text("ok")]))
    turns.append(Turn("user", [Text("end")]))
    return Request(dialect, model, turns, [Tool("f", "d", {"type": "object", "properties": {}}, cache="short")])


def places(body: Any) -> list[str]:
    """What is in front of each mark: the text, or the name of the tool."""
    text = orjson.dumps(body).decode()
    return re.findall(
        r'"(?:text|name)":"([^"]*)"[^{}]*(?:,"cache_control":|,"prompt_cache_breakpoint":|\},\{"cachePoint")', text
    )


@pytest.mark.parametrize(
    ("target", "model", "kept"),
    [
        ("anthropic", "claude-opus-4-6", ["0", "1", "2", "3"]),
        ("anthropic", "kimi-k3", ["0", "1", "2", "3"]),
        ("bedrock", "us.anthropic.claude-opus-4-6-v1:0", ["0", "1", "2", "3"]),
        ("bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", ["0", "1", "2", "3"]),
        ("bedrock", "qwen.qwen3-coder-next", []),
        ("bedrock", "us.anthropic.claude-3-haiku-20240307-v1:0", []),
        ("openrouter", "anthropic/claude-opus-4.6", ["0", "1", "2", "3"]),
        ("openai-responses", "gpt-5.6-sol", ["0", "1", "2", "3"]),
        ("openai-responses", "gpt-5.5", []),
        ("openai-chat", "gpt-4.1", []),
        ("openai-chat", "glm-5.2", []),
        ("openai-chat", "gpt-6-sol", ["0", "1", "2", "3"]),
    ],
)  # fmt: skip
def test_the_latest_four_marks_are_kept_where_the_model_takes_any(target, model, kept):
    source = "bedrock" if target == "anthropic" else "anthropic"
    body, report = written(target, marked(model, source))
    assert places(body) == kept
    assert report.losses["cache_mark"] >= 6 - len(kept)


def test_marks_inside_of_a_result_count():
    call = Turn("assistant", [ToolCall(0, "toolu_1", "f", "{}")])
    inner = [Text("a", cache="short"), Media("image", "image/png", "AA==", cache="short")]
    answer = Turn("user", [ToolResult("toolu_1", inner, cache="short"), *(Text(t, cache="short") for t in "bcd")])
    request = asked("claude-opus-4-6", Turn("user", [Text("Hi")]), call, answer, dialect="bedrock")
    body, report = written("anthropic", request)
    assert orjson.dumps(body).count(b"cache_control") == 4
    assert "cache_control" not in body["messages"][2]["content"][0]["content"][0]
    assert lost(report, "cache_mark") == ["short"] * 6  # two are left out, and four are for another span


def test_nova_takes_short_marks_outside_of_tools():
    request = marked("amazon.nova-pro-v1:0", marks=3)
    request.turns[1].parts[0].cache = "long"
    body, report = written("bedrock", request)
    assert orjson.dumps(body).count(b"cachePoint") == 2
    assert b"ttl" not in orjson.dumps(body)
    assert sorted(lost(report, "cache_mark")) == ["f", "long"]


# -- who speaks last ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("anthropic", "claude-opus-4-6"),
        ("anthropic", "claude-sonnet-4-6"),
        ("anthropic", "claude-opus-5-5"),
        ("bedrock", "us.anthropic.claude-opus-4-6-v1"),
        ("openrouter", "anthropic/claude-sonnet-4.6"),
        ("openai-chat", "claude-opus-4.6"),
        ("openai-responses", "claude-sonnet-5"),
    ],
)  # fmt: skip
def test_the_user_speaks_last_to_a_model_that_takes_no_prefill(target, model):
    for turns in (ASKED, SO_FAR), (ASKED, SO_FAR, Turn("system", [Text("be kind")])):
        body, report = written(target, asked(model, *turns))
        last = [message for message in body.get("messages") or body["input"] if message["role"] != "system"][-1]
        assert (last["role"], ADDED in str(last["content"])) == ("user", True)
        assert report.repairs == {"turn_added": 1}


def test_or_the_request_is_refused():
    for options in {"assistant_last": "refuse"}, {"prefill": Prefill()}:
        with pytest.raises(BadRequest, match="assistant_last") as refused:
            written("anthropic", asked("claude-opus-4-6", ASKED, SO_FAR), **options)
        assert refused.value.path == "messages"


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-3-7-sonnet-20250219", "m"])
def test_a_model_that_goes_on_with_the_text_gets_it(model):
    body, report = written("anthropic", asked(model, ASKED, SO_FAR), assistant_last="refuse")
    assert body["messages"][-1]["role"] == "assistant"
    assert not report.repairs


@pytest.mark.parametrize(
    "last",
    [Turn("assistant", [Text(" ")]), Turn("assistant", []), Turn("assistant", [ToolCall(0, "toolu_1", "f", "{}")])],
)
def test_an_assistant_that_said_nothing_or_called_is_no_prefill(last):
    _, report = written("anthropic", asked("claude-opus-4-6", ASKED, last))
    assert not report.repairs["turn_added"]


def test_within_anthropic_the_history_stays():
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "So far"}]
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": messages}
    assert written("anthropic", decode_request(orjson.dumps(body), "anthropic"), assistant_last="refuse")[0] == body


# -- results without an id ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "openai-responses"])
def test_an_output_without_the_id_of_its_call_is_paired_or_refused(target, kind):
    member = "arguments" if kind == "function_call" else "input"
    calls = [{"type": kind, "call_id": each, "name": "f", member: "{}"} for each in ("c1", "c2")]
    outputs = [
        {"type": f"{kind}_output", "output": "one"},
        {"type": f"{kind}_output", "call_id": None, "output": "two"},
    ]
    items = [{"role": "user", "content": "Go"}, *calls, *outputs]
    request = decode_request(orjson.dumps({"model": "m", "input": items}), "openai-responses")
    with pytest.raises(BadRequest) as refused:
        written(target, request)
    assert refused.value.path == "input[3]"
    body, report = written(target, request, repair=True)
    results = [
        part
        for turn in decode_request(orjson.dumps(body), target).turns
        for part in turn.parts
        if isinstance(part, ToolResult)
    ]
    assert [(result.call_id, result.text) for result in results] == [("c1", "one"), ("c2", "two")]
    assert report.repairs["id_missing"] == 2


def test_long_names_are_not_remembered():
    def ask(letter: str) -> None:
        for number in range(10):
            written("anthropic", asked(f"{number}{letter * 20_000}"))

    ask("m")  # what is made at the first use stays
    tracemalloc.start()
    try:
        ask("n")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
