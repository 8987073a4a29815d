"""OpenAI's error bodies for Responses: Chat's envelope, and a code for each type. Source: dialects.md §1.4, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.openai_responses.wire import ERROR_TYPES, OPAQUE_VENDOR, VENDOR, encode_error
from streamkit.dialects.vocabulary.context_overflow import is_overflow, with_code
from streamkit.dialects.vocabulary.openai import NO_RETRY, decode_error
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport

#: Vendors whose errors are written unchanged. Chat's errors come from the same company in the same form.
VENDORS: Final = frozenset({VENDOR, OPAQUE_VENDOR})


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return an error body, and the headers for it."""
    headers = NO_RETRY if failed.type == "billing" else {}
    own = failed.vendor in VENDORS and isinstance(failed.raw, dict) and isinstance(failed.raw.get("message"), str)
    if own and (failed.vendor == VENDOR or not is_overflow(failed)):
        return {"error": with_code(failed, failed.raw)}, headers
    if not failed.vendor:  # type and code are words of no known vendor
        failed = evolve(failed, native_type=None, code=None)
    return {"error": encode_error(failed, report)}, headers


ERRORS = Errors(
    vendors=VENDORS,
    words=ERROR_TYPES,
    decode=lambda document, _headers: decode_error(document, VENDOR, ERROR_TYPES),
    encode=encode,
    statuses={**STATUSES, "billing": 429},
)
