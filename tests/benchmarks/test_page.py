"""The page says what was measured and no more; a goal is held only within its limit."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import __main__ as program
from benchmarks import charts, page, tables
from benchmarks.gateway.page import read
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


def ratios(work: str, peer: str, **where: str) -> list[float]:
    """The multiples of streamkit's time that a library took, the least first."""
    rows = [row for row in RESULTS["peers"]["rows"] if row["work"].startswith(work) and row["peer"] == peer]
    found = [
        row["times_streamkit"]["median"] for row in rows if where.items() <= row.items() and "times_streamkit" in row
    ]
    return sorted(found)


def test_the_figures_of_other_pages_are_those_of_the_results():
    recorded = ratios("streams, ", "llm-rosetta", input="recorded")
    slower = [each for each in recorded if each < 1]
    rosetta, litellm = ratios("re-encode", "llm-rosetta"), ratios("re-encode", "litellm")
    pydantic, ai_sdk = (ratios("decode and accumulate", peer) for peer in ("pydantic-ai", "AI SDK"))
    costs = [row["microseconds_per_stream"] for row in RESULTS["streams"] if row["source"] == "recorded"]
    sections = read((program.FOLDER / "gateway.md").read_text("utf-8"))[1]
    served = {line.name: line.measured.split()[0] for lines in sections.values() for line in lines}
    request = float(served["CPU time for a request, streamed, gateway"])
    first = float(served["time added to the first byte, p50, gateway minus direct"])
    assert (len(slower), len(recorded)) == (6, 6)
    behind = f"{slower[0] * 100:.0f} to {slower[-1] * 100:.0f} %"
    ahead = f"{rosetta[0]:.1f} to {rosetta[-1]:.1f}"
    for name, figures in {
        "README.md": [
            behind, ahead, f"{min(costs) / 1e3:.1f} to {max(costs) / 1e3:.1f} ms", f"{request:.1f} ms", f"{first:.1f} ms",
        ],
        "docs/README.md": [behind, ahead, f"{first:.1f} ms"],
        "docs/why.md": [
            behind, ahead, f"{request} ms", f"{litellm[0]:.0f} to {litellm[-1]:.0f}",
            f"{pydantic[0]:.0f} to {pydantic[-1]:.0f}", f"{ai_sdk[0]:.0f} to {ai_sdk[-1]:.0f}",
        ],
    }.items():  # fmt: skip
        text = " ".join((program.machine.ROOT / name).read_text("utf-8").split())
        assert [figure for figure in figures if figure not in text] == [], name
