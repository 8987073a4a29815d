"""The whole benchmark, as small as it gets: nothing is said about times."""

from __future__ import annotations

import sys

import pytest

from benchmarks.environments import Environment
from benchmarks.gateway.__main__ import PAGE, measure
from benchmarks.gateway.findings import FINDINGS, findings
from benchmarks.gateway.measures import MEASURES, TINY
from benchmarks.gateway.page import again, page, read
from benchmarks.gateway.peers import PEERS
from benchmarks.machine import machine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="CPU clocks and memory of other processes, as Linux has them"
)


def test_a_tiny_run_of_one_measure_starts_its_servers_and_ends_them():
    seen = measure(["cost"], TINY)
    (whole,) = [line for line in findings(seen) if line.name.startswith("streams whose whole text arrived")]
    assert whole.held, whole


@pytest.mark.exhaustive
def test_a_tiny_run_measures_everything_and_every_text_is_whole(monkeypatch):
    assert set(FINDINGS) == set(MEASURES)
    monkeypatch.setattr(Environment, "ready", False)  # other gateways take half a minute to start
    seen = measure(list(MEASURES), TINY)
    whole = [line for line in findings(seen) if line.name.startswith("streams whose whole text arrived")]
    assert [line.held for line in whole] == [True] * len(MEASURES), whole
    assert set(seen["peers"]["errors"]) == {peer.name for peer in PEERS}
    text = page(machine(), seen)
    assert text.count("\n## ") == len(MEASURES) + 3
    assert all(line.name in text for line in findings(seen))
    assert [each for lines in read(text)[1].values() for each in lines] == findings(seen)


def test_the_page_is_written_from_its_tables():
    text = PAGE.read_text("utf-8")
    assert again(text) == text, "run python -m benchmarks.gateway --again"
    rows = [line for lines in read(text)[1].values() for line in lines]
    assert len(rows) == text.count("\n| ") - len(read(text)[1])
    assert "{}" not in text
