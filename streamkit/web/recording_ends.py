"""How an exchange with an upstream ended, in the words of a recording (``recording.End.kind``).

Source: observe.md §D, O24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)

WHOLE: Final = "whole"
#: Who asked closed first: a client left, or the answer was none that could be used.
CLIENT_LEFT: Final = "client_left"
SHUT_DOWN: Final = "shut_down"
UNREACHABLE: Final = "unreachable"
#: What stands in front of the timer that ran out.
TIMEOUT: Final = "timeout:"
_TIMERS: Final[Mapping[type[TimedOut], str]] = {
    ConnectTimeout: "connect",
    FirstByteTimeout: "first_byte",
    IdleTimeout: "idle",
    TotalTimeout: "total",
}


def end_of(error: BaseException, *, answered: bool = True) -> str:
    """How it ended whose reading raised ``error``; ``answered``: the headers of the answer came."""
    if isinstance(error, StopAsyncIteration):
        return WHOLE
    if isinstance(error, TimedOut):
        return TIMEOUT + _TIMERS.get(type(error), "total")
    if isinstance(error, Interrupted):
        return SHUT_DOWN if error.end == "shut_down" else CLIENT_LEFT
    if not isinstance(error, SourceFailed):
        return CLIENT_LEFT
    if not answered:
        return UNREACHABLE
    return "reset" if error.is_reset else "cut"
