"""Code outside of a dialect's folder knows no dialect: what differs is a value that each folder gives.

What serves and asks over HTTP names none in its comments either. The table that registers the built-in dialects is left out.
"""

from __future__ import annotations

import re

import pytest

from streamkit.dialects import DIALECTS
from tests.docs.pages import ROOT
from tools import house

FILES = [path for room in ("web", "gateway") for path in sorted((ROOT / "streamkit" / room).rglob("*.py"))]
#: A dialect's name in any spelling: ``openai-chat``, ``openai_chat``, ``OpenAIChat``, ``OPENAI_CHAT``.
NAMED = re.compile("|".join(name.replace("-", "[-_ ]?") for name in DIALECTS.built_in), re.IGNORECASE)
#: Families of models, whatever the dialect: by how they write calls into their text (``Policy.text_calls``), and by their ids.
FAMILIES = {
    ("streamkit/policy.py", "mistral"),
    ("streamkit/in_text/grammars.py", "mistral"),
    *(("streamkit/dialects/vocabulary/models.py", name) for name in ("gemini", "mistral")),
}


def test_no_code_names_a_dialect_outside_of_its_folder():
    found = [
        (str(module.path), line, name)
        for kind, module, line, name in house.dialect_names(house.modules(ROOT))
        if kind != "comments"
    ]
    assert [place for place in found if (place[0], place[2]) not in FAMILIES] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "streamkit")))
def test_no_line_names_a_dialect(path):
    assert [line.strip() for line in path.read_text("utf-8").splitlines() if NAMED.search(line)] == []


def test_names_are_found_however_they_are_spelt():
    spelt = ("x-anthropic-y", "OpenAI Chat", "openaiChat", "GEMINI_NAME", "the Ollama of old", "_of_bedrock")
    assert all(NAMED.search(text) for text in spelt)
