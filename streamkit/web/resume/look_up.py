"""Logs of the client that asks, and what it is told where there is none to read.

Source: resume.md §5.1, §13.2; R16.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from streamkit.events import ErrorType, ProviderFailed
from streamkit.resume import BadCursor, LogError, LogGone, Reading, owner_of
from streamkit.resume.identity import checked_id
from streamkit.web.refusals import Refused
from streamkit.web.resume.settings import Resuming

#: Seconds after which a client may ask again where the store can't be read.
RETRY_S: Final = 1.0


async def opened(request: web.Request, resuming: Resuming, log_id: str, offset: int) -> tuple[Reading, str]:
    """A log of the client that asks, and who that is. Raises Refused."""
    try:
        owner = owner_of(resuming.key(request), checked_id(log_id))
        return await resuming.store.open(log_id, owner, offset), owner
    except LogError as error:
        raise refusal(resuming, error) from error


def refusal(resuming: Resuming, error: LogError) -> Refused:
    """What a client is told that can't read on."""
    kind: ErrorType
    kind, count = "unavailable", "unavailable"
    if isinstance(error, LogGone):
        kind, count = "not_found", "not_found"
    elif isinstance(error, BadCursor):
        kind, count = "invalid_request", "bad_cursor"
    resuming.counts.resumed(count)
    retry_after_s = RETRY_S if kind == "unavailable" else None
    message = str(LogGone()) if kind == "not_found" else str(error)
    return Refused(ProviderFailed(kind, message, retry_after_s=retry_after_s))
