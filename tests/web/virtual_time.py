"""An event loop whose clock jumps: waiting for ten minutes takes no time, and every test sees the same.

When nothing is ready, the clock goes to the next timer. When there is none either, nothing could ever happen, and the loop
says so instead of hanging. For code without sockets and threads: theirs is real time, which passes beside this one.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at 0 s. ``timers`` are those that are still to come."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        return self._now

    def skip(self, seconds: float | None) -> None:
        if seconds is None:
            raise RuntimeError("everything waits, and no timer is set: in virtual time nothing can happen any more")
        self._now += seconds

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # no public way to see them
        return [handle for handle in scheduled if not handle.cancelled()]


class _Skipping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready: list[Any] = super().select(0)
        if not ready and timeout != 0:
            self._loop.skip(timeout)
        return ready
