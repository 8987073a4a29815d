"""The words of OpenAI Chat that both directions share, and what compatible servers add: names of reasoning, and images.

| who | text of reasoning | opaque |
|---|---|---|
| DeepSeek, vLLM, Groq, OpenRouter and others | ``reasoning_content``, ``reasoning`` | |
| OpenRouter | ``reasoning_details[]`` | ``signature``, ``data`` of one |
| GitHub Copilot | ``reasoning_text``, ``cot_summary``, ``thinking`` | ``reasoning_opaque``, ``cot_id``, ``signature`` |
| LiteLLM | ``thinking_blocks[]``, also in ``provider_specific_fields`` | ``signature``, ``data`` of one |
| Databricks | content part ``reasoning``, ``summary[].text`` | ``signature`` of a summary |
| Mistral | content part ``thinking`` | its ``signature`` |

Source: dialects.md §1.4, §1.6, §1.7, §7.1, §7.2, §7.4, §7.5; quirks.md 91.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.media import data_uri
from streamkit.conversation.messages import Citation, Reasoning, RedactedReasoning, ToolCall
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bodies import openai
from streamkit.dialects.bodies.openai import WEB, read_url_citation, write_annotations
from streamkit.dialects.members.fields import is_data_uri, without_none
from streamkit.dialects.members.values import count_of, counts_of, details_of, objects_in, others_of, text_of
from streamkit.dialects.streams.event_encoder import function_call
from streamkit.dialects.vocabulary.context_overflow import CODE, is_overflow, with_code
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.dialects.vocabulary.usage_counts import has_more, total_of
from streamkit.events import Aside, ErrorType, MediaGenerated, Opaque, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "openai"

#: Values of ``finish_reason`` of OpenAI and of compatible servers (dialects.md §7.1).
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
    """Return the ``finish_reason`` to write, and whether it is less exact than ``reason``."""
    if reason == "refusal" and refused and not was_stopped(reason, native):
        return "stop", False  # as OpenAI does: the refusal is in the message
    if reason == "tool_calls" and not called:
        return "length", True  # every call was withheld, like a truncated one
    return FINISH_REASONS[reason], FINISH_REASONS[reason] != reason


def encode_error(event: ProviderFailed, vendor: str = VENDOR) -> dict[str, Any]:
    """Return an ``error`` object. This vendor's own error is not changed."""
    if event.vendor == vendor and isinstance(event.raw, dict) and isinstance(event.raw.get("message"), str):
        return with_code(event, event.raw) if vendor == VENDOR else event.raw
    native = event.native_type if event.vendor == vendor else None
    if native is None and is_overflow(event):
        event = evolve(event, type="invalid_request", code=CODE)
    return {"message": event.message, "type": native or ERROR_NAMES[event.type], "param": None, "code": event.code}


def decode_usage(raw: Mapping[str, Any], vendor: str = VENDOR) -> UsageReported:
    """Return the token counts of a ``usage`` object, including the forms of DeepSeek and xAI."""
    names = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens")
    prompt_tokens, output, total, hit = counts_of(raw, names)
    cached, written = counts_of(details_of(raw, "prompt_tokens_details"), ("cached_tokens", "cache_write_tokens"))
    reasoning = count_of(details_of(raw, "completion_tokens_details"), "reasoning_tokens")
    if reasoning and prompt_tokens is not None and output is not None and total == prompt_tokens + output + reasoning:
        output += reasoning  # xAI counts reasoning separately from the completion (dialects.md §1.6)
    return UsageReported(
        prompt_tokens, cached if cached is not None else hit, written, output, reasoning, total, raw, vendor
    )


