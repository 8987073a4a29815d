"""The words of OpenAI Chat: what both directions must agree on. Source: dialects.md §1.4, §7.1, §7.2, §7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Citation, Reasoning, RedactedReasoning, ToolCall
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.members.values import count_of, counts_of, details_of, text_of
from streamkit.dialects.streams.event_encoder import function_call
from streamkit.dialects.vocabulary import openai
from streamkit.dialects.vocabulary.context_overflow import CODE, is_overflow, with_code
from streamkit.dialects.vocabulary.openai import WEB, read_url_citation, write_annotations
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.dialects.vocabulary.usage_counts import has_more, total_of
from streamkit.events import Aside, ErrorType, Opaque, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "openai"

#: ``finish_reason`` of OpenAI and of the clones that decode into ours (dialects.md §7.1).
STOP_REASONS: Mapping[str, StopReason] = {
    **dict.fromkeys(("stop", "eos"), "stop"),
    "length": "length",
    "model_length": "context_full",
    **dict.fromkeys(("tool_calls", "function_call"), "tool_calls"),
    **dict.fromkeys(("content_filter", "sensitive"), "content_filter"),
    **dict.fromkeys(("error", "abort", "cancelled", "network_error", "insufficient_system_resource"), "error"),
}
FINISH_REASONS: Mapping[StopReason, str] = {
    **dict.fromkeys(("stop", "stop_sequence", "malformed_tool", "other"), "stop"),
    **dict.fromkeys(("length", "context_full", "pause", "compaction"), "length"),
    "tool_calls": "tool_calls",
    **dict.fromkeys(("content_filter", "refusal"), "content_filter"),
    "error": "error",
}
ERROR_TYPES: Mapping[str, ErrorType] = {**openai.ERROR_TYPES, "api_error": "server", "timeout_error": "timeout"}
ERROR_NAMES: Mapping[ErrorType, str] = {
    "invalid_request": "invalid_request_error",
    "auth": "authentication_error",
    "billing": "insufficient_quota",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "too_large": "invalid_request_error",
    "rate_limit": "rate_limit_exceeded",
    "server": "server_error",
    "unavailable": "service_unavailable",
    "timeout": "timeout",
    "truncated": "server_error",
}


def finish_reason(reason: StopReason, native: str | None, *, refused: bool, called: bool) -> tuple[str, bool]:
    """The ``finish_reason`` to write, and whether it says less than ``reason`` did."""
    if reason == "refusal" and refused and not was_stopped(reason, native):
        return "stop", False  # as OpenAI: the refusal is in the message
    if reason == "tool_calls" and not called:
        return "length", True  # every call was withheld, as one that was cut is
    return FINISH_REASONS[reason], FINISH_REASONS[reason] != reason


def encode_error(event: ProviderFailed, vendor: str = VENDOR) -> dict[str, Any]:
    """An ``error`` object; the vendor's own where it came from this dialect."""
    if event.vendor == vendor and isinstance(event.raw, dict) and isinstance(event.raw.get("message"), str):
        return with_code(event, event.raw) if vendor == VENDOR else event.raw
    native = event.native_type if event.vendor == vendor else None
    if native is None and is_overflow(event):
        event = evolve(event, type="invalid_request", code=CODE)
    return {"message": event.message, "type": native or ERROR_NAMES[event.type], "param": None, "code": event.code}


COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens")
PROMPT_COUNTS: Final = ("cached_tokens", "cache_write_tokens")


def decode_usage(raw: Mapping[str, Any], vendor: str = VENDOR) -> UsageReported:
    """Token counts of a ``usage`` object, DeepSeek's and xAI's ways included."""
    prompt_tokens, output, total, hit = counts_of(raw, COUNTS)
    cached, written = counts_of(details_of(raw, "prompt_tokens_details"), PROMPT_COUNTS)
    reasoning = count_of(details_of(raw, "completion_tokens_details"), "reasoning_tokens")
    if reasoning and prompt_tokens is not None and output is not None and total == prompt_tokens + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion, not in it (dialects.md §1.6)
    return UsageReported(
        prompt_tokens, cached if cached is not None else hit, written, output, reasoning, total, raw, vendor
    )


