"""Change one thing of a module at a time, and print the changes that no test notices: mutation testing, by mutmut.

python tools/mutants.py                      # every module of TESTS: hours
python tools/mutants.py tool_calls/check     # one: minutes

A survivor is printed as a diff. Where it shows a rule that no test states, write the test; many change nothing visible.
mutmut keeps its results in ``mutants/``, which git ignores, and tries again what has changed since.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant

ROOT = Path(__file__).resolve().parents[1]
ACCUMULATED = [
    f"tests/tool_calls/test_{name}.py"
    for name in ("accumulate", "accumulate_rules", "accumulate_without_events", "joining", "perturbed")
]
ENCODERS = [
    f"tests/dialects/test_{name}.py" for name in ("encoded_bytes", "encoder_bookkeeping", "one_choice", "payloads")
]
FRAMING = ("eventstream", "frame", "json_array", "ndjson", "sse")
#: What every stream passes through, and the tests of each module: all tests would take a day.
TESTS = {
    **{f"framing/{name}": ["tests/framing"] for name in FRAMING},
    "tool_calls/accumulate": ACCUMULATED,
    "tool_calls/check": ["tests/tool_calls/test_check.py", "tests/tool_calls/test_schema.py"],
    "tool_calls/identity": ACCUMULATED,
    **{f"dialects/{name}/encode": ENCODERS for name in ("anthropic", "openai_chat")},
}


def run(module: str, workers: int) -> None:
    """Try the mutants of one module, and print those that survived."""
    path = Path("streamkit", f"{module}.py")
    config().only_mutate = [str(path)]
    config().pytest_add_cli_args = ["-m", "not exhaustive", "-p", "no:xdist"]
    config().pytest_add_cli_args_test_selection = TESTS[module]
    mutmut.run.callback(mutant_names=(), max_children=workers)
    data = SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        status = mutmut.status_by_exit_code[code]
        if status != "killed":
            print(f"\n{status}: {name}\n{get_diff_for_mutant(name, path=path)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="all where none is named")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time")
    options = parser.parse_args()
    os.chdir(ROOT)
    if unknown := set(options.modules) - set(TESTS):
        parser.error(f"no tests are known of {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    if len(options.modules) == 1:
        run(options.modules[0], options.workers)
        return
    for module in options.modules or TESTS:  # a process for each: mutmut keeps what it knows of a run in globals
        subprocess.run([sys.executable, __file__, f"--workers={options.workers}", module], check=True)


if __name__ == "__main__":
    main()
