"""Converse over HTTP; its clients are not served. Source: botocore 1.44, which encodes a whole name, and ``CountTokens``."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.http import HTTP, KEY_HEADERS, Endpoint, TokenCount, segment


def _url(base: str, model: str, stream: bool) -> str:
    return f"{base}/model/{segment(model, safe='')}/{'converse-stream' if stream else 'converse'}"


def _counted(members: dict[str, Any], _model: str) -> dict[str, Any]:
    return {"input": {"converse": members}}


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=_url,
        auth="sigv4",
        keys={"bedrock-bearer": KEY_HEADERS["bearer"]},
        aws_service="bedrock",
        count=TokenCount(
            url=lambda base, model: f"{base}/model/{segment(model, safe='')}/count-tokens",
            takes=frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"}),
            body=_counted,
            member="inputTokens",
        ),
    )
)
