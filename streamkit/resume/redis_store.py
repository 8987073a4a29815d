"""The store for several nodes: logs in Redis or Valkey, which every process of every node can read and stop.

A process writes each log to Redis in the background (``redis_writing``), and reads the logs of other processes
(``redis_reading``). Other processes consider it alive as long as its message key exists; each beat renews this key. Messages
ask a process to end a response, or tell it that a log is being read. Without Redis, responses continue but can't be resumed.

Source: resume.md §7, §10, §12; R10, R11, R22.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from math import inf
from typing import Any, Final

from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.limits import MIB
from streamkit.resume import MemoryStore
from streamkit.resume.log import (
    DEFAULT_LOG_LIMITS,
    BadCursor,
    LogGap,
    LogGone,
    LogLimits,
    Lost,
    Meta,
    Reading,
    StoreDown,
    checked_id,
    is_owner,
)
from streamkit.resume.memory import new_boot
from streamkit.resume.redis_client import CALL_S, Calls, faults_of, is_smaller
from streamkit.resume.redis_entries import INBOX_MESSAGES, Entry, Keys, creation, message, meta_in, newest_in
from streamkit.resume.redis_reading import Hub, RedisReading
from streamkit.resume.redis_writing import MARGIN_S, RedisLog, Writer, Writing
from streamkit.text.identifiers import random_id

events = logging.getLogger("streamkit.resume")

CLOSE_S: Final = 2.0  #: seconds for writing the remaining bytes when the store is closed
BEATS: Final = 3.3  #: how many heartbeats a process writes to Redis within one lease


@frozen(kw_only=True)
class RedisSettings:
    """How Redis is used. resume.md §14 has the reasons for the defaults."""

    prefix: str = "sk"  #: The prefix of all keys. Other users of the same Redis need another prefix.
    #: Seconds without a heartbeat after which other processes consider a process dead.
    lease_s: float = field(default=10.0, validator=gt(0))
    #: Seconds that bytes wait so that several writes go to Redis together.
    flush_s: float = field(default=0.05, validator=ge(0))
    retry_s: float = field(default=10.0, validator=ge(0))  #: seconds that readers retry while Redis can't be reached
    call_s: float = field(default=CALL_S, validator=gt(0))
    #: Bytes that may wait to be written to Redis: for one log, and for all logs of a process.
    behind_bytes: int = field(default=MIB, validator=ge(1))
    all_behind_bytes: int = field(default=64 * MIB, validator=ge(1))
    #: How many replicas must confirm an append before its bytes count as written.
    wait_replicas: int = field(default=0, validator=ge(0))


DEFAULT_REDIS_SETTINGS: Final = RedisSettings()


class RedisStore:
    """A store in the Redis or Valkey at ``url``. ``boot`` is this process's name for others."""

    def __init__(
        self,
        url: str,
        limits: LogLimits = DEFAULT_LOG_LIMITS,
        settings: RedisSettings = DEFAULT_REDIS_SETTINGS,
        *,
        boot: str = "",
    ) -> None:
        self.limits = limits
        self.settings = settings
        self.boot = boot or new_boot()
        self.calls = Calls(url, call_s=settings.call_s)
        self._keys = Keys(settings.prefix)
        self._copies = MemoryStore(limits)
        self._readers: Counter[str] = Counter()  # number of readers here, for each log that another process writes
        self._tasks: list[asyncio.Task[None]] = []
        self._refused = "the store was not reached yet"  # the reason why no log can be created now
        self._is_checked = self._is_down = False
        self._alive_at = -inf  # the event loop's time of the last successful beat
        self._loop: asyncio.AbstractEventLoop
        self._writer: Writer
        self._hub: Hub

    # -- values for metrics ----------------------------------------------------------------------------------------

    @property
    def live(self) -> int:
        """The number of this process's logs whose end is not in Redis yet."""
        return len(self._writer.live) if self._tasks else 0

    @property
    def kept(self) -> int:
        """The number of ended logs that are still in this process's memory. All others are in Redis."""
        return self._copies.kept

    @property
    def held_bytes(self) -> int:
        """The memory for copies of logs in this process."""
        return self._copies.held_bytes

    @property
    def behind_bytes(self) -> int:
        """The number of bytes that are not in Redis yet."""
        return self._writer.behind_bytes if self._tasks else 0

    @property
    def behind_s(self) -> float:
        """Seconds that the oldest bytes have been waiting for Redis."""
        return self._writer.behind_s if self._tasks else 0.0

    @property
    def lost(self) -> Counter[Lost]:
        return self._writer.lost if self._tasks else Counter()

    @property
    def errors(self) -> Counter[str]:
        """Failed calls by kind: ``unreachable``, ``timeout``, ``refused``."""
        return self.calls.errors

    # -- the methods of Store --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to the server, and keep trying. Never raises."""
        if not self._tasks:
            loop = self._loop = asyncio.get_running_loop()
            settings = self.settings
            writing = Writing(
                ttl_s=self.limits.ttl_s,
                flush_s=settings.flush_s,
                behind_bytes=settings.behind_bytes,
                all_behind_bytes=settings.all_behind_bytes,
                wait_replicas=settings.wait_replicas,
            )
            self._writer = Writer(self.calls, self._copies, writing)
            self._hub = Hub(self.calls, self._keys, self.boot, self._on_message, retry_s=settings.retry_s)
            runs: list[Coroutine[Any, Any, None]] = [self._writer.run(), self._hub.run(), self._beat_on()]
            self._tasks = [loop.create_task(run) for run in runs]
            for task in self._tasks:
                task.add_done_callback(_ended)
            await self._beat()

    def new_id(self, prefix: str = "st_") -> str:
        return random_id(prefix)

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> RedisLog:
        await self.start()
        if self._refused:
            raise StoreDown(self._refused)
        key = self._keys.log(log_id)
        copy = await self._copies.create(log_id, meta, stop)
        lives_ms = int((self.limits.ttl_s + MARGIN_S) * 1000)
        try:
            await self.calls.all(creation(key, meta, self.boot), ("PEXPIRE", key, lives_ms), atomic=True)
        except BaseException as error:
            self._copies.forget(copy)
            if is_smaller(error.__cause__):
                raise StoreDown("there is a log of that id already") from error
            self._writer.delete(key)  # Redis may have created the key although the call failed
            raise
        log = RedisLog(self._writer, key, copy, lambda after: self._open(log_id, meta.owner, after))
        self._writer.add(log)
        return log

    async def open(self, log_id: str, owner: str = "", after: int = 0) -> Reading:
        await self.start()
        if self._copies.find(checked_id(log_id)) is not None:
            await self._look_again(log_id)
        if self._copies.find(log_id) is not None:
            return await self._copies.open(log_id, owner, after)
        return await self._open(log_id, owner, after)

    async def stop(self, log_id: str, owner: str = "") -> None:
        await self.start()
        if self._copies.find(checked_id(log_id)) is not None:
            await self._copies.stop(log_id, owner)
            return
        _, node, newest = await self._found(log_id, owner)
        if newest.ended is None:  # nobody answers if that process is dead; the log's readers then end the log
            await self.calls.call(*message(self._keys.node(node), "stop", log_id))

    async def delete(self, log_id: str, owner: str = "") -> None:
        await self.stop(log_id, owner)
        written = self._writer.live.get(log_id)
        if written is not None:
            written.discard()
        await self.calls.call("DEL", self._keys.log(log_id))
        if (copy := self._copies.find(log_id)) is not None:
            self._copies.forget(copy)

    async def save(self, name: str, data: bytes, owner: str = "", ttl_s: float | None = None) -> None:
        ttl_ms = max(1, int((self.limits.ttl_s if ttl_s is None else ttl_s) * 1000))
        await self.calls.call("SET", self._keys.value(name), b"%b\n%b" % (owner.encode(), data), "PX", ttl_ms)

    async def load(self, name: str, owner: str = "") -> bytes:
        found = await self.calls.call("GET", self._keys.value(name))
        owned, newline, data = (found or b"").partition(b"\n")
        if not newline or not is_owner(owned.decode("latin-1"), owner):
            raise LogGone
        return bytes(data)

    async def close(self) -> None:
        if self._tasks:
            for log in list(self._writer.live.values()):
                log.end("aborted")
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    while not self._writer.is_idle:  # noqa: ASYNC110 - rare, and as short as a round trip
                        await asyncio.sleep(0.005)
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            with suppress(StoreDown):  # if this fails, other processes notice when the lease expires
                await self.calls.call("DEL", self._keys.node(self.boot))
        await self._copies.close()
        await self.calls.close()

    # -- logs of other processes -----------------------------------------------------------------------------------

    async def _open(self, log_id: str, owner: str, after: int) -> RedisReading:
        meta, node, newest = await self._found(log_id, owner)
        has_whole_end = newest.ended is not None and not newest.is_seal
        # a client may already have bytes that are not in Redis yet, or never will be
        ahead = (newest.begin if newest.is_seal else newest.end) + self.settings.behind_bytes
        allowed = newest.end if has_whole_end else ahead
        if after > allowed:
            raise BadCursor(f"the cursor {after:,} lies behind the {newest.end:,} bytes that there are")
        if self._readers[log_id] >= self.limits.readers:
            raise StoreDown(f"{self._readers[log_id]} readers are at this answer already; ask again")
        self._readers[log_id] += 1
        reading = RedisReading(self._hub, log_id, meta, node, after, lease_s=self.settings.lease_s, left=self._has_left)
        if has_whole_end and after == newest.end:
            reading.ended = newest.ended
        return reading

    async def _found(self, log_id: str, owner: str) -> tuple[Meta, str, Entry]:
        """Return what is known of a log, its process, and its last entry. Raises LogGone and StoreDown."""
        key = self._keys.log(log_id)
        first, newest = await self.calls.all(("XRANGE", key, "0-1", "0-1"), ("XREVRANGE", key, "+", "-", "COUNT", 1))
        found = meta_in(first)
        if found is None or not is_owner(found[0].owner, owner):
            raise LogGone
        try:
            return *found, newest_in(newest)
        except LogGap as error:
            raise StoreDown(str(error)) from error

    def _has_left(self, log_id: str) -> None:
        self._readers[log_id] -= 1
        if not self._readers[log_id]:
            del self._readers[log_id]

    # -- heartbeats ------------------------------------------------------------------------------------------------

    async def _look_again(self, log_id: str) -> None:
        """Before a local copy of a log is read, check whether others ended the log while this process was silent for a lease.

        If they did, the log is lost. If the store can't be asked, readers may use the copy, since its content is correct.
        """
        if self._loop.time() - self._alive_at >= self.settings.lease_s:
            self._writer.doubt()
            await self._beat()  # the heartbeat, so that no other process considers this one dead
        log = self._writer.live.get(log_id)
        if log is not None and log.is_doubtful:
            with suppress(StoreDown):
                await self._writer.look_at(log)

    def _on_message(self, word: str, log_id: str) -> None:
        """Handle a message from another process, or from a reader in this process."""
        log = self._writer.live.get(log_id)
        if log is not None and word == "stop":
            log.copy.stop()
        elif log is not None and word == "read":
            log.told_at = self._loop.time()

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(self.settings.lease_s / BEATS)
            await self._beat()

    async def _beat(self) -> None:
        """Report that this process is alive and which logs it reads. If the store was unusable, check it again."""
        key, lease_ms = self._keys.node(self.boot), int(self.settings.lease_s * 1000)
        at = self._loop.time()
        alive = ("XADD", key, "MAXLEN", "~", INBOX_MESSAGES, "*", "m", "beat ")
        try:
            if not self._is_checked:
                await self._check()
            await self.calls.all(alive, ("PEXPIRE", key, lease_ms), atomic=True)
            if at - self._alive_at >= self.settings.lease_s:
                self._writer.doubt()
            self._alive_at = at
            await self.calls.each([message(self._keys.node(node), "read", log_id) for node, log_id in self._hub.read])
            await self._writer.touch()
        except StoreDown as error:
            self._note(str(error))
        else:
            self._note("")
        self._writer.sweep()

    async def _check(self) -> None:
        """Check the server, which may have been replaced, and log what is wrong with it. Raises StoreDown."""
        self._refused, remarks = await faults_of(self.calls)
        for remark in filter(None, (self._refused, *remarks)):
            events.warning("the store of answers is not as it should be", extra={"fields": {"why": remark}})
        self._is_checked = True

    def _note(self, why: str) -> None:
        """Log that the store has become unreachable, or reachable again."""
        self._is_checked = self._is_checked and not why
        if why and not self._is_down:
            fields = {"why": why}
            events.warning("the store of answers can't be used; new ones can't be resumed", extra={"fields": fields})
        elif not why and self._is_down:
            events.warning("the store of answers can be used again")
        self._is_down = bool(why)


def _ended(task: asyncio.Task[None]) -> None:
    """Log the error of a task that should run forever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        events.error("a task of the store of answers failed", exc_info=error)
