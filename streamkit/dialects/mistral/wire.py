"""The words and tables of Mistral, where they are not those of OpenAI Chat. Source: dialects.md §1.6, §6.3, §7.1, §7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streamkit.conversation.tool_definitions import ToolRules
from streamkit.dialects.openai_chat import wire as chat
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.events import AsideKind, ErrorType, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "mistral"

#: An answer that ended is never ``error``, whatever its reason: readers would take it for failed.
FINISH_REASONS: Mapping[StopReason, str] = {**chat.FINISH_REASONS, "context_full": "model_length", "refusal": "stop"}
#: Types of errors, beside those of Chat.
ERROR_TYPES: Mapping[str, ErrorType] = {
    **chat.ERROR_TYPES,
    "invalid_function_call": "invalid_request",
    "invalid_request_message_order": "invalid_request",
    "rate_limited": "rate_limit",
}
#: Members of the vendor's error that are not copied: two that are written, and those that would make a chunk of it.
NO_DETAILS = frozenset({"object", "message", "id", "model", "choices"})
#: What parts of a content or of a thinking are asides; of other types nothing is known.
ASIDES: Mapping[str, AsideKind] = {"reference": "citation", "tool_reference": "citation", "input_audio": "audio"}
#: Asides that stand in the content: its parts, parts of a thinking, and members of one.
CONTENT, THINKING, THINKING_MEMBER = "content.", "thinking.", "thinking:"
#: Counts that the client's types know, and are integers there.
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_audio_seconds")


def finish_reason(reason: StopReason, native: str | None, *, called: bool) -> tuple[str, bool]:
    """The ``finish_reason`` to write, and whether it says less than ``reason`` did."""
    if was_stopped(reason, native) or (reason == "tool_calls" and not called):
        return "length", True  # the answer was cut, and is no natural end; or every call was, and was withheld
    return FINISH_REASONS[reason], chat.STOP_REASONS[FINISH_REASONS[reason]] != reason


def encode_error(event: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """An error, flat. What another vendor's says beside it is a loss."""
    ours = event.vendor == VENDOR
    body = {
        "object": "error",
        "message": event.message,
        "type": (event.native_type if ours else None) or chat.ERROR_NAMES[event.type],
        "param": None,
        "code": event.code,
    }
    if ours and isinstance(event.raw, dict):
        body |= {name: value for name, value in event.raw.items() if name not in NO_DETAILS}
    if event.vendor and has_detail(event, VENDOR):
        report.lose("error_detail")
    return body


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """A ``usage`` object. The client takes further members as they are, so the details are Chat's."""
    raw = chat.encode_usage(usage, report, VENDOR)
    return {name: count for name, count in raw.items() if name not in COUNTS or type(count) is int or count is None}


#: Options that are one field each, by our names.
OPTIONS: Mapping[str, str] = {
    ours: theirs for ours, theirs in chat.OPTIONS.items() if ours not in {"service_tier", "user"}
} | {"seed": "random_seed"}
#: The names of tools that the server takes: those of its own refusal.
TOOLS = ToolRules(names=re.compile(r"[A-Za-z0-9_-]{1,64}"))
SERVICE_TIERS = frozenset({"auto", "standard_only"})
