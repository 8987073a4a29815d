"""Translate large requests in a thread, one at a time, so that the streams of the event loop continue meanwhile."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from streamkit.framing.frame import SLICE_BYTES, counted_values

T = TypeVar("T")
#: Below these limits the work takes only milliseconds, and a thread would cost more than it saves. This one: bytes.
HEAVY_BYTES: Final = 256 * 1024
#: The other limit: JSON values.
HEAVY_VALUES: Final = 2000
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


async def beside(work: Callable[[], T]) -> T:
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
            # nothing is frozen yet: objects that other code froze, as the gateway does, must stay frozen
            if not gc.get_freeze_count():
                gc.freeze()  # freeze and unfreeze make all objects old, so no young ones are scanned
                gc.unfreeze()
            gc.enable()
