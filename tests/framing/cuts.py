"""Every way to cut a stream into reads, and what a machine makes of them."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import settings

from streamkit.framing.frame import Frame
from streamkit.report import StreamReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamkit.framing.frame import FrameRun
    from streamkit.framing.ndjson import NDJSONParser
    from streamkit.framing.sse import SSEParser

PAIRS_UP_TO = 600
#: In `make test`; the profile of hypothesis that tests/conftest.py chooses says whether it is that.
ALL_PAIRS_UP_TO = 60
SEEDED_PAIRS = 400
MANY_EXAMPLES = 1000
RANDOM_CUTS = 30


class Outcome(NamedTuple):
    """All that must not depend on the cuts."""

    frames: list[Frame]
    fault: str
    boundary: int
    repairs: dict[str, int]


def read(make: Callable[..., SSEParser | NDJSONParser], reads: list[bytes], *, in_runs: bool = False) -> Outcome:
    report = StreamReport()
    machine = make(report=report)

    def take_run(run: FrameRun) -> None:
        report.frames += len(run.payloads)
        for number in range(len(run.payloads)):
            machine.emit(run.frame(number))

    if in_runs:
        machine.emit_run, machine.emit_payload = take_run, lambda *whole: machine.emit(Frame(*whole))
    frames = [frame for chunk in reads for frame in machine.feed(chunk)] + machine.finish()
    assert report.frames == len(frames)
    assert machine.fault or report.bytes_in == sum(map(len, reads))
    fault = f"{type(machine.fault).__name__}: {machine.fault}" if machine.fault else ""
    return Outcome(frames, fault, machine.boundary, dict(report.repairs))


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    return [data[a:b] for a, b in pairwise([0, *places, len(data)])]


def cuts(data: bytes, *, seed: int = 1) -> Iterator[list[bytes]]:
    """Per byte, at every place, at pairs of places, at seeded random places, with empty reads.

    `make test` takes every pair of up to 60 bytes and 400 seeded pairs of longer data, `make test-all` every pair of up to 600.
    """
    places = range(1, len(data))
    yield cut_at(data, list(places))
    for place in places:
        yield cut_at(data, [place])
    rng = random.Random(seed)
    is_long = settings.default.max_examples < MANY_EXAMPLES and len(data) > ALL_PAIRS_UP_TO
    if is_long and len(data) <= PAIRS_UP_TO:
        for _ in range(SEEDED_PAIRS):
            yield cut_at(data, sorted(rng.sample(places, 2)))
    elif len(data) <= PAIRS_UP_TO:
        for pair in combinations(places, 2):
            yield cut_at(data, list(pair))
    for _ in range(RANDOM_CUTS):
        yield cut_at(data, sorted(rng.choices(range(len(data) + 1), k=rng.randint(1, 40))))


def same_at_every_cut(make: Callable[..., SSEParser | NDJSONParser], data: bytes) -> Outcome:
    """The outcome of the whole, once it is shown that every cut gives the same."""
    whole = read(make, [data])
    for reads in cuts(data):
        for in_runs in (False, True):
            assert read(make, reads, in_runs=in_runs) == whole, reads
    return whole
