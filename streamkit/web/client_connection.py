"""Is the client still there, and does it take what is written to it?

aiohttp tells a handler of a client that left only where the server cancels handlers, so it is looked, ten times a second.
Bytes that the client does not take wait in this process, up to a bound; behind it nothing more is read for it. A client that
takes none of them for long is *stalled*, and dropped without a terminator.

A body without its end shows a failure to clients that ignore the error frame. Many clients drop what they have not read once
the connection closes, so a client gets time to leave first.

All clients of an event loop are looked at in one round: a timer for each took a third of the CPU of 200 streams of four
events a second. What waits is looked at once a second, since ten times took 8 % of the instructions of such an event.

Source: limits.md §1, T8; clients.md §5; quirks.md 117, 120, 121.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from aiohttp import web

#: A fraction of the 250 ms in which an upstream is to hear that its client left.
LOOK_S: Final = 0.1
#: Every so many rounds it is looked whether clients take what waits for them.
WHOLE_LOOKS: Final = 10

#: Of the bytes that a client has not taken, the system holds so many. Left alone it holds megabytes, and takes more only
#: when a third is gone (Linux): a slow reader would look like a stalled one. With this, 1 KiB/s is seen every 16 s.
SYSTEM_BYTES: Final = 32 * 1024

Gone: TypeAlias = Literal["client left", "client stalled"]


def bound_unsent(transport: asyncio.WriteTransport, unsent_bytes: int) -> None:
    """Whoever writes has to wait once so many bytes wait for the client, besides the few that the system holds."""
    transport.set_write_buffer_limits(high=unsent_bytes)
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6} and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # the client has left
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, SYSTEM_BYTES)


class StreamBody(web.StreamResponse):
    """The response of a stream to ``request``, whose body can be left without its end.

    aiohttp ends a body once the handler has returned. So a client that stays holds its connection, and nothing else of the
    answer.
    """

    def __init__(self, request: web.Request, headers: Mapping[str, str], *, linger_s: float) -> None:
        super().__init__(headers=headers)
        self._transport = request.transport
        self._linger_s = linger_s
        self._has_end = True

    def leave_open(self) -> None:
        """Write no end of the body: wait until the client has left, ``linger_s`` seconds at most, and close the connection."""
        self._has_end = False
        self.force_close()  # aiohttp closes it, which sends what is unsent and FIN; the headers are out and say nothing of it

    async def write_eof(self, data: bytes = b"") -> None:
        if self._has_end:
            await super().write_eof(data)
            return
        loop, transport = asyncio.get_running_loop(), self._transport
        end = loop.time() + self._linger_s
        while transport is not None and not transport.is_closing() and loop.time() < end:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(min(LOOK_S, self._linger_s))


class Sized(Protocol):
    """What writes to a client."""

    @property
    def output_size(self) -> int: ...


class Watch:
    """Looks at the client of ``request`` until ``stop``; calls ``gone`` once, with the reason, when it is no longer of use.

    Whoever writes to the client gives it the ``writer``.
    """

    def __init__(self, request: web.Request, gone: Callable[[Gone], None], *, stall_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.writer: Sized | None = None
        self._request = request
        self._gone = gone
        self._stall_s = stall_s
        self._taken = 0
        self._took_at = loop.time()
        self._is_last = False  # nothing follows what was written
        #: Whether the client's system had all of an answer while the client was still there. Some clients leave at the
        #: answer's terminator, and do not wait for the body's end.
        self.all_taken = False
        transport = request.transport
        #: Whether the client has left.
        self.closing: Callable[[], bool] = transport.is_closing if transport is not None else lambda: True
        self._rounds = _ROUNDS.get(loop) or _ROUNDS.setdefault(loop, Rounds(loop))

    def start(self) -> None:
        self._rounds.add(self)

    def stop(self) -> None:
        self._rounds.remove(self)
        self._gone = _tell_nobody  # who waits for it keeps this: only the garbage collector would let go of both

    @property
    def written(self) -> int:
        """Bytes that were given to the transport: headers and what is around chunks too, as in what waits."""
        return 0 if self.writer is None else self.writer.output_size

    def written_last(self) -> None:
        """The answer's last byte is written: from now on it is looked whether all was taken, more often than else."""
        self._is_last = True
        self._look_at_rest()

    def _look_at_rest(self) -> None:
        transport = self._request.transport
        if transport is not None and not transport.is_closing() and not transport.get_write_buffer_size():
            self.all_taken = True

    @property
    def is_urgent(self) -> bool:
        """Whether each round is to look at what waits."""
        return self.closing() or (self._is_last and not self.all_taken)

    async def taken(self) -> None:
        """Wait until every byte is with the client's system, or the client is gone."""
        transport, wait_s = self._request.transport, 0.001  # a client that is not slow has its next request soon
        while transport is not None and transport.get_write_buffer_size() and not transport.is_closing():
            await asyncio.sleep(wait_s)
            transport, wait_s = self._request.transport, min(2 * wait_s, LOOK_S)
        if self._is_last:
            self._look_at_rest()

    def look(self, now: float) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            self._end("client left")
            return
        if self._is_last:
            self._look_at_rest()
        waiting = transport.get_write_buffer_size()
        taken = self.written - waiting
        if taken > self._taken or not waiting:
            self._taken, self._took_at = taken, now
        elif now - self._took_at > self._stall_s:
            transport.abort()
            self._end("client stalled")

    def _end(self, why: Gone) -> None:
        gone = self._gone
        self.stop()
        gone(why)


def _tell_nobody(_why: Gone) -> None:
    """It was stopped."""


class Rounds:
    """Looks at the clients of one event loop, while there are any."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watches: set[Watch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._number = 0

    def add(self, watch: Watch) -> None:
        self._watches.add(watch)
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_S, self._look)

    def remove(self, watch: Watch) -> None:
        self._watches.discard(watch)
        if not self._watches and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)  # first: a look that fails may not end the rounds
        self._number += 1
        now, whole = self._loop.time(), self._number % WHOLE_LOOKS == 0
        for watch in list(self._watches):
            if whole or watch.is_urgent:
                watch.look(now)


_ROUNDS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds]] = WeakKeyDictionary()
