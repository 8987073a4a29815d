"""The logs that this process writes: each is in memory first, and is copied to Redis in the background.

Appending never waits. One task writes for all logs, in one round trip every ``flush_s`` seconds, and at once for first bytes
and ends. An append stays the same until Redis has it, so a retry creates no duplicate. Readers in this process read the copy
in memory, which is dropped once the end is stored.

A log is lost if it is too long, if Redis is unreachable for too long or has lost it, or if other processes considered this one
dead. The client does not notice. A lost log is deleted in Redis, so that its readers don't wait for an end.

Source: resume.md §7.2, §7.3, §7.7, §10.3, §11; R4, R12, R23, R25.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from streamkit.limits import MIB
from streamkit.resume import MemoryStore, Reading
from streamkit.resume.log import End, LogGap, LogGone, Lost, StoreDown
from streamkit.resume.memory import MemoryLog
from streamkit.resume.redis_client import AGAIN_S, Calls, is_smaller
from streamkit.resume.redis_entries import Append, Command, newest_in

TRIP_BYTES: Final = 4 * MIB  #: the most bytes sent in one round trip, which must finish within the time limit of a call
WAIT_MS: Final = 100  #: milliseconds that Redis waits for its replicas (resume.md §11.1, where this is measured)
TOUCH_S: Final = 60.0  #: seconds between two renewals of the time to live of a log that is being written
MARGIN_S: Final = 120.0  #: how many seconds longer than ``ttl_s`` such a log lives after each renewal


class RedisLog:
    """A log of ``RedisStore`` that this process writes."""

    def __init__(
        self, writer: Writer, key: bytes, copy: MemoryLog, elsewhere: Callable[[int], Awaitable[Reading]]
    ) -> None:
        self.id = copy.id
        self.key = key
        self.copy = copy
        self.stored = 0  #: bytes that are in Redis
        self.trying: Append | None = None  #: an append that was sent but not confirmed; Redis may have it
        self.is_again = False  #: whether ``trying`` was sent more than once
        self.waiting = 0  #: bytes of this log that are included in the writer's ``behind_bytes``
        self.told_at: float | None = None  #: the event loop's time of the last message that another process reads it
        self.is_doubtful = False  #: another process may have ended the log, so readers here must check Redis first
        self._writer = writer
        self._elsewhere = elsewhere

    @property
    def size(self) -> int:
        return self.copy.size

    @property
    def lost(self) -> Lost | None:
        return self.copy.lost

    @property
    def behind(self) -> int:
        """The number of bytes that are not in Redis."""
        return self.copy.size - self.stored

    @property
    def read_at(self) -> float | None:
        return max((at for at in (self.copy.read_at, self.told_at) if at is not None), default=None)

    def append(self, data: bytes, /) -> None:
        before = self.copy.size
        self.copy.append(data)
        self._writer.grew(self, self.copy.size - before, at_once=not before)

    def end(self, why: End, data: bytes = b"", /) -> None:
        if self.copy.ended is None:
            before = self.copy.size
            self.copy.end(why, data)
            self._writer.grew(self, self.copy.size - before, at_once=True)

    def discard(self) -> None:
        self.copy.discard()
        self._writer.drop(self)

    async def open(self, after: int = 0, /) -> Reading:
        if self.lost is not None:
            raise LogGone(f"the answer is lost: {self.lost}")
        return await (self.copy.open(after) if self.copy.is_there else self._elsewhere(after))

    def next(self) -> Append | None:
        """Return the next append to send. Return the same append until Redis has stored it. None: there is nothing to send."""
        copy = self.copy
        if self.trying is None and (self.stored < copy.size or copy.ended is not None):
            data = copy.data_from(self.stored)
            self.trying, self.is_again = Append(begin=self.stored, data=data, ended=copy.ended), False
        return self.trying


@frozen(kw_only=True)
class Writing:
    """How logs are written; see ``RedisSettings``."""

    ttl_s: float
    flush_s: float
    behind_bytes: int
    all_behind_bytes: int
    wait_replicas: int


class Writer:
    """Writes the logs of a process to Redis."""

    def __init__(self, calls: Calls, copies: MemoryStore, writing: Writing) -> None:
        self.live: dict[str, RedisLog] = {}  #: logs whose end is not in Redis yet
        self.behind_bytes = 0  #: bytes of all logs that are not in Redis yet
        self.lost: Counter[Lost] = Counter()
        self._calls = calls
        self._copies = copies
        self._writing = writing
        self._dirty: dict[str, RedisLog] = {}  # live logs with something to send
        self._doomed: dict[bytes, None] = {}  # keys of logs to delete
        self._settled: set[RedisLog] = set()  # ended logs whose copies in memory still have readers
        self._dirty_since: float | None = None
        self._touched_at = 0.0
        self._wake, self._urgent = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def behind_s(self) -> float:
        """Seconds that the oldest bytes have been waiting for Redis."""
        return 0.0 if self._dirty_since is None else self._loop.time() - self._dirty_since

    @property
    def is_idle(self) -> bool:
        return not self._dirty and not self._doomed

    def add(self, log: RedisLog) -> None:
        self.live[log.id] = log

    def grew(self, log: RedisLog, size: int, *, at_once: bool) -> None:
        """Called when ``log`` has ``size`` more bytes, or has ended."""
        if log.id not in self.live:
            return
        if log.copy.lost is not None:
            self._lose(log, log.copy.lost)
            return
        self.behind_bytes += size
        log.waiting += size
        if log.waiting > self._writing.behind_bytes or self.behind_bytes > self._writing.all_behind_bytes:
            self._lose(log, "behind")
        elif at_once or log.id not in self._dirty:
            self._dirty[log.id] = log
            if self._dirty_since is None:
                self._dirty_since = self._loop.time()
            self._awake(at_once=at_once)

    def drop(self, log: RedisLog) -> None:
        """Forget a log, here and in Redis."""
        self._forget(log)
        self.delete(log.key)

    def delete(self, key: bytes) -> None:
        """Delete a log once Redis can be reached."""
        self._doomed[key] = None
        self._awake(at_once=False)

    def sweep(self) -> None:
        """Drop the copies that nothing reads any more, of logs that are completely in Redis."""
        for log in [log for log in self._settled if not log.copy.readers]:
            self._settled.discard(log)
            self._copies.forget(log.copy)

    async def touch(self) -> None:
        """Renew the time to live of all live logs. Raises StoreDown."""
        if self.live and self._loop.time() - self._touched_at >= TOUCH_S:
            await self._calls.each([("PEXPIRE", log.key, self._live_ms) for log in self.live.values()])
            self._touched_at = self._loop.time()

    def doubt(self) -> None:
        """Mark all live logs: other processes may have considered this one dead, and ended them."""
        for log in self.live.values():
            log.is_doubtful = True

    async def look_at(self, log: RedisLog) -> None:
        """Check a log that ``doubt`` marked. If another process has ended the log, mark it as lost. Raises StoreDown."""
        why = await self._refusal(log, log.trying)
        if why is not None and log.id in self.live:  # otherwise it was already stored or lost
            self._lose(log, why)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._writing.flush_s):
                    await self._urgent.wait()
            self._wake.clear()
            self._urgent.clear()
            if not await self._flush():
                await asyncio.sleep(AGAIN_S)
                self._wake.set()

    # -- round trips -----------------------------------------------------------------------------------------------

    @property
    def _live_ms(self) -> int:
        return int((self._writing.ttl_s + MARGIN_S) * 1000)

    def _awake(self, *, at_once: bool) -> None:
        self._wake.set()
        if at_once:
            self._urgent.set()

    async def _flush(self) -> bool:
        """Send what is waiting. Return whether Redis took all of it."""
        batch, doomed = self._batch(), list(self._doomed)
        commands: list[Command] = []
        expiries: list[Command] = []
        for log, append in batch:
            commands.append(append.command(log.key))
            # a repeated append may be stored already; WAIT confirms only this connection's writes, and PEXPIRE is one (§7.12)
            if log.is_again or append.ended is not None:
                lives_ms = self._live_ms if append.ended is None else int(self._writing.ttl_s * 1000)
                expiries.append(("PEXPIRE", log.key, lives_ms))
            log.is_again = True
        commands += expiries
        commands += (("DEL", key) for key in doomed)
        if batch and self._writing.wait_replicas:
            commands.append(("WAIT", self._writing.wait_replicas, WAIT_MS))
        try:
            answers = await self._calls.each(commands)
        except StoreDown:
            return False
        well = not any(isinstance(answer, Exception) for answer in answers[len(batch) :])
        if well:
            for key in doomed:
                self._doomed.pop(key, None)
        confirmed = not batch or not self._writing.wait_replicas or _count(answers[-1]) >= self._writing.wait_replicas
        for (log, append), answer in zip(batch, answers, strict=False):
            if confirmed and isinstance(answer, bytes) and log.id in self.live:  # nearly always
                self._stored(log, append)
            else:
                well &= await self._took(log, append, answer, confirmed=confirmed)
        self._seen()
        return well and confirmed

    def _batch(self) -> list[tuple[RedisLog, Append]]:
        """Return what to send, the oldest first."""
        batch, size = [], 0
        for log in list(self._dirty.values()):
            if not log.copy.is_there:  # the copy was dropped to make room before it was written
                self._lose(log, "full")
            elif (append := log.next()) is not None:
                batch.append((log, append))
                size += len(append.data)
            if size >= TRIP_BYTES:
                self._awake(at_once=True)
                break
        return batch

    async def _took(self, log: RedisLog, append: Append, answer: Any, *, confirmed: bool) -> bool:
        """Handle the answer to an append. Return False if it must be sent again."""
        if log.id not in self.live:  # it was lost during the call
            return True
        try:
            why = await self._refusal(log, append) if is_smaller(answer) else "gone" if answer is None else None
        except StoreDown:
            return False
        if why is not None:
            self._lose(log, why)
        elif isinstance(answer, Exception) and not is_smaller(answer):
            return False
        elif confirmed:
            self._stored(log, append)
        return True

    async def _refusal(self, log: RedisLog, append: Append | None) -> Lost | None:
        """Return why nothing can be appended to a log. None: it can, or ``append`` is stored by an earlier attempt.

        Raises StoreDown.
        """
        found = await self._calls.call("XREVRANGE", log.key, "+", "-", "COUNT", 1)
        if not found:
            return "gone"
        try:
            newest = newest_in(found)
        except LogGap:
            return "sealed"
        if newest.ended is None:
            return None
        is_ours = append is not None and (newest.ended, newest.begin) == (append.ended, append.begin)
        return None if is_ours and not newest.is_seal else "sealed"

    def _stored(self, log: RedisLog, append: Append) -> None:
        log.stored, log.trying = append.end, None
        log.waiting -= len(append.data)
        self.behind_bytes -= len(append.data)
        if append.ended is not None:
            self._forget(log)
            self._settled.add(log)
            self.sweep()
            return
        self._dirty.pop(log.id)
        if log.stored < log.copy.size or log.copy.ended is not None:
            self._dirty[log.id] = log  # at the end of the queue
            self._wake.set()

    def _lose(self, log: RedisLog, why: Lost) -> None:
        self.lost[why] += 1
        log.copy.give_up(why)
        self._forget(log)
        if why not in {"gone", "sealed"}:
            self.delete(log.key)

    def _forget(self, log: RedisLog) -> None:
        self.live.pop(log.id, None)
        self._dirty.pop(log.id, None)
        self.behind_bytes -= log.waiting
        log.waiting = 0
        self._seen()

    def _seen(self) -> None:
        if not self._dirty:
            self._dirty_since = None


def _count(answer: object) -> int:
    return answer if isinstance(answer, int) else 0
