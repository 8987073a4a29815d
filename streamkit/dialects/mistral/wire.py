"""The words and tables of Mistral that differ from OpenAI Chat's. Source: dialects.md §1.6, §6.3, §7.1, §7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.openai_chat import wire as chat
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.dialects.vocabulary.stop_reasons import as_written
from streamkit.events import AsideKind, ErrorType, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "mistral"

#: The ``finish_reason`` to write for each stop reason. ``error`` is not used: clients take such a response for failed.
FINISH_REASONS: Mapping[StopReason, str] = {**chat.FINISH_REASONS, "context_full": "model_length", "refusal": "stop"}
#: Types of errors, in addition to Chat's.
ERROR_TYPES: Mapping[str, ErrorType] = {
    **chat.ERROR_TYPES,
    "invalid_function_call": "invalid_request",
    "invalid_request_message_order": "invalid_request",
    "rate_limited": "rate_limit",
}
#: The kind of aside for parts of a content or thinking. Other types are unknown.
ASIDES: Mapping[str, AsideKind] = {"reference": "citation", "tool_reference": "citation", "input_audio": "audio"}
#: Beginnings of types of asides: for a part of the content, a part of a thinking, and another member of a thinking.
CONTENT, THINKING, THINKING_MEMBER = "content.", "thinking.", "thinking:"
#: Counts that must be integers or null for the client.
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_audio_seconds")


def finish_reason(reason: StopReason, native: str | None, *, called: bool) -> tuple[str, bool]:
    """Return the ``finish_reason`` to write, and whether it is less exact than ``reason``."""
    word = FINISH_REASONS[as_written(reason, native, called=called)]
    return word, chat.STOP_REASONS[word] != reason


def encode_error(event: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return an error in the flat form. Details of another vendor's error are counted as lost."""
    ours = event.vendor == VENDOR
    body = {
        "object": "error",
        "message": event.message,
        "type": (event.native_type if ours else None) or chat.ERROR_NAMES[event.type],
        "param": None,
        "code": event.code,
    }
    if ours and isinstance(event.raw, dict):  # the members left out are written here, or would make it a chunk
        left_out = {"object", "message", "id", "model", "choices"}
        body |= {name: value for name, value in event.raw.items() if name not in left_out}
    if event.vendor and has_detail(event, VENDOR):
        report.lose("error_detail")
    return body


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """Return a ``usage`` object with Chat's details, because the client accepts more members."""
    raw = chat.encode_usage(usage, report, VENDOR)
    return {name: count for name, count in raw.items() if name not in COUNTS or type(count) is int or count is None}


#: The options that are single members, by the neutral names.
OPTIONS: Mapping[str, str] = {
    ours: theirs for ours, theirs in chat.OPTIONS.items() if ours not in {"service_tier", "user"}
} | {"seed": "random_seed"}
#: The names of tools that the server accepts, from its error message.
TOOLS = ToolRules(names=re.compile(r"[A-Za-z0-9_-]{1,64}"))
SERVICE_TIERS = frozenset({"auto", "standard_only"})
