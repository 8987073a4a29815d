"""Change one thing of a module at a time, and see whether a test fails: mutation testing of what every stream passes through.

python tools/mutants.py                           # every module of TESTS
python tools/mutants.py tool_calls/check          # one
python tools/mutants.py --wide                    # what survived, once more with the tests of whole streams
python tools/mutants.py --survivors framing/sse   # what survived the last run, as lines before and after
python tools/mutants.py --write                   # the results of the last runs into docs/explanation/mutation.md

mutmut writes the mutants (into ``mutants/``, which git ignores). The tests are run here and not by ``mutmut run``, which
starts pytest and collects anew for each mutant: one process collects all tests, runs them once to learn which of them enter
which function, and forks a child for each mutant, in which those tests run until one fails. That is ten times as fast.
First come the tests that killed another mutant of the same function, then the quickest. Results are in
``mutants/results.json`` by the text of the mutant's function, so that a mutant is tried once for each change of it; a survivor
is tried again each time. ``mutants/`` has no recorded streams beside it: the figure does not depend on them.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = ROOT / "mutants"
RESULTS = MUTANTS / "results.json"
#: The modules, and the tests that speak of each: those that run beside other modules' tests would take a day for all mutants.
CALLS = [
    f"tests/tool_calls/test_{name}.py"
    for name in (
        "accumulate",
        "accumulate_again",
        "accumulate_rules",
        "accumulate_without_events",
        "perturbed",
        "joining",
    )
]
ENCODERS = [
    *(
        f"tests/dialects/test_{name}.py"
        for name in ("encoded_bytes", "encoder_bookkeeping", "one_choice", "failed_turns")
    ),
    *(f"tests/dialects/test_{name}.py" for name in ("claude_signatures", "signed_reasoning", "payloads")),
    *(f"tests/dialects/streams/test_{name}.py" for name in ("split_characters", "running_text")),
    "tests/dialects/vocabulary/test_context_overflow.py",
]
TESTS = {
    "framing/eventstream": [
        f"tests/framing/test_{name}.py" for name in ("eventstream", "eventstream_faults", "stages", "edges")
    ],
    "framing/frame": ["tests/framing"],
    "framing/json_array": [f"tests/framing/test_{name}.py" for name in ("json_array", "stages", "edges")],
    "framing/json_object": ["tests/framing/test_json_array.py"],
    "framing/ndjson": [f"tests/framing/test_{name}.py" for name in ("ndjson", "stages", "whole_events", "edges")],
    "framing/sse": [
        f"tests/framing/test_{name}.py" for name in ("sse", "sse_facts", "stages", "whole_events", "edges")
    ],
    "tool_calls/accumulate": CALLS,
    "tool_calls/check": ["tests/tool_calls/test_check.py", "tests/tool_calls/test_schema.py"],
    "tool_calls/identity": CALLS,
    "dialects/anthropic/encode": ENCODERS,
    "dialects/openai_chat/encode": ENCODERS,
}
#: Whole streams through every module, tried on what the module's own tests let live.
WIDER = ["tests/test_vectors.py", "tests/test_field_failures.py", "tests/framing", "tests/tool_calls"]
PAGE = ROOT / "docs" / "explanation" / "mutation.md"
#: Survivors that need no test, by patterns of their module, function and changed lines, and why.
EXPLAINED = ROOT / "tools" / "survivors.json"
BEGIN, END = "<!-- figures: tools/mutants.py --write -->", "<!-- end of figures -->"
#: Seconds of the processor for one test beside ten times what it took before: a mutant that loops ends there.
GRACE_SECONDS = 2
#: Seconds by the clock for a mutant that waits without working.
WAIT_SECONDS = 300
#: Bytes of addresses that a mutant may take beside what its process has.
MEMORY_BYTES = 4 << 30
#: Seconds of tests that are tried on one mutant. A function that every stream enters has more, and is killed long before.
BUDGET_SECONDS = 6.0
#: The same for those of ``WIDER``.
WIDE_SECONDS = 6.0


class Mutant:
    """One changed function: ``name`` is mutmut's, ``key`` stands for its text."""

    def __init__(self, module: str, name: str, before: str, after: str) -> None:
        self.module = module
        self.name = name
        self.function = name.rpartition("__mutmut_")[0]
        self.before = before
        self.after = after
        self.key = f"{self.function}:{hashlib.sha256(after.encode()).hexdigest()[:16]}"


