"""The words of the wire that both directions must agree on."""

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.members.values import count_of, details_of
from streamkit.events import ErrorType, StopReason, UsageReported

#: Marks what only this dialect can carry. Not "openai": its log probabilities have another shape than those of Chat.
VENDOR = "openai-completions"

STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "abort": "error",  # vLLM
}
#: Reasons that are written as they are; any other is a stop, and a counted loss.
FINISH_REASONS: Mapping[StopReason, str] = {"stop": "stop", "length": "length", "content_filter": "content_filter"}

ERROR_NAMES: Mapping[ErrorType, str] = {
    "invalid_request": "invalid_request_error",
    "auth": "authentication_error",
    "billing": "insufficient_quota",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "too_large": "invalid_request_error",
    "rate_limit": "rate_limit_exceeded",
    "unavailable": "service_unavailable",
    "timeout": "timeout",
    "truncated": "server_error",
    "server": "server_error",
}
ERROR_TYPES: Mapping[str, ErrorType] = {name: kind for kind, name in ERROR_NAMES.items()} | {
    "invalid_request_error": "invalid_request"
}


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    return UsageReported(
        input_total=count_of(raw, "prompt_tokens"),
        input_cached=count_of(details_of(raw, "prompt_tokens_details"), "cached_tokens"),
        output_total=count_of(raw, "completion_tokens"),
        output_reasoning=count_of(details_of(raw, "completion_tokens_details"), "reasoning_tokens"),
        total=count_of(raw, "total_tokens"),
        raw=raw,
        vendor=VENDOR,
    )


def encode_usage(usage: UsageReported) -> Mapping[str, Any]:
    """A ``usage`` object: as it came where it came from this dialect. Unknown counts are null, not 0."""
    if usage.vendor == VENDOR and usage.raw is not None:
        return usage.raw
    given, output, total = usage.input_total, usage.output_total, usage.total
    if total is None and given is not None and output is not None:
        total = given + output
    raw: dict[str, Any] = {"prompt_tokens": given, "completion_tokens": output, "total_tokens": total}
    if usage.input_cached is not None:
        raw["prompt_tokens_details"] = {"cached_tokens": usage.input_cached}
    if usage.output_reasoning is not None:
        raw["completion_tokens_details"] = {"reasoning_tokens": usage.output_reasoning}
    return raw
