"""Names, values and tables of Cohere Chat v2 that decoder and encoder both need. Source: dialects.md §6.2, §7.1, §7.2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.members.values import KEPT, Event, Members, count_of, details_of, kept
from streamkit.dialects.vocabulary.stop_reasons import as_written
from streamkit.dialects.vocabulary.usage_counts import loses_counts, total_of
from streamkit.events import Aside, ErrorType, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "cohere"


def _of_message(**members: Members) -> Members:
    """Return the members of an event whose ``delta`` has a ``message``."""
    return Members("type", "index", delta=Members(message=Members(**members)))


DEBUG: Final = "debug"  # the type of an event that only Cohere understands, and of its aside
#: By the type of an event: the decoder's method for it, and the members that are read. ``KEPT`` means that all are kept.
EVENTS: Final[Mapping[str, Event]] = {
    "message-start": Event("message_start", kept(delta=Members("message"))),
    "content-start": Event("content_start", _of_message(content=KEPT)),
    "content-delta": Event("content_delta", kept(delta=Members(message=Members(content=KEPT)))),
    "content-end": Event("content_end", Members("type", "index")),
    "tool-plan-delta": Event("tool_plan", Members("type", delta=Members(message=Members("tool_plan")))),
    "tool-call-start": Event("call_start", _of_message(tool_calls=KEPT)),
    "tool-call-delta": Event("call_delta", _of_message(tool_calls=KEPT)),
    "tool-call-end": Event("call_end", Members("type", "index")),
    "citation-start": Event("citation_start", _of_message(citations=KEPT)),
    "citation-end": Event("citation_end", Members("type", "index")),
    "message-end": Event("message_end", Members("type", "id", "delta")),
    DEBUG: Event("debug", KEPT),
}

STOP_REASONS: Mapping[str, StopReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop_sequence",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
}
TEXT_KINDS: Final = ("text", "thinking")  # kinds of content with text, which is in a member of the same name
GROUPS = frozenset({"billed_units", "tokens"})  # the members of ``usage`` with counts
CACHED = "cached_tokens"
#: Types of asides: a citation, and an unknown part of a content in a response and in a request.
CITATION, CONTENT_START, CONTENT = "citation-start", "content-start", "content."
#: Words of ``finish_reason`` that mean an error, with the type of error.
FAILURES: Mapping[str, ErrorType] = {"ERROR": "server", "TIMEOUT": "timeout"}
#: By the stop reason: the word to write. None is ``ERROR``, because clients would take the complete response for failed.
FINISH_REASONS: Mapping[StopReason, str] = {
    "stop_sequence": "STOP_SEQUENCE",
    "tool_calls": "TOOL_CALL",
    **dict.fromkeys(("length", "context_full", "pause", "compaction"), "MAX_TOKENS"),
    **dict.fromkeys(("stop", "refusal", "malformed_tool", "error", "other"), "COMPLETE"),
}


def finish_reason(reason: StopReason, native: str | None, *, called: bool) -> tuple[str, bool]:
    """Return the ``finish_reason`` to write, and whether it is less exact than ``reason``."""
    word = FINISH_REASONS[as_written(reason, native, called=called)]
    return word, STOP_REASONS[word] != reason


def message_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``delta.message`` of an event; empty if there is none."""
    return details_of(details_of(document, "delta"), "message")


def content_of(aside: Aside) -> dict[str, Any] | None:
    """Return the original part of a content, from its aside; None for any other aside."""
    if aside.vendor != VENDOR or aside.kind != "unknown_event" or not isinstance(aside.raw, dict):
        return None
    if aside.type.startswith(CONTENT):
        return aside.raw
    content = message_of(aside.raw).get("content")
    return content if aside.type == CONTENT_START and isinstance(content, dict) else None


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    """Return the token counts of a ``usage`` object. ``billed_units`` are ignored: they are the price, not the tokens."""
    tokens = details_of(raw, "tokens")
    prompt, output = count_of(tokens, "input_tokens"), count_of(tokens, "output_tokens")
    return UsageReported(prompt, count_of(raw, CACHED), None, output, None, total_of(prompt, output), raw, VENDOR)


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """Return a ``usage`` object without unknown counts. Count what it cannot express as lost."""
    if usage.vendor == VENDOR and usage.raw is not None:
        return sound_usage(usage.raw)
    if loses_counts(usage, VENDOR, usage.input_cache_write, usage.output_reasoning):
        report.lose("usage_detail")
    counts = {"input_tokens": usage.input_total, "output_tokens": usage.output_total}
    raw: dict[str, Any] = {"tokens": {name: count for name, count in counts.items() if count is not None}}
    if usage.input_cached is not None:
        raw[CACHED] = usage.input_cached
    return raw


def sound_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts that are numbers. The client's types have no place for other values."""
    sound: dict[str, Any] = {}
    for name, value in raw.items():
        if name in GROUPS and isinstance(value, dict):
            sound[name] = {unit: count for unit, count in value.items() if is_count(count)}
        elif name not in {*GROUPS, CACHED} or value is None or (name == CACHED and is_count(value)):
            sound[name] = value
    return sound


def is_count(value: object) -> bool:
    """Return whether a value is a count or null. The API declares floats, but its values are mostly integers."""
    return value is None or (type(value) in {int, float} and cast("float", value) >= 0)


#: By the field of streamkit's ``Options``: the member of a request that has its value.
OPTIONS: Mapping[str, str] = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "stop": "stop_sequences",
    **{name: name for name in ("seed", "presence_penalty", "frequency_penalty", "logprobs")},
}
#: By the field of streamkit's ``Options``: the range that Cohere accepts (its client's documentation), if others allow more.
RANGES: Mapping[str, tuple[float, float]] = {
    "top_p": (0.01, 0.99),
    "top_k": (0, 500),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), (0, 1)),
}
#: Any tool name is accepted, because Cohere documents no limits on tools for v2.
TOOLS = ToolRules(names=re.compile(r"(?s).+"))
