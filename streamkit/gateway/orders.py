"""The orders of the parent process to its workers, and their replies, over one pipe to each worker.

A new configuration is first sent to all workers. Each prepares it and replies: a stage may fail to load, for example. If all
are ready, they are ordered to apply it, so all workers use the same configuration. A worker that dies meanwhile does not
count: its successor starts with the configuration that then applies.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from streamkit.gateway.config import Config
from streamkit.gateway.rules import Rules, rules_of
from streamkit.text.quoting import without_secrets

#: Seconds that workers may take to get ready. One that has just been started imports its modules first.
READY_S: Final = 30.0
COUNT_S: Final = 2.0  #: seconds that workers may take to report their streams
LOOK_S: Final = 0.02  #: seconds between two looks for replies
_NUMBERS: Final = count(1)


@frozen
class Prepare:
    """Get ready for a configuration, which is pickled."""

    number: int
    config: bytes = field(repr=False)


@frozen
class Ready:
    """The reply to ``Prepare``: the worker is ready, or ``reason`` says why it is not."""

    number: int
    reason: str


@frozen
class Settle:
    """Apply the configuration that the worker is ready for, or drop it."""

    apply: bool


@frozen
class Hurry:
    """Stop at once."""


#: How many streams a worker waits for when it stops.
Streams: TypeAlias = int
#: The parent's ends of the pipes, by any name of a worker.
Pipes: TypeAlias = Mapping[int, Connection]


# -- in the parent -----------------------------------------------------------------------------------------------------


async def switch_workers(pipes: Pipes, config: Config, stop: asyncio.Event) -> str:
    """Let all workers use ``config``. Return the reason if they can't, else an empty text."""
    number, data = next(_NUMBERS), pickle.dumps(config)
    await _send(pipes, Prepare(number, data))
    loop = asyncio.get_running_loop()
    waiting, reasons, end = dict(pipes), list[str](), loop.time() + READY_S
    while waiting and not stop.is_set() and loop.time() < end:
        for name, pipe in list(waiting.items()):
            for reply in _replies(pipe):
                if reply is None or (isinstance(reply, Ready) and reply.number == number):  # None: it died
                    reasons.append("" if reply is None else reply.reason)
                    del waiting[name]
                    break
        await asyncio.sleep(LOOK_S)
    if waiting:
        reasons.append("the gateway stops" if stop.is_set() else f"a worker was not ready within {READY_S:g} s")
    reason = next(filter(None, reasons), "")
    await _send(pipes, Settle(not reason))
    return reason


async def streams_of_workers(pipes: Pipes) -> Streams:
    """Return how many streams the workers wait for. Each reports this once, when it stops."""
    loop = asyncio.get_running_loop()
    waiting, streams, end = dict(pipes), 0, loop.time() + COUNT_S
    while waiting and loop.time() < end:
        for name, pipe in list(waiting.items()):
            for reply in _replies(pipe):
                if reply is None or isinstance(reply, Streams):
                    streams += reply or 0
                    del waiting[name]
                    break
        await asyncio.sleep(LOOK_S)
    return streams


async def hurry_workers(pipes: Pipes) -> None:
    """Order all workers to stop at once."""
    await _send(pipes, Hurry())


async def _send(pipes: Pipes, message: object) -> None:
    """Send a message to all workers. In threads, because a worker that is stopped reads nothing, and the pipe may be full."""

    def send(pipe: Connection) -> None:
        with suppress(OSError):  # the worker has died
            pipe.send(message)

    await asyncio.gather(*(asyncio.to_thread(send, pipe) for pipe in pipes.values()))


def _replies(pipe: Connection) -> Iterable[Any]:
    """Yield the replies that have arrived; None at the end of a worker."""
    try:
        while pipe.poll():
            yield pipe.recv()
    except (EOFError, OSError):
        yield None


# -- in a worker -------------------------------------------------------------------------------------------------------


async def obey(
    pipe: Connection, present: Callable[[], Rules], apply: Callable[[Rules], None], hurry: Callable[[], None]
) -> None:
    """Follow the parent's orders until it has ended. ``present`` returns the rules in use, and ``apply`` replaces them."""
    ready: Rules | None = None
    with suppress(EOFError, OSError):
        while True:
            await _readable(pipe)
            order = pipe.recv()
            if isinstance(order, Prepare):
                ready, reason = None, ""
                try:
                    ready = await asyncio.to_thread(_rules_in, order.config, present())
                except Exception as error:  # noqa: BLE001 - such as a stage that can't be loaded; the parent logs the reason
                    reason = f"a worker can't use it: {without_secrets(str(error))}"
                pipe.send(Ready(order.number, reason))
            elif isinstance(order, Settle):
                if order.apply and ready is not None:
                    apply(ready)
                ready = None
            elif isinstance(order, Hurry):
                hurry()


def _rules_in(data: bytes, before: Rules) -> Rules:
    """Return the rules of a pickled configuration. This loads its stages."""
    return rules_of(pickle.loads(data), before)  # noqa: S301 - the parent has written it


async def _readable(pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(pipe.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(pipe.fileno())
