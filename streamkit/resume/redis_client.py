"""Calls to Redis with a time limit and without automatic retries, and the format of a log in a Redis stream.

The client retries nothing automatically, since that would append twice (resume.md §7.3). It has no ``socket_timeout``: that
makes it write under ``asyncio.wait_for``, which on Python 3.11 swallows cancellations (§8.1, measured: up to 57 %). Responses
are used in their RESP3 form, whichever parser is installed (§8.4). All errors of calls become StoreDown.

An entry's id is the offset of the response after the entry's bytes. Redis refuses an entry whose id is not above the last one.
This alone ensures three things, without scripts or locks: a repeated append creates no duplicate; a log has only one end; and
a process that others considered dead can't write after the end that they gave its log. The ids are:

* ``0-1``: what is known of the response before its first byte, and the process that writes it;
* ``{offset}-0``: the bytes that end at this offset;
* ``END``: how the log ended, where this entry's bytes begin, and the last bytes. If a reader ended the log, the bytes are the
  dialect's error, which is not part of the response.

Other programs may have written what is read here, so it is checked before it is used.

Source: resume.md §1.3, §7.1, §7.2, §7.5, §7.8, §7.11, §8, §10.1, §13.6.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar, cast

import redis.asyncio
from attrs import frozen
from hiredis import pack_command
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from streamkit.dialects import client_named
from streamkit.errors import UsageError
from streamkit.resume.log import BOOT, ENDS, LARGEST_OFFSET, End, LogGap, Meta, StoreDown

Command: TypeAlias = tuple[Any, ...]  #: A Redis command: its name and its arguments

FIRST: Final = b"0-1"
#: The entry id of a log's end. It is larger than that of every offset, so Redis refuses to append anything after the end.
END: Final = b"%d-0" % (LARGEST_OFFSET + 1)
_NUMBER: Final = re.compile(rb"[0-9]{1,16}")
_OFFSET: Final = re.compile(rb"([0-9]{1,16})-0")
#: The most messages from other processes that Redis keeps for one process: more than a process receives in a second.
INBOX_MESSAGES: Final = 1000


@frozen
class Keys:
    """The names of all stored keys. An operator may limit a Redis user to ``~{prefix}:*``."""

    prefix: str

    def log(self, log_id: str) -> bytes:
        return f"{self.prefix}:log:{log_id}".encode()

    def node(self, boot: str) -> bytes:
        """Return the key with the messages for a process. It exists while the process lives."""
        return f"{self.prefix}:node:{boot}".encode()

    def value(self, name: str) -> bytes:
        return f"{self.prefix}:value:{name}".encode()


@frozen(kw_only=True)
class Entry:
    """Bytes of a log, or its end."""

    id: int  #: the first number of the entry's Redis id; it grows from entry to entry
    data: bytes = b""
    begin: int  #: the offset in the log of the first byte of ``data``
    ended: End | None = None
    #: Whether a reader wrote the end because the process was dead. The bytes are then an error for all readers.
    is_seal: bool = False

    @property
    def end(self) -> int:
        return self.begin + len(self.data)


@frozen(kw_only=True)
class Append:
    """An append to a log. Repeated attempts use the same object, so that Redis recognises a duplicate."""

    begin: int
    data: bytes
    ended: End | None = None

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    def command(self, key: bytes) -> Command:
        """Return the Redis command for this append. Redis answers nil if the log no longer exists."""
        if self.ended is None:
            return ("XADD", key, "NOMKSTREAM", b"%d-0" % self.end, "d", self.data)
        return ("XADD", key, "NOMKSTREAM", END, "e", self.ended, "at", self.begin, "d", self.data)


def seal(key: bytes, at: int, error: bytes) -> Command:
    """Return the command that ends the log of a dead process with an error for its readers."""
    return ("XADD", key, "NOMKSTREAM", END, "e", "aborted", "at", at, "f", error)


def message(key: bytes, word: str, log_id: str = "") -> Command:
    """Return the command that sends a message to a process. Its answer is nil if the process is dead."""
    return ("XADD", key, "NOMKSTREAM", "MAXLEN", "~", INBOX_MESSAGES, "*", "m", f"{word} {log_id}")


def creation(key: bytes, meta: Meta, boot: str) -> Command:
    """Return the command for the first entry of a log. Redis refuses it if the log exists already."""
    known = {
        "node": boot, "dialect": meta.dialect, "type": meta.media_type, "array": int(meta.is_array), "owner": meta.owner,
        "created": meta.created, "model": meta.model, "background": int(meta.background),
    }  # fmt: skip
    return ("XADD", key, FIRST, *(part for pair in known.items() for part in pair))


# -- reading -----------------------------------------------------------------------------------------------------------


def meta_in(entries: Sequence[Any]) -> tuple[Meta, str] | None:
    """Return what is known of a log and its process, from its first entry; None: there is no valid log."""
    fields = fields_of(entries[0]) if entries else {}
    try:
        dialect, node = fields[b"dialect"].decode(), fields[b"node"].decode()
        client_named(dialect)
        meta = Meta(
            dialect=dialect,
            media_type=fields[b"type"].decode("ascii"),
            is_array=fields[b"array"] == b"1",
            owner=fields[b"owner"].decode("ascii"),
            created=float(fields[b"created"]),
            model=fields[b"model"].decode(),
            background=fields[b"background"] == b"1",
        )
        if not meta.media_type.isprintable() or not 0 <= meta.created < LARGEST_OFFSET:
            return None
    except (KeyError, ValueError, UsageError):  # another program or a later version of streamkit wrote the entry
        return None
    return (meta, node) if BOOT.fullmatch(node) else None


def entry_of(raw: Any) -> Entry:
    """Return an entry after the first one. Raises LogGap if it is invalid."""
    fields = fields_of(raw)
    if raw[0] == END:
        ended, at = fields.get(b"e", b"").decode("latin-1"), fields.get(b"at", b"")
        if ended not in ENDS or _NUMBER.fullmatch(at) is None:
            raise LogGap("the end of the response in the store is invalid")
        told = fields.get(b"f")
        data = fields.get(b"d", b"") if told is None else told
        return Entry(
            id=LARGEST_OFFSET + 1, data=data, begin=int(at), ended=cast("End", ended), is_seal=told is not None
        )
    found = _OFFSET.fullmatch(raw[0])
    data = fields.get(b"d", b"")
    if found is None or int(found[1]) < len(data):
        raise LogGap("the store contains an invalid entry")
    return Entry(id=int(found[1]), data=data, begin=int(found[1]) - len(data))


def newest_in(newest_first: Sequence[Any]) -> Entry:
    """Return the last entry of a log: where its bytes end, and how it ended. Raises LogGap."""
    raw = newest_first[0]
    return Entry(id=0, begin=0) if raw[0] == FIRST else entry_of(raw)


def fields_of(raw: Any) -> dict[bytes, bytes]:
    """Return the fields of an entry, which Redis lists as alternating names and values."""
    flat = raw[1]
    return dict(zip(flat[::2], flat[1::2], strict=False))


def message_in(raw: Any) -> tuple[str, str]:
    """Return the word of a message, and the log's id."""
    word, _, log_id = fields_of(raw).get(b"m", b"").decode("latin-1").partition(" ")
    return word, log_id


