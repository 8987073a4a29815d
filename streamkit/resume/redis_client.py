"""Calls to Redis with a time limit and without automatic retries. All their errors become StoreDown.

The client retries nothing automatically, since that would append twice (resume.md §7.3). It has no ``socket_timeout``: that
makes it write under ``asyncio.wait_for``, which on Python 3.11 swallows cancellations (§8.1, measured: up to 57 %). Answers
are used in their RESP3 form, whichever parser is installed (§8.4).

Source: resume.md §7.8, §8, §10.1.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import redis.asyncio
from hiredis import pack_command
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from streamkit.resume.log import StoreDown
from streamkit.resume.redis_entries import Command

T = TypeVar("T")

CALL_S: Final = 1.0  #: seconds that one call to Redis may take
AGAIN_S: Final = 0.1  #: seconds between two attempts of the same call
#: How many calls may run at the same time. Reads that wait at the server for new entries use additional connections.
CALLS: Final = 16
#: Prefixes of Redis errors that are permanent, so that a retry makes no sense. All other errors are temporary: the server is
#: loading, is a replica, or is out of memory.
_LASTING: Final = ("ERR", "WRONGTYPE")
CLUSTER: Final = (
    "the store is a node of a Redis Cluster, in which no command reads several logs; use a standalone server"
)


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
            raise StoreDown("the store did not answer in time") from late
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
        return "the store does not allow it"
    if isinstance(error, ResponseError):
        return f"the store can't answer: {error.status_code or str(error).partition(' ')[0]}"
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
            f"the store's maxmemory-policy is {policy}: where its memory is full, answers that are being read go first, "
            "since all have a time to live; set it to noeviction"
        )
    return reason, remarks


def _lines(answer: Any) -> dict[str, str]:
    """Return the values in an answer to ``INFO``; none if the user may not use this command."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
