"""``python -m benchmarks``: measure, print tables, write ``docs/benchmarks/``.

    python -m benchmarks                    everything; a few minutes on two cores
    python -m benchmarks stages growth      some sections: streams, stages, pairs, growth, memory, peers
    python -m benchmarks --print stages     writes nothing
    python -m benchmarks --draw             the page and the charts again, from results.json

Sections that are not asked for keep what ``results.json`` has of them, with the machine of their own run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import against, charts, growth, machine, memory, page, pairs, stages, streams, tables
from benchmarks.goals import Results

FOLDER = machine.ROOT / "docs" / "benchmarks"
SECTIONS: dict[str, Callable[[], Any]] = {
    "memory": memory.measure,  # first: the heap is still small
    "streams": streams.measure,
    "stages": stages.measure,
    "pairs": pairs.measure,
    "growth": growth.measure,
    "peers": against.measure,
}


def load(folder: Path) -> Results:
    path = folder / "results.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {"machines": {}}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all without any")
    parser.add_argument("--print", action="store_true", help="write nothing")
    parser.add_argument(
        "--draw", action="store_true", help="measure nothing: the page and its charts from results.json"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no section is called {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    results = load(FOLDER)
    names = [name for name in SECTIONS if name in (options.sections or SECTIONS) and not options.draw]
    if "peers" in names and not against.any_ready():
        print("No peer is installed (make bench-peers): what is known of them stays as it was.")
        names.remove("peers")
    for name in names:
        results["machines"][name] = machine.machine()
        results[name] = SECTIONS[name]()
        print(*tables.SECTIONS[name](results), sep="\n")
    print(tables.goals(results))
    if not options.print:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        charts.draw(results, FOLDER)
        page.write(results, FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
