"""Mistral's Chat Completions over HTTP, whose clients are served on Chat's paths, and its error bodies.

An error is ``{"object": "error", message, type, param, code}``, FastAPI's ``{"detail": ...}`` or, from the gateway before
Mistral's servers, an object with a ``message`` and a ``request_id``.

Source: mistralai 3.7; dialects.md §1.4, §6.3, §7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from streamkit.dialects.base import Errors
from streamkit.dialects.http import HTTP, Endpoint, with_root
from streamkit.dialects.members.values import text_of
from streamkit.dialects.mistral.wire import ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.openai_chat.http import CODES
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
HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: with_root(base, "/v1") + "/chat/completions", pasted="/chat/completions"
    )
)
