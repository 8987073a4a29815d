"""The page of the HTTP surface says what the code serves, and every path of it."""

from __future__ import annotations

import importlib.util
import re

import pytest

from streamkit.web.surfaces import surfaces
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "http-surface.md"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("http_surface", ROOT / "tools" / "http_surface.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_matches_the_code(tool, capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().err


def test_the_check_sees_a_page_that_lags(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "PAGE", tmp_path / "page.md")
    assert tool.main(["--check"]) == 1
    assert "page.md lags" in capsys.readouterr().err
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0


def test_each_path_has_a_row():
    rows = re.findall(r"^\| (?:(?:GET|POST) \| )?`(/[^`]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows)) == sum(len(surface.paths) for surface in surfaces().values()) + 8
    assert {"/api/chat", "/v1/models/{model}", "/v1beta/models/{model}:streamGenerateContent"} <= set(rows)
