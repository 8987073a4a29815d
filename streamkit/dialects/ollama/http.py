"""Ollama's API over HTTP.

What readers demand: Zed of the list a ``name``, ``modified_at``, ``size``, ``digest`` and ``details`` that are text, and it
shows tools only where the capability says so; ollama-python a ``model_info``, if empty.

Source: clients.md §10.1, §10.2; ollama 0.6.3; Zed (crates/ollama).
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from streamkit.dialects.http import HTTP, Endpoint, ModelCard, Models, Surface, with_root
from streamkit.dialects.streams.event_encoder import encode_time

#: The release whose ``/api/chat`` is spoken here. Clients compare it, number by number, with the least that they take (GitHub
#: Copilot 0.6.4, others 0.14), and refuse what is no number.
VERSION: Final = "0.32.8"


def _model(card: ModelCard) -> dict[str, Any]:
    return {
        "name": card.id,
        "model": card.id,
        "modified_at": encode_time(card.created),
        "size": 0,
        "digest": hashlib.sha256(card.id.encode()).hexdigest(),  # of the name: stable, and another for each
        "details": _details(card),
    }


def _detail(card: ModelCard) -> dict[str, Any]:
    return {
        **dict.fromkeys(("license", "modelfile", "parameters", "template"), ""),
        "details": _details(card),
        "model_info": {"general.architecture": card.owner, "general.basename": card.id},
        "capabilities": ["completion", *(["tools"] if card.tools else [])],
        "modified_at": encode_time(card.created),
    }


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
    # it streams unless it is told not to, as ``decode_request`` says
    surface=Surface(
        generate=("/api/chat",),
        path=re.compile(r"/api/[a-z]++\Z"),
        models=Models(
            path="/api/tags",
            list=lambda models, _query: {"models": [_model(card) for card in models]},
            detail=_detail,
            by_body=("/api/show", lambda fields: fields.string("model") or fields.needed("name")),
            # models that are loaded: there are none here, but at others' machines
            constants={"/api/version": {"version": VERSION}, "/api/ps": {"models": []}},
            default_tag=":latest",
            keyless=True,
        ),
    ),
)
