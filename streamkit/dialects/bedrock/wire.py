"""The words of Bedrock's streams: what both directions must agree on. Source: dialects.md §6.1, §7.1, §7.2, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.decoding import count_of
from streamkit.events import ErrorType, StopReason, UsageReported

VENDOR = "bedrock"
#: The event type of InvokeModelWithResponseStream, which carries the model's own events.
CHUNK = "chunk"
#: The event types of ConverseStream.
EVENTS = frozenset(
    {
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    }
)
#: What begins ``Frame.event`` for messages of the other two types.
EXCEPTION, ERROR = "exception:", "error:"
#: Passed over: the readers of botocore and of the other SDKs skip event types that their model does not name.
KEEP_ALIVE = "keepAlive"
#: Random characters that hide the length of a payload.
PADDING = "p"
#: Types of asides: members of the last two messages, and what begins the name of an event that is not known.
EXTRA_FIELDS, METADATA, UNKNOWN = "messageStop.additionalModelResponseFields", "metadata.", "event."
METRICS = "amazon-bedrock-invocationMetrics"

STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_context_window_exceeded": "context_full",
    "tool_use": "tool_calls",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "malformed_tool_use": "malformed_tool",
    "malformed_model_output": "malformed_tool",
}
STOP_NAMES: Mapping[StopReason, str] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "context_full": "model_context_window_exceeded",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "pause": "end_turn",
    "compaction": "end_turn",
    "malformed_tool": "malformed_tool_use",
    "error": "end_turn",
    "other": "end_turn",
}
#: Reasons that another dialect's reader can't tell from the word that is written.
INEXACT_STOPS = frozenset({"refusal", "pause", "compaction", "error", "other"})

#: Exceptions by name: what they mean, and the HTTP status that the service model gives them.
EXCEPTIONS: Mapping[str, tuple[ErrorType, int | None]] = {
    "validationException": ("invalid_request", 400),
    "modelTimeoutException": ("timeout", 408),
    "modelStreamErrorException": ("server", 424),
    "throttlingException": ("rate_limit", 429),
    "internalServerException": ("server", 500),
    "serviceUnavailableException": ("unavailable", 503),
    "accessDeniedException": ("permission", 403),
    "resourceNotFoundException": ("not_found", 404),
    "serviceQuotaExceededException": ("rate_limit", 400),
    "modelNotReadyException": ("unavailable", 429),
    "modelErrorException": ("server", 424),
}
UNKNOWN_EXCEPTION: tuple[ErrorType, int | None] = ("server", None)
#: Those of ConverseStream. botocore's reader loses the message of any other.
STREAM_EXCEPTIONS = frozenset(
    {
        "validationException",
        "modelStreamErrorException",
        "throttlingException",
        "internalServerException",
        "serviceUnavailableException",
    }
)
EXCEPTION_NAMES: Mapping[ErrorType, str] = {
    "invalid_request": "validationException",
    "auth": "validationException",
    "billing": "validationException",
    "permission": "validationException",
    "not_found": "validationException",
    "too_large": "validationException",
    "rate_limit": "throttlingException",
    "server": "internalServerException",
    "unavailable": "serviceUnavailableException",
    "timeout": "modelStreamErrorException",
    "truncated": "modelStreamErrorException",
}
#: Kinds of errors that another dialect's reader can't tell from the exception that is written.
INEXACT_ERRORS = frozenset({"auth", "billing", "permission", "not_found", "too_large", "timeout"})


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    """Token counts: ``inputTokens`` leaves the cache out, ``input_total`` does not."""
    fresh, output = count_of(raw, "inputTokens"), count_of(raw, "outputTokens")
    read, written = count_of(raw, "cacheReadInputTokens"), count_of(raw, "cacheWriteInputTokens")
    given = None if fresh is None else fresh + (read or 0) + (written or 0)
    return UsageReported(given, read, written, output, None, count_of(raw, "totalTokens"), raw, VENDOR)


def encode_usage(usage: UsageReported) -> dict[str, Any]:
    """A ``usage`` object. The service model demands three counts, so what is unknown is 0 here."""
    given, output = usage.input_total or 0, usage.output_total or 0
    cached, written = usage.input_cached, usage.input_cache_write
    raw: dict[str, Any] = {
        "inputTokens": max(0, given - (cached or 0) - (written or 0)),
        "outputTokens": output,
        "totalTokens": given + output if usage.total is None else usage.total,
    }
    if usage.vendor == VENDOR and usage.raw is not None:
        return {**usage.raw, **raw}
    if cached is not None:
        raw["cacheReadInputTokens"] = cached
    if written is not None:
        raw["cacheWriteInputTokens"] = written
    return raw
