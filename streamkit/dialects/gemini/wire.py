"""Names and values of Gemini that decoder and encoder both need. Source: dialects.md §5.2, §5.3, §7.1-§7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from streamkit.conversation.tool_definitions import ToolRules
from streamkit.dialects.members.values import counts_of
from streamkit.dialects.vocabulary.google import FUNCTION_NAMES, VENDOR, is_count, output_counts
from streamkit.dialects.vocabulary.usage_counts import total_of
from streamkit.events import StopReason, UsageReported
from streamkit.report import StreamReport

#: An underscore inside a member's name, with the character after it: ``camel_case`` replaces both by a capital.
_UNDERSCORES: Final = re.compile(r"(?<=[a-zA-Z0-9])_([a-zA-Z0-9])")
#: By the word in ``finishReason``: the stop reason. Google writes ``STOP`` also if the model calls tools.
STOP_REASONS: Mapping[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "content_filter"),
    **dict.fromkeys(("MODEL_ARMOR", "ESCALATION"), "content_filter"),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"),
    "CONTINUATION": "pause",
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE"), "malformed_tool"),
    # the following words mean that the response failed (tool_calls/ending.py)
    **dict.fromkeys(("MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS", "LANGUAGE", "OTHER"), "error"),
    **dict.fromkeys(("NO_IMAGE", "IMAGE_OTHER", "PUP_LIMITED_DISABLED"), "error"),
}
#: The words of ``finishReason`` and ``blockReason`` that mean that no reason is given.
UNSPECIFIED = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
FINISH_REASONS: Mapping[StopReason, str] = {
    **dict.fromkeys(("stop", "stop_sequence", "tool_calls", "other"), "STOP"),  # not ``OTHER``, which means a failure
    **dict.fromkeys(("length", "context_full", "compaction"), "MAX_TOKENS"),
    **dict.fromkeys(("content_filter", "refusal"), "SAFETY"),
    "pause": "CONTINUATION",
    "malformed_tool": "MALFORMED_FUNCTION_CALL",
    "error": "OTHER",
}
#: Stop reasons for which ``finishReason`` has no exact word. Each time one is written, a loss is counted.
INEXACT_REASONS = frozenset({"stop_sequence", "context_full", "refusal", "compaction", "other"})
#: By the field of streamkit's ``Options``: the member of ``generationConfig``.
OPTIONS: Mapping[str, str] = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "choices": "candidateCount",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
#: Values of ``mode`` in ``functionCallingConfig``. VALIDATED is AUTO with arguments that match their schemas.
MODES: Mapping[Literal["auto", "none", "required"], str] = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
VALIDATED = "VALIDATED"
#: The media types that a request can demand for the response's text.
JSON, PLAIN = "application/json", "text/plain"


#: How the names of all counts in ``usageMetadata`` end.
COUNT: Final = "TokenCount"
#: The counts that ``decode_usage`` reads, in the order of its variables.
COUNTS: Final = (
    *("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
    *("cachedContentTokenCount", "totalTokenCount"),
)


def decode_usage(raw: Mapping[str, Any]) -> UsageReported | None:
    """Return the counts so far of ``usageMetadata``; None if there are none. Thoughts are not counted with the candidates."""
    prompt, tools, candidates, thoughts, cached, total = counts_of(raw, COUNTS)
    whole = prompt if tools is None else _sum(prompt, tools)
    output = candidates if thoughts is None else _sum(candidates, thoughts)
    if whole is output is cached is total is None:
        return None
    return UsageReported(whole, cached, None, output, thoughts, total, raw, VENDOR)


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """Return a ``usageMetadata`` object without unknown counts. Google's own is returned without malformed counts.

    Another vendor's counts are lost if the cache was written to, or if its thoughts are not part of its output.
    """
    if usage.vendor == VENDOR and usage.raw is not None:
        return {name: value for name, value in usage.raw.items() if not is_bad_count(name, value)}
    output, thoughts = output_counts(usage, VENDOR, report)
    counts = {
        "promptTokenCount": usage.input_total,
        "cachedContentTokenCount": usage.input_cached,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": total_of(usage.input_total, usage.output_total) if usage.total is None else usage.total,
    }
    return {name: count for name, count in counts.items() if count is not None}


def finish_reason(reason: StopReason, native: str | None, *, called: bool) -> tuple[str, bool]:
    """Return a ``finishReason``, and whether it is less exact than ``reason``. ``native`` is Google's own word, if any."""
    meant = "tool_calls" if (reason, native) == ("tool_calls", "STOP") else STOP_REASONS.get(native or "", "other")
    if reason == "tool_calls" and not called:
        return "MAX_TOKENS", True  # clients got none of the calls, as if the response had been cut off
    if native and meant == reason:
        return native, False
    return FINISH_REASONS[reason], reason in INEXACT_REASONS


def camel_case(name: str) -> str:
    """Return a member's name in Google's spelling. Requests may also have the spelling of the protocol (``function_call``)."""
    return _UNDERSCORES.sub(lambda found: found[1].upper(), name)


def _sum(one: int | None, other: int) -> int:
    return other if one is None else one + other


def is_bad_count(name: str, value: object) -> bool:
    """Return whether a member of ``usageMetadata`` is named like a count but is no number, so it must not be written again."""
    return name.endswith(COUNT) and not is_count(value)


# -- tools -------------------------------------------------------------------------------------------------------------

#: Keywords of JSON Schema that the API accepts: those that its reference of ``responseJsonSchema`` lists.
TOOLS: Final = ToolRules(
    names=FUNCTION_NAMES,
    keywords=frozenset({
        "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
        "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
        "propertyOrdering",
    }),
)  # fmt: skip
#: The value of ``thinkingBudget`` which lets the model choose how much to think.
DYNAMIC: Final = -1
