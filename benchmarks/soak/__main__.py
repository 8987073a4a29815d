"""Mixed load on `streamkit serve --workers 2` for an hour: does it hold what it held? Linux only.

    python -m benchmarks.soak                          # an hour
    python -m benchmarks.soak --minutes 5
    python -m benchmarks.soak --write                  # docs/benchmarks/soak.md as well

Thirty times in a run the clients pause, and what the workers then hold is noted. It ends with 1 where memory, tasks or
descriptors grew, a worker died, or an answer was not what it had to be.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import frozen

from benchmarks.gateway.process import ROOT
from benchmarks.machine import machine
from benchmarks.soak.load import Load, Upstream, configuration
from benchmarks.soak.page import page
from benchmarks.soak.watching import Rest, environment, findings, rest
from tests.gateway.processes import serving
from tests.web.evil import EvilUpstream
from tests.web.faults import refuse

PAGE: Final = ROOT / "docs" / "benchmarks" / "soak.md"
RESTS: Final = 30
CLIENTS: Final = 40
SECONDS: Final = 60.0


@frozen
class Run:
    """What a run saw."""

    rests: list[Rest]
    outcomes: dict[str, dict[str, int]]
    wrong: dict[str, int]

    @property
    def held(self) -> bool:
        return not self.wrong and all(one.held for one in findings(self.rests))


async def soak(seconds: float, folder: Path, *, seed: int, say: Callable[[str], None]) -> Run:
    """Load the gateway so long. Raises AssertionError if it does not start, or an answer never ends."""
    async with Upstream() as upstream, EvilUpstream(refuse()) as shut:
        path = folder / "gateway.toml"
        path.write_text(configuration(upstream.url, {"shut": shut.url}), "utf-8")
        async with serving(folder, "--config", str(path), environment=environment(folder)) as gateway:
            load, private = Load(gateway.url, seed), gateway.private
            clients = [asyncio.create_task(load.client(number)) for number in range(CLIENTS)]
            loop = asyncio.get_running_loop()
            began, rests = loop.time(), []
            try:
                for number in range(1, RESTS + 1):
                    load.go()
                    await asyncio.sleep(max(0.0, began + seconds * number / RESTS - loop.time()))
                    await load.pause()
                    rests.append(await rest(gateway, private, folder, loop.time() - began, load.requests))
                    say(f"{number} of {RESTS}: {load.requests:,} requests, {rests[-1].rss_bytes / 2**20:.0f} MiB")
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.gather(*clients, return_exceptions=True)
    outcomes: dict[str, dict[str, int]] = {}
    for (kind, outcome), count in sorted(load.outcomes.items()):
        outcomes.setdefault(kind, {})[outcome] = count
    return Run(rests, outcomes, load.wrong)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long; 60 unless told")
    parser.add_argument("--seed", type=int, default=1, help="of what the clients do; 1 unless told")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/soak.md")
    options = parser.parse_args(arguments)

    def say(what: str) -> None:
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="streamkit-soak-") as folder:
        run = asyncio.run(soak(options.minutes * SECONDS, Path(folder), seed=options.seed, say=say))
    print("\r\x1b[K", end="", file=sys.stderr)
    text = page(machine(), run.rests, run.outcomes, run.wrong)
    print(text)
    if options.write:
        PAGE.write_text(text, "utf-8")
    return 0 if run.held else 1


if __name__ == "__main__":
    sys.exit(main())
