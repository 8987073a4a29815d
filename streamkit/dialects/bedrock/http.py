"""Converse over HTTP. Its clients are not served. Source: botocore 1.44, which encodes a whole name, and ``CountTokens``."""

from __future__ import annotations

from streamkit.dialects.http import HTTP, KEY_HEADERS, Endpoint, TokenCount, segment


def _place(base: str, model: str) -> str:
    return f"{base}/model/{segment(model, safe='')}"


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, model, stream: _place(base, model) + ("/converse-stream" if stream else "/converse"),
        auth="sigv4",
        keys={"bedrock-bearer": KEY_HEADERS["bearer"]},
        aws_service="bedrock",
        count=TokenCount(
            url=lambda base, model: _place(base, model) + "/count-tokens",
            takes=frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"}),
            body=lambda members, _model: {"input": {"converse": members}},
            member="inputTokens",
        ),
    )
)
