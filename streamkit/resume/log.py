"""The interface of all stores of logs: the log of one response, its id and owner, how it ends, how it is read, and its errors.

A **log** has the bytes that a client got of one response, without keep-alives. A cursor is a number of bytes of a log. The
client, a client that resumes, and a reader on another node all read the same bytes, so between two of them no byte is missing
and none is repeated. The writer of a log never waits for a store and gets no errors from it. A log that can't be kept any
longer is *lost*: it has the reason, and the connected client still gets the whole response.

Whoever has an id may read its log, so an id has 22 random characters and appears in no log line and no label of a metric. A
log also belongs to the key of the request: only the same key may read it, on every node. A client with another key gets the
same error as for an id that never existed.

Source: resume.md §1, §5, §6, §12, §13.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal, Protocol, TypeAlias, get_args

from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.errors import StreamError, StreamkitError
from streamkit.limits import MIB

#: How a response ended: complete; with an error; cancelled by its client; without readers for too long; by the shutdown of the
#: server; or interrupted, for example because its process died. All except ``done`` end with an error of the dialect.
End: TypeAlias = Literal["done", "failed", "cancelled", "abandoned", "shut_down", "aborted"]
ENDS: Final[frozenset[str]] = frozenset(get_args(End))
#: Why a log is no longer kept: the log is too large; memory is full; the store was unreachable for too long; the store
#: lost the log; another process ended the log because it considered this process dead (``sealed``).
Lost: TypeAlias = Literal["too_long", "full", "behind", "gone", "sealed"]


class LogError(StreamkitError):
    """A log can't be read, or can't be read to its end."""


class LogGone(LogError):
    """The log was not found: it never existed, has expired, was lost, or belongs to another client."""

    def __init__(self, message: str = "this response does not exist, or has expired") -> None:
        super().__init__(message)


class BadCursor(LogError):
    """The cursor does not belong to this log: it is a position that this log cannot have."""


class LogGap(LogError):
    """The store lost bytes in the middle of a log, so reading can't continue."""


class StoreDown(LogError):
    """The store can't be reached, or reports that it can't do what was asked."""

    type = "unavailable"


@frozen(kw_only=True)
class LogLimits:
    """Limits for logs, with the reason for each default."""

    #: Seconds that a log can be read after its end. OpenAI and Cloudflare keep a response for the same time.
    ttl_s: float = field(default=600.0, validator=gt(0))
    #: Bytes of one log. A larger log is lost; its client gets the response anyway.
    log_bytes: int = field(default=8 * MIB, validator=ge(1))
    #: Bytes of all logs in a process. If this is full, the logs that ended first are dropped, but none in progress.
    all_bytes: int = field(default=256 * MIB, validator=ge(1))
    #: Readers of one log at the same time. Sending one response to many readers is not a purpose of this package.
    readers: int = field(default=16, validator=ge(1))


DEFAULT_LOG_LIMITS: Final = LogLimits()


@frozen(kw_only=True)
class Meta:
    """The data of a response that are known before its first byte."""

    dialect: str  #: The client's dialect, or the name of a known client (``claude-code``). Errors to readers have this format.
    media_type: str = "text/event-stream"
    is_array: bool = False  #: whether the stream is one JSON array (``Surface.array``)
    #: Identifies who may read the log: the result of ``owner_of`` for the client's key and the log's id. Empty: anyone who has
    #: the id.
    owner: str = field(default="", repr=False)
    created: float = 0.0  #: when the log was created, in seconds since the epoch
    model: str = ""  #: the client's name for the model
    background: bool = False  #: whether the response continues in the background, even without readers


class Reading(Protocol):
    """An async iterator of a log's bytes from one byte on, as they are written, in pieces of any size. It ends with the log.

    If the process that wrote the log died, the last bytes are an error in the client's dialect, the same for every reader.
    Iterating raises LogGone, LogGap and StoreDown. ``aclose`` closes it.
    """

    @property
    def meta(self) -> Meta: ...

    @property
    def ended(self) -> End | None:
        """How the log ended, after the last byte was read; None before that."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    async def closing(self, position: int, error: StreamError) -> bytes:
        """Return the error bytes to send after the log's first ``position`` bytes, which the client has.

        If these bytes can still be read, the error fits their state (such as open blocks). Otherwise it is an error for an
        empty stream. Never raises.
        """

    async def aclose(self) -> None: ...


class Log(Protocol):
    """The writer's side of a log. Its methods except ``open`` neither wait nor raise."""

    @property
    def id(self) -> str: ...

    @property
    def size(self) -> int:
        """The number of appended bytes."""

    @property
    def lost(self) -> Lost | None:
        """Why the log can't be read any more; None while it can be read."""

    @property
    def read_at(self) -> float | None:
        """The event loop's time of the last read, in any process; None: never."""

    def append(self, data: bytes, /) -> None: ...

    def end(self, why: End, data: bytes = b"", /) -> None:
        """Append the last bytes and the kind of end as one entry. Later appends are dropped.

        If ``why`` is ``aborted``, no error could be written, so the store appends an error of the dialect.
        """

    def discard(self) -> None:
        """Delete the log. Use it only for a log that no client knows."""

    async def open(self, after: int = 0, /) -> Reading:
        """Read the log from byte ``after`` on."""


