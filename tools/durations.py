"""Write tests/durations.json, by which ``make test`` draws cases: what a case of each test takes that takes long in all.

python tools/durations.py REPORT   by a report of pytest's --junit-xml; ``make durations`` writes one and calls this
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).parents[1]
#: A test that takes less in all is asked with all of its cases.
LONG_S: Final = 0.1


def main(report: Path) -> None:
    taken: dict[str, list[float]] = defaultdict(list)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own
        module = case.attrib["classname"].replace(".", "/") + ".py"
        taken[f"{module}::{case.attrib['name'].partition('[')[0]}"].append(float(case.attrib["time"]))
    found = {
        name: round(sum(seconds) / len(seconds), 4)
        for name, seconds in sorted(taken.items())
        if len(seconds) > 1 and sum(seconds) > LONG_S
    }
    (ROOT / "tests" / "durations.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
