"""Calls to Redis: each bounded in time, none tried again by the client, and what can go wrong in one tree of errors.

The client retries nothing by itself, since it would append twice (resume.md §7.3), and has no ``socket_timeout``: with one
it writes under ``asyncio.wait_for``, which on Python 3.11 swallows cancellations (§8.1, measured: up to 57 %). Answers are
taken as RESP3 has them, whichever parser there is (§8.4).

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

#: Seconds that a call may take.
CALL_S: Final = 1.0
#: Seconds between two tries.
AGAIN_S: Final = 0.1
#: Calls at once; one that waits at the server has a connection besides.
CALLS: Final = 16
#: How errors begin that the same command will meet again. Others pass: a server loads, is a replica, has no memory.
_LASTING: Final = ("ERR", "WRONGTYPE")
CLUSTER: Final = (
    "the store is a node of a Redis Cluster, in which no command reads several logs; use a standalone server"
)


class Calls:
    """A connection pool to one Redis, and the count of what failed there."""

    def __init__(self, url: str, *, call_s: float = CALL_S) -> None:
        self.call_s = call_s
        self.errors: Counter[str] = Counter()  #: by kind: ``unreachable``, ``timeout``, ``refused``
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
        """The answer to a command. Raises StoreDown, with the error of Redis as its cause."""
        async with self._bounded(self.call_s), self._free:
            return await self._redis.execute_command(*command)

    async def blocking(self, *command: Any, for_s: float) -> Any:
        """The answer to a command that waits at the server for up to ``for_s``. Raises StoreDown."""
        async with self._bounded(for_s + self.call_s):
            return await self._redis.execute_command(*command)

    async def each(self, commands: Iterable[Command]) -> list[Any]:
        """The answers to several commands in one round trip; an error is the answer of its command. Raises StoreDown.

        The commands are packed by hiredis here and not by redis-py's pipeline, whose own way took 21 µs an append and this 4.
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
        """The answers to several commands, none of which is an error. Raises StoreDown."""
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
        """A connection of the pool, which is closed where not all its answers were read."""
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
        """A time limit; what fails within is counted, and told as StoreDown."""
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
    """What may be told of an error of Redis: nothing of its address, or of its user."""
    if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
        return "the store does not allow it"
    if isinstance(error, ResponseError):
        return f"the store can't answer: {error.status_code or str(error).partition(' ')[0]}"
    return "the store can't be reached"


def is_smaller(answer: object) -> bool:
    """Whether an append was refused since its id is not above the last one: it is there already, or the log has ended."""
    return isinstance(answer, ResponseError) and "equal or smaller" in str(answer)


def is_wrong_type(error: object) -> bool:
    """Return whether a key of the command has another type than the command is for."""
    return isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE")


def is_passing(error: BaseException | None) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
        return False
    return not (isinstance(error, ResponseError) and str(error).startswith(_LASTING))


async def patiently(call: Callable[[], Awaitable[T]], for_s: float) -> T:
    """The result of a call that is tried again for so long. Raises StoreDown."""
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
    """Why this Redis can't be used, empty if it can; and what is to be said of it besides. Raises StoreDown."""
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
    """What ``INFO`` says; nothing, where the user may not ask it."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
