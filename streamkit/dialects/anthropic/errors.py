"""Anthropic's error bodies: ``{"type": "error", "error": {type, message}, "request_id"}``. Source: dialects.md §3.1, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.anthropic.wire import ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None if it is not an error body of this dialect."""
    if document.get("type") != "error" or not isinstance(document.get("error"), dict):
        return None
    return provider_failed(document, VENDOR, ERROR_TYPES)


#: An overloaded server has a status of its own, 529. An interrupted response is an ``api_error``, which has 500.
ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words=ERROR_TYPES,
    decode=decode,
    encode=lambda failed, report: (encode_error(failed, report), {}),
    statuses={**STATUSES, "unavailable": 529, "truncated": 500},
)
