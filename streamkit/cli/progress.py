"""A bar on standard error that shows how much of a command's input files is done.

It appears after a second, on a terminal only, if tqdm is installed. A live input has no size, so it has no bar.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from streamkit.cli.streams import on_line, size_of

DELAY_S = 1.0


class Progress:
    """The bytes that are done of all files, and their bar."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._due = time.monotonic() + DELAY_S
        self._bar: Any = None

    def advance(self, size: int) -> None:
        """Count bytes as done, and draw the bar if a second has passed."""
        self._done += size
        if self._bar is not None:
            self._bar.update(size)
        elif time.monotonic() >= self._due:
            self._bar = _bar(self._total, self._done)

    def clear(self) -> None:
        """Remove the bar for a line of text. The next step draws it again."""
        if self._bar is not None:
            self._bar.clear()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


_current: list[Progress] = []


def advance(size: int) -> None:
    """Count bytes of an input as done."""
    for progress in _current:
        progress.advance(size)


@contextmanager
def progress(files: Sequence[str], *, writes_text: bool = False) -> Iterator[None]:
    """Show a bar while these files are read; with ``writes_text`` not if standard output is the terminal, too."""
    sizes = [size_of(file) for file in files]
    total = sum(size or 0 for size in sizes)
    if None in sizes or not sys.stderr.isatty() or (writes_text and sys.stdout.isatty()):
        yield
        return
    shown = Progress(total)
    _current.append(shown)
    on_line.append(shown.clear)
    try:
        yield
    finally:
        on_line.remove(shown.clear)
        _current.remove(shown)
        shown.close()


def _bar(total: int, done: int) -> Any:
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]  # noqa: PLC0415 - 60 ms, and only long runs need it
    except ModuleNotFoundError:  # the library is not installed
        return None
    return tqdm(total=total, initial=done, unit="B", unit_scale=True, leave=False, dynamic_ncols=True, file=sys.stderr)
