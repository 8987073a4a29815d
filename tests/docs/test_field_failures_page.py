"""The page of field failures says what their vectors say, and all of it."""

from __future__ import annotations

import re

from tests.vectors.field import CASES, ELSEWHERE
from tools import field_failures as tool


def test_every_case_has_one_row():
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", tool.page(), re.MULTILINE)]
    assert rows == sorted(case.number for case in (*CASES, *ELSEWHERE))


def test_the_count_adds_up():
    lines = [line for line in tool.summary() if not line.startswith(" ")]
    total, *states = [int(line.split()[0]) for line in lines]
    assert total == sum(states) == len(CASES) + len(ELSEWHERE)


def test_an_open_case_is_not_counted_as_handled():
    opened = [case for case in CASES if case.open]
    assert any(line.startswith(f"{len(opened)} are not handled") for line in tool.summary())
    for case in opened:
        assert f"**open**: {case.open[0]}" in "".join(tool.row(case))
