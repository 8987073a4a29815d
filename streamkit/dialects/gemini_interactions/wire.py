"""Names and values of Gemini Interactions that decoder and encoder both need. Source: dialects.md §5.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.bodies import google
from streamkit.dialects.members.values import KEPT, Event, Members, kept, text_of
from streamkit.events import ErrorType, ProviderFailed, StopReason
from streamkit.report import StreamReport

#: The vendor of this dialect's asides, counts and errors. The vendor of its signatures is ``google.VENDOR``.
VENDOR: Final = "google-interactions"

_STEP: Final = Members("type", "content", "summary", "signature")
_COMMON: Final = ("event_type", "event_id")  # members of every event
EVENTS: Final[Mapping[str, Event]] = {
    "interaction.created": Event("_created", Members(*_COMMON, "interaction")),
    "interaction.status_update": Event("_status_update", Members(*_COMMON, "interaction_id", "status", "usage")),
    "step.start": Event("_step_start", Members(*_COMMON, "index", step=_STEP)),
    "step.delta": Event("_step_delta", Members(*_COMMON, "index", delta=kept(), metadata=Members("total_usage"))),
    "step.stop": Event("_step_stop", Members(*_COMMON, "index", "usage")),
    "interaction.completed": Event("_completed", Members(*_COMMON, "interaction")),
    "error": Event("_error", KEPT),
}
#: The statuses of an interaction that has ended.
STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
    "failed": "error",
    "cancelled": "error",
}
STATUSES: Final[Mapping[StopReason, str]] = {
    **dict.fromkeys(("stop", "stop_sequence", "other"), "completed"),
    "tool_calls": "requires_action",
    **dict.fromkeys(("length", "context_full", "compaction", "content_filter", "refusal"), "incomplete"),
    "pause": "requires_continuation",
    **dict.fromkeys(("malformed_tool", "error"), "failed"),
}
INEXACT_STOPS: Final = frozenset(reason for reason, status in STATUSES.items() if STOP_REASONS[status] != reason)
RUNNING: Final = frozenset({"in_progress", "queued", "idle"})  # the interaction continues
TEXT, THOUGHT, CALL = "model_output", "thought", "function_call"  # types of steps
#: For each delta that is not media: the member with its content, the type of that member, and the step that it belongs to.
DELTAS: Final[Mapping[str, tuple[str, type, str]]] = {
    "text": ("text", str, TEXT),
    "text_annotation_delta": ("annotations", list, TEXT),
    "thought_summary": ("content", dict, THOUGHT),
    "thought_signature": ("signature", str, THOUGHT),
    "arguments_delta": ("arguments", str, CALL),
}


def is_delta(delta: Mapping[str, Any]) -> bool:
    """Return whether clients can read a delta: its type is a text, and a known type has its member."""
    kind = text_of(delta.get("type"))
    member, wanted, _ = DELTAS.get(kind or "", ("type", str, ""))
    return kind is not None and isinstance(delta.get(member), wanted)


def _types(beginning: str, ends: str) -> frozenset[str]:
    return frozenset(beginning + end for end in ends.split())


MEDIA_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "image": _types("image/", "png jpeg webp heic heif gif bmp tiff"),
    "audio": _types("audio/", "wav mp3 aiff aac ogg flac mpeg m4a l16 opus alaw mulaw webm"),
    "video": _types("video/", "mp4 mpeg mpg mov avi x-flv webm wmv 3gpp"),
    "file": _types("", "application/pdf text/csv application/msword")
    | _types("application/vnd.ms-", "powerpoint excel")
    | _types("application/vnd.oasis.opendocument.", "presentation text spreadsheet")
    | _types(
        "application/vnd.openxmlformats-officedocument.",
        "presentationml.presentation wordprocessingml.document wordprocessingml.template spreadsheetml.sheet",
    ),
}
DELTA, THOUGHT_DELTA, STEP = "delta", "thought.delta", "step"  # types of asides
OF_STEP: Final = "step."  # how the types of asides for other members of a step begin
INTERACTION_MEMBER: Final = "interaction."  # how the types of asides for members of the interaction at its end begin


def status_of(reason: StopReason, native: str | None) -> str:
    """Return the status for a reason. ``native`` is the dialect's original word, if any."""
    return native if native is not None and STOP_REASONS.get(native) == reason else STATUSES[reason]


USAGE: Final = google.UsageForm(
    VENDOR,
    "_tokens",
    (
        *("total_input_tokens", "total_tool_use_tokens", "total_output_tokens", "total_thought_tokens"),
        *("total_cached_tokens", "total_tokens"),
    ),
)

#: Words of ``code`` and their meanings, including those of Google's other APIs in lower case.
ERROR_TYPES: Final[Mapping[str, ErrorType]] = {
    **google.ERROR_TYPES,
    **{word.lower(): kind for word, kind in google.ERROR_TYPES.items()},
    **dict.fromkeys(("invalid_request", "parameter_unknown"), "invalid_request"),
    "authentication": "auth",
    "payment_required": "billing",
    "model_not_found": "not_found",
    **dict.fromkeys(("rate_limit_exceeded", "quota_exceeded", "too_many_requests"), "rate_limit"),
    "api_error": "server",
    "service_unavailable": "unavailable",
}
ERROR_CODES: Final[Mapping[ErrorType, str]] = {
    "invalid_request": "invalid_request",
    "auth": "authentication",
    "billing": "payment_required",
    "permission": "permission_denied",
    "not_found": "not_found",
    "too_large": "invalid_request",
    "rate_limit": "rate_limit_exceeded",
    "server": "api_error",
    "unavailable": "service_unavailable",
    "timeout": "deadline_exceeded",
    "truncated": "service_unavailable",
}


def is_error(value: object) -> bool:
    """Whether the official client can read an error: its message is text, and its code is text or missing."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("message"), str) and isinstance(value.get("code"), str | None)


def encode_error(failure: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return the value of ``error``: a code and a message, both texts. This dialect's own error is not changed."""
    own, raw = failure.vendor == VENDOR, failure.raw
    if isinstance(raw, dict) and isinstance(raw.get("error"), dict):
        raw = raw["error"]
    if own and is_error(raw):
        return dict(raw)
    if not own and failure.native_type:
        report.lose("error_detail")
    return {"code": ERROR_CODES[failure.type], "message": failure.message}


OPTIONS: Final[Mapping[str, str]] = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    "seed": "seed",
}
#: Values of ``tool_choice``. VALIDATED is auto with arguments that match their schemas.
MODES: Final[Mapping[Literal["auto", "none", "required"], str]] = {"auto": "auto", "none": "none", "required": "any"}
VALIDATED: Final = "validated"
JSON, PLAIN = "application/json", "text/plain"  # the media types of a response's text
INPUT, RESULT = "user_input", "function_result"  # types of steps
OBJECT: Final = "object"  # ``ToolResult.native`` of a result that was read as an object, not as a text
TOOLS: Final = ToolRules(names=google.FUNCTION_NAMES)  # the server ignores unknown keywords of a schema