class Store(Protocol):
    """Keeps logs. Every store passes the tests in ``tests/resume/contract.py``."""

    async def start(self) -> None:
        """Start the store in the event loop that serves. Other methods also start it if needed. Never raises."""

    def new_id(self, prefix: str = "st_") -> str:
        """Return a new id that can't be guessed and that says where the log is."""

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> Log:
        """Create an empty log. ``stop`` is called if a client asks to stop the response. Raises StoreDown."""

    async def open(self, log_id: str, owner: str = "", after: int = 0) -> Reading:
        """Read a log from byte ``after`` on. Raises LogGone, BadCursor and StoreDown."""

    async def stop(self, log_id: str, owner: str = "") -> None:
        """Ask the writer of a log to end it. This has no effect on an ended log. Raises LogGone and StoreDown."""

    async def delete(self, log_id: str, owner: str = "") -> None:
        """Delete a log, and stop its writer. Raises LogGone and StoreDown."""

    async def save(self, name: str, data: bytes, owner: str = "", ttl_s: float | None = None) -> None:
        """Keep a value for ``ttl_s`` seconds, or with None as long as a log. Raises StoreDown."""

    async def load(self, name: str, owner: str = "") -> bytes:
        """Return a value that was saved. Raises LogGone and StoreDown."""

    async def close(self) -> None: ...


@frozen
class StoredLog:
    """A log that another process may be writing, in the form that ``read`` takes."""

    store: Store
    id: str
    owner: str = field(default="", repr=False)

    async def open(self, after: int = 0, /) -> Reading:
        return await self.store.open(self.id, self.owner, after)


# -- ids, owners and cursors -------------------------------------------------------------------------------------------


#: Matches the random name of a process, which the ids of the logs in its memory contain.
BOOT: Final = re.compile(r"[A-Za-z0-9_-]{12}")
#: Matches a log's id: a prefix, 22 random characters and, if the log is in a process's memory, the name of that process.
LOG_ID: Final = re.compile(r"[a-z]{2,8}_[A-Za-z0-9]{22}(?:\.[A-Za-z0-9_-]{12})?")
LARGEST_OFFSET: Final = 2**53 - 2  #: the largest byte offset in a log that any store supports
_OFFSET: Final = re.compile(r"0|[1-9][0-9]{0,15}")


def owner_of(key: str, log_id: str) -> str:
    """Return a hash of the ``key`` of the client that may read a log. If ``key`` is empty, return "": anyone may read it.

    The result reveals neither the key nor that two responses have the same key.
    """
    return hmac.new(key.encode(), log_id.encode(), hashlib.sha256).hexdigest() if key else ""


def is_owner(owner: str, other: str) -> bool:
    """Return whether two results of ``owner_of`` are equal, compared in constant time."""
    return hmac.compare_digest(owner.encode(), other.encode())


def checked_id(text: str) -> str:
    """Return ``text`` if it has the form of an id. Raises LogGone."""
    if LOG_ID.fullmatch(text) is None:
        raise LogGone
    return text


def boot_in(log_id: str) -> str:
    """Return the name of the process whose memory has the log; empty: the log is in no process's memory."""
    return log_id.partition(".")[2]


@frozen
class Cursor:
    """A reader's position in a log: the number of bytes before it."""

    log_id: str
    offset: int

    def __str__(self) -> str:
        return f"{self.log_id}.{self.offset}"


def offset_in(text: str) -> int:
    """Return the number of bytes that a client says it has. Raises BadCursor for anything else."""
    if _OFFSET.fullmatch(text) is None or int(text) > LARGEST_OFFSET:
        raise BadCursor(f"the cursor must be an integer from 0 to {LARGEST_OFFSET:,}")
    return int(text)


def cursor_in(text: str) -> Cursor:
    """Return the cursor in an event id, as clients send it in ``Last-Event-ID``. Raises BadCursor for other text."""
    log_id, dot, offset = text.strip().rpartition(".")
    if not dot or LOG_ID.fullmatch(log_id) is None:
        raise BadCursor("Last-Event-ID must be the id of an event that this server sent")
    return Cursor(log_id, offset_in(offset))
