"""The scripts that measure a tree and sample its comments see what is planted in a small one."""

from __future__ import annotations

import ast

import pytest

from tools import house, sample

RUN = "\n".join(f"    value_{number} = {number}" for number in range(7))
FILES = {
    "__init__.py": '"""The public names."""\nfrom streamkit.web.reply import Reply\n',
    "dialects/decode.py": f'''"""Frames."""
from streamkit.web import reply

def read(body):
    """Each member."""
    if body and body != reply:
        return None
{RUN}
''',
    "dialects/parts.py": f'''"""Parts of a message."""

# two lines
# of one comment
def read(body):
{RUN}
    return body  # an own comment
''',
    "web/__init__.py": "",
    "web/reply.py": '"""The answer."""\nclass Reply:\n    """A reply."""\n',
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "streamkit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_each_package_has_its_figures(root):
    rows = {line[:34].strip(): line[34:].split() for line in house.report(root, 20)}
    lines = sum(len(text.splitlines()) for text in FILES.values())
    assert rows["all"] == [str(lines), "5", "2", "2.00", "3", "14"]
    assert rows["dialects"][1:6] == ["2", "2", "2.00", "3", "14"]
    assert rows["dialects"][6:] == ["web", "2"]
    assert rows["(top level)"][-2:] == ["web", "1"]


def test_names_of_several_modules_and_references_are_told(root):
    (root / "docs").mkdir()
    (root / "docs" / "page.md").write_text("[gone](gone.md)\n", "utf-8")
    below = list(house.report(root, 20))[-3:]
    assert below[0] == "\nnames that several modules define: 1; most: read 2"
    assert below[1] == "references: 1, of the docs 1; lead nowhere: 1"
    assert "gone.md" in below[2]


def test_docstrings_and_comments_are_found_whole():
    assert list(sample.comments(FILES["dialects/parts.py"])) == [[3, 4], [13, 13]]
    assert list(sample.docstrings(ast.parse(FILES["dialects/decode.py"]))) == [(1, 1), (4, 5)]
