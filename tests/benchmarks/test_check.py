"""The guard against regressions: what it makes of callgrind's counts, and that it fails when one has grown."""

from __future__ import annotations

import json

import pytest

from benchmarks import check, counted

PRINTED = "floor: text\ttext\t100\nfloor: text\ttext\t300\nrecipe\ttext\t100\nrecipe\ttext\t300\n"
FOUND = {"floor: text": 1_000.0, "recipe": 2.0, "SSE": 0.5}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A guard that would count ``FOUND``, and a record of the same."""
    path = tmp_path / "instructions.json"
    monkeypatch.setattr(check, "RECORDS", path)
    monkeypatch.setattr(
        check, "records", lambda _path=path: json.loads(path.read_text("utf-8")) if path.exists() else []
    )
    monkeypatch.setattr(check, "count", lambda: dict(FOUND))
    check.write(FOUND, path)
    return path


def test_the_slope_forgets_what_both_sizes_have_in_common():
    slopes = check.slopes(PRINTED, [50 + 100 * 10, 50 + 300 * 10, 7_000 + 100 * 25, 7_000 + 300 * 25])
    assert slopes == {"floor: text": ("text", 10.0), "recipe": ("text", 25.0)}
    assert check.ratios(slopes) == {"floor: text": 10.0, "recipe": 2.5}


def test_a_run_without_its_count_is_refused():
    with pytest.raises(ValueError, match="4 runs, but 3 counts"):
        check.slopes(PRINTED, [1, 2, 3])


def test_of_the_dumps_those_between_the_marks_count(tmp_path):
    """Start-up, a run, what lies between, a run, …; a tenth dump comes after the ninth."""
    for number, total in enumerate([999, 10, 888, 30, 777, 25, 666, 75, 555, 1], 1):
        (tmp_path / f"out.{number}").write_text(f"desc: Trigger\nsummary: 1\n\ntotals: {total}\n")
    (tmp_path / "out").write_text("totals: 4\n")
    assert check.totals(tmp_path / "out") == [10, 30, 25, 75, 1]


def test_a_dump_without_a_total_is_refused(tmp_path):
    (tmp_path / "out.1").write_text("nothing\n")
    with pytest.raises(ValueError, match="dump 1"):
        check.totals(tmp_path / "out")


def test_equal_counts_pass(recorded, capsys):
    assert check.main([]) == 0
    assert "SLOWER" not in capsys.readouterr().out


@pytest.mark.parametrize(("now", "status", "word"), [
    (2.0 * (1 + check.TOLERANCE) + 0.001, 1, "SLOWER"),
    (2.0 * (1 + check.TOLERANCE) - 0.001, 0, ""),
    (1.5, 0, "faster"),
])  # fmt: skip
def test_a_count_that_grew_fails(recorded, monkeypatch, capsys, now, status, word):
    monkeypatch.setattr(check, "count", lambda: {**FOUND, "recipe": now})
    assert check.main([]) == status
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("recipe "))
    assert line.endswith(word)


def test_a_case_that_is_gone_fails_and_a_new_one_does_not(recorded, monkeypatch):
    monkeypatch.setattr(check, "count", lambda: {name: FOUND[name] for name in ("floor: text", "SSE")})
    assert check.main([]) == 1
    monkeypatch.setattr(check, "count", lambda: {**FOUND, "another": 9.0})
    assert check.main([]) == 0


def test_a_dearer_floor_is_not_ours(recorded, monkeypatch):
    monkeypatch.setattr(check, "count", lambda: {**FOUND, "floor: text": 5_000.0})
    assert check.main([]) == 0


def test_another_interpreter_is_said_and_given_room(recorded, monkeypatch, capsys):
    monkeypatch.setattr(check, "under", lambda: {"python": "CPython 3.99.0 riscv", "orjson": "9"})
    monkeypatch.setattr(check, "count", lambda: {**FOUND, "recipe": 2.0 * 1.08})
    assert check.main([]) == 0
    assert "riscv" in capsys.readouterr().out
    monkeypatch.setattr(check, "count", lambda: {**FOUND, "recipe": 2.0 * 1.12})
    assert check.main([]) == 1


def test_a_record_is_added_for_each_commit(recorded, monkeypatch):
    monkeypatch.setattr(check, "commit", lambda: "abcdef012")
    check.write({"recipe": 1.23456}, recorded)
    check.write({"recipe": 1.5}, recorded)
    records = json.loads(recorded.read_text("utf-8"))
    assert len(records) == 2
    assert records[-1]["times_floor"] == {"recipe": 1.5}
    assert records[-1]["commit"] == "abcdef012"


def test_without_valgrind_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(check.shutil, "which", lambda _: None)
    with pytest.raises(SystemExit, match="valgrind is needed"):
        check.count()


def test_without_a_record_it_says_how_to_make_one(monkeypatch):
    monkeypatch.setattr(check, "records", list)
    with pytest.raises(SystemExit, match="--record"):
        check.main([])


def test_the_committed_record_is_of_the_cases_there_are():
    """Names only; counting takes valgrind and a minute."""
    newest = check.records()[-1]
    assert set(newest["times_floor"]) == {name for name, *_ in counted.cases(20)}


def test_every_case_has_a_floor_and_more_events_at_the_larger_size():
    small, large = (list(counted.cases(size)) for size in (20, 60))
    floors = {name.removeprefix(check.FLOOR) for name, *_ in small if name.startswith(check.FLOOR)}
    assert {stream for _, stream, *_ in small} == floors
    assert all(one[:2] == other[:2] and one[2] < other[2] for one, other in zip(small, large, strict=True))
