"""What the gateway costs and adds, beside a byte-for-byte relay. Linux only; about five minutes.

    python -m benchmarks.gateway                       # everything, printed
    python -m benchmarks.gateway --only cost,many      # some of it
    python -m benchmarks.gateway --write               # docs/benchmarks/gateway.md as well
    python -m benchmarks.gateway --again               # measure nothing: the text of that page again, from its tables

Two cores that nobody else uses give steady figures. It ends with 1 where a goal was not held. Other gateways take part where
``python -m benchmarks.gateway.peers`` has installed them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.gateway.findings import FINDINGS, Finding
from benchmarks.gateway.measures import FULL, MEASURES, TINY, Bench, Seen, Sizes
from benchmarks.gateway.page import again, page
from benchmarks.gateway.process import ROOT, gateway, relay, upstream
from benchmarks.machine import machine

PAGE = ROOT / "docs" / "benchmarks" / "gateway.md"


def measure(names: list[str], sizes: Sizes) -> dict[str, Seen]:
    """Run what is named against a gateway and a relay that live as long."""
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"\r\x1b[K{time.monotonic() - began:5.0f} s  {what}", end="", file=sys.stderr, flush=True)

    with (
        tempfile.TemporaryDirectory(prefix="streamkit-bench-") as folder,
        upstream(Path(folder)) as model,
        relay(Path(folder), model) as yardstick,
        relay(Path(folder), model, warm=True) as warm,
        gateway(Path(folder), model) as served,
    ):
        bench = Bench(model, yardstick, warm, served, sizes, Path(folder), say)
        seen = {}
        for name in names:
            seen[name] = MEASURES[name](bench)
    print("\r\x1b[K", end="", file=sys.stderr)
    return seen


def line(finding: Finding) -> str:
    held = "" if finding.held is None else "held: " if finding.held else "NOT HELD: "
    goal = f"   [{held}{finding.goal}]" if finding.goal else ""
    return f"  {finding.name}: {finding.measured}{goal}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(MEASURES), help=f"some of {', '.join(MEASURES)}")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/gateway.md")
    parser.add_argument("--tiny", action="store_true", help="the least of everything, to see that it runs")
    parser.add_argument("--again", action="store_true", help="measure nothing: write the page again from its tables")
    options = parser.parse_args(arguments)
    if options.again:
        PAGE.write_text(again(PAGE.read_text("utf-8")), "utf-8")
        return 0
    names = options.only.split(",")
    if unknown := set(names) - set(MEASURES):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    facts = machine()
    seen = measure(names, TINY if options.tiny else FULL)
    lost = 0
    for name in names:
        print(name)
        for finding in FINDINGS[name](seen[name]):
            lost += finding.held is False
            print(line(finding))
    if options.write:
        PAGE.write_text(page(facts, seen), "utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