def encode_usage(usage: UsageReported, report: StreamReport, vendor: str = VENDOR) -> dict[str, Any]:
    """A ``usage`` object; the vendor's own where it came from this dialect. Unknown counts are null, not 0.

    Counts of another vendor's that have no place here are a loss.
    """
    if has_more(usage, vendor):
        report.lose("usage_detail")
    if usage.vendor == vendor and usage.raw is not None:
        counts = {name: count_of(usage.raw, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
        return {**usage.raw, **counts}
    prompt_tokens, output, total = usage.input_total, usage.output_total, usage.total
    if total is None:
        total = total_of(prompt_tokens, output)
    raw: dict[str, Any] = {"prompt_tokens": prompt_tokens, "completion_tokens": output, "total_tokens": total}
    if known := without_none(cached_tokens=usage.input_cached, cache_write_tokens=usage.input_cache_write):
        raw["prompt_tokens_details"] = known
    if usage.output_reasoning is not None:
        raw["completion_tokens_details"] = {"reasoning_tokens": usage.output_reasoning}
    return raw


#: The version at the end of a ``format``.
_VERSION: Final = re.compile(r"-v\d+\Z")
#: ``format`` of OpenRouter's reasoning details, by the vendor that can read them; its first word is the vendor (§1.6).
FORMATS: Mapping[str, str] = {
    "anthropic": "anthropic-claude-v1",
    "google": "google-gemini-v1",
    "openai": "openai-responses-v1",
    "xai": "xai-responses-v1",
}


def vendor_in(form: str) -> str:
    """The vendor of a ``format``: its first word where the table has that, else all but the version at its end."""
    first = form.split("-", maxsplit=1)[0]
    return first if first in FORMATS else _VERSION.sub("", form)


def format_of(vendor: str) -> str:
    """The ``format`` of details that only this vendor can read."""
    return FORMATS.get(vendor, f"{vendor}-v1")


def signature_in(extra_content: Any) -> Opaque | None:
    """The signature in ``{vendor: {"thought_signature": …}}``, if that is all it has (Gemini behind this dialect, §1.6)."""
    if isinstance(extra_content, dict) and len(extra_content) == 1:
        [(vendor, fields)] = extra_content.items()
        if isinstance(fields, dict) and fields.keys() == {"thought_signature"}:
            blob = text_of(fields["thought_signature"])
            return None if blob is None else Opaque(vendor, blob)
    return None


def extra_content(signature: Opaque) -> dict[str, Any]:
    """The member that carries a signature (Gemini behind this dialect)."""
    return {signature.vendor: {"thought_signature": signature.blob}}


def tool_call(call: ToolCall, call_id: str, name: str) -> dict[str, Any]:
    """One of ``tool_calls``, in the form of its kind."""
    if call.kind == "custom":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    return function_call(call, call_id, name)


def reasoning_detail(part: Reasoning | RedactedReasoning) -> dict[str, Any]:
    """One of OpenRouter's ``reasoning_details``, without its index; empty for reasoning that says nothing."""
    if isinstance(part, RedactedReasoning):
        return encrypted(part.opaque)
    if not part.text and part.signature is None:
        return {}
    name = "summary" if part.kind == "summary" else "text"
    detail = {"type": f"reasoning.{name}", name: part.text}
    if part.signature is not None:
        detail |= {"signature": part.signature.blob, "format": format_of(part.signature.vendor)}
    return detail


def encrypted(opaque: Opaque) -> dict[str, Any]:
    """What only its vendor can read, as a detail."""
    return {"type": "reasoning.encrypted", "data": opaque.blob, "format": format_of(opaque.vendor)}


# -- requests ----------------------------------------------------------------------------------------------------------

SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
#: Options that are one field each, by our names (dialects.md §1.3).
OPTIONS: Mapping[str, str] = {
    **{name: name for name in ("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty")},
    "choices": "n",
    **{name: name for name in ("logprobs", "top_logprobs", "service_tier", "user")},
}
#: ``format`` of ``input_audio``, by its media types.
AUDIO_FORMATS: Mapping[str, str] = {
    **openai.AUDIO_FORMATS,
    **dict.fromkeys(("audio/x-wav", "audio/wave"), "wav"),
    "audio/mp3": "mp3",
}

# -- citations ---------------------------------------------------------------------------------------------------------


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """The citation of a web page that an aside says. The quote is OpenRouter's."""
    raw = aside.raw if isinstance(aside.raw, dict) and aside.raw.get("type") == WEB else {}
    members = details_of(raw, WEB) or raw  # flat in servers that pass one of Responses on
    return read_url_citation(members, members.get("content")), ()


#: Citations of web pages: at characters of all the text (dialects.md §1.2).
CITATIONS: Final = CitationForm(
    vendor=VENDOR, unit="choice", read=read_citation, write=partial(write_annotations, VENDOR, nested=True)
)
