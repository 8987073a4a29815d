"""Where the time of a pipe goes: clocks around its links and its machines.

A **link** is what a stage pulls from: the source, or the generator of a stage. Built-in stages that share a driver are one
link, so each of their machines has a clock as well. Time is counted once: what runs inside of another thing is taken off that.
What is left of a driver is the row ``pipe``.

A pipe that is not timed has none of this. In one that is, the same machines do the same: their driver gets them with their
clocks around them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from attrs import define

from streamkit.report import StageTiming

#: Rows that are no stage's.
SOURCE: Final = "source"
FAST_PATH: Final = "fast path"
PIPE: Final = "pipe"


@define
class _Row:
    name: str
    seconds: float = 0.0
    items_in: int = 0
    items_out: int = 0


class Profiler:
    """The clocks of one pipe."""

    def __init__(self) -> None:
        self._source, self._pipe = _Row(SOURCE), _Row(PIPE)
        self._stages: list[_Row] = []
        self._links: list[_TimedLink] = []

    def source(self, link: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The pipe's source on a clock. No clock has ``aclose``: the pipe closes what it made itself."""
        return self._timed(link, self._source)

    def stage(self, link: AsyncIterator[Any], stage: Callable[..., Any]) -> AsyncIterator[Any]:
        """The generator of a user's own ``stage`` on a clock."""
        return self._timed(link, self._row(_name_of(stage)))

    def driver(self, link: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The generator that drives ``machines`` on a clock."""
        return self._timed(link, self._pipe)

    def machines(self, stages: Sequence[Any], machines: Sequence[Any]) -> list[Any]:
        """The machines of ``stages`` that share a driver, each on a clock."""
        return [
            _TimedMachine(machine, self._row(stage.name), self._pipe)
            for stage, machine in zip(stages, machines, strict=True)
        ]

    def steps(self, next_step: Callable[[], Callable[[Any], bytes | None] | None]) -> Callable[[], Any]:
        """The fast path (``fast_path/one_step.py``) on a clock: to look for a step, and the step."""
        row = self._row(FAST_PATH)

        def timed_next() -> Callable[[Any], bytes | None] | None:
            step = _timed(row, self._pipe, next_step)
            return None if step is None else partial(timed_step, step)

        def timed_step(step: Callable[[Any], bytes | None], read: Any) -> bytes | None:
            output: bytes | None = _timed(row, self._pipe, step, read)
            if output is not None:  # else the read goes through the machines
                row.items_in += 1
                row.items_out += bool(output)
            return output

        return timed_next

    def timings(self) -> tuple[StageTiming, ...]:
        """The source, the stages in their order, and the loop that drives them, if they are built in."""
        rows = [self._source, *self._stages]
        if any(link.row is self._pipe for link in self._links):
            rows.append(self._pipe)
        return tuple(StageTiming(row.name, max(0.0, row.seconds), row.items_in, row.items_out) for row in rows)

    def _row(self, name: str) -> _Row:
        row = _Row(name)
        self._stages.append(row)
        return row

    def _timed(self, link: AsyncIterator[Any], row: _Row) -> AsyncIterator[Any]:
        if self._links:
            self._links[-1].within = row
        timed = _TimedLink(link, row)
        self._links.append(timed)
        return timed


class _TimedLink:
    """A link whose time, but for what it waits for in the one before it, is counted in ``row``."""

    def __init__(self, link: AsyncIterator[Any], row: _Row) -> None:
        self.row = row
        self.within: _Row | None = None  # of the link that pulls from this one; None: the pipe's reader does
        self._link = link

    def __aiter__(self) -> _TimedLink:
        return self

    async def __anext__(self) -> Any:
        began = perf_counter()
        try:
            item = await anext(self._link)
        finally:
            seconds = perf_counter() - began
            self.row.seconds += seconds
            if self.within is not None:
                self.within.seconds -= seconds
        items = len(item) if isinstance(item, list) else 1  # no stage yields runs
        self.row.items_out += items
        if self.within is not None:
            self.within.items_in += items
        return item


class _TimedMachine:
    """A machine whose time is counted in ``row``. All that passes here, the counting too, is taken off its driver's."""

    def __init__(self, machine: Any, row: _Row, within: _Row) -> None:
        self._machine = machine
        self._row = row
        self._within = within

    @property
    def fault(self) -> Exception | None:
        """Asked at each read: by ``__getattr__`` it would take five times as long, which is the driver's."""
        fault: Exception | None = self._machine.fault
        return fault

    def __getattr__(self, name: str) -> Any:
        """What a driver asks a machine that failed, or its encoder."""
        return getattr(self._machine, name)

    def feed(self, item: Any, /) -> Any:
        entered = perf_counter()
        self._row.items_in += _items_of(item)
        return self._gives(entered, self._machine.feed, item)

    def finish(self) -> Any:
        return self._gives(perf_counter(), self._machine.finish)

    def abandon(self) -> Any:
        return self._gives(perf_counter(), self._machine.abandon)

    def fail(self, error: Exception, /) -> Any:
        """An encoder's alone."""
        return self._gives(perf_counter(), self._machine.fail, error)

    def _gives(self, entered: float, work: Callable[..., Any], *given: Any) -> Any:
        output = None
        began = perf_counter()
        try:
            output = work(*given)
        finally:
            self._row.seconds += perf_counter() - began
            if output:
                self._row.items_out += _items_of(output)
            self._within.seconds -= perf_counter() - entered
        return output


def _items_of(flow: Any) -> int:
    """How many things flow: of a list its members, and each one of a run; else one."""
    return sum([getattr(each, "run_length", 1) for each in flow]) if isinstance(flow, list) else 1


def _timed(row: _Row, within: _Row, work: Callable[..., Any], *given: Any) -> Any:
    """What ``work`` returns; its time is counted in ``row``, and taken off ``within``."""
    began = perf_counter()
    try:
        return work(*given)
    finally:
        seconds = perf_counter() - began
        row.seconds += seconds
        within.seconds -= seconds


def _name_of(stage: Callable[..., Any]) -> str:
    """A function's name, also where some of its arguments are fixed already."""
    function = stage.func if isinstance(stage, partial) else stage
    return str(getattr(function, "__name__", type(function).__name__))
