"""Error bodies of Interactions: ``{"error": {code, message}}``, both texts. Source: dialects.md §5.5, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.gemini_interactions.wire import ERROR_TYPES, VENDOR, encode_error, is_error
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None if it is not an error body of this dialect."""
    error = document.get("error")
    if not isinstance(error, dict) or not is_error(error) or not isinstance(error.get("code"), str):
        return None
    if "type" in error or "status" in error:  # other dialects have these members
        return None
    return provider_failed(error, VENDOR, ERROR_TYPES)


#: An interrupted response is an unavailable service, as in Google's other API.
ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words=ERROR_TYPES,
    decode=decode,
    encode=lambda failed, report: ({"error": encode_error(failed, report)}, {}),
    statuses={**STATUSES, "truncated": 503},
)
