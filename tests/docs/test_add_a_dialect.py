"""The how-to for dialect authors: what it says can be imported can be, and its example imports nothing else."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-a-dialect.md"
PROJECT = ROOT / "examples" / "legacy-completions"
#: Whole modules, and what any user imports.
EVERYTHING = {"streamkit.events", "streamkit.errors", "streamkit"}


def documented() -> dict[str, set[str]]:
    """Each module of the page's table with the names that stand beside it."""
    rows = re.findall(
        r"^\| `([\w.]+)` \| (.*) \|$", PAGE.read_text("utf-8").partition("## What to import")[2], re.MULTILINE
    )
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


def imports(path) -> set[tuple[str, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    return {
        (node.module, name.name) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names
    }


def test_the_table_is_read():
    assert len(documented()) >= 15


@pytest.mark.parametrize("module", documented())
def test_what_the_page_names_can_be_imported(module):
    found = importlib.import_module(module)
    assert [name for name in documented()[module] if not hasattr(found, name)] == []
    assert not any(part.startswith("_") for part in module.split("."))


@pytest.mark.parametrize("path", sorted(PROJECT.rglob("*.py")), ids=lambda path: path.name)
def test_the_example_imports_nothing_that_the_page_does_not_name(path):
    table = documented()
    used = {(module, name) for module, name in imports(path) if module.partition(".")[0] == "streamkit"}
    assert [one for one in used if one[0] not in EVERYTHING and one[1] not in table.get(one[0], set())] == []


def test_the_page_shows_every_file_of_the_package():
    shown = set(re.findall(r"<!-- from (\S+) -->", PAGE.read_text("utf-8")))
    assert {str(path.relative_to(ROOT)) for path in (PROJECT / "legacy_completions").glob("*.py")} <= shown
