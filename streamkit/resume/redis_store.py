"""The store of several nodes: logs in Redis or Valkey, which any process of any node can read on, and stop.

A process writes its logs behind the client that is there (``redis_writing``), and reads those of others (``redis_reading``).
For others it lives as long as the key with the messages for it, which each beat makes anew; by such messages others ask it to
end an answer, and say that one is read. Without a store answers go on, but can't be resumed.

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
from streamkit.resume.identity import checked_id, is_owner
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
)
from streamkit.resume.memory import new_boot
from streamkit.resume.redis_client import CALL_S, Calls, faults_of, is_smaller
from streamkit.resume.redis_entries import INBOX_MESSAGES, Entry, Keys, creation, message, meta_in, newest_in
from streamkit.resume.redis_reading import Hub, RedisReading
from streamkit.resume.redis_writing import MARGIN_S, RedisLog, Writer, Writing
from streamkit.text.identifiers import random_id

events = logging.getLogger("streamkit.resume")

#: How long what is not written yet may take when the store is closed.
CLOSE_S: Final = 2.0
#: Beats in a lease.
BEATS: Final = 3.3


@frozen(kw_only=True)
class RedisSettings:
    """How Redis is used, with the reason for each default in resume.md §14."""

    #: The beginning of all keys; what else uses the same Redis has another.
    prefix: str = "sk"
    #: Silence of a process, and of a log, after which others take it for dead.
    lease_s: float = field(default=10.0, validator=gt(0))
    #: How long bytes wait for others, to be written together.
    flush_s: float = field(default=0.05, validator=ge(0))
    #: How long readers try again where Redis can't be reached.
    retry_s: float = field(default=10.0, validator=ge(0))
    call_s: float = field(default=CALL_S, validator=gt(0))
    #: Bytes of a log, and of all logs of a process, that may wait for Redis.
    behind_bytes: int = field(default=MIB, validator=ge(1))
    all_behind_bytes: int = field(default=64 * MIB, validator=ge(1))
    #: Replicas that must have bytes before they count as written.
    wait_replicas: int = field(default=0, validator=ge(0))


DEFAULT_REDIS_SETTINGS: Final = RedisSettings()


class RedisStore:
    """A store in the Redis, or Valkey, at ``url``. ``boot`` names this process to others."""

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
        self._readers: Counter[str] = Counter()  # of logs of others
        self._tasks: list[asyncio.Task[None]] = []
        self._refused = "the store was not reached yet"  # why no log is made
        self._is_checked = self._is_down = False
        self._alive_at = -inf  # the loop's time of the last beat that the store took
        self._loop: asyncio.AbstractEventLoop
        self._writer: Writer
        self._hub: Hub

    # -- what metrics say ------------------------------------------------------------------------------------------

    @property
    def live(self) -> int:
        """Logs of this process whose end is not in Redis."""
        return len(self._writer.live) if self._tasks else 0

    @property
    def kept(self) -> int:
        """Logs that ended and are still in this process's memory. All others are in Redis."""
        return self._copies.kept

    @property
    def held_bytes(self) -> int:
        """What the copies of logs take in this process."""
        return self._copies.held_bytes

    @property
    def behind_bytes(self) -> int:
        """Bytes that are not in Redis yet."""
        return self._writer.behind_bytes if self._tasks else 0

    @property
    def behind_s(self) -> float:
        """For how long something has been waiting to be written."""
        return self._writer.behind_s if self._tasks else 0.0

    @property
    def lost(self) -> Counter[Lost]:
        return self._writer.lost if self._tasks else Counter()

    @property
    def errors(self) -> Counter[str]:
        """Calls that failed, by kind: ``unreachable``, ``timeout``, ``refused``."""
        return self.calls.errors

    # -- the store -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Reach the server, and go on trying. Never raises."""
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
            self._writer.delete(key)  # it may be there
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
        if newest.ended is None:  # where the process is dead, readers end the log
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
                    while not self._writer.is_idle:  # noqa: ASYNC110 - seldom, and it takes a round trip
                        await asyncio.sleep(0.005)
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            with suppress(StoreDown):  # others find out by themselves
                await self.calls.call("DEL", self._keys.node(self.boot))
        await self._copies.close()
        await self.calls.close()

    # -- logs of others --------------------------------------------------------------------------------------------

    async def _open(self, log_id: str, owner: str, after: int) -> RedisReading:
        meta, node, newest = await self._found(log_id, owner)
        has_whole_end = newest.ended is not None and not newest.is_seal
        # a client may have bytes that did not come to the store yet, or never
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
        """What is known of a log, its process, and its last entry. Raises LogGone and StoreDown."""
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

    # -- being alive -----------------------------------------------------------------------------------------------

    async def _look_again(self, log_id: str) -> None:
        """Lose a log that others ended while this process was silent for a lease, before anybody reads its copy here.

        A store that can't be asked doesn't keep readers from the copy: what it holds is true.
        """
        if self._loop.time() - self._alive_at >= self.settings.lease_s:
            self._writer.doubt()
            await self._beat()  # from now on nobody takes this process for dead
        log = self._writer.live.get(log_id)
        if log is not None and log.is_doubtful:
            with suppress(StoreDown):
                await self._writer.look_at(log)

    def _on_message(self, word: str, log_id: str) -> None:
        """Another process, or a reader of this one, says something."""
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
        """Say that this process lives and what it reads; look whether the store is of use where it was not."""
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
        """Log what is wrong with the server, which may be another than before. Raises StoreDown."""
        self._refused, remarks = await faults_of(self.calls)
        for remark in filter(None, (self._refused, *remarks)):
            events.warning("the store of answers is not as it should be", extra={"fields": {"why": remark}})
        self._is_checked = True

    def _note(self, why: str) -> None:
        """Log that the store can't be reached, or can be again."""
        self._is_checked = self._is_checked and not why
        if why and not self._is_down:
            fields = {"why": why}
            events.warning("the store of answers can't be used; new ones can't be resumed", extra={"fields": fields})
        elif not why and self._is_down:
            events.warning("the store of answers can be used again")
        self._is_down = bool(why)


def _ended(task: asyncio.Task[None]) -> None:
    """A task that runs for ever has ended, which is a fault of ours if it was not cancelled."""
    if not task.cancelled() and (error := task.exception()) is not None:
        events.error("a task of the store of answers failed", exc_info=error)
