"""AG-UI's HTTP errors: the body is the event RUN_ERROR, which clients display as it is. Source: ui-protocols.md §2.1, §2.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from streamkit.dialects.ag_ui.wire import ERROR_CODES, VENDOR, error_code
from streamkit.dialects.base import Errors
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    if document.get("type") != "RUN_ERROR" or text_of(document.get("message")) is None:
        return None
    failed = provider_failed({name: value for name, value in document.items() if name != "type"}, VENDOR, ERROR_CODES)
    return evolve(failed, raw=document)


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    own = failed.raw if failed.vendor == VENDOR and isinstance(failed.raw, dict) else {}
    return {**own, "type": "RUN_ERROR", "message": failed.message, "code": error_code(failed, report)}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words=ERROR_CODES, decode=decode, encode=encode)
