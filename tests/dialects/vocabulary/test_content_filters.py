"""A content filter that refused a request: each provider says so in another way, and none of the words is used elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects.vocabulary.content_filters import is_filtered
from streamkit.http_errors import decode_error

#: The dialect, the status and the error of each server.
FILTERED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "Azure": ("openai-chat", 400, {"message": "The response was filtered", "code": "content_filter", "type": None}),
    "Azure, older": ("openai-chat", 400, {"message": "due to the prompt triggering Azure OpenAI's content management policy"}),
    "OpenAI": ("openai-responses", 400, {"message": "Invalid prompt: your prompt was flagged as potentially violating"}),
    "OpenAI, images": ("openai-chat", 400, {"message": "no", "code": "moderation_blocked"}),
    "Anthropic": ("anthropic", 400, {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}),
    "OpenRouter": ("openai-chat", 403, {"message": 'Your input was flagged for "violence"', "code": 403}),
    "xAI": ("openai-chat", 403, {"message": "Content violates usage guidelines."}),
    "DeepSeek": ("deepseek", 400, {"message": "Content Exists Risk", "type": "invalid_request_error"}),
    "Moonshot": ("openai-chat", 400, {"message": "The request was rejected", "type": "content_filter"}),
    "Alibaba": ("openai-chat", 400, {"message": "Output data may contain inappropriate content.", "code": "x"}),
    "MiniMax": ("openai-chat", 500, {"message": "input new_sensitive (1026)"}),
    "Vertex AI": ("gemini", 400, {"code": 400, "message": "words that violate Google's Responsible AI practices"}),
}  # fmt: skip
OTHER: list[tuple[int, str]] = [
    (400, "messages.0.content: Input should be a valid list"),
    (400, "the content type application/xml is not supported"),
    (403, "Your account was flagged; contact support"),
    (429, "Rate limit of the content filter policy service"),
]


@pytest.mark.parametrize(("dialect", "status", "error"), FILTERED.values(), ids=FILTERED)
def test_each_provider_says_so_in_its_own_words(dialect: str, status: int, error: dict[str, Any]):
    assert is_filtered(decode_error(status, json.dumps({"error": error}).encode(), dialect))


@pytest.mark.parametrize(("status", "message"), OTHER)
def test_other_errors_about_content_are_none(status: int, message: str):
    assert not is_filtered(decode_error(status, json.dumps({"error": {"message": message}}).encode(), "openai-chat"))
