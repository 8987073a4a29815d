"""The documentation site: every page can be reached, and the API reference names packages that there are."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.site import lines_of_llms

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
MODULES = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)


def pages_of(part: Any) -> list[str]:
    """The pages of a part of the navigation: a page, a section with pages, or a list of those."""
    if isinstance(part, str):
        return [part]
    return [page for each in (part if isinstance(part, list) else part.values()) for page in pages_of(each)]


def test_the_navigation_has_every_page_once_but_the_specification():
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(pages_of(SITE["nav"])) == sorted(page for page in pages if not page.startswith("spec/"))


def test_the_index_has_every_page_too():
    index = (DOCS / "README.md").read_text("utf-8") + (DOCS / "spec" / "README.md").read_text("utf-8")
    missing = [page for page in pages_of(SITE["nav"]) if page != "README.md" and Path(page).name not in index]
    assert not missing


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_names_modules_that_have_public_names(module):
    found = importlib.import_module(module)
    assert [name for name in dir(found) if not name.startswith("_")]


def test_a_broken_link_stops_the_build():
    assert "--strict" in (ROOT / "Makefile").read_text("utf-8")
    assert set(SITE["validation"]["links"].values()) == {"warn"}
    assert "make docs-site" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_site_loads_nothing_from_elsewhere():
    assert SITE["theme"]["font"] is False
    assert all((DOCS / path).exists() for path in (*SITE["extra_javascript"], *SITE["extra_css"]))


def test_each_page_begins_with_one_heading_that_is_its_title():
    texts = {
        path.name: re.sub(r"\A<!--.*?-->\s*", "", path.read_text("utf-8"), flags=re.DOTALL)
        for path in DOCS.rglob("*.md")
    }
    bad = [name for name, text in texts.items() if not text.startswith("# ")]
    assert not bad


def test_llms_has_every_page_of_the_navigation_with_a_sentence():
    lines = [line for line in lines_of_llms() if line.startswith("- [")]
    assert len(lines) == len(pages_of(SITE["nav"]))
    assert all(re.fullmatch(r"- \[.+?\]\(\S+\): .+", line) for line in lines)


#: what a reader copies and what no line can break: the address of a picture
UNBROKEN = ("https://img.shields.io/",)


@pytest.mark.parametrize(
    "page",
    [path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if "spec" not in path.parts],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_code_fits_a_page(page):
    """Browsers of 1280 pixels show 88 columns without a scroll bar."""
    blocks = re.findall(r"^ *```[^\n]*\n(.*?)^ *```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert not [line for line in lines if len(line) > 88 and not any(each in line for each in UNBROKEN)]