def generate(selected: list[str]) -> list[Mutant]:
    """Let mutmut write the mutants, and read them."""
    from mutmut import __main__ as mutmut  # noqa: PLC0415 (it reads pyproject.toml of the working directory)
    from mutmut.configuration import config  # noqa: PLC0415
    from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData  # noqa: PLC0415
    from mutmut.utils.file_utils import walk_mutatable_files  # noqa: PLC0415

    os.environ["MUTANT_UNDER_TEST"] = "mutant_generation"
    MUTANTS.mkdir(exist_ok=True)
    config().only_mutate = [f"streamkit/{module}.py" for module in selected]
    shutil.rmtree(MUTANTS / "streamkit", ignore_errors=True)  # mutmut would keep what is not older than the source
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.setup_source_paths()
        mutmut.create_mutants(2)
    found = []
    for path in sorted(map(Path, walk_mutatable_files())):
        module = path.with_suffix("").relative_to("streamkit").as_posix()
        if module not in selected:
            continue
        data = SourceFileMutationData(path=path)
        data.load()
        names = list(data.exit_code_by_key)
        short = [name.rpartition(".")[2] for name in names]
        original = sorted({name.rpartition("__mutmut_")[0] + "__mutmut_orig" for name in short})
        spans = MutantLineSpans.load(path)
        if not names or spans is None:
            continue
        texts = dict(zip(short + original, spans.read_function_sources(short + original), strict=True))
        for name, bare in zip(names, short, strict=True):
            function = bare.rpartition("__mutmut_")[0]
            before = texts[function + "__mutmut_orig"].replace(function + "__mutmut_orig", function)
            found.append(Mutant(module, name, before, texts[bare].replace(bare, function)))
    return found


