"""The interface of a recording of an exchange with an upstream, and the words for how an exchange ended.

The words are the values of ``recording.End.kind``.

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
    """Receives one exchange and stores it (``lab/recording/recorder.py``)."""

    def request(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        """The request is sent. ``target`` is its path and query, percent-encoded as they are sent."""

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The headers of the response have arrived."""

    def read(self, data: bytes) -> None:
        """These bytes of the body were read."""

    def unread(self, data: bytes) -> None:
        """These bytes were put back and will be read again."""

    def end(self, kind: str) -> None:
        """The exchange is over. Only the first call counts."""


WHOLE: Final = "whole"
#: The end of an exchange that our side closed: the client disconnected, or the response could not be used.
CLIENT_LEFT: Final = "client_left"
SHUT_DOWN: Final = "shut_down"
UNREACHABLE: Final = "unreachable"
#: The end of an exchange that a timeout closed begins with this; the name of the timeout follows.
TIMEOUT: Final = "timeout:"
_TIMERS: Final[Mapping[type[TimedOut], str]] = {
    ConnectTimeout: "connect",
    FirstByteTimeout: "first_byte",
    IdleTimeout: "idle",
    TotalTimeout: "total",
}


def end_of(error: BaseException, *, answered: bool = True) -> str:
    """Return how an exchange ended whose reading raised ``error``. ``answered``: the headers of a response had arrived."""
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
