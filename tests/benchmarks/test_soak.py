"""The soak: what it takes for growth, and five minutes of it (the hour is `make soak`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from benchmarks.soak.__main__ import soak
from benchmarks.soak.watching import MIB, Rest, bytes_a_request, findings

FLAT = [
    Rest(at_s=n, requests=100 * n, rss_bytes=100 * MIB, descriptors=50, tasks=2, threads=2, pids=(7, 8))
    for n in range(30)
]


def not_held(rests: list[Rest]) -> list[str]:
    return [finding.name for finding in findings(rests) if not finding.held]


def test_a_run_that_holds_what_it_held_is_flat() -> None:
    assert not_held(FLAT) == []
    assert bytes_a_request(FLAT) == 0


def test_what_fills_in_the_first_third_is_no_leak() -> None:
    rests = [
        evolve(one, rss_bytes=min(100, 60 + 5 * n) * MIB, descriptors=min(50, 5 * n)) for n, one in enumerate(FLAT)
    ]
    assert not_held(rests) == []


@pytest.mark.parametrize(("name", "step"), [("rss_bytes", 2 * MIB), ("descriptors", 1), ("tasks", 1), ("threads", 1)])
def test_what_grows_with_the_requests_is_found(name: str, step: int) -> None:
    rests = [evolve(one, **{name: getattr(one, name) + step * n}) for n, one in enumerate(FLAT)]
    assert not_held(rests) == [name]


def test_the_slope_is_bytes_a_request() -> None:
    rests = [evolve(one, rss_bytes=one.rss_bytes + 5 * one.requests) for one in FLAT]
    assert bytes_a_request(rests) == pytest.approx(5)


def test_a_worker_that_died_is_found() -> None:
    assert not_held([*FLAT[:20], *(evolve(one, pids=(7, 9)) for one in FLAT[20:])]) == ["workers that died"]


def test_a_run_too_short_to_judge_is_refused() -> None:
    with pytest.raises(ValueError, match="6 are the least"):
        findings(FLAT[:5])


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at in /proc")
async def test_five_minutes_of_mixed_load_leave_nothing_behind(tmp_path: Path) -> None:
    run = await soak(300, tmp_path, seed=2, say=lambda _: None)
    assert run.wrong == {}
    assert not_held(run.rests) == []
