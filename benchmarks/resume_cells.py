"""A million open streams whose answers are kept in Redis, simulated: what one cell of the fleet waits for its server.

    python -m benchmarks.resume_cells            # the table
    python -m benchmarks.resume_cells --write    # into docs/explanation/resuming-capacity.md

A cell is one Redis and the gateways that use it; cells share nothing, so that a million streams are so many of them and one
is simulated. The server is one queue, served in the order of arrival, at the cost of an entry that ``benchmarks/resume.py``
measured. Each gateway sends what its streams have said every 50 ms in one pipeline. Three things happen: nothing; a gateway
dies, and the clients of all its streams read their answers from the start at another; the server stands still for a second, as
at a failover.

It says nothing of networks, of replicas, of memory, nor of what a gateway's own core bears.

Source: resume.md §7.7, §7.8, §9; docs/benchmarks/resume.md.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Final

from attrs import field, frozen

PAGE: Final = Path(__file__).parents[1] / "docs" / "explanation" / "resuming-capacity.md"
BEGIN, END = "<!-- Written by `python -m benchmarks.resume_cells --write`. -->\n", "<!-- Until here. -->\n"
STREAMS: Final = 1_000_000


@frozen(kw_only=True)
class Cell:
    """One server and the gateways that use it; costs in seconds of the server's core."""

    streams: int
    streams_a_process: int = 350
    events_s: float = 10.0  #: of a stream
    flush_s: float = 0.05
    entry_s: float = 7.3e-6  #: an append (docs/benchmarks/resume.md)
    pipeline_s: float = 20e-6  #: a round trip, whatever is in it
    replay_s: float = 0.7e-3  #: an answer of 250 entries from the start (resume.md §9.2)
    seconds: float = 12.0
    seed: int = 1

    @property
    def processes(self) -> int:
        return math.ceil(self.streams / self.streams_a_process)


@frozen
class Waits:
    """How long flushes waited until they were stored, in seconds, and how much of the server's core was used."""

    delays: list[float] = field(repr=False)
    busy: float
    caught_up_s: float  #: from the incident to the first flush that waits no longer than one did before

    def percent(self, share: int) -> float:
        return quantiles(self.delays, n=100)[share - 1]


def flushes(cell: Cell, incident_s: float, stands_still_s: float) -> Iterator[tuple[float, float, float]]:
    """When each flush is sent, what it costs, and since when its oldest byte has waited; in order of time.

    A gateway has one pipeline under way: while the server stands still its streams' bytes are joined, an entry a stream.
    """
    rng = random.Random(cell.seed)  # noqa: S311 - a simulation
    waiting = [(rng.uniform(0, cell.flush_s), 0.0) for _ in range(cell.processes)]
    heapq.heapify(waiting)
    each = cell.streams / cell.processes
    while waiting[0][0] < cell.seconds:
        at, since = heapq.heappop(waiting)
        if incident_s <= at < incident_s + stands_still_s:
            at = incident_s + stands_still_s + rng.uniform(0, cell.flush_s)
        held_s = at - since if since else cell.flush_s
        said = -math.expm1(-cell.events_s * held_s)  # of a stream at least one event
        entries = max(0.0, rng.gauss(each * said, math.sqrt(max(1e-9, each * said * (1 - said)))))
        yield at, cell.pipeline_s + entries * cell.entry_s, at - held_s
        heapq.heappush(waiting, (at + cell.flush_s, at))


def run(cell: Cell, incident: str = "nothing") -> Waits:
    """Serve a cell's flushes, with an incident in the middle."""
    middle = cell.seconds / 2
    still_s = 1.0 if incident == "stands still" else 0.0
    replays = cell.streams_a_process * cell.replay_s if incident == "a gateway dies" else 0.0
    free_at, used, delays, late = 0.0, 0.0, [], []
    usual = cell.flush_s + 2 * cell.streams_a_process * cell.entry_s
    for sent, cost, since in sorted(flushes(cell, middle, still_s)):
        if sent >= middle and replays:
            free_at = max(free_at, middle) + replays
            used, replays = used + replays, 0.0
        free_at = max(free_at, sent) + cost
        used += cost
        delays.append(free_at - since)
        if sent >= middle and free_at - since > 2 * usual:
            late.append(free_at)
    return Waits(delays, used / cell.seconds, max(late, default=middle) - middle)


def table() -> str:
    """What a server of each load makes its streams wait."""
    head = ("streams a server", "servers for a million", "its core", "stored after, p50 / p99")
    head = (*head, "longest, a gateway dies", "longest, it stands still 1 s", "caught up after")
    lines = [f"| {' | '.join(head)} |", "|---:" * len(head) + "|"]
    for streams in (3_000, 6_000, 9_000, 12_000, 15_000):
        cell = Cell(streams=streams)
        quiet, died, still = run(cell), run(cell, "a gateway dies"), run(cell, "stands still")
        lines.append(
            f"| {streams:,} | {math.ceil(STREAMS / streams):,} | {quiet.busy:.0%} | "
            f"{1e3 * quiet.percent(50):.0f} / {1e3 * quiet.percent(99):.0f} ms | {1e3 * max(died.delays):.0f} ms | "
            f"{1e3 * max(still.delays):,.0f} ms | {still.caught_up_s:.1f} s |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    made = table()
    print(made)
    if options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + made + "\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
