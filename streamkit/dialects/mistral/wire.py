"""The words of Mistral, where they are not those of OpenAI Chat. Source: dialects.md §1.6, §6.3, §7.1, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.openai_chat import wire as chat
from streamkit.events import StopReason, UsageReported

VENDOR = "mistral"

#: What came to a clean end is never ``error``, whatever its reason: readers would take the answer for failed.
FINISH_REASONS: Mapping[StopReason, str] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_full": "model_length",
    "tool_calls": "tool_calls",
    "content_filter": "stop",
    "refusal": "stop",
    "pause": "stop",
    "compaction": "stop",
    "malformed_tool": "stop",
    "error": "error",
    "other": "stop",
}
#: Counts that the client's types know, and are integers there.
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_audio_seconds")


def encode_usage(usage: UsageReported) -> dict[str, Any]:
    """A ``usage`` object. The client takes further members as they are, so the details are Chat's."""
    raw = chat.encode_usage(usage, VENDOR)
    return {name: count for name, count in raw.items() if name not in COUNTS or type(count) is int or count is None}
