"""The AI SDK's HTTP errors. The body is only the text of the chunk ``error``, because ``useChat`` displays the whole body.

Source: ui-protocols.md §1.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.ai_sdk.wire import VENDOR
from streamkit.dialects.base import Errors
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    message = text_of(document.get("errorText"))
    if document.get("type") != "error" or message is None:
        return None
    return ProviderFailed("server", message, raw=document, vendor=VENDOR)


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    if has_detail(failed, VENDOR):
        report.lose("error_detail")
    own = failed.raw if failed.vendor == VENDOR and isinstance(failed.raw, dict) else {}
    return {**own, "type": "error", "errorText": failed.message}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words={}, decode=decode, encode=encode, in_words=True)