class Runner:
    """A pytest plugin that runs the collected tests once as they are, and then those that matter for each mutant."""

    def __init__(
        self, mutants: list[Mutant], results: dict[str, Any], workers: int, budget: float, recheck: bool
    ) -> None:
        self.mutants = mutants
        self.budget = budget
        self.results = results
        self.workers = workers
        self.recheck = recheck
        self.entered: dict[str, list[int]] = defaultdict(list)
        self.seconds: list[float] = []
        self.killers: dict[str, list[int]] = defaultdict(list)
        self.running: dict[int, tuple[Mutant, int, float]] = {}
        self.in_child = False
        self.failed = ""

    def pytest_collection(self) -> None:
        """Where hypothesis has found a failing example, it does not look for a smaller one."""
        from hypothesis import Phase, settings  # noqa: PLC0415

        settings.register_profile(
            "mutants", parent=settings.default, phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutants")

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """A mutant is dead with the first error: no report is made of it."""
        import pytest  # noqa: PLC0415

        failed = call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception)
        if self.in_child and failed and item.get_closest_marker("xfail") is None:
            os._exit(1)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = f"{report.nodeid}\n{report.longreprtext}"

    def pytest_runtestloop(self, session: Any) -> bool:
        items = session.items
        self._learn(items)
        gc.freeze()
        print(f"{len(items)} tests, {sum(self.seconds):.0f} s; {len(self.mutants)} mutants", flush=True)
        started, done = time.monotonic(), 0
        for mutant in self.mutants:
            if mutant.key in self.results and not (self.recheck and self.results[mutant.key]["status"] != "killed"):
                continue
            tests = self._tests(mutant)
            if not tests:
                self._note(mutant, "no tests")
                continue
            while len(self.running) >= self.workers:
                self._wait(items)
            self._start(items, mutant, tests)
            done += 1
            if done % 100 == 0:
                rate = done / (time.monotonic() - started)
                print(f"{done} tried, {rate * 60:.0f} a minute, {mutant.name}", flush=True)
        while self.running:
            self._wait(items)
        self._save()
        return True

    def _learn(self, items: list[Any]) -> None:
        """Run every test once in a child, and say which functions it entered and how long it took."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            answer = self._run_all(items)
            with os.fdopen(writing, "w") as pipe:
                json.dump(answer, pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = json.load(pipe)
        os.waitpid(child, 0)
        if answer["failed"]:
            raise SystemExit(f"the tests fail without a mutant: {answer['failed']}")
        self.seconds = answer["seconds"]
        for number, functions in enumerate(answer["entered"]):
            for function in functions:
                self.entered[function].append(number)
        for name in answer[
            "modules"
        ]:  # what tests import when they run is imported once, but for what a mutant may have made
            if not name.startswith(("streamkit", "tests")):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)

    def _run_all(self, items: list[Any]) -> dict[str, Any]:
        from mutmut.mutation.trampoline import set_mutant_under_test  # noqa: PLC0415
        from mutmut.state import state  # noqa: PLC0415

        known = set(sys.modules)
        set_mutant_under_test("stats")
        entered, seconds = [], []
        for item, following in zip(items, [*items[1:], None], strict=True):
            state()._stats.clear()  # noqa: SLF001 (where mutmut puts the functions that were entered)
            before = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds.append(time.process_time() - before)
            entered.append(sorted(state()._stats))  # noqa: SLF001
            if self.failed:
                break
        return {
            "entered": entered,
            "seconds": seconds,
            "failed": self.failed,
            "modules": sorted(set(sys.modules) - known),
        }

    def _tests(self, mutant: Mutant) -> list[int]:
        """The tests to try on a mutant: the last killers of its function, then the quickest, within the budget."""
        numbers = sorted(self.entered[mutant.function], key=self.seconds.__getitem__)
        first = list(dict.fromkeys(reversed(self.killers[mutant.function])))[:20]
        chosen, spent = [], 0.0
        for number in dict.fromkeys([*first, *numbers]):
            spent += self.seconds[number]
            if spent > self.budget and chosen:
                break
            chosen.append(number)
        return chosen

    def _start(self, items: list[Any], mutant: Mutant, tests: list[int]) -> None:
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            self.running[child] = (mutant, reading, time.monotonic())
            return
        try:
            with Path(os.devnull).open("w") as nowhere:
                for stream in (1, 2):
                    os.dup2(nowhere.fileno(), stream)
            self._try(items, mutant, tests, writing)
        finally:
            os._exit(1)

    def _try(self, items: list[Any], mutant: Mutant, tests: list[int], writing: int) -> None:
        """In the child: run the tests until one fails. It leaves with 0 where none did; the pipe has the last test."""
        from mutmut.mutation.trampoline import set_mutant_under_test  # noqa: PLC0415

        self.in_child = True
        set_mutant_under_test(mutant.name)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number, following in zip(tests, [*tests[1:], None], strict=True):
            used = time.process_time()
            seconds = int(used + 10 * self.seconds[number] + GRACE_SECONDS) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
            os.write(writing, b"%d\n" % number)
            item = items[number]
            after = None if following is None else items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                os._exit(1)
        os._exit(0)

    def _wait(self, items: list[Any]) -> None:
        for child, (mutant, reading, started) in list(self.running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                if time.monotonic() - started > WAIT_SECONDS:
                    os.kill(child, 9)
                continue
            del self.running[child]
            with os.fdopen(reading) as pipe:
                tried = pipe.read().split()
            code = os.waitstatus_to_exitcode(status)
            last = int(tried[-1]) if tried else None
            if code == 0:
                self._note(mutant, "survived")
            elif code == 1:
                self._note(mutant, "killed", None if last is None else items[last].nodeid)
                if last is not None:
                    self.killers[mutant.function].append(last)
            else:  # by a limit of the kernel, or by ours
                self._note(mutant, "timeout", None if last is None else items[last].nodeid)
            return
        time.sleep(0.002)

    def _note(self, mutant: Mutant, status: str, test: str | None = None) -> None:
        before, after = changed(mutant)
        self.results[mutant.key] = {
            "module": mutant.module, "function": readable(mutant), "name": mutant.name, "status": status, "test": test,
            "before": before, "after": after,
        }  # fmt: skip
        if len(self.results) % 50 == 0:
            self._save()

    def _save(self) -> None:
        RESULTS.write_text(json.dumps(self.results, indent=1, sort_keys=True), "utf-8")


def run(mutants: list[Mutant], results: dict[str, Any], tests: list[str], options: argparse.Namespace) -> None:
    """Try the mutants that have no result yet."""
    import pytest  # noqa: PLC0415 (after mutmut has put mutants/ in front of the path)

    os.chdir(MUTANTS)
    os.environ["MUTANT_UNDER_TEST"] = ""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(MUTANTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    )  # of processes
    sys.path.insert(0, str(MUTANTS))
    import streamkit  # noqa: PLC0415

    if not str(streamkit.__file__).startswith(str(MUTANTS)):
        raise SystemExit(f"{streamkit.__file__} is not the copy with the mutants")
    runner = Runner(mutants, results, options.workers, options.budget, options.again)
    arguments = ["-q", "--assert=plain", "--rootdir=.", "-s", "-m", "not exhaustive", "-p", "no:xdist"]
    code = pytest.main([*arguments, *tests], plugins=[runner])
    if code not in {0, 5}:
        raise SystemExit(f"pytest ended with {code}")


def changed(mutant: Mutant) -> tuple[str, str]:
    """The lines that a mutant changes, before and after, without their indentation."""
    before, after = mutant.before.splitlines(), mutant.after.splitlines()
    start = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return _joined(before[start : len(before) - end]), _joined(after[start : len(after) - end])


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def readable(mutant: Mutant) -> str:
    """A mutant's function, as it is called in the source."""
    name = mutant.function.rpartition(".")[2]
    return ".".join(part for part in name.split("ǁ")[1:]) if "ǁ" in name else name.removeprefix("x_")


