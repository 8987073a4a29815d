"""Readers of logs that another process writes. One task waits at Redis for all of them; each reader catches up separately.

The task also reads the messages for this process, so a message to itself makes it update the list of logs that it waits for
(resume.md §7.6). A reader itself reads from Redis only entries that existed before it began, or that it has fallen behind.

A log that was silent for a lease is checked. It may be gone: a blocked read would wait forever for a missing key. Or its
process may be dead: then the reader ends the log for all readers (§7.5).

Source: resume.md §7.4, §7.5, §7.6, §7.9; R3, R5, R13, R14.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from attrs import define, field

from streamkit.errors import StreamError
from streamkit.resume.closing import closing
from streamkit.resume.log import LARGEST_OFFSET, End, LogError, LogGap, LogGone, Meta, StoreDown
from streamkit.resume.redis_client import (
    AGAIN_S,
    FIRST,
    Calls,
    Entry,
    Keys,
    behind,
    entry_of,
    is_smaller,
    is_wrong_type,
    message,
    message_in,
    patiently,
    seal,
)

#: Seconds that one read waits at the Redis server for new entries (resume.md §9.3: this costs 0.2 % of a core).
BLOCK_S: Final = 0.25
#: After a process's lease has expired: seconds to wait before checking whether the process has renewed the lease.
LOOK_S: Final = 0.01
PAGE: Final = 256  #: entries of one log that are read at once
#: The most bytes that the hub keeps for one slow reader. The reader later reads further bytes from Redis itself.
WAITING_BYTES: Final = 256 * 1024
#: Seconds for re-reading the bytes that a client already has, so that an error can be written that continues them.
WRITTEN_S: Final = 1.0


@define(eq=False)
class _Watched:
    """A log that is read in this process."""

    log_id: str
    node: str
    last: bytes  #: the id of the last entry that was read
    readers: set[RedisReading] = field(factory=set)


class Hub:
    """Waits at Redis for this process. ``on_message`` is called for each message with a word and the id of a log."""

    def __init__(
        self,
        calls: Calls,
        keys: Keys,
        boot: str,
        on_message: Callable[[str, str], None],
        *,
        retry_s: float,
        lease_s: float,
    ) -> None:
        self.calls = calls
        self.keys = keys
        self.retry_s, self.lease_s = retry_s, lease_s
        self.readers: Counter[str] = Counter()  #: the number of readers here, by the id of the log
        self._inbox, self._heard = keys.node(boot), b"0-0"
        self._on_message = on_message
        self._watched: dict[bytes, _Watched] = {}
        self._down_since: float | None = None
        self._up_since = 0.0

    @property
    def read(self) -> Iterator[tuple[str, str]]:
        """Yield each log that is read here and written elsewhere: the writing process and the log's id."""
        return ((watched.node, watched.log_id) for watched in self._watched.values())

    def quiet_since(self, heard_at: float) -> float:
        """Return when a log became silent, given the time of its last entry. Time while Redis is unreachable does not count.

        While the server is away, processes can't renew their leases, so these start anew when it is back (resume.md §7.13).
        """
        if self._down_since is not None:
            return asyncio.get_running_loop().time()
        return max(heard_at, self._up_since)

    async def watch(self, reading: RedisReading, last: bytes) -> None:
        """Pass ``reading`` all entries after ``last``, and tell the log's process that the log is read."""
        key = self.keys.log(reading.log_id)
        if key not in self._watched:
            self._watched[key] = _Watched(reading.log_id, reading.node, last)
        self._watched[key].readers.add(reading)
        present = message(self.keys.node(reading.node), "read", reading.log_id)
        await self.calls.each([message(self._inbox, "look"), present])

    def left(self, reading: RedisReading) -> None:
        """Called when a reader stops reading."""
        self.readers -= Counter([reading.log_id])  # drops a count of 0
        key = self.keys.log(reading.log_id)
        watched = self._watched.get(key)
        if watched is not None:
            watched.readers.discard(reading)
            if not watched.readers:
                del self._watched[key]

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            at = {self._inbox: self._heard, **{key: watched.last for key, watched in self._watched.items()}}
            where = ("COUNT", PAGE, "BLOCK", int(BLOCK_S * 1000), "STREAMS", *at, *at.values())
            try:
                found = await self.calls.blocking("XREAD", *where, for_s=BLOCK_S)
            except StoreDown as error:
                if is_wrong_type(error.__cause__):  # a key of another type makes the command fail for all keys
                    await self._drop_overwritten()
                elif self._down_since is None:
                    self._down_since = loop.time()
                elif loop.time() - self._down_since >= self.retry_s:
                    self._fail(error)
                await asyncio.sleep(AGAIN_S)
                continue
            if self._down_since is not None:
                self._down_since, self._up_since = None, loop.time()
            for key, entries in (found or {}).items():
                self._deliver(key, entries)

    def _deliver(self, key: bytes, entries: list[Any]) -> None:
        if key == self._inbox:
            self._heard = entries[-1][0]
            for raw in entries:
                self._on_message(*message_in(raw))
        elif (watched := self._watched.get(key)) is not None:  # None: the last reader has left
            watched.last = entries[-1][0]
            try:
                found = [entry_of(raw) for raw in entries if raw[0] != FIRST]
            except LogGap as error:
                for reading in watched.readers:
                    reading.fail(error)
            else:
                for reading in watched.readers:
                    reading.take(found)

    async def _drop_overwritten(self) -> None:
        """Fail the readers of keys that another program wrote over, and stop watching these keys.

        The key of this process's own messages is deleted instead: no other process has its name.
        """
        keys = [self._inbox, *self._watched]
        with suppress(StoreDown):
            answers = await self.calls.each([("XRANGE", key, "-", "+", "COUNT", 1) for key in keys])
            for key, answer in zip(keys, answers, strict=True):
                if not is_wrong_type(answer):
                    continue
                if key == self._inbox:
                    await self.calls.call("DEL", key)
                elif (watched := self._watched.pop(key, None)) is not None:
                    for reading in watched.readers:
                        reading.fail(LogGap("another program overwrote the response in the store"))

    def _fail(self, error: StoreDown) -> None:
        for watched in self._watched.values():
            for reading in watched.readers:
                reading.fail(error)


