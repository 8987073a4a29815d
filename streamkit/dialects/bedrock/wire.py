"""Names and values that Bedrock's decoder and encoder both need. Source: dialects.md §6.1, §7.1, §7.2, §7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from streamkit.conversation.checks import ToolRules
from streamkit.conversation.messages import CacheMark
from streamkit.dialects.anthropic.wire import VENDOR as ANTHROPIC
from streamkit.dialects.members.values import KEPT, Event, Members, count_of, kept
from streamkit.dialects.vocabulary.error_bodies import ERROR_BY_STATUS, http_status
from streamkit.dialects.vocabulary.sealed_reasoning import MAKERS
from streamkit.dialects.vocabulary.stop_reasons import CLAUDES
from streamkit.dialects.vocabulary.usage_counts import has_more, with_cache, without_cache
from streamkit.events import ErrorType, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "bedrock"
#: The vendor of signatures and redacted reasoning. Of Bedrock's models only Claude signs, and Anthropic's servers, Bedrock
#: and Vertex AI accept each other's Claude signatures (Anthropic's documentation of extended thinking).
SIGNER = ANTHROPIC
MAKERS[VENDOR] = SIGNER
CHUNK = "chunk"  # the event type of InvokeModelWithResponseStream, which carries the model's own events
PADDING = "p"  # a member with random characters that hide the length of a payload
#: The event types of ConverseStream. Blocks that only Bedrock understands are kept whole.
EVENTS: Final[Mapping[str, Event]] = {
    "messageStart": Event("_message_start", KEPT),
    "contentBlockStart": Event("_block_start", Members("contentBlockIndex", PADDING, start=Members("toolUse"))),
    "contentBlockDelta": Event(
        "_block_delta", Members("contentBlockIndex", PADDING, delta=kept(toolUse=Members("input")))
    ),
    "contentBlockStop": Event("_block_stop", Members("contentBlockIndex", PADDING)),
    "messageStop": Event("_message_stop", Members("stopReason", "additionalModelResponseFields", PADDING)),
    "metadata": Event("_metadata", KEPT),
}
#: For each member of a delta that the decoder reads: the kind of the block.
DELTAS: Final[Mapping[str, str]] = {
    "text": "text",
    "citation": "text",
    "reasoningContent": "reasoning",
    "toolUse": "toolUse",
}
REASONING: Final = ("text", "signature", "redactedContent")
EXCEPTION, ERROR = "exception:", "error:"  # the beginning of ``Frame.event`` for messages of the other two types
#: An event without meaning: botocore and the other SDKs skip event types that their service model does not name.
KEEP_ALIVE = "keepAlive"
#: The types of asides for the model's own fields in ``messageStop``, and for members of ``metadata`` (as the beginning).
EXTRA_FIELDS, METADATA = "messageStop.additionalModelResponseFields", "metadata."
METRICS = "amazon-bedrock-invocationMetrics"
STOP_REASONS: Mapping[str, StopReason] = {
    **CLAUDES,
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), "content_filter"),
    **dict.fromkeys(("malformed_tool_use", "malformed_model_output"), "malformed_tool"),
}
STOP_NAMES: Mapping[StopReason, str] = {
    **{reason: word for word, reason in CLAUDES.items()},
    **dict.fromkeys(("content_filter", "refusal"), "content_filtered"),
    **dict.fromkeys(("pause", "compaction"), "max_tokens"),
    **dict.fromkeys(("error", "other"), "end_turn"),
    "malformed_tool": "malformed_tool_use",
}
#: Stop reasons without an exact word in this dialect: a client that reads the written word takes it for another reason.
INEXACT_STOPS = frozenset({"refusal", "pause", "compaction", "error", "other"})
#: Exceptions by name: their meaning, and their HTTP status in the service model.
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
    # common to every AWS service
    "unrecognizedClientException": ("auth", 403),
    "invalidSignatureException": ("auth", 403),
    "expiredTokenException": ("auth", 403),
    "missingAuthenticationTokenException": ("auth", 403),
}


def exception_of(name: str, payload: Mapping[str, Any]) -> tuple[ErrorType, int | None]:
    """Return the type of error of an exception, and its HTTP status. The model's own status decides the type if it failed."""
    kind, status = EXCEPTIONS.get(name[:1].lower() + name[1:], ("server", None))
    of_model = http_status({"status": payload.get("originalStatusCode")})
    return (ERROR_BY_STATUS.get(of_model or 0, kind) if kind == "server" else kind), status


EXCEPTION_NAMES: Mapping[ErrorType, str] = {
    **dict.fromkeys(("invalid_request", "auth", "billing", "permission"), "validationException"),
    **dict.fromkeys(("not_found", "too_large"), "validationException"),
    "rate_limit": "throttlingException",
    "server": "internalServerException",
    "unavailable": "serviceUnavailableException",
    **dict.fromkeys(("timeout", "truncated"), "modelStreamErrorException"),
}
#: The exceptions of ConverseStream. botocore drops the message of any other exception.
STREAM_EXCEPTIONS = frozenset(EXCEPTION_NAMES.values())
#: Types of error without an exact exception in this dialect: a client that reads the written one takes it for another type.
INEXACT_ERRORS = frozenset({"auth", "billing", "permission", "not_found", "too_large", "timeout"})
#: The exceptions for a whole response, which may name each exception of the service.
BODY_EXCEPTION_NAMES: Mapping[ErrorType, str] = {
    **EXCEPTION_NAMES,
    "auth": "unrecognizedClientException",
    "permission": "accessDeniedException",
    "not_found": "resourceNotFoundException",
    "timeout": "modelTimeoutException",
    "truncated": "modelErrorException",
}
INEXACT_BODY_ERRORS = frozenset({"billing", "too_large"})


