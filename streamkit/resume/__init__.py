"""Responses that survive a disconnect: the bytes for a client are also kept in a log, from which any reader can continue.

``MemoryStore`` keeps logs in the process. ``keep`` writes a log at the end of a pipe. ``read`` is a source that reads a log
from a cursor, which is a number of bytes. ``streamkit.web.resume`` serves logs to clients, and so does ``streamkit.gateway``.

Source: resume.md §1.
"""

from streamkit.resume.closing import closing
from streamkit.resume.event_ids import EventIDs
from streamkit.resume.log import (
    DEFAULT_LOG_LIMITS,
    BadCursor,
    Cursor,
    End,
    Log,
    LogError,
    LogGap,
    LogGone,
    LogLimits,
    Meta,
    Reading,
    Store,
    StoredLog,
    StoreDown,
    cursor_in,
    offset_in,
    owner_of,
)
from streamkit.resume.memory import MemoryStore
from streamkit.resume.stages import keep, read

__all__ = [
    "DEFAULT_LOG_LIMITS", "BadCursor", "Cursor", "End", "EventIDs", "Log", "LogError", "LogGap", "LogGone", "LogLimits",
    "MemoryStore", "Meta", "Reading", "Store", "StoreDown", "StoredLog", "closing", "cursor_in", "keep", "offset_in",
    "owner_of", "read",
]  # fmt: skip
