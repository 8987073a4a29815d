"""The page says what was measured and no more; a goal is held only within its limit."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import __main__ as program
from benchmarks import charts, page, tables
from benchmarks.goals import GOALS, Goal, Judged, judged

PAGE = (program.FOLDER / "README.md").read_text("utf-8")
RESULTS = json.loads((program.FOLDER / "results.json").read_text("utf-8"))
PAIRS = RESULTS["pairs"]


def test_the_page_is_written_from_the_results():
    assert page.page(RESULTS, gateway=True) == PAGE, "run python -m benchmarks --draw"
    assert "gateway.md" not in page.page(RESULTS)


def test_every_picture_of_the_page_is_drawn_and_is_the_same_again(tmp_path):
    charts.draw(RESULTS, tmp_path)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn.keys() == set(re.findall(r"\]\((\S+\.svg)\)", PAGE))
    charts.draw(RESULTS, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == drawn


def test_the_first_table_has_recorded_streams_first_and_says_where_a_peer_is_faster():
    first = PAGE.partition("\n| ")[2].partition("\n\n")[0].splitlines()
    assert first[2].startswith("| recorded |")
    medians = [float(line.split(" | ")[2].split()[0]) for line in first[2:] if line.split(" | ")[2]]
    assert [median < 1 for median in medians] == ["streamkit is slower" in line for line in first[2 : 2 + len(medians)]]


def test_what_was_not_measured_is_not_on_the_page():
    text = page.page({"machines": {"pairs": RESULTS["machines"]["pairs"]}, "pairs": PAIRS})
    assert "## Dialects" in text
    assert "## Memory" not in text


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setattr(program.machine, "machine", lambda: RESULTS["machines"]["pairs"])
    monkeypatch.setattr(program, "SECTIONS", {"pairs": lambda: PAIRS, "memory": lambda: RESULTS["memory"]})
    return tmp_path


def test_sections_that_are_not_asked_for_keep_their_results(written, monkeypatch, capsys):
    assert program.main([]) == 0
    monkeypatch.setattr(program, "SECTIONS", {"pairs": lambda: {**PAIRS, "deltas": 1}, "memory": lambda: 1 / 0})
    assert program.main(["pairs"]) == 0
    results = program.load(written)
    assert results["memory"] == RESULTS["memory"]
    assert results["pairs"]["deltas"] == 1
    assert "| from ↓ to → |" in capsys.readouterr().out


def test_printing_writes_nothing(written):
    assert program.main(["--print"]) == 0
    assert list(written.iterdir()) == []


def test_an_unknown_section_is_refused(capsys):
    with pytest.raises(SystemExit):
        program.main(["speed"])
    assert "no section is called speed" in capsys.readouterr().err


@pytest.mark.parametrize(("measured", "at_least", "held"), [
    (1.0, False, True), (1.01, False, False), (None, False, False),
    (1.0, True, True), (0.99, True, False), (None, True, False),
])  # fmt: skip
def test_a_goal_is_held_up_to_its_limit(measured, at_least, held):
    assert Judged(Goal("a", "ms", 1.0, lambda _: 0.0, at_least), measured).held is held


def test_every_goal_finds_its_figure_and_nothing_measured_is_nothing_held():
    assert [one.goal for one in judged(RESULTS) if one.measured is not None] == list(GOALS)
    needed = [goal for goal in GOALS if not goal.optional]
    assert [one.goal for one in judged({})] == needed
    assert tables.goals({}).count("not measured") == len(needed)
