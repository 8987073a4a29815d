"""What Google's dialects have in common: errors, counts and signatures. Source: dialects.md §5.2, §7.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.members import values
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.dialects.vocabulary.usage_counts import has_more
from streamkit.events import ErrorType, ProviderFailed, UsageReported
from streamkit.report import StreamReport

VENDOR = "google"
#: Beginnings of URIs that only Google can read: of its Files API and of its storage.
OWN_URIS: Final = ("https://generativelanguage.googleapis.com/", "gs://")
#: Beginnings of video URLs that Google reads itself. Such media need no media type.
FILMS: Final = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
FUNCTION_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")  #: the names that functions may have
#: The words for levels of thinking.
LEVELS: Final = frozenset({"minimal", "low", "medium", "high", "xhigh"})
SERVICE_TIERS: Final[Mapping[str, str]] = {
    "default": "standard",
    "standard": "standard",
    "flex": "flex",
    "priority": "priority",
}
#: Counts must be below this number: JavaScript clients cannot hold a larger one exactly.
MOST_TOKENS: Final = 2**53
ERROR_TYPES: Mapping[str, ErrorType] = {
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"), "invalid_request"),
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "RESOURCE_EXHAUSTED": "rate_limit",
    **dict.fromkeys(("INTERNAL", "UNKNOWN", "DATA_LOSS"), "server"),
    "UNAVAILABLE": "unavailable",
    "DEADLINE_EXCEEDED": "timeout",
}
#: The status and the code to write for an error of another vendor.
ERROR_CODES: Mapping[ErrorType, tuple[str, int]] = {
    "invalid_request": ("INVALID_ARGUMENT", 400),
    "auth": ("UNAUTHENTICATED", 401),
    "billing": ("RESOURCE_EXHAUSTED", 429),
    "permission": ("PERMISSION_DENIED", 403),
    "not_found": ("NOT_FOUND", 404),
    "too_large": ("INVALID_ARGUMENT", 400),
    "rate_limit": ("RESOURCE_EXHAUSTED", 429),
    "server": ("INTERNAL", 500),
    "unavailable": ("UNAVAILABLE", 503),
    "timeout": ("DEADLINE_EXCEEDED", 504),
    "truncated": ("UNAVAILABLE", 503),
}


def encode_error(failure: ProviderFailed, report: StreamReport) -> Any:
    """Return the value of ``error``: Google's unchanged; another vendor's without details, which are counted as lost."""
    if failure.vendor == VENDOR and is_error(failure.raw):
        return failure.raw
    if failure.vendor != VENDOR and failure.native_type:
        report.lose("error_detail")
    status, code = ERROR_CODES[failure.type]
    return {"code": failure.http_status or code, "message": failure.message, "status": status}


def is_error(value: object) -> bool:
    """Return whether Google's official client can read this value as an error."""
    return isinstance(value, dict) and is_count(value.get("code")) and isinstance(value.get("message"), str)


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST_TOKENS


def signature_blob(kind: Kind, vendor: str, blob: str) -> str:
    """Return the signature to write: Google's unchanged if it is base64, which clients decode; any other sealed."""
    return blob if vendor == VENDOR and is_base64(blob) else seal(kind, vendor, blob)


def is_base64(text: str) -> bool:
    """Return whether a text is base64 in the standard or the URL alphabet. The official client decodes both."""
    return values.is_base64(text.replace("-", "+").replace("_", "/"))


def is_own_uri(uri: str | None) -> bool:
    """Return whether only Google can read the file at this address."""
    return (uri or "").startswith(OWN_URIS)


def standard_base64(text: str) -> str:
    """Return base64 in the standard alphabet. Google's clients write the URL alphabet, and its servers accept both."""
    text = text.replace("-", "+").replace("_", "/")
    return text + "=" * (-len(text) % 4)


def output_counts(usage: UsageReported, vendor: str, report: StreamReport) -> tuple[int | None, int | None]:
    """Return the tokens of the output, and of the thoughts, which Google counts separately. ``vendor`` is the target's.

    Counts of another vendor are counted as lost if they include cache writes, or thoughts that are not part of the output.
    """
    output, thoughts = usage.output_total, usage.output_reasoning
    beside = usage.input_cache_write is not None or (thoughts or 0) > (output or 0)
    if usage.vendor != vendor and (beside or has_more(usage, vendor)):
        report.lose("usage_detail")
    if output is not None and thoughts is not None and thoughts <= output:
        output -= thoughts  # an output below the thoughts does not include them
    return output, thoughts
