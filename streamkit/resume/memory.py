"""The logs of one process, in its memory: the default store, which needs no installation.

Each log is one growing array, so a response of many small events takes little more than its bytes. Ended logs are kept for
``ttl_s`` seconds. If the memory for all logs is full, the logs that ended first are dropped. All logs end with the process.

Source: resume.md §12, §14.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final

from streamkit.errors import SourceFailed, StreamError
from streamkit.resume.closing import closing
from streamkit.resume.log import (
    DEFAULT_LOG_LIMITS,
    BadCursor,
    End,
    LogGone,
    LogLimits,
    Lost,
    Meta,
    StoreDown,
    boot_in,
    checked_id,
    is_owner,
)
from streamkit.text.identifiers import random_id

READ_BYTES: Final = 64 * 1024  #: the most bytes of a log that a reader gets at once
BROKEN_OFF: Final = "the response was interrupted; retry the request"
LOG_OVERHEAD: Final = 2048  #: the estimated memory of a log in addition to the log's bytes
#: The memory of a value in addition to its bytes and names (measured: 493 bytes, including its timer).
VALUE_OVERHEAD: Final = 512


def new_boot() -> str:
    """Return a unique name for this process."""
    return secrets.token_urlsafe(9)


class MemoryStore:
    """A store in the memory of this process. ``boot`` is the process's name, if other processes may look for its logs."""

    def __init__(self, limits: LogLimits = DEFAULT_LOG_LIMITS, *, boot: str = "") -> None:
        self.limits = limits
        self.boot = boot
        self.held_bytes = 0  #: memory of all logs and values
        self.lost: Counter[Lost] = Counter()  #: the number of lost logs, by reason
        self._logs: dict[str, MemoryLog] = {}
        self._ended: dict[str, MemoryLog] = {}  # ended logs; the one that ended first comes first
        self._values: dict[str, tuple[str, bytes]] = {}  # by name: the owner and the bytes of each value
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def live(self) -> int:
        """The number of logs in progress."""
        return len(self._logs) - len(self._ended)

    @property
    def kept(self) -> int:
        """The number of ended logs that can be read."""
        return len(self._ended)

    async def start(self) -> None:
        """Do nothing: there is no server."""

    def new_id(self, prefix: str = "st_") -> str:
        return random_id(prefix) + (f".{self.boot}" if self.boot else "")

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> MemoryLog:
        if checked_id(log_id) in self._logs:
            raise StoreDown("a log with this id already exists")
        if not self.make_room(LOG_OVERHEAD):
            raise StoreDown("the memory for logs in this process is full")
        log = self._logs[log_id] = MemoryLog(self, log_id, meta, stop)
        self.held_bytes += LOG_OVERHEAD
        return log

    async def open(self, log_id: str, owner: str = "", after: int = 0) -> MemoryReading:
        return await self._found(log_id, owner).open(after)

    async def stop(self, log_id: str, owner: str = "") -> None:
        log = self._found(log_id, owner)
        if log.ended is None:
            log.stop()

    async def delete(self, log_id: str, owner: str = "") -> None:
        log = self._found(log_id, owner)
        if log.ended is None:
            log.stop()
        self.forget(log)

    async def save(self, name: str, data: bytes, owner: str = "", ttl_s: float | None = None) -> None:
        self._forget_value(name)
        size = _size(name, owner, data)
        if not self.make_room(size):
            raise StoreDown("the memory for values in this process is full")
        self._values[name] = owner, data
        self.held_bytes += size
        kept_s = self.limits.ttl_s if ttl_s is None else ttl_s
        self._timers[name] = asyncio.get_running_loop().call_later(kept_s, self._forget_value, name)

    async def load(self, name: str, owner: str = "") -> bytes:
        owned, data = self._values.get(name, ("", None))
        if data is None or not is_owner(owned, owner):
            raise LogGone
        return data

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for log in list(self._logs.values()):
            self.forget(log)
        for name in list(self._values):
            self._forget_value(name)
        self._timers.clear()

    def find(self, log_id: str) -> MemoryLog | None:
        """Return a log without checking its owner."""
        return self._logs.get(log_id)

    def _found(self, log_id: str, owner: str) -> MemoryLog:
        """Return a log that ``owner`` may read. Raises LogGone."""
        log = self._logs.get(log_id)
        if log is None or not is_owner(log.meta.owner, owner) or boot_in(log_id) != self.boot:
            raise LogGone
        return log

    # -- called by logs --------------------------------------------------------------------------------------------

    def make_room(self, size: int) -> bool:
        """Drop ended logs, then values, until ``size`` more bytes fit. Return whether they fit."""
        while self.held_bytes + size > self.limits.all_bytes and self._ended:
            self.forget(next(iter(self._ended.values())))
        while self.held_bytes + size > self.limits.all_bytes and self._values:
            self._forget_value(next(iter(self._values)))
        return self.held_bytes + size <= self.limits.all_bytes

    def has_ended(self, log: MemoryLog) -> None:
        if self._logs.get(log.id) is log:
            self._ended[log.id] = log
            self._timers[log.id] = asyncio.get_running_loop().call_later(self.limits.ttl_s, self.forget, log)

    def forget(self, log: MemoryLog) -> None:
        """Drop a log. Its readers get LogGone. Its bytes count against the limit until the last reader has left."""
        if self._logs.pop(log.id, None) is not None:
            log.drop()
        self._ended.pop(log.id, None)
        timer = self._timers.pop(log.id, None)
        if timer is not None:
            timer.cancel()

    def _forget_value(self, name: str) -> None:
        if (value := self._values.pop(name, None)) is not None:
            self.held_bytes -= _size(name, *value)
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()


