"""Ids of logs, cursors with these ids, and the check of who may read a log.

Whoever has an id may read its log, so an id has 22 random characters and appears in no log line and no label of a metric. A
log also belongs to the key of the request: only the same key may read it, on every node. A client with another key gets the
same error as for an id that never existed.

Source: resume.md §5, §12.1, §13.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

from attrs import frozen

from streamkit.resume.log import BadCursor, LogGone

#: Matches the random name of a process, which the ids of the logs in its memory contain.
BOOT: Final = re.compile(r"[A-Za-z0-9_-]{12}")
#: Matches a log's id: a prefix, 22 random characters and, if the log is in a process's memory, the name of that process.
LOG_ID: Final = re.compile(r"[a-z]{2,8}_[A-Za-z0-9]{22}(?:\.[A-Za-z0-9_-]{12})?")
#: The largest byte offset in a log that any store supports.
LARGEST_OFFSET: Final = 2**53 - 2
_OFFSET: Final = re.compile(r"0|[1-9][0-9]{0,15}")


def owner_of(key: str, log_id: str) -> str:
    """Return a hash that identifies the client that may read a log: the client with ``key``. Empty ``key``: return "", anyone.

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
    """A position of a reader: a number of bytes of a log."""

    log_id: str
    offset: int

    def __str__(self) -> str:
        return f"{self.log_id}.{self.offset}"


def offset_in(text: str) -> int:
    """Return the number of bytes that a client says it has. Raises BadCursor for anything else."""
    if _OFFSET.fullmatch(text) is None or int(text) > LARGEST_OFFSET:
        raise BadCursor(f"a cursor is a whole number of bytes from 0 to {LARGEST_OFFSET:,}")
    return int(text)


def cursor_in(text: str) -> Cursor:
    """Return the cursor in an event id, as clients send it in ``Last-Event-ID``. Raises BadCursor for other text."""
    log_id, dot, offset = text.strip().rpartition(".")
    if not dot or LOG_ID.fullmatch(log_id) is None:
        raise BadCursor("Last-Event-ID is no id of an event of a stream that was given here")
    return Cursor(log_id, offset_in(offset))
