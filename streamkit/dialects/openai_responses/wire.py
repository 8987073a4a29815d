"""The words of OpenAI Responses that both directions share. Source: dialects.md §2.1, §2.2, §7.1, §7.2, §7.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve, frozen

from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.bodies import openai
from streamkit.dialects.bodies.openai import NO_RETRY, decode_error
from streamkit.dialects.members.values import count_of, counts_of, details_of
from streamkit.dialects.streams.compactions import FORMS
from streamkit.dialects.vocabulary.context_overflow import is_overflow, with_code
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.dialects.vocabulary.usage_counts import has_more
from streamkit.events import (
    AsideKind,
    ErrorType,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    StopReason,
    TextDelta,
    UsageReported,
)
from streamkit.report import StreamReport

#: The vendor of this dialect's asides, usage and errors. Chat's vendor is a different one, although the company is the same.
VENDOR = "openai-responses"
FORMS[VENDOR] = "item"
#: The vendor that can read ``encrypted_content``. OpenAI's other dialects use the same vendor.
OPAQUE_VENDOR = "openai"

#: Items that other dialects can express. ``CALL_INPUTS`` has, for each type of call, the member with its input.
CALL_INPUTS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}
OWN_ITEMS = frozenset({"message", "reasoning", *CALL_INPUTS})
#: The type of item for the result of a call, by the kind of the called tool.
OUTPUTS: Mapping[str, str] = {"function": "function_call_output", "custom": "custom_tool_call_output"}
#: Beginnings of types of asides: for an item that is kept whole, and for a part of a message that is kept whole.
ITEM, CONTENT = "item.", "content."
#: The type of call to which events belong, by the events' names without the last word.
CALL_EVENTS: Final[Mapping[str, str]] = {
    "response.function_call_arguments": "function_call",
    "response.custom_tool_call_input": "custom_tool_call",
}
Said: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta


@frozen
class Speech:
    """A kind of part that has text, and the words for it."""

    type: str
    item: str  #: the type of item that contains the part
    place: Literal["content_index", "summary_index"]  #: the member that numbers the parts of an item
    name: str  #: the member of the part with the whole text
    events: str  #: names of the part's events, without the last word
    event: Callable[[str, int, int], Said]  #: makes an event from a text, its choice and its block


def _summary(text: str, choice: int, block: int) -> ReasoningDelta:
    return ReasoningDelta(text, choice, block, "summary")


TEXT: Final = Speech("output_text", "message", "content_index", "text", "response.output_text", TextDelta)
REFUSAL: Final = Speech("refusal", "message", "content_index", "refusal", "response.refusal", RefusalDelta)
THOUGHT: Final = Speech(
    "reasoning_text", "reasoning", "content_index", "text", "response.reasoning_text", ReasoningDelta
)
SUMMARY: Final = Speech(
    "summary_text", "reasoning", "summary_index", "text", "response.reasoning_summary_text", _summary
)
#: The kinds of parts with text, by the ``type`` of a part. Parts of other types are kept whole.
SPEECHES: Mapping[str, Speech] = {speech.type: speech for speech in (TEXT, REFUSAL, THOUGHT, SUMMARY)}

#: Members of most events: places and numbers. ``obfuscation`` is padding.
PLACES: Final = (
    "type", "sequence_number", "output_index", "item_id", "content_index", "summary_index", "obfuscation", "stream_id",
)  # fmt: skip
#: Events that no other dialect can express, and the kind of aside as which each is kept.
ASIDES: Mapping[str, AsideKind] = {
    **dict.fromkeys(
        [f"response.audio{name}.{ending}" for name in ("", ".transcript") for ending in ("delta", "done")], "audio"
    ),
    **{
        f"response.{name}.{ending}": "server_tool"
        for name, endings in {
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "code_interpreter_call_code": ("delta", "done"),
            "compaction": ("compacting",),
            "file_search_call": ("in_progress", "searching", "completed"),
            "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "mcp_call_arguments": ("delta", "done"),
            "mcp_list_tools": ("in_progress", "completed", "failed"),
            "shell_call_command": ("added", "delta", "done"),
            "shell_call_output_content": ("delta", "done"),
            "web_search_call": ("in_progress", "searching", "completed"),
        }.items()
        for ending in endings
    },
    # on a WebSocket: the server has queued or refused what the client sent in the middle of the response
    **dict.fromkeys([f"response.steer.{ending}" for ending in ("accepted", "pending", "failed")], "metadata"),
    **dict.fromkeys([f"response.inject.{ending}" for ending in ("created", "failed")], "metadata"),
}

#: Stop reasons for values of ``incomplete_details.reason``. A completed response has none: its content shows the reason
#: (§2.2). An unknown or missing value means at least ``length``, because the response is not complete.
INCOMPLETE_REASONS: Mapping[str, StopReason] = {
    **dict.fromkeys(("max_output_tokens", "max_messages"), "length"),
    "content_filter": "content_filter",
    "steered": "pause",
}
#: The stop reasons for which a response is ``incomplete``, with the written reason. For others it is ``completed``.
INCOMPLETE_NAMES: Mapping[StopReason, str] = {
    **dict.fromkeys(("length", "context_full"), "max_output_tokens"),
    "content_filter": "content_filter",
    "pause": "steered",
}
#: Stop reasons that a reader can recognise in the written response.
EXACT_STOPS = frozenset({"stop", "tool_calls", "length", "content_filter", "refusal"})


def encode_end(
    end: ResponseFinished, report: StreamReport, *, own: bool, refused: bool, called: bool = True
) -> tuple[str, dict[str, Any] | None]:
    """Return the status and the ``incomplete_details`` for an end. Count a loss if a reader cannot recognise the reason.

    ``own``: the response is of this dialect. ``refused`` and ``called``: the output has a refusal, a call. An incomplete
    response without a reason gets the reason that it is read as, because clients take none for a natural end.
    """
    stop, native = end.reason, end.native if own else None
    # whether the output shows the reason: by a call, or by a refusal in which the model came to its natural end
    founded = called if stop == "tool_calls" else stop != "refusal" or (refused and not was_stopped(stop, end.native))
    reason = "content_filter" if stop == "refusal" and not founded else INCOMPLETE_NAMES.get(stop)
    exact = founded and stop in EXACT_STOPS
    if native not in {None, "completed"} and (reason is not None or stop == "other"):
        exact = native != "incomplete"
        reason = native if exact else reason or "max_output_tokens"
    if not exact:
        report.lose("stop_reason")
    if end.stop_sequence is not None:
        report.lose("stop_sequence")
    return ("completed", None) if reason is None else ("incomplete", {"reason": reason})


ERROR_TYPES: Mapping[str, ErrorType] = {
    **openai.ERROR_TYPES,
    "invalid_prompt": "invalid_request",
    "context_length_exceeded": "too_large",
    "server_is_overloaded": "unavailable",
    "vector_store_timeout": "timeout",
}
#: The ``type`` and the ``code`` to write for each type of error. Clients look at the code.
ERROR_NAMES: Mapping[ErrorType, tuple[str, str]] = {
    "invalid_request": ("invalid_request_error", "invalid_prompt"),
    "auth": ("authentication_error", "invalid_api_key"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "permission": ("permission_error", "permission_error"),
    "not_found": ("not_found_error", "model_not_found"),
    "too_large": ("invalid_request_error", "context_length_exceeded"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server": ("server_error", "server_error"),
    "unavailable": ("server_error", "service_unavailable"),
    "timeout": ("server_error", "timeout"),
    "truncated": ("server_error", "stream_truncated"),
}
#: Vendors whose errors already have types and codes of this dialect: its vendor, Chat's, and streamkit ("").
OWN_ERRORS = frozenset({VENDOR, OPAQUE_VENDOR, ""})


def encode_error(event: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return an error object with its type, code and message."""
    kind, code = ERROR_NAMES[event.type]
    if event.vendor in OWN_ERRORS:
        kind, code = event.native_type or kind, event.code or code
    elif event.code is not None:
        report.lose("error_detail")
    if event.vendor != VENDOR and is_overflow(event):
        kind, code = ERROR_NAMES["too_large"]
    raw = event.raw if event.vendor == VENDOR and isinstance(event.raw, dict) else {}
    return with_code(event, {"param": None, **raw, "type": kind, "code": code, "message": event.message})


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    """Return the token counts of a terminal response."""
    input_details, output = details_of(raw, "input_tokens_details"), details_of(raw, "output_tokens_details")
    whole, written, total = counts_of(raw, ("input_tokens", "output_tokens", "total_tokens"))
    cached, to_cache = counts_of(input_details, ("cached_tokens", "cache_write_tokens"))
    return UsageReported(whole, cached, to_cache, written, count_of(output, "reasoning_tokens"), total, raw, VENDOR)


