"""Open the log of a kept response for a client, or build the refusal if that is not possible.

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

#: Seconds after which a client may retry if the store can't be read.
RETRY_S: Final = 1.0


async def opened(request: web.Request, resuming: Resuming, log_id: str, offset: int) -> tuple[Reading, str]:
    """Open a log that belongs to the client. Return its reading and its owner. Raises Refused."""
    try:
        owner = owner_of(resuming.key(request), checked_id(log_id))
        return await resuming.store.open(log_id, owner, offset), owner
    except LogError as error:
        raise refusal(resuming, error) from error


def refusal(resuming: Resuming, error: LogError) -> Refused:
    """Return the refusal for a client that can't resume."""
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
