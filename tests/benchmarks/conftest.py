"""Benchmarks hide what was made before from the garbage collector, and give it back: here that is tens of thousands of cases."""

from __future__ import annotations

import pytest

from benchmarks import timing


class NoCollector:
    """What timing does with the garbage collector; over all that a run of the tests holds, it would take most of the time."""

    collect = freeze = unfreeze = staticmethod(lambda: None)


@pytest.fixture(autouse=True)
def no_collector(monkeypatch):
    monkeypatch.setattr(timing, "gc", NoCollector)
