"""Measure where a pipe spends its time, with clocks around its iterators and its machines.

Built-in stages that share a driver are one iterator, so each of their machines has a clock too. Time is counted once: the time
of an inner part is subtracted from the part around it. The remaining time of a driver is the row ``pipe``. A pipe without
timings has no clocks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from attrs import define

from streamkit.machines import Link, link_of
from streamkit.report import StageTiming
from streamkit.text.quoting import name_of

SOURCE: Final = "source"  #: name of the row for the time spent waiting for the source
PIPE: Final = "pipe"  #: name of the row for the loop that drives the stages


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
        self._iterators: list[_TimedIterator] = []

    def source(self, iterator: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Wrap the pipe's source in a clock. A clock has no ``aclose``, because the pipe closes the iterators that it made."""
        return self._timed(iterator, self._source)

    def stage(self, iterator: AsyncIterator[Any], stage: Callable[..., Any]) -> AsyncIterator[Any]:
        return self._timed(iterator, self._row(name_of(stage).rpartition(".")[2]))

    def driver(self, iterator: AsyncIterator[Any]) -> AsyncIterator[Any]:
        return self._timed(iterator, self._pipe)

    def machines(self, stages: Sequence[Any], machines: Sequence[Any]) -> list[Any]:
        """Wrap each machine of ``stages``, which share a driver, in a clock."""
        timed: list[Any] = []
        before = self._pipe
        for stage, machine in zip(stages, machines, strict=True):
            row = self._row(stage.name)
            timed.append(_TimedMachine(machine, row, before, self._pipe))
            before = row
        return timed

    def timings(self) -> tuple[StageTiming, ...]:
        """Return the rows of the source, of the stages in order, and of the driver if there are built-in stages."""
        rows = [self._source, *self._stages]
        if any(timed.row is self._pipe for timed in self._iterators):
            rows.append(self._pipe)
        return tuple(StageTiming(row.name, max(0.0, row.seconds), row.items_in, row.items_out) for row in rows)

    def _row(self, name: str) -> _Row:
        row = _Row(name)
        self._stages.append(row)
        return row

    def _timed(self, iterator: AsyncIterator[Any], row: _Row) -> AsyncIterator[Any]:
        if self._iterators:
            self._iterators[-1].within = row
        timed = _TimedIterator(iterator, row)
        self._iterators.append(timed)
        return timed


class _TimedIterator:
    """Counts an iterator's time in ``row``, without the time it waits for the iterator before it."""

    def __init__(self, iterator: AsyncIterator[Any], row: _Row) -> None:
        self.row = row
        self.within: _Row | None = None  # row of the iterator that pulls from this one; None for the last iterator
        self._iterator = iterator
        self.name = name_of(iterator)  # for messages

    def __aiter__(self) -> _TimedIterator:
        return self

    async def __anext__(self) -> Any:
        began = perf_counter()
        try:
            item = await anext(self._iterator)
        finally:
            seconds = perf_counter() - began
            self.row.seconds += seconds
            if self.within is not None:
                self.within.seconds -= seconds
        items = len(item) if isinstance(item, list) else 1  # the length of a batch; bytes count as one item
        self.row.items_out += items
        if self.within is not None:
            self.within.items_in += items
        return item


class _TimedMachine(Link):
    """Counts a machine's time in ``row``, without the time of the next machine, which it calls."""

    def __init__(self, machine: Any, row: _Row, before: _Row, pipe: _Row) -> None:
        self._machine = link_of(machine)
        self._encoder: Any = machine
        self._row = row
        self._before = before  # row of the caller
        self._pipe = pipe  # row of the driver, which calls every machine at the end
        self.joins, self.waits, self.reads_texts = self._machine.joins, self._machine.waits, self._machine.reads_texts
        if self._machine.push_run is not None:
            self.push_run = partial(self._push_short, self._machine.push_run)
        if self._machine.push_payload is not None:
            self.push_payload = partial(self._push_short, self._machine.push_payload)

    @property
    def emit(self) -> Callable[[Any], object]:  # the setter adds a counter
        return self._machine.emit

    @emit.setter
    def emit(self, emit: Callable[[Any], object]) -> None:
        row = self._row

        def counted(item: Any) -> None:
            row.items_out += 1
            emit(item)

        self._machine.lead_to(counted)

    @property
    def emit_run(self) -> Callable[..., Any] | None:
        return self._machine.emit_run

    @emit_run.setter
    def emit_run(self, emit: Callable[..., Any] | None) -> None:
        self._machine.emit_run = emit and partial(self._emit_short, emit)

    @property
    def emit_payload(self) -> Callable[..., Any] | None:
        return self._machine.emit_payload

    @emit_payload.setter
    def emit_payload(self, emit: Callable[..., Any] | None) -> None:
        self._machine.emit_payload = emit and partial(self._emit_short, emit)

    def _emit_short(self, emit: Callable[..., Any], *given: Any) -> None:
        self._row.items_out += _frames_of(given[0])
        emit(*given)

    def _push_short(self, push: Callable[..., Any], *given: Any) -> None:
        self._row.items_in += _frames_of(given[0])
        self._time(self._before, push, *given)

    @property
    def holds(self) -> bool:
        return self._machine.holds

    @holds.setter
    def holds(self, holds: bool) -> None:
        self._machine.holds = holds

    def hold(self) -> None:
        self._machine.hold()

    @property
    def several(self) -> Callable[[], object] | None:  # the wrapped machine calls this function
        return self._machine.several

    @several.setter
    def several(self, several: Callable[[], object] | None) -> None:
        self._machine.several = several

    def __getattr__(self, name: str) -> Any:
        """Forward the attributes that a driver reads from an encoder."""
        return getattr(self._machine, name)

    def push(self, item: Any, /) -> None:
        self._row.items_in += 1
        self._do(self._before, self._machine.push, item)

    def push_batch(self, batch: Any, /) -> None:
        self._row.items_in += len(batch) if isinstance(batch, list) else 1
        self._do(self._before, self._machine.push_batch, batch)

    def push_end(self) -> None:
        self._do(self._pipe, self._machine.push_end)

    def push_rest(self) -> None:
        self._time(self._pipe, self._machine.push_rest)

    def end_read(self) -> None:
        self._do(self._pipe, self._machine.end_read)

    def written(self) -> bytes:
        """Return the bytes written so far; only encoders have this method."""
        output: bytes = self._time(self._pipe, self._encoder.written)
        self._row.items_out += bool(output)
        return output

    def fail(self, error: Exception, /) -> bytes:
        output: bytes = self._time(self._pipe, self._encoder.fail, error)
        self._row.items_out += bool(output)
        return output

    def _do(self, caller: _Row, work: Callable[..., Any], *given: Any) -> None:
        """Run ``work`` on the clock. Raise the wrapped machine's fault, if it has one."""
        self._time(caller, work, *given)
        if self._machine.fault is not None:
            raise self._machine.fault

    def _time(self, caller: _Row, work: Callable[..., Any], *given: Any) -> Any:
        """Run ``work`` and return its result. Add its time to this row, and subtract it from the caller's row."""
        began = perf_counter()
        try:
            return work(*given)
        finally:
            seconds = perf_counter() - began
            self._row.seconds += seconds
            caller.seconds -= seconds


def _frames_of(item: Any) -> int:
    return 1 if isinstance(item, bytes) else len(item.payloads)
