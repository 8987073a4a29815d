"""A source that fails or stalls at a given place, and records whether and in which task it was closed.

It stays open until ``aclose``, like a connection: neither its end nor its failure closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_open: set[FaultySource[Any]] = set()


class PlannedFailure(Exception):
    """The default error of a ``FaultySource``. It is not a ``StreamkitError``, so no stage may catch it."""


class FaultySource(Generic[T]):
    """An async iterable of ``items`` that can fail or stall.

    ``fail_after``: raise ``error`` after this many items. ``stall_after``: wait forever after this many items; ``stalled``
    is then set. Without either, the source ends after the last item. ``given`` counts the items. The source can be read only
    once.
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
        self.ended = False  #: whether the source has failed, or has no more items and reported it
        self.stalled = asyncio.Event()
        #: The task that closed this source. None: the source is still open, or code outside of any task closed it.
        self.closed_in: asyncio.Task[Any] | None = None
        self.closed = False
        self.error = error if error is not None else PlannedFailure("the source failed, as the test wanted")
        self._items: Iterator[T] = iter(items)
        self._fail_after = fail_after
        self._stall_after = stall_after

    @property
    def open(self) -> bool:
        """True if reading has begun and the source is not closed."""
        return self in _open

    def __aiter__(self) -> FaultySource[T]:
        if not self.closed:
            _open.add(self)
        return self

    async def __anext__(self) -> T:
        if self.closed:
            raise StopAsyncIteration
        if self.given == self._fail_after:
            self.ended = True
            raise self.error
        if self.given == self._stall_after:
            self.stalled.set()
            await asyncio.get_running_loop().create_future()
        try:
            item = next(self._items)
        except StopIteration:
            self.ended = True
            raise StopAsyncIteration from None
        self.given += 1
        return item

    async def aclose(self) -> None:
        """Close the source. Closing it again has no effect."""
        if not self.closed:
            self.closed = True
            self.closed_in = asyncio.current_task()
            _open.discard(self)


def open_sources() -> int:
    """Return how many sources are open in the whole process: 0 on the line after an ``async with pipe(…)``."""
    return len(_open)


def forget_open_sources() -> int:
    """Forget all open sources, so that one test's leak does not fail the next test. Return how many there were."""
    count = len(_open)
    _open.clear()
    return count
