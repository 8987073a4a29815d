"""Chat v2 over HTTP, whose clients are not served; and error bodies: ``{"message": "..."}``. Only the status shows the type.

Source: dialects.md §6.2, §7.5; cohere 7.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.base import Errors
from streamkit.dialects.cohere.wire import VENDOR
from streamkit.dialects.http import HTTP, Endpoint, with_root
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    if text_of(document.get("message")) is None or "__type" in document or "object" in document:
        return None
    return provider_failed(document, VENDOR, {})


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    if failed.vendor == VENDOR:
        own = failed.raw if isinstance(failed.raw, dict) and text_of(failed.raw.get("message")) else {}
        return {**own, "message": failed.message}, {}
    if failed.native_type or failed.code:
        report.lose("error_detail")
    return {"message": failed.message}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words={}, decode=decode, encode=encode)
HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: with_root(base, "/v2") + "/chat", pasted="/v2/chat")
)
