"""Our own streams: a few hundred bytes each, one fact each, written by hand and never copied from a recording."""

from __future__ import annotations

from tests.vectors import anthropic, ollama, openai_chat

VECTORS = [*openai_chat.VECTORS, *anthropic.VECTORS, *ollama.VECTORS]