class MemoryLog:
    """A log of ``MemoryStore``."""

    def __init__(self, store: MemoryStore, log_id: str, meta: Meta, stop: Callable[[], None]) -> None:
        self.id = log_id
        self.meta = meta
        self.stop = stop
        self.size = 0
        self.lost: Lost | None = None
        self.ended: End | None = None
        self.readers = 0
        self._store = store
        self._allowed = store.limits.log_bytes
        self.data = bytearray()
        self.is_there = True  #: whether the log still has its bytes; False: dropped to make room
        self._waiting: set[asyncio.Future[None]] = set()
        self._read_at: float | None = None

    @property
    def read_at(self) -> float | None:
        return asyncio.get_running_loop().time() if self.readers else self._read_at

    def append(self, data: bytes, /) -> None:
        if self.ended is not None or not data:
            return
        size = len(data)
        self.size += size
        if self.lost is not None:
            return
        store = self._store
        # checked here, since it is nearly always true and saves a call of `make_room`
        is_roomy = store.held_bytes + size <= store.limits.all_bytes
        if self.is_there and self.size <= self._allowed and (is_roomy or store.make_room(size)):
            self.data += data
            store.held_bytes += size
            if self._waiting:
                self._wake()
        else:
            self.give_up("gone" if not self.is_there else "too_long" if self.size > self._allowed else "full")

    def end(self, why: End, data: bytes = b"", /) -> None:
        if self.ended is None and why == "aborted":
            data += closing(self.meta, bytes(self.data) + data, SourceFailed(BROKEN_OFF))
        self.append(data)
        if self.ended is None:
            self.ended = why
            self.stop = lambda: None  # drop the reference to the callback, which keeps the response's objects in memory
            self._store.has_ended(self)
            self._wake()

    def discard(self) -> None:
        self.ended = self.ended or "cancelled"
        self.stop = lambda: None
        self._store.forget(self)

    async def open(self, after: int = 0, /) -> MemoryReading:
        if not self.is_there or self.lost is not None:
            raise LogGone
        if after > self.size:
            raise BadCursor(f"the cursor {after:,} is after the end of the response, which has {self.size:,} bytes")
        if self.readers >= self._store.limits.readers:
            raise StoreDown(f"this response already has {self.readers} readers; retry later")
        return MemoryReading(self, after)

    def drop(self) -> None:
        """Drop the log. Only present readers keep its bytes, to write an error that continues the stream."""
        self.is_there = False
        self._wake()
        self._free()

    def _free(self) -> None:
        if not self.is_there and not self.readers:
            self._store.held_bytes -= LOG_OVERHEAD + len(self.data)
            self.data.clear()

    def give_up(self, why: Lost) -> None:
        """Mark the log as lost, and drop it even if it has readers."""
        self.lost = why
        self._store.lost[why] += 1
        self._store.forget(self)

    def since(self, position: int) -> bytes:
        """Return the next bytes after ``position``, if any. Raises LogGone."""
        if not self.is_there or self.lost is not None:
            raise LogGone(
                "the response is no longer kept" if self.lost is None else f"the response was lost: {self.lost}"
            )
        return bytes(self.data[position : position + READ_BYTES])

    async def grown(self) -> None:
        """Wait until the log has more bytes or its end."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def left(self) -> None:
        """Called when a reader stops reading this log."""
        self.readers -= 1
        self._read_at = asyncio.get_running_loop().time()
        self._free()

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


class MemoryReading:
    """One reader of a ``MemoryLog``."""

    def __init__(self, log: MemoryLog, position: int) -> None:
        self.meta = log.meta
        self._log = log
        self._position = position
        self._is_open = True
        log.readers += 1

    @property
    def ended(self) -> End | None:
        return self._log.ended if self._position >= self._log.size else None

    def __aiter__(self) -> MemoryReading:
        return self

    async def __anext__(self) -> bytes:
        while self._is_open:
            if data := self._log.since(self._position):
                self._position += len(data)
                return data
            if self._log.ended is not None:
                break
            await self._log.grown()
        raise StopAsyncIteration

    async def closing(self, position: int, error: StreamError) -> bytes:
        return closing(self.meta, bytes(self._log.data[:position]) if self._is_open else b"", error)

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._log.left()


def _size(name: str, owner: str, data: bytes) -> int:
    """Return how many bytes of memory a value takes."""
    return VALUE_OVERHEAD + len(name) + len(owner) + len(data)
