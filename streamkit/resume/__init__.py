"""Answers that survive their connection: a log of what a client got, from which it, or another reader, goes on.

``MemoryStore`` keeps logs in the process; ``keep`` writes one at the end of a pipe, and ``read`` is a source that goes on with
it from a cursor, which is a number of bytes. ``streamkit.web.resume`` serves them, and ``streamkit.gateway`` does by itself.

Source: resume.md §1.
"""

from streamkit.resume.closing import closing
from streamkit.resume.event_ids import EventIDs
from streamkit.resume.identity import Cursor, cursor_in, offset_in, owner_of
from streamkit.resume.log import (
    DEFAULT_LOG_LIMITS,
    BadCursor,
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
)
from streamkit.resume.memory import MemoryStore
from streamkit.resume.stages import keep, read

__all__ = [
    "DEFAULT_LOG_LIMITS", "BadCursor", "Cursor", "End", "EventIDs", "Log", "LogError", "LogGap", "LogGone", "LogLimits",
    "MemoryStore", "Meta", "Reading", "Store", "StoreDown", "StoredLog", "closing", "cursor_in", "keep", "offset_in",
    "owner_of", "read",
]  # fmt: skip
