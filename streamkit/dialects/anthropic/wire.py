"""Names and values of Anthropic Messages that both the decoder and the encoder need.

Source: dialects.md §3.1, §3.2, §7.1, §7.2, §7.5; Anthropic: "input_schema does not support oneOf, allOf, or anyOf
at the top level".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.checks import ToolRules
from streamkit.conversation.messages import Response
from streamkit.dialects.members.values import KEPT, Event, Members, count_of, counts_of, kept
from streamkit.dialects.profiles import Encoding, Provider
from streamkit.dialects.streams.compactions import FORMS
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.dialects.vocabulary.stop_reasons import CLAUDES
from streamkit.dialects.vocabulary.usage_counts import has_more, total_of, with_cache, without_cache
from streamkit.events import ErrorType, ProviderFailed, ResponseStarted, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "anthropic"
FORMS[VENDOR] = "block"
#: Members that the decoder reads in the ``content_block`` of a start. Calls and blocks of server tools keep all members.
BLOCK: Final = Members("type", "text", "citations", "thinking", "signature", "data")
EVENTS: Final[Mapping[str, Event]] = {
    "message_start": Event("_message_start", Members("type", "message")),
    "content_block_start": Event("_block_start", Members("type", "index", content_block=BLOCK)),
    "content_block_delta": Event("_block_delta", Members("type", "index", "delta")),
    "content_block_stop": Event("_block_stop", Members("type", "index")),
    "message_delta": Event("_message_delta", kept("type", "delta", "usage")),
    "message_stop": Event("_message_stop", Members("type")),
    "error": Event("_error", KEPT),
    "ping": Event("_ping", Members("type")),
}
#: For each delta: the kind of its block, and the member with its content.
DELTAS: Final[Mapping[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", "citation"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
# The beginnings of the types of asides for members of a message_delta's ``delta``, and next to it (``context_management``).
MESSAGE_DELTA, DELTA_SIBLING = "message_delta.", "beside_delta."
STOP_REASONS: Mapping[str, StopReason] = {
    **CLAUDES,
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "compaction",
}
STOP_NAMES: Mapping[StopReason, str] = {
    **{reason: word for word, reason in CLAUDES.items()},
    **dict.fromkeys(("content_filter", "refusal"), "refusal"),
    "pause": "pause_turn",
    "compaction": "compaction",
    **dict.fromkeys(("malformed_tool", "error", "other"), "end_turn"),
}
TOO_LONG: Final = "prompt is too long"  # Claude Code then knows that a conversation exceeds the context window
#: Text in Anthropic's error if the prompt fits, but not together with ``max_tokens``. Claude Code then reduces ``max_tokens``.
NO_ROOM: Final = "exceed context limit"
# Members that the schema requires, with values that say nothing: in a message and in its last delta; in a call, which the
# model itself made; in the usage object of a stream's last event, and in that of a message.
MESSAGE_DEFAULTS: Final[Mapping[str, Any]] = {"stop_details": None, "container": None}
CALL_DEFAULTS: Final[Mapping[str, Any]] = {"caller": {"type": "direct"}}
DELTA_USAGE_DEFAULTS: Final[Mapping[str, Any]] = {
    "cache_creation_input_tokens": None,
    "cache_read_input_tokens": None,
    "output_tokens_details": None,
    "server_tool_use": None,
}
USAGE_DEFAULTS: Final[Mapping[str, Any]] = {
    **DELTA_USAGE_DEFAULTS,
    "cache_creation": None,
    "inference_geo": None,
    "service_tier": None,
}
#: Stop reasons without an exact word in this dialect: a client that reads the written word takes it for another reason.
INEXACT_STOPS = frozenset({"content_filter", "malformed_tool", "error", "other"})
ERROR_TYPES: Mapping[str, ErrorType] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "auth",
    "billing_error": "billing",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "conflict_error": "invalid_request",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "api_error": "server",
    "timeout_error": "timeout",
    "overloaded_error": "unavailable",
}
ERROR_NAMES: Mapping[ErrorType, str] = {
    **{kind: name for name, kind in ERROR_TYPES.items() if name != "conflict_error"},
    "truncated": "api_error",
}


def encode_error(event: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return an error as an event, which is also the form of an error body. Anthropic's own errors are written unchanged."""
    own = event.vendor == VENDOR
    is_named = TOO_LONG in event.message.lower()
    is_unknown = is_overflow(event) and not (own and (is_named or NO_ROOM in event.message))
    if own and not is_unknown and isinstance(event.raw, dict):
        enveloped = isinstance(event.raw.get("error"), dict)
        error = event.raw["error"] if enveloped else event.raw
        if isinstance(error.get("type"), str) and isinstance(error.get("message"), str):
            return {**(event.raw if enveloped else {}), "type": "error", "error": error}
    if event.code is not None and event.type != "truncated":
        report.lose("error_detail")
    if is_unknown:
        message = event.message if is_named else f"{TOO_LONG}: {event.message}"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    kind = event.native_type if own and event.native_type else ERROR_NAMES[event.type]
    return {"type": "error", "error": {"type": kind, "message": event.message}}