def stop_name(reason: StopReason, native: str | None) -> str:
    """Return the word for a stop reason: the original one if it has the same meaning."""
    return native if native is not None and STOP_REASONS.get(native) == reason else STOP_NAMES[reason]


def with_stop_sequence(fields: Mapping[str, Any], sequence: str | None) -> dict[str, Any]:
    """Return the model's own fields, with the stop sequence in the place where Anthropic's models have it."""
    if sequence is None:
        return dict(fields)
    delta = fields.get("delta")
    return {**fields, "delta": {**(delta if isinstance(delta, dict) else {}), "stop_sequence": sequence}}


def decode_usage(raw: Mapping[str, Any]) -> UsageReported:
    """Return token counts. ``inputTokens`` excludes the cache, but ``input_total`` includes it."""
    fresh, output = count_of(raw, "inputTokens"), count_of(raw, "outputTokens")
    read, written = count_of(raw, "cacheReadInputTokens"), count_of(raw, "cacheWriteInputTokens")
    return UsageReported(
        with_cache(fresh, read, written), read, written, output, None, count_of(raw, "totalTokens"), raw, VENDOR
    )


def encode_usage(usage: UsageReported) -> dict[str, Any]:
    """Return a ``usage`` object. The service model requires three counts, so unknown ones are 0."""
    whole, output = usage.input_total or 0, usage.output_total or 0
    raw: dict[str, Any] = {
        "inputTokens": without_cache(usage),
        "outputTokens": output,
        "totalTokens": whole + output if usage.total is None else usage.total,
    }
    if usage.vendor == VENDOR and usage.raw is not None:
        return {**usage.raw, **raw}
    cache = {"cacheReadInputTokens": usage.input_cached, "cacheWriteInputTokens": usage.input_cache_write}
    return raw | {name: count for name, count in cache.items() if count is not None}


def encode_counts(
    usage: UsageReported | None, metadata: dict[str, Any], latency_ms: int, report: StreamReport
) -> dict[str, Any]:
    """Return ``usage`` and ``metrics``, which are removed from ``metadata``. The service model requires a latency."""
    usage = usage or UsageReported()
    if usage.input_total is None or usage.output_total is None:
        report.lose("usage_unknown")
    if usage.output_reasoning is not None or has_more(usage, VENDOR):
        report.lose("usage_detail")
    metrics = metadata.pop("metrics", {})
    if count_of(metrics, "latencyMs") is None:
        metrics = {**metrics, "latencyMs": latency_ms}
    return {"usage": encode_usage(usage), "metrics": metrics}


#: The members of a whole response that are not members of ``metadata``.
BODY_FIELDS = frozenset({"output", "stopReason", "additionalModelResponseFields"})
CACHE_POINTS: Mapping[CacheMark, Mapping[str, str]] = {
    "short": {"type": "default"},
    "long": {"type": "default", "ttl": "1h"},
}
#: By the kind of a streamkit ``Media``: the member of Bedrock's block.
MEMBERS: Mapping[Literal["image", "file", "video", "audio"], str] = {
    "image": "image",
    "file": "document",
    "video": "video",
    "audio": "audio",
}
#: Media types by ``format``. An unlisted format is the second half of a type: ``video/mpg``.
MEDIA_TYPES: Mapping[str, Mapping[str, str]] = {
    "image": {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")},
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
    "video": {
        **{name: f"video/{name}" for name in ("mp4", "webm", "mpeg")},
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        **{name: f"audio/{name}" for name in ("wav", "flac", "ogg", "opus", "aac", "mp4", "pcm", "webm")},
        "mp3": "audio/mpeg",
        "m4a": "audio/x-m4a",
        "mka": "audio/x-matroska",
    },
}
#: Other names of media types, with the name that ``MEDIA_TYPES`` has.
SAME_TYPES: Mapping[str, str] = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/m4a": "audio/x-m4a",
    **dict.fromkeys(("audio/wave", "audio/x-wav"), "audio/wav"),
}
FORMATS: Mapping[str, Mapping[str, str]] = {
    kind: {media_type: name for name, media_type in types.items()} for kind, types in MEDIA_TYPES.items()
}
#: By the field of streamkit's ``Options``: the member of ``inferenceConfig``.
INFERENCE: Mapping[str, str] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
#: The parts of a tool's definition that are accepted (botocore's ``ToolSpecification``). Limits of the models are not known.
TOOLS: ToolRules = ToolRules(names=re.compile(r"[a-zA-Z0-9_-]{1,64}"))


def only_member(union: object) -> tuple[str, Any]:
    """Return the name and value of a union's only member that is not null. The name is empty if not exactly one exists."""
    members = {name: value for name, value in union.items() if value is not None} if isinstance(union, dict) else {}
    return next(iter(members.items())) if len(members) == 1 else ("", None)
