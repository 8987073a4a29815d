"""The store for several nodes: logs in Redis or Valkey, which every process of every node can read and stop.

Each log that this process writes is in memory first, and is copied to Redis in the background. Appending never waits. One task
writes for all logs, in one round trip every ``flush_s`` seconds, and at once for first bytes and ends. An append stays the
same until Redis has it, so a retry creates no duplicate. Readers in this process read the copy in memory, which is dropped
once the end is stored; ``redis_reading`` reads the logs of other processes.

A log is lost if it is too long, if Redis is unreachable for too long or has lost it, or if other processes considered this one
dead. The client does not notice. A lost log is deleted in Redis, so that its readers don't wait for an end.

Other processes consider a process alive as long as its message key exists; each beat renews this key. Messages ask a process
to end a response, or tell it that a log is being read. Without Redis, responses continue but can't be resumed.

Source: resume.md §7, §10, §11, §12; R4, R10, R11, R12, R22, R23, R25.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, Final

from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.limits import MIB
from streamkit.resume.log import (
    DEFAULT_LOG_LIMITS,
    BadCursor,
    End,
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
from streamkit.resume.memory import MemoryLog, MemoryStore, new_boot
from streamkit.resume.redis_client import (
    AGAIN_S,
    CALL_S,
    INBOX_MESSAGES,
    Append,
    Calls,
    Command,
    Entry,
    Keys,
    creation,
    faults_of,
    is_smaller,
    message,
    meta_in,
    newest_in,
)
from streamkit.resume.redis_reading import Hub, RedisReading
from streamkit.text.identifiers import random_id

TRIP_BYTES: Final = 4 * MIB  #: the most bytes sent in one round trip, which must finish within the time limit of a call
WAIT_MS: Final = 100  #: milliseconds that Redis waits for its replicas (resume.md §11.1, where this is measured)
TOUCH_S: Final = 60.0  #: seconds between two renewals of the time to live of a log that is being written
MARGIN_S: Final = 120.0  #: how many seconds longer than ``ttl_s`` such a log lives after each renewal


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
            raise LogGone(f"the response was lost: {self.lost}")
        return await (self.copy.open(after) if self.copy.is_there else self._elsewhere(after))

    def next(self) -> Append | None:
        """Return the next append to send. Return the same append until Redis has stored it. None: there is nothing to send."""
        copy = self.copy
        if self.trying is None and (self.stored < copy.size or copy.ended is not None):
            data = bytes(copy.data[self.stored :])
            self.trying, self.is_again = Append(begin=self.stored, data=data, ended=copy.ended), False
        return self.trying


class Writer:
    """Writes the logs of a process to Redis."""

    def __init__(self, calls: Calls, copies: MemoryStore, settings: RedisSettings) -> None:
        self.live: dict[str, RedisLog] = {}  #: logs whose end is not in Redis yet
        self.behind_bytes = 0  #: bytes of all logs that are not in Redis yet
        self.lost: Counter[Lost] = Counter()
        self._calls = calls
        self._copies = copies
        self._settings = settings
        self._dirty: dict[str, RedisLog] = {}  # live logs with something to send
        self._doomed: dict[bytes, None] = {}  # keys of logs to delete
        self._settled: set[RedisLog] = set()  # ended logs whose copies in memory still have readers
        self._dirty_since: float | None = None
        self._touched_at = 0.0
        self._wake, self._urgent = asyncio.Event(), asyncio.Event()

    @property
    def behind_s(self) -> float:
        """Seconds that the oldest bytes have been waiting for Redis."""
        return 0.0 if self._dirty_since is None else _now() - self._dirty_since

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
        if log.waiting > self._settings.behind_bytes or self.behind_bytes > self._settings.all_behind_bytes:
            self._lose(log, "behind")
        elif at_once or log.id not in self._dirty:
            self._dirty[log.id] = log
            if self._dirty_since is None:
                self._dirty_since = _now()
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
        if self.live and _now() - self._touched_at >= TOUCH_S:
            await self._calls.each([("PEXPIRE", log.key, self._live_ms) for log in self.live.values()])
            self._touched_at = _now()

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
                async with asyncio.timeout(self._settings.flush_s):
                    await self._urgent.wait()
            self._wake.clear()
            self._urgent.clear()
            if not await self._flush():
                await asyncio.sleep(AGAIN_S)
                self._wake.set()

    # -- round trips -----------------------------------------------------------------------------------------------

    @property
    def _live_ms(self) -> int:
        return int((self._copies.limits.ttl_s + MARGIN_S) * 1000)

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
                lives_ms = self._live_ms if append.ended is None else int(self._copies.limits.ttl_s * 1000)
                expiries.append(("PEXPIRE", log.key, lives_ms))
            log.is_again = True
        commands += expiries
        commands += (("DEL", key) for key in doomed)
        if batch and self._settings.wait_replicas:
            commands.append(("WAIT", self._settings.wait_replicas, WAIT_MS))
        try:
            answers = await self._calls.each(commands)
        except StoreDown:
            return False
        well = not any(isinstance(answer, Exception) for answer in answers[len(batch) :])
        if well:
            for key in doomed:
                self._doomed.pop(key, None)
        confirmed = not batch or not self._settings.wait_replicas or _count(answers[-1]) >= self._settings.wait_replicas
        for (log, append), answer in zip(batch, answers, strict=False):
            if confirmed and isinstance(answer, bytes) and log.id in self.live:  # nearly always
                self._stored(log, append)
            else:
                well &= await self._check_answer(log, append, answer, confirmed=confirmed)
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

    async def _check_answer(self, log: RedisLog, append: Append, answer: Any, *, confirmed: bool) -> bool:
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


# -- the store ---------------------------------------------------------------------------------------------------------


events = logging.getLogger("streamkit.resume")

CLOSE_S: Final = 2.0  #: seconds for writing the remaining bytes when the store is closed
BEATS: Final = 3.3  #: how many heartbeats a process writes to Redis within one lease


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
        self._writer = Writer(self.calls, self._copies, settings)
        self.lost, self.errors = self._writer.lost, self.calls.errors
        self._hub = Hub(
            self.calls, self._keys, self.boot, self._on_message, retry_s=settings.retry_s, lease_s=settings.lease_s
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._refused = "the store has not been reached yet"  # the reason why no log can be created now
        self._is_checked = self._is_down = False
        self._alive_at = -inf  # the event loop's time of the last successful beat

    # -- values for metrics ----------------------------------------------------------------------------------------

    @property
    def live(self) -> int:
        """The number of this process's logs whose end is not in Redis yet."""
        return len(self._writer.live)

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
        return self._writer.behind_bytes

    @property
    def behind_s(self) -> float:
        """Seconds that the oldest bytes have been waiting for Redis."""
        return self._writer.behind_s

    # -- the methods of Store --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to the server, and keep trying. Never raises."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(run) for run in (self._writer.run(), self._hub.run(), self._beat_on())]
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
                raise StoreDown("a log with this id already exists") from error
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
            raise BadCursor(f"the cursor {after:,} is after the end of the response, which has {newest.end:,} bytes")
        if self._hub.readers[log_id] >= self.limits.readers:
            raise StoreDown(f"this response already has {self._hub.readers[log_id]} readers; retry later")
        reading = RedisReading(self._hub, log_id, meta, node, after)
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

    # -- heartbeats ------------------------------------------------------------------------------------------------

    async def _look_again(self, log_id: str) -> None:
        """Before a local copy of a log is read, check whether others ended the log while this process was silent for a lease.

        If they did, the log is lost. If the store can't be asked, readers may use the copy, since its content is correct.
        """
        if _now() - self._alive_at >= self.settings.lease_s:
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
            log.told_at = _now()

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(self.settings.lease_s / BEATS)
            await self._beat()

    async def _beat(self) -> None:
        """Report that this process is alive and which logs it reads. If the store was unusable, check it again."""
        key, lease_ms = self._keys.node(self.boot), int(self.settings.lease_s * 1000)
        at = _now()
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
            events.warning("the store of responses has a problem", extra={"fields": {"why": remark}})
        self._is_checked = True

    def _note(self, why: str) -> None:
        """Log that the store has become unreachable, or reachable again."""
        self._is_checked = self._is_checked and not why
        if why and not self._is_down:
            fields = {"why": why}
            events.warning(
                "the store of responses can't be used; new responses can't be resumed", extra={"fields": fields}
            )
        elif not why and self._is_down:
            events.warning("the store of responses can be used again")
        self._is_down = bool(why)


def _ended(task: asyncio.Task[None]) -> None:
    """Log the error of a task that should run forever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        events.error("a task of the store of responses failed", exc_info=error)


def _now() -> float:
    return asyncio.get_running_loop().time()
