"""Chat v2 over HTTP. Its clients are not served. Source: cohere 7.3.1."""

from __future__ import annotations

from streamkit.dialects.http import HTTP, Endpoint, with_root

HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: with_root(base, "/v2") + "/chat", pasted="/v2/chat")
)
