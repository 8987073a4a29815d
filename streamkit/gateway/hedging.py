"""Run two attempts at once: the next upstream gets the request as well if one has emitted nothing for some seconds.

At most two attempts run at once, each in a task of its own, since a pipe is entered, driven and left by one task. The first
whose model has emitted something wins: only it may write to the client from then on, and the other one is cancelled, and its
connection closed. If that one was silent for the seconds of ``hedge_after_s``, it counts as a failure of its upstream
(``health.py``). If an attempt fails while another one runs, that one simply goes on as the next attempt.

Source: design.md §6.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from attrs import frozen

from streamkit.events import ProviderFailed
from streamkit.gateway.reasons import Reason
from streamkit.gateway.routing import Target
from streamkit.lab.inspector.captures import CAPTURE_BYTES, STEP_BYTES
from streamkit.read_options import ReadOptions
from streamkit.web.observers import Tap


@frozen
class Failure:
    """An attempt after which another upstream may be tried."""

    target: Target
    failed: ProviderFailed
    reasons: tuple[Reason, ...]
    upstream_headers: Mapping[str, str]  #: the headers of the response, if the upstream responded


#: The task of an attempt. It returns None after a success.
AttemptTask: TypeAlias = asyncio.Task[Failure | None]
AT_ONCE: Final = 2  #: the most attempts that run at the same time


class Race:
    """The attempts of one round. ``try_`` runs an attempt, and ``waiting`` has the upstreams that are tried next.

    An attempt that may begin to write calls ``claim`` in its own task.
    """

    def __init__(
        self, try_: Callable[[Target], Coroutine[Any, Any, Failure | None]], waiting: deque[Target], after_s: float
    ) -> None:
        self._try = try_
        self._waiting = waiting
        self._after_s = after_s
        self._loop = asyncio.get_running_loop()
        self._hedge_at = 0.0  # the time of the next attempt, if none has emitted anything until then
        self._running: dict[AttemptTask, Target] = {}  # in the order of their start
        self._later: list[AttemptTask] = []  # those that started after the attempt that ended last
        self._dropped: set[AttemptTask] = set()  # cancelled, and perhaps not over yet
        self._winner: AttemptTask | None = None

    @property
    def runs(self) -> bool:
        """Whether an attempt runs that was not dropped."""
        return any(task not in self._dropped for task in self._running)

    @property
    def is_dropped(self) -> bool:
        """Whether the attempt of the running task was dropped for another one."""
        return asyncio.current_task() in self._dropped

    @property
    def is_alone(self) -> bool:
        """Whether the attempt of the running task is the only one that runs."""
        mine = asyncio.current_task()
        return all(task is mine or task in self._dropped for task in self._running)

    @property
    def is_won(self) -> bool:
        """Whether the model of an attempt has emitted something."""
        return self._winner is not None

    async def ended(self) -> Failure | None:
        """Wait for the next attempt to end, and return its result. Meanwhile, begin the attempts that are due."""
        while True:
            if not self.runs:
                self._begin(self._waiting[0])
            may_begin = self._winner is None and len(self._running) < AT_ONCE
            # not the same upstream with its next key: it would be as slow
            another = next((each for each in self._waiting if may_begin and each not in self._running.values()), None)
            wait_s = None if another is None else max(0.0, self._hedge_at - self._loop.time())
            done, _ = await asyncio.wait(self._running, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if not done and self._winner is None and another is not None:
                self._begin(another)
            for task in [task for task in self._running if task in done]:
                later = list(self._running)
                later = later[later.index(task) + 1 :]
                del self._running[task]
                if task not in self._dropped and self._winner in {None, task}:
                    self._later = later
                    if not task.cancelled() and task.exception() is not None:
                        self._drop(self._running)
                    return task.result()
                self._dropped.discard(task)
                _forget(task)

    def claim(self) -> None:
        """Make the attempt of the running task the winner. Cancel the other one."""
        self._winner = asyncio.current_task()
        self._drop([task for task in self._running if task is not self._winner])

    def drop_later(self) -> None:
        """Cancel the attempts that started after the one that ended last."""
        self._drop(self._later)

    def _begin(self, target: Target) -> None:
        self._hedge_at = self._loop.time() + self._after_s
        self._waiting.remove(target)
        self._running[self._loop.create_task(self._try(target))] = target

    def _drop(self, tasks: Iterable[AttemptTask]) -> None:
        for task in tasks:
            if not task.done():
                self._dropped.add(task)
                task.cancel()

    async def close(self) -> None:
        """Cancel the attempts that run, and wait until they have closed what they opened."""
        for task in self._running:
            task.cancel()
        cancelled: asyncio.CancelledError | None = None
        while pending := [task for task in self._running if not task.done()]:
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError as error:  # a second cancellation must leave no attempt behind
                cancelled = error
        for task in self._running:
            _forget(task)
        self._running.clear()
        if cancelled is not None:
            raise cancelled


def _forget(task: asyncio.Task[Any]) -> None:
    """Mark the error of a task as seen: the attempt's record has it."""
    if not task.cancelled():
        task.exception()


class HeldTap:
    """Observes one attempt of a race. What it gets is passed on to ``tap`` once the attempt has won, or has failed.

    An upstream may send keep-alives without end, so at most ``CAPTURE_BYTES`` are held, which is all that a capture keeps. The
    bytes after them are counted.
    """

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._held: list[Callable[[], None]] | None = []
        self._room = CAPTURE_BYTES
        self._left_out = 0

    def release(self) -> None:
        held, self._held = self._held, None
        for call in held or ():
            call()
        if held is not None and self._room < 0:
            self._tap.leave_out(self._left_out)

    def attempt(self, upstream: str, dialect: str, options: ReadOptions, /) -> None:
        self._pass(partial(self._tap.attempt, upstream, dialect, options))

    def read(self, chunk: bytes, /) -> None:
        self._pass(partial(self._tap.read, chunk), len(chunk))

    def unread(self, data: bytes, /) -> None:
        self._pass(partial(self._tap.unread, data), -len(data))

    def wrote(self, data: bytes, /, *, keep_alive: bool = False) -> None:
        self._pass(partial(self._tap.wrote, data, keep_alive=keep_alive), len(data))

    def leave_out(self, size: int, /) -> None:
        self._pass(partial(self._tap.leave_out, size))

    def _pass(self, call: Callable[[], None], size: int = 0) -> None:
        """Pass on a call that brought ``size`` bytes; a negative size was put back."""
        if self._held is None:
            call()
        elif self._room >= 0 and (room := self._room - abs(size) - STEP_BYTES) >= 0:
            self._room = room
            self._held.append(call)
        else:
            self._room = -1
            self._left_out += size
