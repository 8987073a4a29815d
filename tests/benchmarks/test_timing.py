"""The statistics, on figures that are given: nothing here is timed for what it shows."""

from __future__ import annotations

import asyncio
import gc

import pytest

from benchmarks import timing
from benchmarks.recipe import run


def test_a_spread_is_the_median_with_its_quartiles():
    assert timing.spread([5.0, 1.0, 3.0, 2.0, 4.0]) == timing.Spread(3.0, 2.0, 4.0, 5)
    assert timing.spread([7.0]) == timing.Spread(7.0, 7.0, 7.0, 1)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_slope_is_the_exponent(exponent):
    sizes = [10, 20, 40, 80]
    assert timing.slope(sizes, [3e-6 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_each_run_is_divided_by_the_yardstick_beside_it(monkeypatch):
    """The machine slows down between the rounds by half; the ratio does not see it."""
    seconds = iter([1.0, 2.0, 1.0, 4.0, 1.0, 1.5, 3.0, 1.5, 6.0, 1.5])
    order = []
    monkeypatch.setattr(timing, "timed", lambda task, _repeats=1: order.append(task()) or next(seconds))
    monkeypatch.setattr(timing, "repeats_of", lambda _task, _least: 1)
    found = timing.interleaved({"a": lambda: "a", "b": lambda: "b"}, lambda: "floor", rounds=2)
    assert order == ["floor", "a", "floor", "b", "floor"] * 2
    assert found["a"].ratio.median == pytest.approx(2.0)
    assert found["b"].ratio.median == pytest.approx(4.0)
    assert (found["a"].ratio.low, found["a"].ratio.high) == (2.0, 2.0)


def test_short_tasks_are_repeated_and_long_ones_are_not(monkeypatch):
    for seconds, repeats in ((1.0, 1), (timing.LEAST_SECONDS / 10, 10), (timing.LEAST_SECONDS, 1)):
        monkeypatch.setattr(timing, "timed", lambda _task, _repeats=1, seconds=seconds: seconds)
        assert timing.repeats_of(lambda: None, timing.LEAST_SECONDS) in (repeats, repeats + 1)


def test_the_collector_is_given_back_what_was_hidden_from_it(monkeypatch):
    monkeypatch.setattr(timing, "gc", gc)
    with pytest.raises(ZeroDivisionError):
        calls = iter([1, 1, 0])
        timing.interleaved({"a": lambda: 1 / next(calls)}, lambda: None, rounds=2, least=0.0)
    given_back = gc.get_freeze_count() == 0
    gc.freeze()  # of the other tests, as conftest.py left it
    assert given_back
    assert gc.isenabled()


def test_a_coroutine_that_waits_is_refused():
    assert run(_answer()) == 42
    with pytest.raises(RuntimeError, match="waited"):
        run(asyncio.sleep(0))


async def _answer():
    return 42
