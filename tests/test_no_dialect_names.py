"""Code outside of a dialect's folder knows no dialect: what differs is a value that each folder gives.

What serves and asks over HTTP names none in its comments either. Tables of dialects and of models are left out.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from streamkit.dialects import DIALECTS
from tests.docs.pages import ROOT

#: A dialect's name in any spelling: ``openai-chat``, ``openai_chat``, ``OpenAIChat``, ``OPENAI_CHAT``.
NAMED = re.compile("|".join(name.replace("-", "[-_ ]?") for name in DIALECTS.built_in), re.IGNORECASE)
#: Families of models, whatever the dialect, by how they write calls into their text (``Policy.text_calls``).
FAMILIES = {("streamkit/policy.py", "mistral"), ("streamkit/in_text/grammars.py", "mistral")}
#: The table of dialects, the tables of models and of clients' tools with their vendors, and LiteLLM's names of providers.
TABLES = [
    ROOT / "streamkit" / "dialects" / name
    for name in ("__init__.py", "vocabulary/model_table.py", "vocabulary/client_tools.py")
]
TABLES.append(ROOT / "streamkit" / "gateway" / "litellm.py")
FILES = [path for room in ("web", "gateway") for path in sorted((ROOT / "streamkit" / room).rglob("*.py"))]
FILES = [path for path in FILES if path not in TABLES]


def dialect_folders() -> set[Path]:
    return {
        path.parent
        for path in (ROOT / "streamkit" / "dialects").glob("*/__init__.py")
        if "DIALECT" in path.read_text("utf-8")
    }


def words(tree: ast.Module) -> list[str]:
    """Identifiers and strings; docstrings and other strings that stand alone are left out."""
    nodes = list(ast.walk(tree))
    alone = {node.value for node in nodes if isinstance(node, ast.Expr)}
    return [word for node in nodes if node not in alone for _, word in ast.iter_fields(node) if isinstance(word, str)]


def test_no_code_names_a_dialect_outside_of_its_folder():
    folders = dialect_folders()
    assert len(folders) == len(DIALECTS.built_in)
    files = [
        path for path in (ROOT / "streamkit").rglob("*.py") if not folders & set(path.parents) and path not in TABLES
    ]
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in files
        for word in words(ast.parse(path.read_bytes()))
        for name in NAMED.findall(word)
    }
    assert found - FAMILIES == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "streamkit")))
def test_no_line_names_a_dialect(path):
    assert [line.strip() for line in path.read_text("utf-8").splitlines() if NAMED.search(line)] == []


def test_names_are_found_however_they_are_spelt():
    spelt = ("x-anthropic-y", "OpenAI Chat", "openaiChat", "GEMINI_NAME", "the Ollama of old", "_of_bedrock")
    assert all(NAMED.search(text) for text in spelt)
