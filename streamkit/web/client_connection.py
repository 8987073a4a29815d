"""Detect clients that have disconnected, and clients that do not read what is written to them.

aiohttp tells a handler that its client disconnected only by cancelling it, if the server is configured so. This module
therefore checks ten times a second. Bytes that a client has not read wait in this process, up to a limit; at the limit, its
upstream is no longer read. A client that reads none of them for long is *stalled*: it is disconnected without a terminator.

A body without an end shows a failure to clients that ignore the error frame. Many clients drop unread bytes when the
connection closes, so a client first gets time to read them and close the connection itself.

All clients of an event loop are checked in one round: one timer per client took a third of the CPU time of 200 streams with
four events a second. Waiting bytes are checked once a second, since ten checks took 8 % of the instructions of such an event.

Source: limits.md §1, T8; clients.md §5; quirks.md 117, 120, 121 (clients that disconnect or stall).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from aiohttp import web

#: Seconds between two checks of all clients, so that an upstream is closed within 250 ms after its client disconnects.
LOOK_S: Final = 0.1
WHOLE_LOOKS: Final = 10  #: in one of this many checks, also check whether clients read the bytes that wait for them

#: How many unread bytes of a client the operating system holds. By default it holds megabytes, and Linux accepts more only
#: after a third is read, so that a slow reader would look stalled. With this limit, reading 1 KiB/s is noticed every 16 s.
SYSTEM_BYTES: Final = 32 * 1024

Gone: TypeAlias = Literal["client left", "client stalled"]


def bound_unsent(transport: asyncio.WriteTransport, unsent_bytes: int) -> None:
    """Make writers wait once ``unsent_bytes`` wait in this process; the operating system holds a few more bytes."""
    if transport.get_write_buffer_limits()[1] == unsent_bytes:
        return  # an earlier response on this connection did it
    transport.set_write_buffer_limits(high=unsent_bytes)
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6} and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # the client has disconnected
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, SYSTEM_BYTES)


class StreamBody(web.StreamResponse):
    """The response of a stream to ``request``. Its body can be left without an end.

    aiohttp ends a body after the handler has returned, so a client that stays connected holds only its connection, and no
    other memory of the response. Status and headers are sent together with the first bytes of the body.
    """

    _send_headers_immediately = False  # aiohttp's, as in ``web.Response``

    def __init__(self, request: web.Request, headers: Mapping[str, str], *, linger_s: float) -> None:
        super().__init__(headers=headers)
        self._transport = request.transport
        self._linger_s = linger_s
        self._has_end = True

    def leave_open(self) -> None:
        """Do not end the body: wait until the client disconnects, at most ``linger_s`` seconds, then close the connection."""
        self._has_end = False
        self.force_close()  # aiohttp then sends the unsent bytes, and FIN

    async def write_eof(self, data: bytes = b"") -> None:
        if self._has_end:
            await super().write_eof(data)
            return
        loop, transport = asyncio.get_running_loop(), self._transport
        end = loop.time() + self._linger_s
        while transport is not None and not transport.is_closing() and loop.time() < end:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(min(LOOK_S, self._linger_s))


class Sized(Protocol):
    """A writer to a client that counts the bytes that it has passed on."""

    @property
    def output_size(self) -> int: ...


class Watch:
    """Watches the client of ``request`` until ``stop``. Calls ``gone`` once, with the reason, if it disconnects or stalls.

    The code that writes to the client sets ``writer``.
    """

    def __init__(self, request: web.Request, gone: Callable[[Gone], None], *, stall_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.writer: Sized | None = None
        self._request = request
        self._gone = gone
        self._stall_s = stall_s
        self._taken = 0
        self._took_at = loop.time()
        self._is_last = False  # whether the last bytes of the response were written
        #: Whether the client's system received the whole response while the client was still connected. Some clients close the
        #: connection at the terminator, and do not wait for the end of the body.
        self.all_taken = False
        transport = request.transport
        #: Returns whether the client has disconnected.
        self.closing: Callable[[], bool] = transport.is_closing if transport is not None else lambda: True
        self._rounds = _ROUNDS.get(loop) or _ROUNDS.setdefault(loop, Rounds(loop))

    def start(self) -> None:
        self._rounds.add(self)

    def stop(self) -> None:
        self._rounds.remove(self)
        # drop the callback: it is part of a reference cycle that only the garbage collector would free
        self._gone = lambda _why: None

    @property
    def written(self) -> int:
        """The bytes passed to the transport, with headers and chunk framing, as in the number of waiting bytes."""
        return 0 if self.writer is None else self.writer.output_size

    def written_last(self) -> None:
        """Note that the last byte is written. From now on every round checks whether the client has read everything."""
        self._is_last = True
        self._look_at_rest()

    def _look_at_rest(self) -> None:
        transport = self._request.transport
        if transport is not None and not transport.is_closing() and not transport.get_write_buffer_size():
            self.all_taken = True

    @property
    def is_urgent(self) -> bool:
        """Whether every round, not only each tenth, must check whether this client reads its waiting bytes."""
        return self.closing() or (self._is_last and not self.all_taken)

    async def taken(self) -> None:
        """Wait until the operating system has taken all bytes from this process, or the client has disconnected."""
        transport, wait_s = self._request.transport, 0.001  # short at first: a fast client soon sends its next request
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


class Rounds:
    """Checks all clients of one event loop in regular rounds, as long as it has clients."""

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
        self._timer = self._loop.call_later(LOOK_S, self._look)  # set the next timer first, in case a check raises
        self._number += 1
        now, whole = self._loop.time(), self._number % WHOLE_LOOKS == 0
        for watch in list(self._watches):
            if whole or watch.is_urgent:
                watch.look(now)


_ROUNDS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds]] = WeakKeyDictionary()