def encode_usage(usage: UsageReported, report: StreamReport, vendor: str = VENDOR) -> dict[str, Any]:
    """Return a ``usage`` object. This vendor's own usage is kept. Unknown counts are null, not 0.

    Another vendor's counts without a place here are counted as lost.
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


#: The ``format`` of OpenRouter's reasoning details, by the vendor that can read them, which is its first word (§1.6).
FORMATS: Mapping[str, str] = {
    "anthropic": "anthropic-claude-v1",
    "google": "google-gemini-v1",
    "openai": "openai-responses-v1",
    "xai": "xai-responses-v1",
}


def vendor_in(form: str) -> str:
    """Return the vendor of a ``format``: its first word if that is in the table, otherwise all of it without the version."""
    first = form.split("-", maxsplit=1)[0]
    return first if first in FORMATS else re.sub(r"-v\d+\Z", "", form)


def format_of(vendor: str) -> str:
    """Return the ``format`` of details that only this vendor can read."""
    return FORMATS.get(vendor, f"{vendor}-v1")


def signature_in(extra_content: Any) -> Opaque | None:
    """Return the signature in ``{vendor: {"thought_signature": …}}``; None with other members (Gemini's form here, §1.6)."""
    if isinstance(extra_content, dict) and len(extra_content) == 1:
        [(vendor, fields)] = extra_content.items()
        if isinstance(fields, dict) and fields.keys() == {"thought_signature"}:
            blob = text_of(fields["thought_signature"])
            return None if blob is None else Opaque(vendor, blob)
    return None


def extra_content(signature: Opaque) -> dict[str, Any]:
    """Return the member for a signature (Gemini through this dialect)."""
    return {signature.vendor: {"thought_signature": signature.blob}}


#: The member with a call's input, by the call's kind.
INPUTS: Final[Mapping[str, str]] = {"function": "arguments", "custom": "input"}


def tool_call(call: ToolCall) -> dict[str, Any]:
    """Return an item of ``tool_calls``, in the form for its kind."""
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return function_call(call, call.id, call.name)


def reasoning_detail(part: Reasoning | RedactedReasoning) -> dict[str, Any]:
    """Return an entry of OpenRouter's ``reasoning_details`` without its index; empty for reasoning without content."""
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
    """Return reasoning that only its vendor can read, as a detail."""
    return {"type": "reasoning.encrypted", "data": opaque.blob, "format": format_of(opaque.vendor)}


SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
#: The options that are single members, by the neutral names (dialects.md §1.3).
OPTIONS: Mapping[str, str] = {
    **{name: name for name in ("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty")},
    "choices": "n",
    **{name: name for name in ("logprobs", "top_logprobs", "service_tier", "user")},
}
#: ``format`` of ``input_audio``, by media type.
AUDIO_FORMATS: Mapping[str, str] = {
    **openai.AUDIO_FORMATS,
    **dict.fromkeys(("audio/x-wav", "audio/wave"), "wav"),
    "audio/mp3": "mp3",
}


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the web page that an aside cites, and the names of other members. The quote is OpenRouter's."""
    raw = aside.raw if isinstance(aside.raw, dict) and aside.raw.get("type") == WEB else {}
    members = details_of(raw, WEB) or raw  # flat in servers that forward one of Responses
    return read_url_citation(members, "content")


#: Citations of web pages, whose positions are characters of the whole text (dialects.md §1.2).
CITATIONS: Final = CitationForm(
    vendor=VENDOR,
    unit="choice",
    read=read_citation,
    write=partial(write_annotations, VENDOR, nested=True),
    has_quote=True,
)


#: Members that contain all reasoning as one text, in order of preference, and the opaque member that may be next to each.
PLAIN_REASONING: Final[Mapping[str, str]] = {
    "reasoning": "",
    "reasoning_content": "",
    "thinking": "signature",
    "reasoning_text": "reasoning_opaque",
    "cot_summary": "cot_id",
}
#: The opaque members, and the vendor that can read each. Blank: the vendor of the model.
OPAQUE_MEMBERS: Final[Mapping[str, str]] = {"reasoning_opaque": "copilot", "cot_id": "copilot", "signature": ""}
#: The opaque member that is in each delta of a block, even before the block's text is complete.
BLOCK_ID: Final = "cot_id"
#: LiteLLM's member with Anthropic's blocks, and another member that contains the blocks, too.
BLOCKS: Final = "thinking_blocks"
HOLDER: Final = "provider_specific_fields"
#: Marks, in a history, reasoning that was among the parts of the content (Databricks).
PARTS: Final = "content.reasoning"


def maker_of(model: str | None) -> str:
    """Return the vendor of a signature in Anthropic's form, by the model's name: routers use that form for Gemini, too."""
    return "google" if "gemini" in (model or "").lower() else "anthropic"


def thinking_blocks(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return LiteLLM's blocks of a delta or a message."""
    return objects_in(fields.get(BLOCKS)) or objects_in(details_of(fields, HOLDER).get(BLOCKS))


def opaque_member(field: str, parts: list[Reasoning]) -> dict[str, str]:
    """Return the opaque member next to a text, if the last of these parts has a signature for it."""
    name = PLAIN_REASONING.get(field, "")
    vendor = OPAQUE_MEMBERS.get(name)
    signature: Opaque | None = parts[-1].signature if parts else None
    if signature is None or vendor is None or vendor not in {"", signature.vendor}:
        return {}
    return {name: signature.blob}


IMAGES: Final = "images"
DELTA_IMAGES: Final = f"delta.{IMAGES}"  # the type of their asides
IMAGE: Final = "image_url"


def read_images(images: Any, vendor: str, choice: int) -> list[MediaGenerated]:
    """Return the images of a list; empty if one of them is invalid, so that the list is kept unchanged."""
    read = [
        read_image(image, Aside(vendor, "metadata", DELTA_IMAGES, [image], choice))
        for image in (images if isinstance(images, list) else ())
    ]
    return [image for image in read if image is not None] if None not in read else []


def read_image(image: Any, native: Aside) -> MediaGenerated | None:
    """Return an image of the response as media; None if the value is no image. ``native`` is the aside for the image."""
    if not isinstance(image, dict) or image.get("type", IMAGE) != IMAGE:
        return None
    link = image.get(IMAGE)
    link = {"url": link} if isinstance(link, str) else details_of(image, IMAGE)
    url = link.get("url")
    if not isinstance(url, str) or not url:
        return None
    media = MediaGenerated("image", choice=native.choice, native=native)
    if is_data_uri(url):
        head, _, data = url.partition(",")
        kind, *parameters = head[len("data:") :].split(";")
        if "base64" not in parameters or not data:
            return None
        media.media_type, media.data = kind.strip().lower() or None, data
    else:
        media.url = url
    others = others_of(image, {"type", "index", IMAGE})
    if inner := others_of(link, {"url"}):
        others[IMAGE] = inner
    media.extras = others or None
    return media


def url_of(media: MediaGenerated) -> str | None:
    """Return the URL of an image, which may contain the image; None if it is not an image, or cannot be fetched by others."""
    url = data_uri(media) if media.data is not None else media.url
    return url if media.kind == "image" and url is not None and url.startswith(("data:", "http:", "https:")) else None


def write_images(media: MediaGenerated, vendor: str) -> Sequence[Aside]:
    """Return the aside for another vendor's image; empty if it is not an image, or cannot be fetched by others."""
    url = url_of(media)
    raw = [{"type": IMAGE, IMAGE: {"url": url}}]
    return [] if url is None else [Aside(vendor, "metadata", DELTA_IMAGES, raw, media.choice)]
