"""The how-to for dialect authors: its example imports ``streamkit.plugin`` and nothing below it, and the page shows it."""

from __future__ import annotations

import ast
import re

import pytest

from streamkit import plugin
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-a-dialect.md"
PROJECT = ROOT / "examples" / "workers-ai"


@pytest.mark.parametrize("module", sorted((PROJECT / "workers_ai").glob("*.py")), ids=lambda path: path.stem)
def test_the_example_imports_the_plugin_module_and_nothing_else_of_streamkit(module):
    tree = ast.parse(module.read_text("utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    ours = [ast.unparse(node) for node in found if "streamkit" in ast.unparse(node)]
    assert ours == ["from streamkit import plugin as sk"]
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "sk"}
    assert used <= set(plugin.__all__)


def test_the_plugin_module_names_what_it_has_in_order():
    assert plugin.__all__ == sorted(plugin.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(plugin, name) for name in plugin.__all__)


def test_what_the_page_names_of_the_plugin_module_is_there():
    names = set(re.findall(r"`((?:[A-Z][a-z]+){2,})`", PAGE.read_text("utf-8")))
    assert names - {"NotThisDialect", "UsageError", "DIALECTS"} <= set(plugin.__all__)


def test_the_page_shows_every_file_of_the_package():
    shown = set(re.findall(r"<!-- from (\S+) -->", PAGE.read_text("utf-8")))
    assert {str(path.relative_to(ROOT)) for path in PROJECT.rglob("*.py")} <= shown
