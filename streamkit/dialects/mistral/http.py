"""Mistral's Chat Completions over HTTP; its clients are served as Chat's are. Source: mistralai 3.7."""

from __future__ import annotations

from streamkit.dialects.http import HTTP, Endpoint, with_root

HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: with_root(base, "/v1") + "/chat/completions", pasted="/chat/completions"
    )
)
