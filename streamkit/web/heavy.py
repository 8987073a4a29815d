"""Keep the event loop free: translate large requests in a thread, one at a time, and let few requests begin in each turn."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from streamkit.framing.frame import SLICE_BYTES, counted_values

T = TypeVar("T")
#: Below these limits the work takes only milliseconds, and a thread would cost more than it saves. This one: bytes.
HEAVY_BYTES: Final = 256 * 1024
HEAVY_VALUES: Final = 2000  #: the other limit: JSON values
#: Seconds that a thread keeps the interpreter while the event loop waits for it. With CPython's default of 5 ms, each write of
#: a stream would wait 5 ms, since the event loop releases the interpreter for each write.
SWITCH_S: Final = 0.0002

_ONE: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


def is_heavy(size_bytes: int, values: int) -> bool:
    """Return whether translating a body with so many bytes or JSON values would block the event loop for too long."""
    return size_bytes > HEAVY_BYTES or values > HEAVY_VALUES


async def count_values(text: bytes, most: int) -> int:
    """Return the number of JSON values in a text; beyond ``most``, any larger number. Other tasks run meanwhile."""
    values = 0
    for values in counted_values(text):
        if values > most:
            break
        if len(text) > SLICE_BYTES:
            await asyncio.sleep(0)
    return values


async def in_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread and return its result. A cancelled caller still waits, as a thread can't be stopped."""
    loop = asyncio.get_running_loop()
    one = _ONE.get(loop) or _ONE.setdefault(loop, asyncio.Semaphore(1))
    async with one:
        with _in_short_turns():
            done = loop.run_in_executor(None, work)
            try:
                return await asyncio.shield(done)
            finally:
                await asyncio.wait({done})
                # the error's traceback refers to this frame: without `del`, a reference cycle would keep the request in memory
                del done


@contextmanager
def _in_short_turns() -> Iterator[None]:
    """Make the thread release the interpreter often, and pause garbage collection.

    Three or four collections would scan all objects made from a body of 240,000 values, and hold the interpreter for 20 to 90
    ms each. A collection of only the young objects afterwards takes 30 ms.
    """
    before, collects = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(min(before, SWITCH_S))
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        if collects:
            if not _has_frozen():
                gc.freeze()  # freeze and unfreeze make all objects old, so no young ones are scanned
                gc.unfreeze()
            gc.enable()


_frozen = False


def _has_frozen() -> bool:
    """Whether other code froze objects, as the gateway does: they must stay frozen.

    Counting them takes milliseconds, so a count that is not 0 is remembered.
    """
    global _frozen  # noqa: PLW0603
    _frozen = _frozen or gc.get_freeze_count() > 0
    return _frozen


#: How many requests may begin in one turn of the event loop. Each takes about seven steps in later turns; together the steps
#: then take about 15 ms a turn.
AT_ONCE: Final = 4


class Turns:
    """Lets ``at_once`` callers continue in each turn of the running event loop, in the order of their calls.

    A turn runs every task that is ready when it begins. If 700 requests arrive at once, each takes its next step in every
    turn, and a stream's next event waits for all of them: up to 344 ms, since one step of a request takes half a millisecond.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun = 0  # how many requests began in this turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timed = False

    async def wait(self) -> None:
        """Return at once, or in a later turn if enough callers have continued in this one."""
        loop = asyncio.get_running_loop()
        if not self._timed:
            self._timed = True
            loop.call_soon(self._next)
        if self._begun < self._at_once and not self._waiting:
            self._begun += 1
            return
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next(self) -> None:
        """Called when a turn is over: let the next waiting callers continue."""
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            first = self._waiting.popleft()
            if not first.done():  # a future that is done was cancelled with its caller
                first.set_result(None)
                self._begun += 1
        self._timed = self._begun > 0
        if self._timed:
            asyncio.get_running_loop().call_soon(self._next)
