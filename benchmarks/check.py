"""A guard against regressions that needs no quiet machine: instructions, counted by valgrind's callgrind.

    python -m benchmarks.check            compare with the newest record; 1 where a case costs more  (``make bench-check``)
    python -m benchmarks.check --record   write what was counted as a new record, under the commit

With PYTHONHASHSEED=0 the counts of one tree and one interpreter are the same to the digit, however busy the machine.
What is kept is the slope between two sizes, so that start-up cancels out, as a multiple of the floor's, so that a faster
``orjson`` is no gain of ours. Another interpreter or ``orjson`` gives other counts; the comparison is then wider, and says so.

What it does not see: cache misses, branches that the processor guesses wrong, and garbage collection, which is off.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks.machine import ROOT, commit

RECORDS = Path(__file__).with_name("instructions.json")
FLOOR = "floor: "
#: Any change of code moves what lies in memory, and with it the blocks that must be copied to grow: one call's by 5 %.
TOLERANCE = 0.05
#: Between interpreters or versions of orjson.
WIDE = 0.10
TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)
NO_VALGRIND = "valgrind is needed to count instructions, and is not installed (Debian: apt-get install valgrind)"
Record = dict[str, Any]


@frozen
class Change:
    """A case that was counted now and before. ``None``: it was not."""

    case: str
    before: float | None
    now: float | None

    @property
    def share(self) -> float:
        """By how much the case costs more: 0.1 is a tenth. A case that is gone counts as endless: none is dropped unseen."""
        if self.now is None:
            return float("inf")
        return 0.0 if self.before is None else self.now / self.before - 1


def count() -> dict[str, float]:
    """Run ``counted.py`` under callgrind; the slope of each case as a multiple of its floor's."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SystemExit(NO_VALGRIND)
    # What is compiled on the way lies in memory elsewhere, so nothing may be: written now, read then.
    subprocess.run([sys.executable, "-c", "import benchmarks.counted"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="streamkit-count-") as folder:
        out = Path(folder) / "out"
        tool = [valgrind, "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [*tool, sys.executable, "-m", "benchmarks.counted"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"counting failed:\n{done.stderr[-2000:]}")
        return ratios(slopes(done.stdout, totals(out)))


def totals(out: Path) -> list[int]:
    """The instructions between each mark and the next. The first dump is what came before any case."""
    found = []
    for number in range(1, len(list(out.parent.glob(f"{out.name}.*"))) + 1):
        match = TOTAL.search(out.with_name(f"{out.name}.{number}").read_text("utf-8"))
        if match is None:
            raise ValueError(f"callgrind's dump {number} has no total")
        found.append(int(match[1]))
    return found[1::2]  # of each case's two dumps the second; the other is its unmarked run


def slopes(printed: str, counts: list[int]) -> dict[str, tuple[str, float]]:
    """For each case its stream and its instructions an event, from the lines that ``counted.py`` printed."""
    lines = [line.split("\t") for line in printed.splitlines()]
    if len(lines) != len(counts):
        raise ValueError(f"{len(lines)} runs, but {len(counts)} counts")
    found: dict[str, list[tuple[str, int, int]]] = {}
    for (name, stream, events), instructions in zip(lines, counts, strict=True):
        found.setdefault(name, []).append((stream, int(events), instructions))
    return {name: (small[0], (large[2] - small[2]) / (large[1] - small[1])) for name, (small, large) in found.items()}


def ratios(found: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Multiples of the floor; the floors themselves stay instructions an event."""
    return {
        name: slope if name.startswith(FLOOR) else slope / found[FLOOR + stream][1]
        for name, (stream, slope) in found.items()
    }


def compare(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """What changed of the cases, floors left out: they are orjson's."""
    names = [name for name in {**before, **now} if not name.startswith(FLOOR)]
    return [Change(name, before.get(name), now.get(name)) for name in names]


def under() -> dict[str, str]:
    """What the counts depend on besides our code."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}",
        "orjson": version("orjson"),
    }


def report(changes: list[Change], tolerance: float) -> Iterator[str]:
    for change in sorted(changes, key=lambda change: -change.share):
        before, now = (f"{value:7.3f}" if value is not None else "      -" for value in (change.before, change.now))
        mark = "SLOWER" if change.share > tolerance else "faster" if change.share < -tolerance else ""
        if change.before is None:
            mark = "new"
        yield f"{change.case:60} {before} → {now}  {change.share:+7.1%}  {mark}".rstrip()


def records(path: Path = RECORDS) -> list[Record]:
    """Oldest first."""
    return list(json.loads(path.read_text("utf-8"))) if path.exists() else []


def write(found: Mapping[str, float], path: Path = RECORDS) -> None:
    """Append a record, or write the one of this commit anew."""
    made = {"commit": commit(), **under(), "times_floor": {name: round(value, 4) for name, value in found.items()}}
    kept = [record for record in records(path) if record["commit"] != made["commit"]]
    path.write_text(json.dumps([*kept, made], indent=1, ensure_ascii=False) + "\n", "utf-8")


def judge(newest: Record, found: Mapping[str, float]) -> int:
    """Print the comparison; 1 where a case costs more than the tolerance, or is gone."""
    same = {name: newest[name] for name in under()} == under()
    tolerance = TOLERANCE if same else WIDE
    if not same:
        before = ", ".join(newest[name] for name in under())
        print(f"recorded with {before}; this is {', '.join(under().values())}: compared at ±{WIDE:.0%}")
    changes = compare(newest["times_floor"], found)
    print(f"instructions an event, as multiples of orjson.loads; before: {newest['commit']}")
    print("\n".join(report(changes, tolerance)))
    slower = [change for change in changes if change.share > tolerance]
    faster = [change for change in changes if change.share < -tolerance]
    if slower:
        print(f"{len(slower)} cost over {tolerance:.0%} more. If that is meant: python -m benchmarks.check --record")
    elif faster:
        print(f"{len(faster)} cost less: python -m benchmarks.check --record, so that it stays so")
    return 1 if slower else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="keep what is counted now")
    options = parser.parse_args(arguments)
    known = records()
    if not known and not options.record:
        raise SystemExit(f"{RECORDS.name} has no record: python -m benchmarks.check --record")
    found = count()
    status = judge(known[-1], found) if known else 0
    if options.record:
        write(found)
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
