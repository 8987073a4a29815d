"""Ollama's API over HTTP, and its error bodies: ``{"error": "..."}``. Only the HTTP status shows the type.

Clients need some members of the model list and of a model. Zed needs ``name``, ``modified_at``, ``size``, ``digest`` and
``details`` as text, and offers tools only for a model with the capability ``tools``. ollama-python needs a ``model_info``,
which may be empty.

Source: dialects.md §4.1, §7.5; clients.md §10.1, §10.2; ollama 0.6.3; Zed (crates/ollama).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.base import Errors
from streamkit.dialects.http import HTTP, Endpoint, ModelCard, Models, Surface, with_root
from streamkit.dialects.members.values import text_of
from streamkit.dialects.ollama.wire import VENDOR
from streamkit.dialects.streams.event_encoder import encode_time
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport

#: The release whose ``/api/chat`` is implemented. Clients compare it with the oldest version that they accept (GitHub Copilot
#: 0.6.4, others 0.14), number by number, and refuse any other text.
VERSION: Final = "0.32.8"


def _model(card: ModelCard) -> dict[str, Any]:
    return {
        "name": card.id,
        "model": card.id,
        "modified_at": encode_time(card.created),
        "size": 0,
        "digest": hashlib.sha256(card.id.encode()).hexdigest(),  # a hash of the name: always the same for one model
        "details": _details(card),
    }


def _detail(card: ModelCard) -> dict[str, Any]:
    sizes = {} if card.context is None else {f"{card.owner}.context_length": card.context}
    return {
        **dict.fromkeys(("license", "modelfile", "parameters", "template"), ""),
        "details": _details(card),
        "model_info": {"general.architecture": card.owner, "general.basename": card.id, **sizes},
        "capabilities": _abilities(card),
        "modified_at": encode_time(card.created),
    }


def _abilities(card: ModelCard) -> list[str]:
    there = {"tools": card.tools, "vision": card.sees, "thinking": card.thinks}
    return ["completion", *(name for name, is_there in there.items() if is_there)]


def _details(card: ModelCard) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": card.owner,
        "families": [card.owner],
        "parameter_size": "",
        "quantization_level": "",
    }


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: with_root(base, "/api") + "/chat", pasted="/api/chat", auth="none"
    ),
    # a response is a stream unless the request has ``stream: false``, which ``decode_request`` reads
    surface=Surface(
        generate=("/api/chat",),
        path=re.compile(r"/api/[a-z]++\Z"),
        models=Models(
            path="/api/tags",
            list=lambda models, _query: {"models": [_model(card) for card in models]},
            detail=_detail,
            by_body=("/api/show", lambda fields: fields.string("model") or fields.needed("name")),
            # loaded models: there are none on this machine
            constants={"/api/version": {"version": VERSION}, "/api/ps": {"models": []}},
            default_tag=":latest",
            keyless=True,
        ),
    ),
)


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None for a body in another envelope."""
    if text_of(document.get("error")) is None:
        return None
    return provider_failed(document, VENDOR, {})


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body of an error, and no headers."""
    if failed.vendor == VENDOR:
        return {**(failed.raw if isinstance(failed.raw, dict) else {}), "error": failed.message}, {}
    if failed.native_type or failed.code:
        report.lose("error_detail")
    return {"error": failed.message}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words={}, decode=decode, encode=encode)
