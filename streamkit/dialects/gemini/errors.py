"""Google's error bodies: ``{"error": {code, message, status, details}}``. Source: dialects.md §5.1, §7.5.

How long a client must wait is in a ``RetryInfo`` in the details. An error for a wrong API key has the same status as an error
for any wrong argument; only the ``reason`` in an ``ErrorInfo`` shows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.base import Errors
from streamkit.dialects.members.values import objects_in
from streamkit.dialects.vocabulary.error_bodies import gateway_status, provider_failed
from streamkit.dialects.vocabulary.google import ERROR_CODES, ERROR_TYPES, VENDOR, encode_error
from streamkit.events import ErrorType, ProviderFailed
from streamkit.report import StreamReport

REASONS: Final[Mapping[str, ErrorType]] = {"API_KEY_INVALID": "auth"}
RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
#: A duration in protobuf's JSON: seconds with up to nine digits after the point.
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None if it is not an error body of this dialect."""
    error = document.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("status"), str):
        return None
    failed = provider_failed(error, VENDOR, ERROR_TYPES)
    for detail in objects_in(error.get("details")):
        failed.type = REASONS.get(str(detail.get("reason")), failed.type)
        if detail.get("@type") == RETRY_INFO and (delay := _DURATION.fullmatch(str(detail.get("retryDelay")))):
            failed.retry_after_s = float(delay[1])
    return failed


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the error body, and no headers."""
    own = failed.vendor == VENDOR
    error = encode_error(failed if own else evolve(failed, http_status=gateway_status(failed)), report)
    details = objects_in(error.get("details"))
    if failed.retry_after_s is not None and not any(detail.get("@type") == RETRY_INFO for detail in details):
        wait = {"@type": RETRY_INFO, "retryDelay": f"{failed.retry_after_s:.9f}".rstrip("0").rstrip(".") + "s"}
        error = {**error, "details": [*details, wait]}
    return {"error": error}, {}


ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words={**ERROR_TYPES, **REASONS},
    decode=decode,
    encode=encode,
    statuses={kind: code for kind, (_status, code) in ERROR_CODES.items()},
)
