"""How L8 counts work and judges how it grows.

``grows`` counts bytecode instructions. What C does within one of them is not among them: a pattern that goes back, a list that is
searched, bytes that are copied. For those ``suspected`` lets the processor's clock choose which cases are worth a look, and
``instructions`` counts what the processor does in them, under callgrind. The clock alone finds nothing: it differs from run to
run, and memory that no cache holds is slow without being more work.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from benchmarks.check import totals
from tests.working import FACTOR, work

#: A doubling that takes more than this is looked at where it is large: 2 is what it has to take.
ODD: Final = 2.05
#: Where it is large: fixed costs and bounds of a few hundred entries are small beside it.
LARGE: Final = 3200
#: So many steps are large, too: seconds of counting.
MANY_STEPS: Final = 4_000_000
#: Sizes that the clock looks at, as long as one takes less than ``LONG_S``; beyond ``SOON`` only where that took less than a tenth.
SIZES: Final = (125, 250, 500, 1000, 2000, 4000, 8000)
SOON: Final = 4000
LONG_S: Final = 0.5
#: What takes less says nothing by the clock.
NOISE_S: Final = 0.001
#: What grows by so much at once is tried at no larger size, and is no limit that is met.
AT_ONCE: Final = 8.0
NO_VALGRIND: Final = "valgrind counts instructions, and is not installed (Debian: apt-get install valgrind)"


@frozen
class Case:
    """A shape in its place, and what reads it: ``prepare`` makes the work for a size."""

    name: str
    prepare: Callable[[int], Callable[[], object]]
    #: Its group, its shape there, and what is done with it.
    key: tuple[str, int, int] = ("", 0, 0)

    def __str__(self) -> str:
        return self.name


def grows(case: Case, size: int) -> float:
    """By which factor the bytecode grows when the input doubles.

    What looks odd at a small size is judged at a large one, by the smaller of two doublings: a limit that is met is one step.
    """
    case.prepare(8)()  # what is compiled and kept once
    counts = [work(case.prepare(size)), work(case.prepare(2 * size))]
    if counts[1] <= ODD * counts[0]:
        return counts[1] / counts[0]
    while len(counts) < 3 or (size << len(counts) <= LARGE and counts[-1] < MANY_STEPS):
        counts.append(work(case.prepare(size << len(counts))))
    return _smaller(counts[-3:])


def _smaller(counts: Sequence[int]) -> float:
    """Of two doublings the smaller factor; the last one where it is no step, but grows with each level."""
    one, two, four = counts
    first, last = two / max(1, one), four / max(1, two)
    return last if last > AT_ONCE else min(first, last)


# -- which are worth a look --------------------------------------------------------------------------------------------


def suspected(case: Case) -> int | None:
    """The size at which a doubling took more time than it may, so large as it can be judged in reasonable time; or None."""
    case.prepare(8)()
    before, taken = 0.0, 0.0
    for size in SIZES:
        if taken > LONG_S or (size > SOON and taken > LONG_S / 10):
            break
        before, taken, tried = taken, _seconds(case, size), size
        if before > NOISE_S / 10 and taken > AT_ONCE * before and taken > NOISE_S * 10:
            return tried
    if taken <= NOISE_S or taken <= FACTOR * before:
        return None
    half, whole = (min(_seconds(case, some) for _ in range(3)) for some in (tried // 2, tried))
    if whole <= FACTOR * half:
        return None
    return tried if whole < LONG_S else tried // 2


def _seconds(case: Case, size: int) -> float:
    made = case.prepare(size)
    gc.disable()
    try:
        begun = time.thread_time()
        made()
        return time.thread_time() - begun
    finally:
        gc.enable()


# -- instructions, of which valgrind must tell -------------------------------------------------------------------------


def marked(chosen: Sequence[tuple[tuple[str, int, int], int]]) -> None:
    """Run cases at a quarter, half and all of a size, with a mark before and behind each run; callgrind dumps at marks."""
    from tests.laws.growing import cases_of  # noqa: PLC0415 - the table needs this module

    gc.disable()
    for (group, index, number), size in chosen:
        case = cases_of(group, index)[number]
        case.prepare(8)()
        for share in (4, 2, 1):
            made = case.prepare(max(1, size // share))
            os.getppid()
            made()
            os.getppid()


def instructions(chosen: Sequence[tuple[Case, int]]) -> Iterator[tuple[Case, float]]:
    """By which factor the processor's instructions of each case grow, the smaller one of two doublings up to its size."""
    valgrind = shutil.which("valgrind")
    assert valgrind is not None, NO_VALGRIND
    code = f"from tests.laws.judging import marked; marked({[(case.key, size) for case, size in chosen]!r})"
    with tempfile.TemporaryDirectory(prefix="streamkit-growth-") as folder:
        out = Path(folder) / "out"
        tool = [valgrind, "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run([*tool, sys.executable, "-c", code], env=environment, check=True, capture_output=True)
        counts = totals(out)
    for number, (case, _) in enumerate(chosen):
        yield case, _smaller(counts[3 * number : 3 * number + 3])
