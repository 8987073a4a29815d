"""Names and values of Gemini that decoder and encoder both need. Source: dialects.md §5.2, §5.3, §7.1-§7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.bodies.google import FUNCTION_NAMES, VENDOR, UsageForm, is_base64
from streamkit.events import StopReason

CHUNK_FIELDS: Final = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "createTime", "error"}
)


def wrong_members(part: Mapping[str, Any]) -> list[str]:
    """Return the members of a part because of which clients refuse it."""
    wrong = ["text"] if not isinstance(part.get("text", ""), str) else []
    wrong += ["thought"] if not isinstance(part.get("thought", False), bool) else []
    signature = part.get("thoughtSignature", "")
    return wrong + (["thoughtSignature"] if not isinstance(signature, str) or not is_base64(signature) else [])


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
UNSPECIFIED = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})  # words for no reason
FINISH_REASONS: Mapping[StopReason, str] = {
    **dict.fromkeys(("stop", "stop_sequence", "tool_calls", "other"), "STOP"),  # not ``OTHER``, which means a failure
    **dict.fromkeys(("length", "context_full", "compaction"), "MAX_TOKENS"),
    **dict.fromkeys(("content_filter", "refusal"), "SAFETY"),
    "pause": "CONTINUATION",
    "malformed_tool": "MALFORMED_FUNCTION_CALL",
    "error": "OTHER",
}
INEXACT_REASONS = frozenset({"stop_sequence", "context_full", "refusal", "compaction", "other"})
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
JSON, PLAIN = "application/json", "text/plain"  # the media types of a response's text
USAGE: Final = UsageForm(
    VENDOR,
    "TokenCount",
    (
        *("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
        *("cachedContentTokenCount", "totalTokenCount"),
    ),
)


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
    return re.sub(r"(?<=[a-zA-Z0-9])_([a-zA-Z0-9])", lambda found: found[1].upper(), name)


#: Keywords of JSON Schema that the API accepts: those that its reference of ``responseJsonSchema`` lists.
TOOLS: Final = ToolRules(
    names=FUNCTION_NAMES,
    keywords=frozenset({
        "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
        "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
        "propertyOrdering",
    }),
)  # fmt: skip
DYNAMIC: Final = -1  # the ``thinkingBudget`` which lets the model choose how much to think
