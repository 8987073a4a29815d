"""The script that measures the house sees each breach of its order that is planted in a small one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools import house

RUN = "\n".join(f"    value_{number} = {number}" for number in range(7))
FILES = {
    "__init__.py": '"""The public names."""\nfrom streamkit.web.reply import Reply\n',
    "dialects/gemini/__init__.py": '"""Gemini."""\nDIALECT = "gemini"\n',
    "dialects/gemini/decode.py": f'''"""Frames."""
from typing import Any
from streamkit.dialects.gemini.parts import PartReader

class Decoder(PartReader):
    """Reads Gemini's frames."""

def read(body: Any):
    """Each member."""
{RUN}
''',
    "dialects/gemini/parts.py": f'''"""Parts of a message."""

class PartReader:
    """The part of the decoder that reads parts."""

def also(body):
{RUN}
''',
    "dialects/openai_chat/__init__.py": '"""Chat."""\nDIALECT = "openai-chat"\n',
    "web/reply.py": '''"""The answer to a client of Gemini."""
from streamkit.dialects import gemini

# OpenAI Chat has no such thing
class Reply:
    """A reply."""
    NAME = "openai-chat"

def _hidden(): pass
''',
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "streamkit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_files_and_lines_are_counted_by_folder(root):
    rooms = house.measure(root)["rooms"]
    assert {room: counts["files"] for room, counts in rooms.items()} == {
        "(top level)": 1,
        "dialects/gemini": 3,
        "dialects/openai_chat": 1,
        "web": 1,
    }
    assert rooms["web"]["lines"] == 9


def test_a_base_in_another_file_with_one_heir_is_a_part_of_that_class(root):
    assert house.spread_classes(house.modules(root)) == {
        "streamkit.dialects.gemini.decode.Decoder": [
            "streamkit/dialects/gemini/decode.py",
            "streamkit/dialects/gemini/parts.py",
        ]
    }
    assert len(house.said_to_be_parts(house.modules(root))) == 1


def test_a_base_with_two_heirs_is_shared_and_no_part(root):
    path = root / "streamkit" / "dialects" / "gemini" / "response.py"
    path.write_text("from streamkit.dialects.gemini import parts\n\nclass Body(parts.PartReader):\n    pass\n", "utf-8")
    assert house.spread_classes(house.modules(root)) == {}


def test_names_of_dialects_outside_of_their_folders_are_counted_by_the_kind_of_word(root):
    # in the module's docstring and in the comment; the import; the string
    assert house.counted_names(house.modules(root)) == {
        "web": {"files": 1, "comments": 2, "identifiers": 1, "strings": 1}
    }


def test_the_table_that_registers_the_dialects_may_name_them(root):
    before = house.counted_names(house.modules(root))
    (root / house.TABLE).write_text('"""The table."""\nfrom streamkit.dialects import gemini\n', "utf-8")
    assert house.counted_names(house.modules(root)) == before
    (root / house.TABLE).with_name("registry.py").write_text("from streamkit.dialects import gemini\n", "utf-8")
    assert house.counted_names(house.modules(root)) == {**before, "dialects": {"files": 1, "identifiers": 1}}


def test_equal_runs_in_two_files_are_a_pair(root):
    (pair,) = house.equal_pairs(house.modules(root))
    assert (pair.one, pair.other, pair.lines) == (
        "streamkit/dialects/gemini/decode.py:10",
        "streamkit/dialects/gemini/parts.py:7",
        7,
    )


def test_a_run_of_five_lines_is_no_pair(root):
    path = root / "streamkit" / "dialects" / "gemini" / "parts.py"
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[:-2]), "utf-8")
    assert house.equal_pairs(house.modules(root)) == []


def test_public_names_without_docstring_are_named(root):
    assert house.bare_names(house.modules(root)) == ["streamkit/dialects/gemini/parts.py:6 also"]


def test_imports_between_rooms_are_counted_and_those_within_are_not(root):
    assert house.measure(root)["imports"] == {"(top level)": {"web": 1}, "web": {"dialects/gemini": 1}}


def test_functions_and_any_are_counted(root):
    totals = house.measure(root)["totals"]
    assert (totals["functions: count"], totals["functions: median"], totals["functions: p90"]) == (3, 8, 9)
    assert totals["Any per 1,000 lines"] == round(1000 / totals["lines"], 1)


def test_a_table_has_each_figure_beside_that_of_an_earlier_day(root, tmp_path, monkeypatch, capsys):
    kept = tmp_path / "before.json"
    monkeypatch.setattr(sys, "argv", ["house.py", "--root", str(root), "--json", str(kept)])
    assert house.main() == 0
    assert json.loads(kept.read_text("utf-8"))["totals"]["files"] == 6
    (root / "streamkit" / "web" / "reply.py").unlink()
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["house.py", "--root", str(root), "--compare", str(kept)])
    assert house.main() == 0
    told = capsys.readouterr().out
    assert "| files | 6 | 5 |" in told
    assert "| `web` | 1, 9 | - |" in told


@pytest.mark.exhaustive
def test_the_figures_of_this_checkout_can_be_taken():
    figures = house.measure(Path(__file__).parents[2])
    assert figures["totals"]["lines"] == sum(counts["lines"] for counts in figures["rooms"].values())
