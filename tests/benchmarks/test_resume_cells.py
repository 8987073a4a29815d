"""The simulation keeps its own books, and the page says what it says."""

from __future__ import annotations

import math

import pytest
from attrs import evolve

from benchmarks.resume_cells import PAGE, Cell, run, table

CELL = Cell(streams=2_000, seconds=4.0)


def test_the_page_has_the_table():
    assert table() in PAGE.read_text("utf-8"), "run python -m benchmarks.resume_cells --write"


def test_the_core_is_used_as_reckoned_by_hand():
    entries_s = CELL.streams * (1 - math.exp(-CELL.events_s * CELL.flush_s)) / CELL.flush_s
    pipelines_s = CELL.processes / CELL.flush_s
    assert run(CELL).busy == pytest.approx(entries_s * CELL.entry_s + pipelines_s * CELL.pipeline_s, rel=0.05)


def test_what_happens_is_felt_and_passes():
    quiet, died, still = run(CELL), run(CELL, "a gateway dies"), run(CELL, "stands still")
    assert max(quiet.delays) < 0.08
    assert max(died.delays) > 0.08 + CELL.streams_a_process * CELL.replay_s / 2
    assert max(still.delays) > 1.0
    assert still.caught_up_s < 1.5
    assert still.delays[-1] < 0.08


def test_a_server_with_too_much_to_do_never_catches_up():
    busy = evolve(CELL, streams=40_000)
    assert run(busy).delays[-1] > 1.0
