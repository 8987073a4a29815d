"""What every store of logs has in common: the log of one answer, how it ends, how it is read, and what can go wrong.

A **log** is what a client got of one answer, byte for byte, without keep-alives. A cursor is a number of bytes of it. The
client that asked, one that comes back and a reader on another node all read the same bytes, so that nothing is missing between
two of them and nothing comes twice. Who writes a log never waits for a store and gets no error of one: a log that can't be
kept any more is *lost*, says why, and the client that is there gets its answer all the same.

Source: resume.md §1, §6, §12.2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Literal, Protocol, TypeAlias, get_args

from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.errors import StreamError, StreamkitError
from streamkit.limits import MIB

#: How an answer ended: whole; with an error of its own; stopped by its client; with nobody to read it; with its server; or
#: without an end of its own, as where its process died. The bytes of all but ``done`` end with an error of their dialect.
End: TypeAlias = Literal["done", "failed", "cancelled", "abandoned", "shut_down", "aborted"]
ENDS: Final[frozenset[str]] = frozenset(get_args(End))
#: Why a log is kept no longer: larger than it may be; no room beside others; the store was too long out of reach; it was gone
#: there; another process ended it, which took this one for dead.
Lost: TypeAlias = Literal["too_long", "full", "behind", "gone", "sealed"]


class LogError(StreamkitError):
    """A log can't be read, or read on."""


class LogGone(LogError):
    """There is no such log: it was never there, has expired, was lost, or is somebody else's."""

    def __init__(self, message: str = "there is no such answer, or none any more") -> None:
        super().__init__(message)


class BadCursor(LogError):
    """The cursor is none of this log's: it lies behind what there is, or can be on its way."""


class LogGap(LogError):
    """The store lost bytes in the middle: what follows is no continuation."""


class StoreDown(LogError):
    """The store can't be reached, or says that it can't answer."""

    type = "unavailable"


@frozen(kw_only=True)
class LogLimits:
    """What logs may take, with the reason for each default."""

    #: How long a log can be read behind its end, in seconds: what OpenAI and Cloudflare keep an answer for.
    ttl_s: float = field(default=600.0, validator=gt(0))
    #: Bytes of one log; beyond it the log is lost, and the client goes on without.
    log_bytes: int = field(default=8 * MIB, validator=ge(1))
    #: Bytes of all logs of a process; where they are full, those that ended first go, and none that is being written.
    all_bytes: int = field(default=256 * MIB, validator=ge(1))
    #: Readers of one log at once. Handing one answer to many is another trade.
    readers: int = field(default=16, validator=ge(1))


DEFAULT_LOG_LIMITS: Final = LogLimits()


@frozen(kw_only=True)
class Meta:
    """What is known of an answer before its first byte."""

    #: The dialect of the client, or the client (``claude-code``), in whose words a reader is told of a failure.
    dialect: str
    media_type: str = "text/event-stream"
    #: The stream is one JSON array (``Surface.array``).
    is_array: bool = False
    #: Who may read it: ``owner_of`` the client's key and the log's id; empty: whoever has the id.
    owner: str = field(default="", repr=False)
    #: Seconds since the epoch.
    created: float = 0.0
    #: The model as the client calls it.
    model: str = ""
    #: Whether it goes on in the background, whoever reads it.
    background: bool = False


class Reading(Protocol):
    """A log from one byte on, as it grows: an async iterator of bytes, cut anywhere, that ends with the log.

    Where the process that wrote the log died, the last bytes are an error in the client's dialect, the same for every reader.
    Iterating raises LogGone, LogGap and StoreDown. It is closed by ``aclose``.
    """

    @property
    def meta(self) -> Meta: ...

    @property
    def ended(self) -> End | None:
        """How the log ended, once the last byte was read; None before."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    async def closing(self, position: int, error: StreamError) -> bytes:
        """Return the error that must follow the log's first ``position`` bytes, which a client has.

        It continues these bytes if they can still be read, else it is an error without their state. Never raises.
        """

    async def aclose(self) -> None: ...


class Log(Protocol):
    """The side of a log that is written. What it is told neither waits nor raises."""

    @property
    def id(self) -> str: ...

    @property
    def size(self) -> int:
        """Bytes that were appended."""

    @property
    def lost(self) -> Lost | None:
        """Why it can't be read any more; None while it can."""

    @property
    def read_at(self) -> float | None:
        """The event loop's time at which somebody last read it, here or elsewhere; None: nobody ever did."""

    def append(self, data: bytes, /) -> None: ...

    def end(self, why: End, data: bytes = b"", /) -> None:
        """Append the last bytes and say how it ended, as one entry. Whatever is appended behind it is dropped.

        ``aborted``: nobody could write an error any more; the store appends that of the dialect.
        """

    def discard(self) -> None:
        """Forget it: nobody was told of it."""

    async def open(self, after: int = 0, /) -> Reading:
        """Read it from byte ``after`` on."""


class Store(Protocol):
    """Where logs are. Every store passes the tests in ``tests/resume/contract.py``."""

    async def start(self) -> None:
        """Begin, in the event loop that serves. What else is asked begins by itself. Never raises."""

    def new_id(self, prefix: str = "st_") -> str:
        """An id that nobody has, that nobody can guess, and that says where the log is."""

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> Log:
        """A log without a byte. ``stop`` is called where somebody asks that the answer end. Raises StoreDown."""

    async def open(self, log_id: str, owner: str = "", after: int = 0) -> Reading:
        """Read a log from byte ``after`` on. Raises LogGone, BadCursor and StoreDown."""

    async def stop(self, log_id: str, owner: str = "") -> None:
        """Ask whoever writes it to end; nothing happens to one that has ended. Raises LogGone and StoreDown."""

    async def delete(self, log_id: str, owner: str = "") -> None:
        """Forget a log, and stop whoever writes it. Raises LogGone and StoreDown."""

    async def save(self, name: str, data: bytes, owner: str = "", ttl_s: float | None = None) -> None:
        """Keep a value for so long; None: for as long as a log. Raises StoreDown."""

    async def load(self, name: str, owner: str = "") -> bytes:
        """A value that was saved. Raises LogGone and StoreDown."""

    async def close(self) -> None: ...


@frozen
class StoredLog:
    """A log that somebody else may be writing, as something that ``read`` takes."""

    store: Store
    id: str
    owner: str = field(default="", repr=False)

    async def open(self, after: int = 0, /) -> Reading:
        return await self.store.open(self.id, self.owner, after)
