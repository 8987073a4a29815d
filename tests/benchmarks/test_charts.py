"""Charts do not overlap, whatever was measured; the page says what was measured and what was not."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from matplotlib.figure import Figure

from benchmarks import __main__ as program
from benchmarks import charts, figures, page
from tests.benchmarks import sample
from tests.sampling import by_turns


@pytest.mark.parametrize(("name", "scale"), by_turns(charts.CHARTS, [0.3, 12.0], 1, "charts"))
def test_no_text_lies_on_another(name, scale):
    figures.check(charts.CHARTS[name][1](sample.results(scale)))


@pytest.mark.parametrize("name", charts.CHARTS)
def test_every_axis_says_what_it_shows(name):
    made = charts.CHARTS[name][1](sample.results())
    top, foot = made.subfigs
    assert top.get_suptitle()
    assert "CPython" in foot.texts[0].get_text()
    for axes in made.axes:
        assert axes.get_xlabel() or axes.get_ylabel()


def test_two_texts_in_one_place_are_seen():
    made = Figure()
    made.text(0.5, 0.5, "one")
    figures.check(made)
    made.text(0.51, 0.5, "other")
    with pytest.raises(figures.Overlap, match="lies on"):
        figures.check(made)


def test_a_text_that_leaves_the_picture_is_seen():
    made = Figure()
    made.text(0.99, 0.5, "much too long for that place")
    with pytest.raises(figures.Overlap, match="leaves"):
        figures.check(made)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_is_compared_differs_in_more_than_colour():
    """Okabe and Ito's colours, and for each a marker of its own."""
    assert len({marker for _, marker, _ in figures.SERIES}) == len(figures.SERIES)
    kinds = [figures.STYLES[kind] for kind in ("streamkit", "Python", "Rust core", "Node")]
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in combinations(kinds, 2))
    palette = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    used = {colour for colour, _ in figures.STYLES.values()} | {colour for colour, *_ in figures.SERIES}
    assert used <= palette
    assert all(1.05 / (luminance(colour) + 0.05) > 1.9 for colour in used), "too pale on white"


@pytest.mark.parametrize("names", [pytest.param([*charts.CHARTS], marks=pytest.mark.exhaustive), [*charts.CHARTS][:3]])
def test_charts_and_page_are_written_from_results(names, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "CHARTS", {name: charts.CHARTS[name] for name in names})
    results = sample.results()
    drawn = charts.draw(results, tmp_path)
    assert drawn == list(charts.CHARTS)
    page.write(results, drawn, tmp_path)
    text = (tmp_path / "README.md").read_text("utf-8")
    for name in re.findall(r"\]\((\S+\.svg)\)", text):
        assert (tmp_path / name).stat().st_size > 1000
    assert text.count(".svg)") == len(drawn) == len(list(tmp_path.glob("*.png")))
    assert "## What the numbers do not say" in text
    assert "not installed" in text
    assert "the text differs" in text
    assert "gateway.md" not in text


@pytest.mark.exhaustive
def test_the_same_results_give_the_same_pictures(tmp_path):
    results = {name: value for name, value in sample.results().items() if name in ("machines", "growth")}
    (tmp_path / "again").mkdir()
    assert charts.draw(results, tmp_path) == charts.draw(results, tmp_path / "again") == ["growth"]
    assert (tmp_path / "growth.svg").read_bytes() == (tmp_path / "again" / "growth.svg").read_bytes()


def test_what_was_not_measured_is_not_on_the_page():
    results = {"machines": {"pairs": sample.MACHINE}, "pairs": sample.pairs(1.0)}
    text = page.page(results, [])
    assert "## Dialects" in text
    assert "## Memory" not in text
    assert "not measured" in text


def test_the_page_names_the_gateways_once_there_is_one():
    assert "(gateway.md)" in page.page({"machines": {}}, [], gateway=True)


def test_sections_that_are_not_asked_for_keep_their_results(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setattr(program.charts, "draw", lambda *_: [])
    monkeypatch.setattr(program.machine, "machine", lambda: sample.MACHINE)
    monkeypatch.setattr(
        program, "SECTIONS", {"pairs": lambda: sample.pairs(1.0), "memory": lambda: sample.remembered(1.0)}
    )
    assert program.main([]) == 0
    monkeypatch.setattr(program, "SECTIONS", {"pairs": lambda: sample.pairs(9.0), "memory": lambda: 1 / 0})
    assert program.main(["pairs"]) == 0
    results = program.load(tmp_path)
    assert results["memory"] == sample.remembered(1.0)
    assert results["pairs"]["pairs"][0]["times_yardstick"]["median"] == 9.0
    assert "| from ↓ to → |" in capsys.readouterr().out


def test_printing_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setattr(program.machine, "machine", lambda: sample.MACHINE)
    monkeypatch.setattr(program, "SECTIONS", {"pairs": lambda: sample.pairs(1.0)})
    assert program.main(["--print"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_section_is_refused(capsys):
    with pytest.raises(SystemExit):
        program.main(["speed"])
    assert "no section is called speed" in capsys.readouterr().err
