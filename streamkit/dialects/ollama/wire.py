"""The words of Ollama: what both directions must agree on. Source: dialects.md §4.1, §7.1, §7.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.members.values import count_of
from streamkit.dialects.vocabulary.usage_counts import has_more
from streamkit.events import ErrorType, ProviderFailed, StopReason, UsageReported

VENDOR = "ollama"

#: ``load`` and ``unload`` answer an empty request: nothing was generated, and nothing is wrong.
STOP_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
#: Those that are said as exactly, and native words that are more telling than ours.
EXACT_REASONS = frozenset({"stop", "length", "tool_calls"})
NATIVE_REASONS = frozenset({"stop", "length", "load", "unload"})
ERROR_TYPES: Mapping[str, ErrorType] = {}
#: Levels of ``think``, which may also be true or false.
THINK_LEVELS = ("low", "medium", "high", "max")
#: Members of a request's ``options`` by our names.
OPTIONS: Mapping[str, str] = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


def decode_usage(line: Mapping[str, Any]) -> UsageReported | None:
    """Token counts and durations (ns) of a line; None if it has none. A count of 0 is left out on this wire."""
    raw = {name: count for name in COUNTS if (count := count_of(line, name)) is not None}
    if not raw:
        return None
    given, output = count_of(raw, "prompt_eval_count"), count_of(raw, "eval_count")
    total = None if given is None or output is None else given + output
    return UsageReported(input_total=given, output_total=output, total=total, raw=raw, vendor=VENDOR)


def done_reason(reason: StopReason, native: str | None) -> tuple[str, bool]:
    """Ollama's word for a stop reason, and whether it says less."""
    word = "length" if reason in {"length", "context_full", "compaction", "pause"} else "stop"
    if native in NATIVE_REASONS and reason == "stop":
        word = native
    return word, reason not in EXACT_REASONS


def encode_usage(usage: UsageReported) -> tuple[dict[str, Any], bool]:
    """Token counts and durations, and whether they say less; what was not measured is left out, as zero ones are."""
    if usage.vendor == VENDOR:
        return dict(usage.raw or {}), False
    details = [usage.input_cached, usage.input_cache_write, usage.output_reasoning]
    summed = (usage.input_total or 0) + (usage.output_total or 0)
    less = any(count is not None for count in details) or usage.total not in {None, summed} or has_more(usage, VENDOR)
    counts = {"prompt_eval_count": usage.input_total, "eval_count": usage.output_total}
    return {name: count for name, count in counts.items() if count is not None}, less


def less_detailed(error: ProviderFailed) -> bool:
    """Whether an error says more than the text that Ollama has for it."""
    return error.vendor != VENDOR and bool(error.native_type or error.http_status)
