"""Ids of logs, cursors that name them, and who may use them.

An id is a capability: 22 random characters, so that it stands in no log line and no label of a metric. It belongs to the key
with which the answer was asked for: only the same key may read it, on whichever node, and whoever has another is told what is
told of an id that never was.

Source: resume.md §5, §12.1, §13.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

from attrs import frozen

from streamkit.resume.log import BadCursor, LogGone

#: A process, among those that may have written a log.
BOOT: Final = re.compile(r"[A-Za-z0-9_-]{12}")
#: An id: a prefix, 22 random characters and, where the log is in a process's memory, which process it is.
LOG_ID: Final = re.compile(r"[a-z]{2,8}_[A-Za-z0-9]{22}(?:\.[A-Za-z0-9_-]{12})?")
#: Offsets go up to here: beyond it no store has any.
LARGEST_OFFSET: Final = 2**53 - 2
_OFFSET: Final = re.compile(r"0|[1-9][0-9]{0,15}")


def owner_of(key: str, log_id: str) -> str:
    """Who may read the log of an answer that was asked for with ``key``; empty, without one: whoever has its id.

    It says nothing of the key, and nothing that two answers of one key have in common.
    """
    return hmac.new(key.encode(), log_id.encode(), hashlib.sha256).hexdigest() if key else ""


def is_owner(owner: str, other: str) -> bool:
    """Whether both are the same, in a time that tells nothing."""
    return hmac.compare_digest(owner.encode(), other.encode())


def checked_id(text: str) -> str:
    """The id, if it can be one. Raises LogGone."""
    if LOG_ID.fullmatch(text) is None:
        raise LogGone
    return text


def boot_in(log_id: str) -> str:
    """The process in whose memory the log is; empty: it is in no process's."""
    return log_id.partition(".")[2]


@frozen
class Cursor:
    """Where a reader is: so many bytes of a log."""

    log_id: str
    offset: int

    def __str__(self) -> str:
        return f"{self.log_id}.{self.offset}"


def offset_in(text: str) -> int:
    """The number of bytes that a client says it has. Raises BadCursor for anything else."""
    if _OFFSET.fullmatch(text) is None or int(text) > LARGEST_OFFSET:
        raise BadCursor(f"a cursor is a whole number of bytes from 0 to {LARGEST_OFFSET:,}")
    return int(text)


def cursor_in(text: str) -> Cursor:
    """The cursor in an event's id, as ``Last-Event-ID`` says it again. Raises BadCursor for what is none."""
    log_id, dot, offset = text.strip().rpartition(".")
    if not dot or LOG_ID.fullmatch(log_id) is None:
        raise BadCursor("Last-Event-ID is no id of an event of a stream that was given here")
    return Cursor(log_id, offset_in(offset))
