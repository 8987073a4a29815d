"""Token counts of single dialects that ``UsageReported`` lacks. They are kept within the dialect, and lost in others.

Numbers that do not count tokens read or written are no loss. Each of these is listed here with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.members.values import CONTAINERS
from streamkit.events import UsageReported

#: Our names of the counts, and their names in user-interface protocols.
UI_COUNTS: Final[Mapping[str, str]] = {
    "input_total": "inputTokens",
    "output_total": "outputTokens",
    "total": "totalTokens",
    "output_reasoning": "reasoningTokens",
    "input_cached": "cachedInputTokens",
}
#: The names, in all dialects, of counts that ``UsageReported`` has, so that they are not lost.
CARRIED: Final = frozenset(
    {
        *("input_tokens", "output_tokens", "total_tokens", "thinking_tokens"),
        *("cache_read_input_tokens", "cache_creation_input_tokens"),
        *("prompt_tokens", "completion_tokens", "reasoning_tokens"),
        *("cached_tokens", "cache_write_tokens", "prompt_cache_hit_tokens"),
        *(
            "promptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "totalTokenCount",
            "cachedContentTokenCount",
        ),
        *("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
        *("prompt_eval_count", "eval_count"),
    }
)
#: Members that are not separate counts, so that dropping them is no loss, and the reasons.
NO_COUNTS: Final[Mapping[str, str]] = {
    "prompt_cache_miss_tokens": "DeepSeek's input without cached tokens, the difference of two other counts",
    "toolUsePromptTokenCount": "a part of the input that is summed",
    **dict.fromkeys(("cacheReadInputTokenCount", "cacheWriteInputTokenCount"), "a second name of a count"),
    "text_tokens": "what is left of a sum once the other kinds are known",
    **dict.fromkeys(
        ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), "a time in nanoseconds"
    ),
}
#: Objects that do not count tokens, so that dropping them is no loss, and the reasons.
NO_TOKENS: Final[Mapping[str, str]] = {
    "billed_units": "what is paid for, not what was read and written",
    "cost_details": "OpenRouter's, of money",
}
NOT_MORE: Final = CARRIED | NO_TOKENS.keys()  #: dropping a member with one of these names is no loss


def has_more(usage: UsageReported | None, vendor: str) -> bool:
    """Return whether another vendor's usage has token counts that ``vendor``'s dialect cannot express."""
    return usage is not None and usage.vendor != vendor and _counts_more(usage.raw)


def with_cache(fresh: int | None, read: int | None, written: int | None) -> int | None:
    """Return all input tokens: fresh ones, those read from a cache and those written to it. None if ``fresh`` is unknown."""
    return None if fresh is None else fresh + (read or 0) + (written or 0)


def without_cache(usage: UsageReported) -> int:
    """Return the input tokens that were neither read from a cache nor written to it; 0 if unknown."""
    return max(0, (usage.input_total or 0) - (usage.input_cached or 0) - (usage.input_cache_write or 0))


def total_of(counted_in: int | None, counted_out: int | None) -> int | None:
    """Return the tokens of a request and its response together; None if one number is unknown."""
    return None if counted_in is None or counted_out is None else counted_in + counted_out


def loses_counts(usage: UsageReported, vendor: str, *unwritten: int | None) -> bool:
    """Return whether ``vendor``'s dialect, which lacks a total and the counts ``unwritten``, loses another vendor's counts."""
    if usage.vendor == vendor:
        return False
    total = (usage.input_total or 0) + (usage.output_total or 0)
    return any(count is not None for count in unwritten) or usage.total not in {None, total} or has_more(usage, vendor)


def _counts_more(value: Any) -> bool:
    if type(value) is list:
        return any(map(_counts_more, value))
    for name in value.keys() - NOT_MORE if type(value) is dict else ():
        member = value[name]
        if not member or (name == "tokenCount" and value.get("modality") == "TEXT"):
            continue  # a part of a sum in Gemini: text is what the other parts leave
        if type(member) is not int:
            if type(member) in CONTAINERS and _counts_more(member):
                return True
        elif member > 0 and name not in NO_COUNTS:
            return True
    return False
