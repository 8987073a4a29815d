"""Large requests are translated in a thread, one at a time, so that the streams of the event loop go on meanwhile."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from streamkit.framing.value_count import SLICE_BYTES, counted_values

T = TypeVar("T")
#: What has less of both takes milliseconds, and a thread would cost more than it saves.
HEAVY_BYTES: Final = 256 * 1024
HEAVY_VALUES: Final = 2000
#: How long a thread keeps the interpreter while the event loop wants it. With CPython's 5 ms each write of a stream waits as
#: long, since the loop lets go of the interpreter in it.
SWITCH_S: Final = 0.0002

_ONE: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


def is_heavy(size_bytes: int, values: int) -> bool:
    """Whether a body has so many bytes or JSON values that translating it would hold the event loop."""
    return size_bytes > HEAVY_BYTES or values > HEAVY_VALUES


async def count_values(text: bytes, most: int) -> int:
    """How many JSON values a text has; any number beyond ``most`` where it is more. Other answers go on meanwhile."""
    values = 0
    for values in counted_values(text):
        if values > most:
            break
        if len(text) > SLICE_BYTES:
            await asyncio.sleep(0)
    return values


async def beside(work: Callable[[], T]) -> T:
    """What ``work`` returns, done in a thread. Whoever is cancelled leaves once it is done: it can't be stopped."""
    loop = asyncio.get_running_loop()
    one = _ONE.get(loop) or _ONE.setdefault(loop, asyncio.Semaphore(1))
    async with one:
        with _in_short_turns():
            done = loop.run_in_executor(None, work)
            try:
                return await asyncio.shield(done)
            finally:
                await asyncio.wait({done})
                del done  # its error has this frame in its traceback: a cycle that would keep the request


@contextmanager
def _in_short_turns() -> Iterator[None]:
    """Let a thread give the interpreter back soon, and collect no garbage meanwhile.

    Three or four collections went through all that is made of a body of 240,000 values, and held the interpreter for 20 to
    90 ms each; one of the young objects behind it takes 30 ms.
    """
    before, collects = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(min(before, SWITCH_S))
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        if collects:
            if not gc.get_freeze_count():  # whoever froze objects, as the gateway does, wants them to stay so
                gc.freeze()  # both together make all objects old, the work's too, so that not even the young are looked at
                gc.unfreeze()
            gc.enable()
