"""Our own streams: a few hundred bytes each, one fact each, written by hand and never copied from a recording."""

from __future__ import annotations

from tests.vectors import (
    ag_ui,
    ai_sdk,
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)

VECTORS = [
    *openai_chat.VECTORS,
    *openai_responses.VECTORS,
    *anthropic.VECTORS,
    *ollama.VECTORS,
    *cohere.VECTORS,
    *mistral.VECTORS,
    *bedrock.VECTORS,
    *gemini.VECTORS,
    *gemini_interactions.VECTORS,
    *ag_ui.VECTORS,
    *ai_sdk.VECTORS,
]
#: Dialects whose first chunks are another's as well, and what a stream of them is taken for.
LOOKS_LIKE = {"mistral": "openai-chat"}
