"""Counting work, for tests of growth: bytecode instructions and bytes, which no other process and no cache changes."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

#: By which factor the work may grow when the input doubles.
FACTOR = 2.3


def work(function: Callable[[], Any]) -> int:
    """How many bytecode instructions a call takes."""
    count = 0

    def begin(frame, _event, _arg):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    def step(_frame, _event, _arg):
        """An instruction, or the end of a function; what is traced stays traced without a word."""
        nonlocal count
        count += 1

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def copied(feed: Callable[[bytes], object], pieces: Sequence[bytes]) -> int:
    """How many bytes of memory each piece needed at its worst moment, all together: a text that is joined is copied."""
    total = 0
    tracemalloc.start()
    try:
        for piece in pieces:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            feed(piece)
            total += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return total


def growth(make: Callable[[int], Callable[[], Any]], size: int) -> float:
    """By which factor the work grows from ``size`` to twice of it; ``make`` prepares a call for a size."""
    make(4)()  # what is imported and compiled once
    return work(make(2 * size)) / work(make(size))
