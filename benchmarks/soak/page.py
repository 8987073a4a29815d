"""The page of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.soak.load import CLIENTS, UPSTREAMS
from benchmarks.soak.watching import GROWTH, MIB, ROOM_BYTES, Finding, Rest, bytes_a_request, findings

HEAD: Final = """\
<!-- Written by `make soak`. -->
# An hour of mixed load

The gateway, `streamkit serve`, ran with two workers for {minutes:.0f} minutes and got {requests:,} requests. The clients used
{clients} dialects, and the upstreams used {upstreams} dialects. The load had normal responses, upstreams that fail or fall
silent, slow readers, clients that stall or leave, and invalid requests. The run used commit {commit}, on {machine}

The clients paused {times} times. The table shows what both workers together used during these pauses. The first third of
the run is left out, because caches and pools are filled in that time. From the middle third to the last third, memory may
grow by at most {growth:.0%} plus {room:.0f} MiB.

| both workers together | middle third | last third | limit for the last third | within the limit |
|---|---:|---:|---:|---|
"""
UNITS: Final = {
    "rss_bytes": "memory (RSS), MiB",
    "descriptors": "open descriptors",
    "tasks": "tasks",
    "threads": "threads",
}


def page(
    facts: Mapping[str, Any], rests: list[Rest], outcomes: Mapping[str, Mapping[str, int]], wrong: Mapping[str, int]
) -> str:
    """The markdown of a run."""
    told = f"{facts['cores']} cores ({facts['processor']}), {facts['python']}, aiohttp {facts['packages']['aiohttp']}."
    text = HEAD.format(
        minutes=rests[-1].at_s / 60,
        requests=rests[-1].requests,
        clients=len(CLIENTS),
        upstreams=len(UPSTREAMS),
        machine=told,
        commit=facts["commit"],
        times=len(rests),
        growth=GROWTH - 1,
        room=ROOM_BYTES / MIB,
    )
    text += "".join(map(_row, findings(rests)))
    text += f"\nFor each request, memory grew by {bytes_a_request(rests):+.0f} bytes (by least squares).\n"
    text += "\n## What the clients saw\n\n| kind of load | outcome | requests |\n|---|---|---:|\n"
    for kind, counts in outcomes.items():
        text += "".join(f"| {kind} | {outcome} | {count:,} |\n" for outcome, count in counts.items())
    text += f"\nResponses that were not as expected: {sum(wrong.values()):,}.\n"
    text += "\n## Each pause\n\n| minute | requests | memory, MiB | descriptors | tasks | threads |\n"
    text += "|---:|---:|---:|---:|---:|---:|\n"
    for one in rests:
        text += f"| {one.at_s / 60:.1f} | {one.requests:,} | {one.rss_bytes / MIB:.1f} "
        text += f"| {one.descriptors} | {one.tasks} | {one.threads} |\n"
    return text


def _row(finding: Finding) -> str:
    scale = MIB if finding.name == "rss_bytes" else 1
    values = " | ".join(f"{value / scale:.1f}" for value in (finding.middle, finding.last, finding.bound))
    held = "yes" if finding.held else "**no**"
    return f"| {UNITS.get(finding.name, finding.name)} | {values} | {held} |\n"
