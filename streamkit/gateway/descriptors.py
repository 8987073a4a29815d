"""File descriptors: raise the limit as needed, calculate what fits into it, and log once a second if none is left.

A stream takes two descriptors, for its client and its upstream. A WebSocket that waits for a message takes one. Many systems
allow a process 1,024 unless it asks for more (the soft limit), up to a fixed maximum (the hard limit).

Source: getrlimit(2); limits.md T8.
"""

from __future__ import annotations

import asyncio
import errno
import resource
from collections.abc import Callable
from typing import Any, Final

from streamkit.gateway.log import log

#: File descriptors reserved for the process itself: standard streams, log, metrics files, name resolution, and a burst of
#: connections.
RESERVED: Final = 128
#: Idle connections to expect for each allowed stream: clients keep connections open for their next requests.
IDLE_SHARE: Final = 2
#: Error numbers that mean that no further file or socket can be opened: the limit of the process or of the system is
#: reached, or memory is lacking.
EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
LOG_S: Final = 1.0


def raised(max_streams: int, max_sockets: int) -> int:
    """Raise the soft limit for these streams and sockets, at most to the hard limit. Return the limit that applies now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = RESERVED + (2 + IDLE_SHARE) * max_streams + max_sockets
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


def streams_that_fit(max_streams: int, descriptors: int) -> int:
    """Return how many streams may be in progress: each takes two descriptors, in addition to the reserve."""
    return max(1, min(max_streams, (descriptors - RESERVED) // 2))


def connections_that_fit(max_streams: int, descriptors: int) -> int:
    """Return how many clients may be connected while that many streams use connections to upstreams."""
    return max(1, descriptors - RESERVED - streams_that_fit(max_streams, descriptors))


class OncePerSecond:
    """An event loop's exception handler. It logs once a second that nothing can be opened, and how often that happened.

    asyncio reports each connection that it can't accept, with a traceback, a thousand times in one turn.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged_at: float | None = None
        self._unlogged = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in EXHAUSTED:
            loop.default_exception_handler(context)
            return
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < LOG_S:
            self._unlogged += 1
            return
        fields = {"reason": error.strerror, "times": self._unlogged + 1}
        log.error("no connection can be accepted", extra={"fields": fields})
        self._logged_at, self._unlogged = now, 0
