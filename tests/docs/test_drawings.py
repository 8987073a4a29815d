"""The drawings are those that ``tools/drawings.py`` draws, each is on a page, and each picture of a page is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tools.drawings import FOLDER, Drawing, files

PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)]+)\)$", re.MULTILINE)
SHOWN = [
    (page, said, (page.parent / path).resolve())
    for page in PAGES
    for said, path in PICTURE.findall(page.read_text("utf-8"))
]


@pytest.mark.parametrize(("path", "text"), [pytest.param(*each, id=each[0].stem) for each in files()])
def test_a_drawing_is_drawn_by_the_program(path: Path, text: str) -> None:
    assert path.read_text("utf-8") == text, "run `make docs`"


def test_each_drawing_is_on_a_page_and_says_what_it_shows() -> None:
    shown = {path for _page, _said, path in SHOWN}
    assert shown >= set(FOLDER.glob("*.svg"))
    assert all(path.exists() for path in shown)
    assert [(page.name, said) for page, said, path in SHOWN if path.parent == FOLDER and len(said) < 40] == []


def test_a_text_that_does_not_fit_is_an_error() -> None:
    drawing = Drawing("small", 200, 100)
    drawing.box(10, 10, 100, ["fits"])
    with pytest.raises(ValueError, match="no room for"):
        drawing.box(10, 50, 100, ["does not fit at all"])


def test_a_drawing_has_colors_for_dark_pages() -> None:
    for _path, text in files():
        assert "prefers-color-scheme:dark" in text
