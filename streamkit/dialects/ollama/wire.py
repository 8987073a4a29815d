"""The words of Ollama: what both directions must agree on. Source: dialects.md §4.1, §7.1, §7.2."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from streamkit.dialects.decoding import count_of
from streamkit.events import ErrorType, StopReason, UsageReported

VENDOR = "ollama"

#: ``load`` and ``unload`` answer an empty request: nothing was generated, and nothing is wrong.
STOP_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
ERROR_TYPES: Mapping[str, ErrorType] = {}
COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


def decode_usage(line: Mapping[str, Any]) -> UsageReported | None:
    """Token counts and durations (ns) of a line; None if it has none. A count of 0 is left out on this wire."""
    raw = {name: count for name in COUNTS if (count := count_of(line, name)) is not None}
    if not raw:
        return None
    given, output = count_of(raw, "prompt_eval_count"), count_of(raw, "eval_count")
    total = None if given is None or output is None else given + output
    return UsageReported(input_total=given, output_total=output, total=total, raw=raw, vendor=VENDOR)


def decode_time(text: object) -> int | None:
    """Seconds since the epoch of an RFC 3339 time; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        seconds = int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None  # the zero time of Go says nothing


def encode_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
