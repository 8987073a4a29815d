"""Mistral's Chat Completions over HTTP. Its clients are served on Chat's paths. Source: mistralai 3.7."""

from __future__ import annotations

from streamkit.dialects.http import HTTP, Endpoint, with_root

HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: with_root(base, "/v1") + "/chat/completions", pasted="/chat/completions"
    )
)