class RedisReading:
    """One reader of a log that process ``node`` writes, from byte ``position`` on."""

    def __init__(self, hub: Hub, log_id: str, meta: Meta, node: str, position: int) -> None:
        hub.readers[log_id] += 1
        self.log_id = log_id
        self.meta = meta
        self.node = node
        self.ended: End | None = None
        self._hub = hub
        self._position = position
        self._is_open = True
        self._entries: deque[Entry] = deque()
        self._waiting_bytes = 0
        self._read_id = position  # the id of the last entry that was read
        self._is_behind = True  # Redis may have entries that the hub will not pass to this reader
        self._is_catching_up = False
        self._is_watching = False
        self._fault: LogError | None = None
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._alive_until = 0.0  # before this time, the log's process is not considered dead
        self._bell = asyncio.Event()

    def __aiter__(self) -> RedisReading:
        return self

    async def __anext__(self) -> bytes:
        while self._is_open:
            if self._entries:
                if data := self._unread(self._entries.popleft()):
                    return data
            elif self.ended is not None:
                break
            elif self._fault is not None:
                raise self._fault
            elif self._is_behind:
                await self._catch_up()
            else:
                await self._grown()
        raise StopAsyncIteration

    async def closing(self, position: int, error: StreamError) -> bytes:
        written = b""
        with suppress(LogError, TimeoutError):
            async with asyncio.timeout(WRITTEN_S):
                written = (await self._written(position))[0]
        return closing(self.meta, written[:position], error)

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._hub.left(self)

    # -- called by the hub -----------------------------------------------------------------------------------------

    def take(self, entries: list[Entry]) -> None:
        self._heard_at = self._loop.time()
        self._bell.set()
        if self._is_behind or self._is_catching_up:
            self._is_behind = True  # read again later: the read in progress may not include these entries
            return
        self._add(entries)
        self._is_behind = self._waiting_bytes > WAITING_BYTES

    def fail(self, error: LogError) -> None:
        self._fault = error
        self._bell.set()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _add(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.id > self._read_id:
                self._read_id = entry.id
                self._entries.append(entry)
                self._waiting_bytes += len(entry.data)

    def _unread(self, entry: Entry) -> bytes:
        """Return the bytes of an entry that the client does not have. Raises LogGap."""
        self._waiting_bytes -= len(entry.data)
        data = behind(self._position, entry)
        self._position = max(self._position, entry.end)
        self.ended = entry.ended
        return data

    async def _catch_up(self) -> None:
        """Read existing entries, one page per call; then let the hub pass new ones. Raises LogError."""
        self._is_behind, self._is_catching_up = False, True
        try:
            page = await self._page(self._read_id)
        finally:
            self._is_catching_up = False
        self._add(page)
        if len(page) == PAGE:
            self._is_behind = True
        elif not self._is_watching and not (page and page[-1].ended):
            # read Redis once more, since entries may arrive before the hub watches this log
            self._is_watching = self._is_behind = True
            last = b"%d-0" % self._read_id if self._read_id else FIRST
            await patiently(lambda: self._hub.watch(self, last), self._hub.retry_s)

    async def _page(self, after: int) -> list[Entry]:
        """Return the entries after ``after``. Raises LogGap and StoreDown."""
        begin = b"(%d-0" % after if after else b"(" + FIRST
        ask = ("XRANGE", self._hub.keys.log(self.log_id), begin, "+", "COUNT", PAGE)
        return [entry_of(raw) for raw in await patiently(lambda: self._hub.calls.call(*ask), self._hub.retry_s)]

    async def _grown(self) -> None:
        """Wait for entries; check a log that was silent for a lease. Raises LogError."""
        self._bell.clear()
        try:
            quiet_at = self._hub.quiet_since(self._heard_at) + self._hub.lease_s
            async with asyncio.timeout_at(max(quiet_at, self._alive_until)):
                await self._bell.wait()
        except TimeoutError:
            await self._look()

    async def _look(self) -> None:
        log, node = self._hub.keys.log(self.log_id), self._hub.keys.node(self.node)
        is_there, lives_ms = await patiently(
            lambda: self._hub.calls.all(("EXISTS", log), ("PTTL", node)), self._hub.retry_s
        )
        if not is_there:
            raise LogGone("the response is no longer in the store")
        if lives_ms >= 0:
            self._alive_until = self._loop.time() + lives_ms / 1000 + LOOK_S
        elif (
            self._loop.time() - self._hub.quiet_since(self._heard_at) >= self._hub.lease_s
        ):  # it was silent all the time
            await self._seal()

    async def _seal(self) -> None:
        """End the log of a dead process, unless it has an end: all readers get the same error. Raises LogError."""
        written, last = await self._written()
        if last is None:
            self._is_behind = True
        else:
            error = closing(self.meta, written)
            await self._end(Entry(id=last + 1, data=error, begin=len(written), ended="aborted", is_seal=True))

    async def _written(self, position: int = LARGEST_OFFSET) -> tuple[bytes, int | None]:
        """Return the bytes in the store, at least up to ``position``, and the last entry's id; None: the log has an end.

        Raises LogGap and StoreDown.
        """
        written, last = bytearray(), 0
        while len(written) < position and (page := await self._page(last)):
            for entry in page:
                if entry.ended is not None:
                    return bytes(written if entry.is_seal else written + behind(len(written), entry)), None
                written += behind(len(written), entry)
            last = page[-1].id
        return bytes(written), last

    async def _end(self, end: Entry) -> None:
        """Write the end of a log. Raises LogGone."""
        try:
            written = await self._hub.calls.call(*seal(self._hub.keys.log(self.log_id), end.begin, end.data))
        except StoreDown as error:
            if is_smaller(error.__cause__):  # the log already has an end: read it
                self._is_behind = True
            else:  # Redis accepts no writes: at least this reader gets the error (resume.md §7.5)
                self._entries.append(end)
                self._waiting_bytes += len(end.data)
            return
        if written is None:
            raise LogGone("the response is no longer in the store")
        self._is_behind = True
