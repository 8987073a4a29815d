"""The house keeps its order: each room of the source has a room of tests, exports are true, public things say what they are."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streamkit
from streamkit.report import LOSSES, REPAIRS

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "streamkit").rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_every_export_exists_and_is_sorted():
    assert [name for name in streamkit.__all__ if not hasattr(streamkit, name)] == []
    assert sorted(streamkit.__all__, key=lambda name: (not name.isupper(), name)) == streamkit.__all__


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path):
    text = path.read_text("utf-8")
    assert not text or ast.get_docstring(ast.parse(text)), "a module's docstring states its theory"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_function_and_class_says_what_it_does(path):
    assert bare_names(path.read_text("utf-8")) == []


def test_a_function_and_a_class_without_docstrings_are_seen():
    assert bare_names("def f(): ...\nasync def g(): ...\nclass C: ...\ndef _private(): ...") == ["f", "g", "C"]


def bare_names(text: str) -> list[str]:
    """The public functions and classes at the top of a module that have no docstring; an overload needs none."""
    return [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
        if not any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    ]


def test_every_room_of_the_source_has_its_room_of_tests():
    rooms = {
        path.parent.relative_to(ROOT / "streamkit").parts[0] for path in SOURCES if path.parent.name != "streamkit"
    }
    missing = [room for room in sorted(rooms) if not list((ROOT / "tests" / room).glob("test_*.py"))]
    assert missing == []


@pytest.mark.parametrize("table", [REPAIRS, LOSSES], ids=["repairs", "losses"])
def test_every_kind_is_counted_somewhere(table):
    code = "\n".join(path.read_text("utf-8") for path in SOURCES if path.name != "report.py")
    events = (ROOT / "streamkit" / "events.py").read_text("utf-8")  # a loss's kind may be an aside's
    assert [kind for kind in table if f'"{kind}"' not in code + events] == []


def test_every_counted_kind_is_described():
    for path in SOURCES:
        for call in re.finditer(r'\.(repair|lose|withhold)\(\s*"(\w+)"', path.read_text("utf-8")):
            table = REPAIRS if call[1] == "repair" else LOSSES
            assert call[2] in table, f"{path.name}: {call[2]}"


def test_an_undescribed_kind_is_refused():
    report = streamkit.StreamReport()
    with pytest.raises(KeyError):
        report.repair("no_such_kind")
    with pytest.raises(KeyError):
        report.lose("no_such_kind")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_imports_alone(path):
    importlib.import_module(module_name(path))


def test_a_planted_breach_of_the_layers_is_seen(tmp_path):
    """import-linter must fail when the lowest layer imports the highest; a check that can't fail proves nothing."""
    copy = tmp_path / "house"
    shutil.copytree(ROOT / "streamkit", copy / "streamkit")
    shutil.copy(ROOT / "pyproject.toml", copy)
    errors = copy / "streamkit" / "errors.py"
    errors.write_text(errors.read_text("utf-8") + "\nimport streamkit.cli\n", "utf-8")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(copy)})
    assert done.returncode != 0
    assert "Imports go down only BROKEN" in done.stdout
