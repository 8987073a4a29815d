"""The code that serves and asks over HTTP knows no dialect: what differs stands in ``dialects/<name>/http.py``."""

from __future__ import annotations

import re

import pytest

from streamkit.dialects import DIALECTS
from tests.docs.pages import ROOT

FILES = [path for room in ("web", "gateway") for path in sorted((ROOT / "streamkit" / room).rglob("*.py"))]
#: A dialect's name in any spelling: ``openai-chat``, ``openai_chat``, ``OpenAIChat``, ``OPENAI_CHAT``.
NAMED = re.compile("|".join(name.replace("-", "[-_ ]?") for name in DIALECTS.built_in), re.IGNORECASE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "streamkit")))
def test_no_line_names_a_dialect(path):
    assert [line.strip() for line in path.read_text("utf-8").splitlines() if NAMED.search(line)] == []


def test_names_are_found_however_they_are_spelt():
    spelt = ("x-anthropic-y", "OpenAI Chat", "openaiChat", "GEMINI_NAME", "the Ollama of old", "_of_bedrock")
    assert all(NAMED.search(text) for text in spelt)