def encode_usage(usage: UsageReported) -> dict[str, Any]:
    """Return a ``usage`` object. An unknown count is written as 0, because clients read all counts without a check."""
    if usage.vendor == VENDOR and usage.raw is not None:
        counts = {name: count_of(usage.raw, name) or 0 for name in ("input_tokens", "output_tokens", "total_tokens")}
        return {**usage.raw, **counts}
    input_tokens, output = usage.input_total or 0, usage.output_total or 0
    details = {"cached_tokens": usage.input_cached or 0}
    if usage.input_cache_write is not None:
        details["cache_write_tokens"] = usage.input_cache_write
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": details,
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.output_reasoning or 0},
        "total_tokens": input_tokens + output if usage.total is None else usage.total,
    }


def count_usage_losses(usage: UsageReported, report: StreamReport) -> None:
    """Count as lost the token counts that ``encode_usage`` cannot write, and those that it writes although unknown."""
    counts = [usage.input_total, usage.output_total]
    if usage.vendor != VENDOR:  # this vendor's details are kept as they are
        counts += [usage.input_cached, usage.output_reasoning]
    if None in counts:
        report.lose("usage_unknown")
    if has_more(usage, VENDOR):
        report.lose("usage_detail")


#: The options that are single members, by the neutral names.
OPTIONS: Mapping[str, str] = {name: name for name in ("temperature", "top_p", "top_logprobs", "user")}
#: The member that requests a compaction, and the member with the number of tokens at which it starts.
MANAGEMENT, THRESHOLD = "context_management", "compact_threshold"
TRIGGER = "compaction_trigger"  #: the item at the end of an input that requests only a compaction
SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"})
LOGPROBS = "message.output_text.logprobs"  #: the entry of ``include`` that requests log probabilities
#: The smallest allowed ``max_output_tokens``. Clients of other dialects request one token to test a model.
LEAST_TOKENS = 16


#: Vendors whose errors are written unchanged. Chat's errors come from the same company in the same form.
VENDORS: Final = frozenset({VENDOR, OPAQUE_VENDOR})


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return an error body, and the headers for it."""
    headers = NO_RETRY if failed.type == "billing" else {}
    own = failed.vendor in VENDORS and isinstance(failed.raw, dict) and isinstance(failed.raw.get("message"), str)
    if own and (failed.vendor == VENDOR or not is_overflow(failed)):
        return {"error": with_code(failed, failed.raw)}, headers
    if not failed.vendor:  # type and code are words of no known vendor
        failed = evolve(failed, native_type=None, code=None)
    return {"error": encode_error(failed, report)}, headers


ERRORS = Errors(
    vendors=VENDORS,
    words=ERROR_TYPES,
    decode=lambda document, _headers: decode_error(document, VENDOR, ERROR_TYPES),
    encode=encode,
    statuses={**STATUSES, "billing": 429},
)
