"""How much to think, between dialects that say it in words and dialects that say it in tokens: by one table."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Options, Request, Text, Thinking, Turn
from streamkit.dialects.vocabulary.models import BUDGETS, below, budget_of, effort_of, nearest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request

USER = [{"role": "user", "content": "Hi"}]
ADAPTIVE = {"type": "adaptive"}


def written(
    target: str, model: str, thinking: Thinking, *, max_tokens: int | None = None, dialect: str = "another"
) -> tuple[Any, list[str]]:
    """What of a body says how to think, and the names of what was lost."""
    options = Options(max_tokens=max_tokens, thinking=thinking)
    report = StreamReport()
    request = Request(dialect, model, [Turn("user", [Text("Hi")])], options=options)
    body = orjson.loads(encode_request(request, target, report=report))
    body |= body.pop("generationConfig", {})
    kept = ("thinking", "output_config", "reasoning_effort", "reasoning", "think", "thinkingConfig", "outputConfig")
    said = {name: body[name] for name in (*kept, "additionalModelRequestFields") if name in body}
    return said, [what for kind, what in report.lost if kind == "parameter" and what.startswith("thinking")]


def budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def level(word: str) -> dict[str, Any]:
    return {"thinkingConfig": {"thinkingLevel": word}}


def tokens(number: int) -> dict[str, Any]:
    return {"thinkingConfig": {"thinkingBudget": number}}


EFFORT, TOKENS, ENABLED = "thinking.effort", "thinking.budget_tokens", "thinking.enabled"
HIGH, ASKED_2000 = Thinking("high"), Thinking(budget_tokens=2000, enabled=True)
OFF = Thinking(enabled=False)


@pytest.mark.parametrize(
    ("target", "model", "thinking", "said", "lost"),
    [
        # Claude: the version says whether it takes an effort, a budget or both
        ("anthropic", "claude-opus-4-7", HIGH, {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}, []),
        ("anthropic", "claude-sonnet-4-6", HIGH, {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}, []),
        ("anthropic", "claude-sonnet-4-5-20250929", HIGH, budget(24576), [EFFORT]),
        ("anthropic", "claude-opus-4-20250514", Thinking("minimal"), budget(1024), [EFFORT]),
        ("anthropic", "claude-sonnet-4-5", Thinking(enabled=True), budget(8192), [ENABLED]),
        ("anthropic", "claude-sonnet-4-5", ASKED_2000, budget(2000), []),
        ("anthropic", "claude-sonnet-4-6", ASKED_2000, budget(2000), []),
        ("anthropic", "claude-opus-4-7", ASKED_2000, {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}, [TOKENS]),
        ("anthropic", "claude-fable-5-1", Thinking(budget_tokens=31999), {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}, [TOKENS]),
        ("anthropic", "claude-3-5-haiku-20241022", HIGH, {}, ["thinking"]),
        ("anthropic", "claude-3-7-sonnet-20250219", HIGH, budget(24576), [EFFORT]),
        ("anthropic", "some-model", HIGH, {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}, []),
        ("anthropic", "some-model", ASKED_2000, budget(2000), []),
        ("anthropic", "claude-opus-4-7", OFF, {"thinking": {"type": "disabled"}}, []),
        ("anthropic", "claude-opus-5-5", OFF, {}, [ENABLED]),
        ("anthropic", "claude-mythos-preview", Thinking("none"), {}, [ENABLED]),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", HIGH, {"additionalModelRequestFields": budget(24576)}, [EFFORT]),
        ("bedrock", "us.anthropic.claude-opus-4-7", ASKED_2000, {"additionalModelRequestFields": {"thinking": ADAPTIVE}, "outputConfig": {"effort": "low"}}, [TOKENS]),
        ("bedrock", "amazon.nova-2-lite-v1:0", ASKED_2000, {"outputConfig": {"effort": "low"}}, [TOKENS]),
        # words
        ("openai-chat", "gpt-5.2", ASKED_2000, {"reasoning_effort": "low"}, [TOKENS]),
        ("openai-chat", "gpt-5.2", Thinking(budget_tokens=31999, enabled=True), {"reasoning_effort": "high"}, [TOKENS]),
        ("openai-chat", "gpt-5.2", Thinking("high", enabled=True), {"reasoning_effort": "high"}, []),
        ("openai-chat", "gpt-4o", OFF, {}, [ENABLED]),
        ("openai-responses", "gpt-5.2", Thinking(budget_tokens=10000), {"reasoning": {"effort": "medium"}}, [TOKENS]),
        ("mistral", "mistral-large-4-0", Thinking(budget_tokens=10000), {"reasoning_effort": "medium"}, [TOKENS]),
        ("mistral", "mistral-small-2603", Thinking("low"), {"reasoning_effort": "high"}, [EFFORT]),
        ("mistral", "mistral-small-latest", OFF, {"reasoning_effort": "none"}, []),
        ("mistral", "magistral-medium-latest", HIGH, {}, [EFFORT]),
        ("ollama", "qwen3", Thinking(budget_tokens=10000), {"think": True}, [TOKENS]),
        ("openrouter", "anthropic/claude-sonnet-4.5", ASKED_2000, {"reasoning": {"max_tokens": 2000, "enabled": True}}, []),
        ("openrouter", "x", Thinking("high", 2000), {"reasoning": {"max_tokens": 2000}}, [EFFORT]),
        # tokens
        ("cohere", "command-a-reasoning", HIGH, {"thinking": {"type": "enabled", "token_budget": 24576}}, [EFFORT]),
        ("cohere", "command-a-reasoning", Thinking(budget_tokens=500), {"thinking": {"type": "enabled", "token_budget": 500}}, []),
        # Gemini: up to 2.5 a budget within bounds, from 3 on a level
        ("gemini", "gemini-3-pro-preview", HIGH, level("HIGH"), []),
        ("gemini", "gemini-2.5-flash", HIGH, tokens(24576), [EFFORT]),
        ("gemini", "gemini-2.5-flash", Thinking(budget_tokens=31999), tokens(24576), [TOKENS]),
        ("gemini", "gemini-2.5-pro", Thinking(budget_tokens=31999), tokens(31999), []),
        ("gemini", "gemini-2.5-pro", OFF, tokens(128), [TOKENS]),
        ("gemini", "gemini-2.5-flash-lite", Thinking(budget_tokens=100), tokens(512), [TOKENS]),
        ("gemini", "gemini-2.5-flash-lite", OFF, tokens(0), []),
        ("gemini", "gemini-2.5-flash", Thinking(enabled=True), tokens(-1), []),
        ("gemini", "gemini-3-flash-preview", OFF, level("MINIMAL"), [ENABLED]),
        ("gemini", "gemini-3-pro-preview", Thinking("none"), level("LOW"), [ENABLED]),
    ],
)  # fmt: skip
def test_what_a_model_is_told(target, model, thinking, said, lost):
    assert written(target, model, thinking) == (said, lost)


@pytest.mark.parametrize("target", ["anthropic", "bedrock"])
@pytest.mark.parametrize(
    ("thinking", "bound", "budget_tokens", "lost"),
    [
        (Thinking(budget_tokens=8000), 8000, 4000, [TOKENS]),
        (Thinking(budget_tokens=8000), 8001, 8000, []),
        (Thinking("high"), 8000, 4000, [EFFORT]),
        (Thinking(budget_tokens=8000), 1025, 1024, [TOKENS]),
        (Thinking(budget_tokens=8000), 1024, None, ["thinking"]),
    ],
)
def test_a_budget_stays_below_the_bound_of_the_answer(target, thinking, bound, budget_tokens, lost):
    said, found = written(target, "anthropic.claude-sonnet-4-5", thinking, max_tokens=bound)
    inner = said.get("additionalModelRequestFields", said)
    assert inner.get("thinking", {}).get("budget_tokens") == budget_tokens
    assert found == lost


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 9000}}, {"type": "enabled", "budget_tokens": 9000}),
        ({"thinking": {"type": "adaptive"}}, {"type": "adaptive"}),
    ],
)
def test_within_anthropic_it_stays_as_it_came(body, thinking):
    request = decode_request(
        orjson.dumps({"model": "claude-opus-4-7", "max_tokens": 9, "messages": USER, **body}), "anthropic"
    )
    assert orjson.loads(encode_request(request, "anthropic"))["thinking"] == thinking


@pytest.mark.parametrize("effort", BUDGETS)
def test_the_way_to_tokens_and_back_ends_at_the_nearest_effort_that_everybody_takes(effort):
    assert effort_of(budget_of(effort)) == nearest(effort, ("low", "medium", "high"))


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [
        (None, None),
        (-1, None),
        (0, None),
        (1, "low"),
        (1024, "low"),
        (4000, "medium"),
        (10000, "medium"),
        (31999, "high"),
    ],
)
def test_a_budget_is_the_nearest_of_three_efforts(tokens, effort):
    assert effort_of(tokens) == effort


def test_efforts_that_are_not_known_have_no_tokens():
    assert budget_of("heroic") is None
    assert nearest("heroic", BUDGETS) is None
    assert nearest("max", ()) is None


@pytest.mark.parametrize(("bound", "fits"), [(None, 100), (101, 100), (100, 50), (40, 20), (10, None)])
def test_a_budget_that_does_not_fit_is_half_of_the_bound(bound, fits):
    assert below(100, bound, 10) == fits
