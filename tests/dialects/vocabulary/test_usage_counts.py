"""Which token counts have no place in another dialect."""

from __future__ import annotations

import pytest

from streamkit.dialects.vocabulary.usage_counts import has_more
from streamkit.events import UsageReported


@pytest.mark.parametrize(
    ("raw", "more"),
    [
        ({"promptTokenCount": 3}, False),
        ({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]}, False),
        ({"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 3}]}, True),
        ({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": {"x": 3}}]}, False),
        ({"prompt_tokens_details": {"audio_tokens": 0}}, False),
        ({"prompt_tokens_details": {"audio_tokens": 1}}, True),
    ],
)
def test_counts_without_a_place_are_found(raw, more):
    assert has_more(UsageReported(raw=raw, vendor="google"), "openai") is more
