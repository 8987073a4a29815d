"""What the gateway's processes hold, looked at from outside while nothing is under way. Linux only."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson
from aiohttp import ClientSession
from attrs import asdict, frozen

from benchmarks.gateway.process import rss_bytes
from tests.gateway.processes import Gateway
from tests.web.serving import eventually

HOOK: Final = Path(__file__).parent / "hook"
FOLDER: Final = "STREAMKIT_SOAK_FOLDER"
MIB: Final = 1024 * 1024
#: How long answers that nobody reads any more may stay under way.
QUIET_S: Final = 30.0
#: What memory may grow by, from the middle third of a run to its last, before it counts as a leak.
GROWTH: Final = 1.05
ROOM_BYTES: Final = 4 * MIB
#: What an allocator and a pool of connections may differ by from one look to the next.
ROOM_DESCRIPTORS: Final = 8
LEAST_RESTS: Final = 6


@frozen(kw_only=True)
class Rest:
    """What all workers together hold while no request is under way."""

    at_s: float  #: from the run's beginning
    requests: int  #: that were made before
    rss_bytes: int
    descriptors: int
    tasks: int
    threads: int
    pids: tuple[int, ...]


def environment(folder: Path) -> dict[str, str]:
    """The variables with which a gateway is started, so that it can be looked at."""
    path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, FOLDER: str(folder)}


async def rest(gateway: Gateway, private: str, folder: Path, at_s: float, requests: int) -> Rest:
    """Wait until nothing is under way, by the counts at ``private``, and look. Raises AssertionError if something stays."""
    loop = asyncio.get_running_loop()
    end = loop.time() + QUIET_S
    while await _active(private):
        if loop.time() > end:
            raise AssertionError(f"answers are under way {QUIET_S:g} s after their clients left")
        await asyncio.sleep(0.1)
    pids = tuple(sorted(gateway.workers()))
    told = [await _asked(pid, folder) for pid in pids]
    return Rest(
        at_s=at_s,
        requests=requests,
        rss_bytes=sum(map(rss_bytes, pids)),
        descriptors=sum(map(_descriptors, pids)),
        tasks=sum(one["tasks"] for one in told),
        threads=sum(one["threads"] for one in told),
        pids=pids,
    )


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def _active(private: str) -> float:
    async with ClientSession() as session, session.get(f"{private}/metrics") as response:
        lines = (await response.text()).splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("streamkit_streams_active"))


async def _asked(pid: int, folder: Path) -> Mapping[str, Any]:
    path = folder / f"{pid}.json"
    path.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    await eventually(path.exists, within_s=QUIET_S)
    found: Mapping[str, Any] = orjson.loads(path.read_bytes())
    return found


@frozen
class Finding:
    """A quantity in the middle and the last third of a run, and whether it stayed."""

    name: str
    middle: float
    last: float
    bound: float

    @property
    def held(self) -> bool:
        return self.last <= self.bound


def findings(rests: list[Rest]) -> list[Finding]:
    """What grew. The first third is left out: caches and pools fill in it. Raises ValueError for fewer than six rests."""
    if len(rests) < LEAST_RESTS:
        raise ValueError(f"a run of {len(rests)} rests says nothing; {LEAST_RESTS} are the least")
    third = len(rests) // 3
    middle, last = rests[third : 2 * third], rests[2 * third :]
    found = []
    for name in ("rss_bytes", "descriptors", "tasks", "threads"):
        before, after = (median(asdict(one)[name] for one in part) for part in (middle, last))
        room = before * GROWTH + ROOM_BYTES if name == "rss_bytes" else before + ROOM_DESCRIPTORS * (name != "threads")
        found.append(Finding(name, before, after, room))
    lost = len({one.pids for one in rests}) - 1
    return [*found, Finding("workers that died", 0, lost, 0)]


def bytes_a_request(rests: list[Rest]) -> float:
    """The slope of memory over requests, by least squares, in the last two thirds of a run."""
    part = rests[len(rests) // 3 :]
    x, y = [one.requests for one in part], [one.rss_bytes for one in part]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
