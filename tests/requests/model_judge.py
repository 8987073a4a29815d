"""Request bodies against the table of models: ``overstepped(dialect, body, row)``, what a body asks of a model that it refuses.

Bodies are read here on their own, without the writers or the passes that they are judged by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo

#: Where a body has its options, besides itself.
INSIDE = ("generationConfig", "generation_config", "inferenceConfig", "additionalModelRequestFields", "options")
#: The names of options, where they are not those of streamkit in the dialect's way to write them.
NAMES = {
    "max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "num_predict": "max_tokens", "p": "top_p",
    "k": "top_k", "stop_sequences": "stop", "response_logprobs": "logprobs",
}  # fmt: skip
CLAUDES = {"anthropic", "bedrock"}
#: The dialects whose servers have the models of one vendor alone.
VENDORS = {
    "anthropic": "anthropic", "gemini": "google", "gemini-interactions": "google", "mistral": "mistral", "cohere": "cohere",
}  # fmt: skip
CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


def name_of(pattern: str) -> str:
    """The shortest name that a pattern matches: of each set of letters the first, without what may stand for nothing."""
    return re.sub(r"\[(.).*?\]", r"\1", pattern).replace("*", "")


def overstepped(dialect: str, body: Mapping[str, Any], row: ModelInfo) -> list[str]:
    """What the body asks that the row's models refuse, in words; nothing of a model that no row or another vendor has."""
    return (
        [*_steps(dialect, body, row)] if VENDORS.get(dialect, row.vendor) == row.vendor and row is not UNKNOWN else []
    )


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a body by streamkit's names."""
    members = {**body}
    for name in INSIDE:
        members |= {
            key: value
            for key, value in (body.get(name) or {}).items()
            if name != "generationConfig" or key != "logprobs"
        }
    snake = {CAMEL.sub(lambda found: f"_{found[1]}", name).lower(): value for name, value in members.items()}
    return {NAMES.get(name, name): value for name, value in snake.items()}


def _steps(dialect: str, body: Mapping[str, Any], row: ModelInfo) -> Iterator[str]:
    options = options_of(body)
    effort, thinking = effort_of(options), thinking_of(options)
    kind, budget = thinking.get("type"), thinking.get("budget_tokens", thinking.get("thinking_budget"))
    if effort is not None and effort not in row.efforts:
        yield f"the effort {effort}"
    if dialect == "openai-chat" and row.legacy_chat and (effort == "max" or _thinks_with_tools(body, effort, row)):
        yield f"tools in Chat next to the effort {effort}"
    yield from (f"{name} = {value}" for name, value in options.items() if name in row.refuses)
    if row.is_thinking(effort or (budget or None) or kind, off=kind == row.off or budget == 0):
        fits = options.get("top_p") or 0
        spared = {"top_p"} if row.least_top_p is not None and fits >= row.least_top_p else set()
        yield from (f"{name} while it thinks" for name in options if name in {*row.refuses_thinking} - spared)
    if not row.both and {"temperature", "top_p"} <= options.keys():
        yield "temperature and top_p"
    if row.output is not None and (options.get("max_tokens") or 0) > row.output:
        yield f"{options['max_tokens']} tokens"
    if not row.parallel_option and b"parallel" in repr(body).encode():
        yield "the option for parallel calls"
    yield from _forms(dialect, body, row)
    if not row.prefill and _last(body) in {"assistant", "model"}:
        yield "a prefill"
    if dialect in CLAUDES:
        yield from _of_claude(body, options, row, kind, budget)


def effort_of(options: Mapping[str, Any]) -> str | None:
    """The effort of a body, in lower case."""
    thinking_config = options.get("thinking_config") or {}
    places = (
        options.get("reasoning_effort"), (options.get("reasoning") or {}).get("effort"), (options.get("output_config") or {}).get("effort"),
        thinking_config.get("thinkingLevel"), options.get("thinking_level"),
    )  # fmt: skip
    found = next((effort for effort in places if effort is not None), None)
    return None if found is None else found.lower()


def thinking_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The member that says with how many tokens to think."""
    thinking = options.get("thinking") or options.get("thinking_config") or {}
    return {CAMEL.sub(lambda found: f"_{found[1]}", name).lower(): value for name, value in thinking.items()}


def _thinks_with_tools(body: Mapping[str, Any], effort: str | None, row: ModelInfo) -> bool:
    return bool(body.get("tools")) and "none" in row.efforts and row.is_thinking(effort, off=False)


def _forms(dialect: str, body: Mapping[str, Any], row: ModelInfo) -> Iterator[str]:
    chat = (body.get("response_format") or {}).get("type") if dialect == "openai-chat" else None
    found = chat or ((body.get("text") or {}).get("format") or {}).get("type")
    kind = {"json_object": "json", "json_schema": "schema"}.get(found or "")
    if kind is not None and row.vendor == "openai" and kind not in row.forms:
        yield f"the format {found}"


def _last(body: Mapping[str, Any]) -> str | None:
    """Who speaks last in a history, if a text is the last."""
    turns = body.get("messages") or body.get("contents") or body.get("input") or []
    said = [turn for turn in turns if isinstance(turn, dict) and turn.get("role") not in {None, "system", "developer"}]
    last = said[-1] if said and said[-1] is [*turns][-1] else {}
    content = last.get("content") or last.get("parts") or []
    parts = [{"text": content}] if isinstance(content, str) else content
    says = any(str(part.get("text") or part.get("refusal") or "").strip() for part in parts)
    calls = last.get("tool_calls") or any(part.keys() & {"toolUse", "functionCall", "input"} for part in parts)
    return last.get("role") if says and not calls else None


def _of_claude(
    body: Mapping[str, Any], options: Mapping[str, Any], row: ModelInfo, kind: str | None, budget: int | None
) -> Iterator[str]:
    """What bodies of Anthropic and Bedrock ask of the models."""
    choice = body.get("tool_choice") or (body.get("toolConfig") or {}).get("toolChoice") or {}
    forced = bool({choice.get("type"), *choice} & {"any", "tool"})
    thinks = kind in {"enabled", "adaptive"}
    if forced and (row.forced_calls == "never" or (row.forced_calls == "unthinking" and thinks)):
        yield "a required call"
    if budget is not None and (row.budget is None or not row.budget[0] <= budget <= row.budget[1]):
        yield f"a budget of {budget}"
    if budget is not None and budget >= (options.get("max_tokens") or budget + 1):
        yield f"a budget of {budget} in {options['max_tokens']} tokens"
    if kind == "adaptive" and not row.words:
        yield "adaptive thinking"
    if kind not in {None, "enabled", "adaptive", row.off} or (kind == row.off and "none" not in row.efforts):
        yield f"thinking of the type {kind}"
    if "schema" not in row.forms and re.search(r"'(?:json_schema|strict)'", repr(body)):
        yield "a schema to follow"
    marks = len(re.findall(r"'(?:cache_control|cachePoint)'", repr(body)))
    if marks > (4 if row.cache_marks else 0):
        yield f"{marks} cache marks"
