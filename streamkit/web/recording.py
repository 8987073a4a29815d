"""What a recording is told of an exchange with an upstream, and how the exchange ended.

The words of an end are those of ``recording.End.kind``.

Source: observe.md §D, O24.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)


class ExchangeRecording(Protocol):
    """Is told of one exchange, for who keeps it (``lab/recording/recorder.py``)."""

    def request(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        """The request is sent. ``target`` is its path and query, percent-encoded as they are sent."""

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The headers of the answer are there."""

    def read(self, data: bytes) -> None:
        """So much came of the body."""

    def unread(self, data: bytes) -> None:
        """These bytes were put back, and will be read again."""

    def end(self, kind: str) -> None:
        """It is over. The first end counts."""


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