def behind(position: int, entry: Entry) -> bytes:
    """Return the bytes of an entry that a reader at ``position`` does not have. Raises LogGap if earlier bytes are missing.

    All readers get the error of a dead process's log, even one with bytes that never reached the store (resume.md §7.11).
    """
    if entry.is_seal and position > entry.begin:
        return entry.data
    if entry.begin > position:
        raise LogGap(f"the store lost the bytes from {position:,} to {entry.begin:,} of the response")
    return entry.data[position - entry.begin :]


# -- calls -------------------------------------------------------------------------------------------------------------


T = TypeVar("T")

CALL_S: Final = 1.0  #: seconds that one call to Redis may take
AGAIN_S: Final = 0.1  #: seconds between two attempts of the same call
#: How many calls may run at the same time. Reads that wait at the server for new entries use additional connections.
CALLS: Final = 16
#: Prefixes of Redis errors that are permanent, so that a retry makes no sense. All other errors are temporary: the server is
#: loading, is a replica, or is out of memory.
_LASTING: Final = ("ERR", "WRONGTYPE")
CLUSTER: Final = "the store is a Redis Cluster node, where a command can't read several logs; use a standalone server"


class Calls:
    """A connection pool for one Redis, and a count of its errors."""

    def __init__(self, url: str, *, call_s: float = CALL_S) -> None:
        self.call_s = call_s
        self.errors: Counter[str] = Counter()  #: number of errors by kind: ``unreachable``, ``timeout``, ``refused``
        self._redis: Any = redis.asyncio.Redis.from_url(
            url,
            protocol=3,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=None,
            socket_connect_timeout=call_s,
            max_connections=CALLS + 2,
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
        )
        self._redis.response_callbacks.clear()
        self._free = asyncio.Semaphore(CALLS)

    async def call(self, *command: Any) -> Any:
        """Return the answer to a command. Raises StoreDown, with the Redis error as its cause."""
        async with self._bounded(self.call_s), self._free:
            return await self._redis.execute_command(*command)

    async def blocking(self, *command: Any, for_s: float) -> Any:
        """Return the answer to a command that waits at the server for up to ``for_s`` seconds. Raises StoreDown."""
        async with self._bounded(for_s + self.call_s):
            return await self._redis.execute_command(*command)

    async def each(self, commands: Iterable[Command]) -> list[Any]:
        """Return the answers to several commands in one round trip. Raises StoreDown.

        If a command fails, its error is its answer. The commands are packed by hiredis and not by redis-py's pipeline, which
        takes 21 µs per append instead of 4.
        """
        packed = [pack_command(command) for command in commands]
        if not packed:
            return []
        async with self._bounded(self.call_s), self._free, self._connection() as connection:
            await connection.send_packed_command(b"".join(packed))
            answers: list[Any] = []
            for _ in packed:
                try:
                    answers.append(await connection.read_response(disable_decoding=True))
                except ResponseError as error:
                    answers.append(error)
        self._count(answers)
        return answers

    async def all(self, *commands: Command, atomic: bool = False) -> list[Any]:
        """Return the answers to several commands. Raises StoreDown, also if one of them is an error."""
        answers = await (self._transaction(commands) if atomic else self.each(commands))
        for answer in answers:
            if isinstance(answer, Exception):
                raise StoreDown(error_message(answer)) from answer
        return answers

    async def _transaction(self, commands: Iterable[Command]) -> list[Any]:
        async with self._bounded(self.call_s), self._free, self._redis.pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
        self._count(answers)
        return answers

    def _count(self, answers: Iterable[Any]) -> None:
        self.errors["refused"] += sum(isinstance(answer, Exception) and not is_smaller(answer) for answer in answers)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Any, None]:
        """Lend a connection of the pool. It is closed if not all answers were read."""
        pool = self._redis.connection_pool
        connection = await pool.get_connection()
        try:
            yield connection
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

    @asynccontextmanager
    async def _bounded(self, seconds: float) -> AsyncGenerator[None, None]:
        """Limit the time of the block. Count its errors, and raise them as StoreDown."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as late:
            self.errors["timeout"] += 1
            raise StoreDown("the store did not respond in time") from late
        except (RedisError, OSError) as error:
            if not is_smaller(error):
                refused = isinstance(error, (ResponseError, AuthenticationError))
                self.errors["refused" if refused else "unreachable"] += 1
            raise StoreDown(error_message(error)) from error

    async def close(self) -> None:
        await self._redis.aclose()


def error_message(error: Exception) -> str:
    """Return a message for an error of Redis. It reveals neither the address nor the user."""
    if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
        return "the store refused the credentials or the command"
    if isinstance(error, ResponseError):
        return f"the store returned an error: {error.status_code or str(error).partition(' ')[0]}"
    return "the store can't be reached"


def is_smaller(answer: object) -> bool:
    """Return whether an append was refused because its id is not above the last one: it is stored, or the log ended."""
    return isinstance(answer, ResponseError) and "equal or smaller" in str(answer)


def is_wrong_type(error: object) -> bool:
    """Return whether a key of the command has another type than the command is for."""
    return isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE")


def is_passing(error: BaseException | None) -> bool:
    """Return whether the error is temporary, so that the same call may succeed later."""
    if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
        return False
    return not (isinstance(error, ResponseError) and str(error).startswith(_LASTING))


async def patiently(call: Callable[[], Awaitable[T]], for_s: float) -> T:
    """Return the result of a call, retried for up to ``for_s`` seconds. Raises StoreDown."""
    loop = asyncio.get_running_loop()
    until = loop.time() + for_s
    while True:
        try:
            return await call()
        except StoreDown as error:
            if loop.time() >= until or not is_passing(error.__cause__):
                raise
        await asyncio.sleep(AGAIN_S)


async def faults_of(calls: Calls) -> tuple[str, list[str]]:
    """Return why this Redis can't be used, empty if it can, and remarks about it. Raises StoreDown."""
    answers = await calls.each([("INFO", "cluster"), ("INFO", "memory")])
    told = [_lines(answer) for answer in answers]
    reason = CLUSTER if told[0].get("cluster_enabled") == "1" else ""
    policy = told[1].get("maxmemory_policy", "noeviction")
    remarks = []
    if policy != "noeviction":
        remarks.append(
            f"the store's maxmemory-policy is {policy}, so a full store deletes responses that are still being read; "
            "set it to noeviction"
        )
    return reason, remarks


def _lines(answer: Any) -> dict[str, str]:
    """Return the values in an answer to ``INFO``; none if the user may not use this command."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
