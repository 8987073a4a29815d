"""A source that fails on cue, stalls on cue, and knows whether and by whom it was closed.

It stays open until ``aclose``, as a connection does: that it is exhausted, or that it failed, does not close it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_open: set[FaultySource[Any]] = set()


class PlannedFailure(Exception):
    """What a ``FaultySource`` raises unless it is given another error. No ``StreamkitError``: no stage may swallow it."""


class FaultySource(Generic[T]):
    """An async iterable of ``items`` that can go wrong.

    ``fail_after``: raise ``error`` once that many items were given. ``stall_after``: wait for ever once that many were
    given; ``stalled`` is set then. Without either it ends behind the last item. ``given`` counts the items. It is its own
    iterator, so it can be read once.
    """

    def __init__(
        self,
        items: Iterable[T],
        *,
        fail_after: int | None = None,
        stall_after: int | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.given = 0
        self.stalled = asyncio.Event()
        #: The task that closed it; None while it is open, or if it was closed outside of any task.
        self.closed_in: asyncio.Task[Any] | None = None
        self.closed = False
        self.error = error if error is not None else PlannedFailure("the source failed, as the test wanted")
        self._items: Iterator[T] = iter(items)
        self._fail_after = fail_after
        self._stall_after = stall_after

    @property
    def open(self) -> bool:
        """Whether someone began to iterate it and nobody closed it."""
        return self in _open

    def __aiter__(self) -> FaultySource[T]:
        if not self.closed:
            _open.add(self)
        return self

    async def __anext__(self) -> T:
        if self.closed:
            raise StopAsyncIteration
        if self.given == self._fail_after:
            raise self.error
        if self.given == self._stall_after:
            self.stalled.set()
            await asyncio.get_running_loop().create_future()
        try:
            item = next(self._items)
        except StopIteration:
            raise StopAsyncIteration from None
        self.given += 1
        return item

    async def aclose(self) -> None:
        """Close it. Closing again changes nothing."""
        if not self.closed:
            self.closed = True
            self.closed_in = asyncio.current_task()
            _open.discard(self)


def open_sources() -> int:
    """How many sources are open at this moment, in the whole process: 0 on the line after an ``async with pipe(…)``."""
    return len(_open)


def forget_open_sources() -> int:
    """Start counting anew, so that one test's leak is not the next one's; how many were forgotten."""
    count = len(_open)
    _open.clear()
    return count
