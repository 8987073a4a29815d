"""The page of field failures says what their vectors say, and all of it."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.docs.pages import ROOT
from tests.vectors.field import CASES, ELSEWHERE

SCRIPT = ROOT / "tools" / "field_failures.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("field_failures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_matches_the_cases(tool, capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().err


def test_the_check_sees_a_page_that_lags_and_one_that_is_missing(tool, tmp_path, capsys):
    path = tmp_path / "field-failures.md"
    assert tool.main(["--check"], path) == 1
    assert not path.exists()
    assert tool.main([], path) == 0
    assert tool.main(["--check"], path) == 0
    path.write_text(path.read_text("utf-8").replace("| 1 |", "| 1  |"), "utf-8")
    assert tool.main(["--check"], path) == 1
    assert "field-failures" in capsys.readouterr().err


def test_every_case_has_one_row(tool):
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", tool.page(), re.MULTILINE)]
    assert rows == sorted(case.number for case in (*CASES, *ELSEWHERE))


def test_the_count_adds_up(tool):
    lines = [line for line in tool.summary() if not line.startswith(" ")]
    total, *states = [int(line.split()[0]) for line in lines]
    assert total == sum(states) == len(CASES) + len(ELSEWHERE)


def test_an_open_case_is_not_counted_as_handled(tool):
    opened = [case for case in CASES if case.open]
    assert any(line.startswith(f"{len(opened)} open") for line in tool.summary())
    for case in opened:
        assert f"**open**: {case.open[0]}" in "".join(tool.row(case))
