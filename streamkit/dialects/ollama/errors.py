"""Ollama's error bodies: ``{"error": "..."}``. Only the HTTP status shows the type. Source: dialects.md §4.1, §7.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.base import Errors
from streamkit.dialects.members.values import text_of
from streamkit.dialects.ollama.wire import ERROR_TYPES, VENDOR
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    if text_of(document.get("error")) is None:
        return None
    return provider_failed(document, VENDOR, ERROR_TYPES)


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    if failed.vendor == VENDOR:
        return {**(failed.raw if isinstance(failed.raw, dict) else {}), "error": failed.message}, {}
    if failed.native_type or failed.code:
        report.lose("error_detail")
    return {"error": failed.message}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words=ERROR_TYPES, decode=decode, encode=encode)
