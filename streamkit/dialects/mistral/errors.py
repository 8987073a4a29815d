"""Mistral's error bodies: ``{"object": "error", message, type, param, code}``, and FastAPI's ``{"detail": ...}``.

Errors of the gateway before its servers have a ``message`` and a ``request_id``. Source: dialects.md §1.4, §6.3, §7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from streamkit.dialects.base import Errors
from streamkit.dialects.members.values import text_of
from streamkit.dialects.mistral.wire import ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.openai_chat.errors import CODES
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    guarded = "request_id" in document and text_of(document.get("message"))
    if document.get("object") != "error" and not document.get("detail") and not guarded:
        return None
    return provider_failed(document, VENDOR, ERROR_TYPES)


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    if failed.vendor == VENDOR and isinstance(failed.raw, dict) and decode(failed.raw, {}):
        return failed.raw, {}
    return encode_error(evolve(failed, code=CODES.get(failed.type), http_status=None), report), {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words=ERROR_TYPES, decode=decode, encode=encode)