def told(results: dict[str, Any], modules: list[str]) -> Iterator[str]:
    """A line for each module: how many mutants, and what became of them."""
    for module in modules:
        count = Counter(result["status"] for result in results.values() if result["module"] == module)
        yield f"{module}: {sum(count.values())} mutants, " + ", ".join(f"{n} {s}" for s, n in count.most_common())


def why(result: dict[str, Any], explained: list[dict[str, str]]) -> str | None:
    """Why a survivor needs no test, where that is said."""
    for rule in explained:
        names = ("module", "function", "before", "after")
        if all(re.search(rule.get(name, ""), result[name]) for name in names):
            return rule["why"]
    return None


def figures(results: dict[str, Any]) -> Iterator[str]:
    """The tables of the page."""
    explained = json.loads(EXPLAINED.read_text("utf-8"))
    yield "| module | mutants | killed | ended by a limit | survived | of these explained | no test enters it |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    totals: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    open_ones: list[dict[str, Any]] = []
    for module in TESTS:
        count: Counter[str] = Counter()
        for result in results.values():
            if result["module"] != module:
                continue
            count[result["status"]] += 1
            if result["status"] in {"survived", "no tests"}:
                reason = why(result, explained)
                if reason is None:
                    open_ones.append(result)
                else:
                    reasons[reason] += 1
                    count["explained"] += 1
        totals += count
        yield _row(f"`{module}`", count)
    yield _row("all", totals)
    yield "\n| explained by | survivors |\n|---|---:|"
    yield from (f"| {reason} | {number} |" for reason, number in reasons.most_common())
    by_function = Counter((result["module"], result["function"]) for result in open_ones)
    yield f"\nNot explained are {len(open_ones)}, in these functions:\n\n| function | survivors |\n|---|---:|"
    yield from (f"| `{module}`: `{function}` | {number} |" for (module, function), number in by_function.most_common())


def _row(name: str, count: Counter[str]) -> str:
    of = [count[kind] for kind in ("killed", "timeout", "survived", "explained", "no tests")]
    if not any(of):
        return f"| {name} | not run | | | | | |"
    return f"| {name} | {sum(of) - count['explained']} | " + " | ".join(map(str, of)) + " |"


def write(results: dict[str, Any]) -> None:
    """Put the tables into the page, between its marks."""
    page = PAGE.read_text("utf-8")
    head, rest = page.split(BEGIN)
    foot = rest.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(figures(results)) + f"\n{END}{foot}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="such as tool_calls/check; all where none is named")
    parser.add_argument("--workers", type=int, default=2, help="children at a time")
    parser.add_argument("--budget", type=float, default=BUDGET_SECONDS, help="seconds of tests for one mutant")
    parser.add_argument(
        "--wide", action="store_true", help="try the tests of whole streams on those that were not killed"
    )
    parser.add_argument("--survivors", action="store_true", help="run nothing: print what survived")
    parser.add_argument("--write", action="store_true", help="run nothing: write the page")
    parser.add_argument("--again", action="store_true", help="try those again that were not killed")
    options = parser.parse_args()
    os.chdir(ROOT)
    modules = options.modules or list(TESTS)
    if len(modules) > 1 and not (
        options.survivors or options.write
    ):  # a process for each: the others' functions are not slowed by what calls mutants
        flags = [argument for argument in sys.argv[1:] if argument not in options.modules]
        for module in modules:
            subprocess.run([sys.executable, __file__, *flags, module], check=True)
        return
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results = {key: result for key, result in results.items() if "module" in result}
    if options.write:
        write(results)
    elif options.survivors:
        for result in results.values():
            if result["module"] in modules and result["status"] != "killed":
                print("{status} {name}\n    {function}\n  - {before}\n  + {after}".format_map(result))
    else:
        mutants = generate(modules)
        keys = {mutant.key for mutant in mutants}  # a function that was changed since leaves no results behind
        results = {key: result for key, result in results.items() if key in keys or result["module"] not in modules}
        tests = TESTS[modules[0]]
        if options.wide:
            tests, options.again, options.budget = WIDER, True, WIDE_SECONDS
        run(mutants, results, tests, options)
    print("\n".join(told(results, modules)))


if __name__ == "__main__":
    main()