def encode_message(
    response: ResponseStarted | Response,
    encoding: Encoding,
    content: list[Any],
    stop_reason: str | None = None,
    stop_sequence: str | None = None,
) -> dict[str, Any]:
    """Return a ``message``: a whole one, or the one in a stream's first event."""
    return {
        "id": response.id or encoding.make_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": response.model or encoding.profile.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        **MESSAGE_DEFAULTS,
        "usage": encode_usage(response.usage),
    }


COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    """Return token counts. Here, ``input_tokens`` excludes the cache, but ``input_total`` includes it."""
    if None in raw.values():
        raw = {name: value for name, value in raw.items() if value is not None or name not in USAGE_DEFAULTS}
    fresh, output, read, written = counts_of(raw, COUNTS)
    whole = with_cache(fresh, read, written)
    details = raw.get("output_tokens_details")
    thinking = count_of(details, "thinking_tokens") if type(details) is dict else None
    return UsageReported(whole, read, written, output, thinking, total_of(whole, output), raw, VENDOR)


def encode_usage(usage: UsageReported | None, defaults: Mapping[str, Any] = USAGE_DEFAULTS) -> dict[str, Any]:
    """Return a ``usage`` object with every member of ``defaults``.

    Clients need ``input_tokens`` and ``output_tokens``, so an unknown count is written as 0. All other members may be null.
    """
    if usage is None:  # nearly always at the start of a stream
        return with_defaults({"input_tokens": 0, "output_tokens": 0}, defaults)
    if usage.vendor == VENDOR and usage.raw is not None:
        counts = {name: count_of(usage.raw, name) or 0 for name in ("input_tokens", "output_tokens")}
        return with_defaults({**usage.raw, **counts}, defaults)
    found: dict[str, Any] = {"input_tokens": without_cache(usage), "output_tokens": usage.output_total or 0}
    if usage.input_cached is not None:
        found["cache_read_input_tokens"] = usage.input_cached
    if usage.input_cache_write is not None:
        found["cache_creation_input_tokens"] = usage.input_cache_write
    if usage.output_reasoning is not None:
        found["output_tokens_details"] = {"thinking_tokens": usage.output_reasoning}
    return with_defaults(found, defaults)


def with_defaults(value: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the ``defaults`` for members that it lacks."""
    return {**value, **defaults, **value}  # the first ``**value`` keeps the order of its members


def without_defaults(extras: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a call without default values, such as a ``caller`` that is the model itself."""
    return {name: value for name, value in extras.items() if name not in CALL_DEFAULTS or value != CALL_DEFAULTS[name]}


def count_usage_losses(usage: UsageReported | None, report: StreamReport) -> None:
    """Count what ``encode_usage`` cannot express."""
    usage = usage or UsageReported()
    if usage.input_total is None or usage.output_total is None:
        report.lose("usage_unknown")
        less = False
    else:
        less = usage.total not in {None, usage.input_total + usage.output_total}
    if less or has_more(usage, VENDOR):
        report.lose("usage_detail")


#: The first version of the API that refuses the options in ``SAMPLING`` (dialects.md §3.0).
WITHOUT_SAMPLING = "2026-10-21"
SAMPLING: Final = ("temperature", "top_p", "top_k")
#: By the field of streamkit's ``Options``: the member of a request that has its value.
OPTIONS: Final[Mapping[str, str]] = {
    "max_tokens": "max_tokens",
    "stop": "stop_sequences",
    **{name: name for name in SAMPLING},
}
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})  # of images in base64
WEB_SEARCH = "web_search_"  # the beginning of the type of a web search tool; a date, the tool's version, follows it
#: The rules of the server for tools: the form of a name, and keywords that a schema may not have at its top level.
TOOLS: Final = ToolRules(names=re.compile(r"[A-Za-z0-9_-]{1,128}"), not_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
EDIT: Final = "compact_20260112"  # the type of a context edit that summarises a long conversation
SUMMARIZE: Final = "summarize"  # the type in ``compaction`` of a request for a summary instead of a reply
#: Blocks that add a tool in the middle of the conversation, or withdraw it, and the type of a ``tool`` with its definition.
ADDITION, REMOVAL, DEFINITION = "tool_addition", "tool_removal", "tool_definition"
VERSION: Final = "2026-10-21"  # the newest version of the API


@frozen(kw_only=True)
class AnthropicProvider(Provider):
    """A provider of the Messages API."""

    #: The version of the API. Versions before ``WITHOUT_SAMPLING`` accept a temperature (dialects.md §3.0).
    api_version: str = VERSION
    #: Whether the model is in the URL, and the version in the body (dialects.md §3.4: Vertex AI).
    model_in_path: bool = False


VERTEX: Final = AnthropicProvider(
    name="vertex-anthropic",
    title="Claude on Google's Vertex AI",
    auth="google",
    model_in_path=True,
    gen_ai_provider="gcp.vertex_ai",
)
#: The path, the body and the headers are Anthropic's own; the model is the name of a deployment. It lists no models.
FOUNDRY: Final = AnthropicProvider(
    name="azure-anthropic",
    title="Claude in Microsoft Foundry (Azure), at a base URL that ends in `/anthropic`",
    gen_ai_provider="anthropic",
)


def version_of(provider: Provider | None) -> str:
    """Return the API version for requests to a provider. The default is the newest."""
    return provider.api_version if isinstance(provider, AnthropicProvider) else VERSION
