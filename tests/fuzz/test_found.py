"""What fuzzing once found is run again by every run of the tests, and fuzzing itself works: a planted fault is found."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

from tests.fuzz import targets
from tests.fuzz.__main__ import main
from tests.fuzz.finds import KEPT, ROOT, find_of, read_find
from tests.fuzz.mutate import mutated
from tests.fuzz.seeds import seeds

FOUND = sorted(KEPT.glob("*.json"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_is_mended(path):
    find = read_find(path)
    targets.run(find.target, find.data)


@pytest.mark.parametrize("target", targets.TARGETS)
def test_every_target_has_inputs_to_begin_with_that_hold(target):
    given = seeds(target)
    assert len(given) >= 4
    for data in given[::7]:
        targets.run(target, data)


def test_a_find_says_what_broke_and_how_to_run_it_again(tmp_path, monkeypatch, capsys):
    def planted(data):
        if b"\xff" in data:
            raise OverflowError("planted")

    monkeypatch.setitem(targets.TARGETS, "schema", planted)
    find = find_of("schema", b"any any 1\n\xff\x00", OverflowError("planted"))
    path = find.write(tmp_path)
    assert read_find(path) == find
    assert json.loads(path.read_text("utf-8"))["replay"] == f"python -m tests.fuzz --replay {path.name}"
    monkeypatch.setattr(sys, "argv", ["fuzz", "--replay", str(path)])
    assert main() == 1
    assert "OverflowError: planted" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["fuzz", "--replay", str(path)])
    assert main() == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", [pytest.param("atheris", marks=pytest.mark.exhaustive), "hypothesis"])
def test_a_short_run_ends_in_time_and_tells_what_it_ran(engine, tmp_path):
    if engine == "atheris":
        pytest.importorskip("atheris", reason="the extra fuzz is not installed")
    command = [sys.executable, "-m", "tests.fuzz", "--minutes", "0.01", "--seed", "1", "--target", "schema", "--engine", engine,
               "--finds", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "schema: " in done.stdout
    assert " runs in " in done.stdout


def test_mutations_keep_what_names_the_dialects_and_change_the_rest():
    data = b"anthropic ollama 7\n" + b'data: {"type":"ping","n":12}\n\n' * 3
    changed = {mutated(random.Random(seed), data) for seed in range(300)}
    assert len(changed) > 250
    assert all(one.startswith(b"anthropic ollama ") for one in changed)
