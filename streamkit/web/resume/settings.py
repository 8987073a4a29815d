"""How an application keeps responses, the key under which it stores these settings, and the opening of a kept response.

Source: resume.md §5, §13.2, §14; R16.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from aiohttp import web
from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.dialects import client_named
from streamkit.events import ErrorType, ProviderFailed
from streamkit.limits import MIB
from streamkit.resume import BadCursor, LogError, LogGone, Reading, Store, StoredLog, owner_of
from streamkit.resume.log import checked_id
from streamkit.web.refusals import Refused

#: Which streams can be resumed: those for which the client asks with a header; all; none.
Resumable: TypeAlias = Literal["asked", "always", "never"]
ASKED_HEADER: Final = "x-streamkit-resumable"  #: the request header that asks for a resumable stream; its value is 1


class ResumeCounts:
    """Counts the outcomes of resuming, for metrics."""

    def __init__(self) -> None:
        #: Requests for the rest of a response, by outcome: ``resumed``, ``nothing_left``, ``not_found``, ``bad_cursor``,
        #: ``unavailable``; ``broken``: resumed, but the log could not be read to its end; ``stopped``.
        self.resumes: Counter[str] = Counter()
        #: Streams that were wanted as resumable and are not, by reason (``slow``, ``down``).
        self.not_resumable: Counter[str] = Counter()


@frozen(kw_only=True)
class State:
    """How responses are kept for requests that refer to them, in dialects that have such requests."""

    #: Seconds that a response is kept so that requests can refer to it. Each turn of a conversation keeps the earlier
    #: responses anew.
    ttl_s: float = field(default=3600.0, validator=gt(0))
    #: Bytes of one response with the conversation before it; a larger one is not kept.
    response_bytes: int = field(default=8 * MIB, validator=ge(1))


@frozen(kw_only=True)
class Resuming:
    """How responses are kept and resumed."""

    store: Store
    resumable: Resumable = "asked"
    #: Seconds that a response continues while neither its client nor another reader is connected. This costs tokens.
    unattended_s: float = field(default=300.0, validator=gt(0))
    path: str = "/v1/streams"  #: the path for resuming streams: ``GET`` and ``DELETE`` of ``{path}/{id}``
    #: Returns the key that a client sent; the kept responses belong to this key. Empty: to anyone who has their ids.
    key: Callable[[web.Request], str] = lambda _request: ""
    state: State | None = None  #: None: no request may refer to an earlier response
    counts: ResumeCounts = field(factory=ResumeCounts)

    def wanted(self, request: web.Request, resumable: Resumable | None = None) -> bool:
        """Return whether to keep the response to ``request``. The argument ``resumable`` overrides the setting."""
        mode = resumable or self.resumable
        return mode == "always" or (mode == "asked" and request.headers.get(ASKED_HEADER) == "1")


#: The settings of an application. An application without this key keeps no responses.
RESUMING: Final = web.AppKey("streamkit-resuming", Resuming)


RETRY_S: Final = 1.0  #: seconds after which a client may retry if the store can't be read


def takes_ids(client: str, *, is_array: bool) -> bool:
    """Return whether a client accepts ids and comments in its stream. ``client`` names its dialect, or the client."""
    dialect = client_named(client)[0]
    surface = dialect.http.surface
    is_events = dialect.media_type == "text/event-stream" and not is_array
    return is_events and surface is not None and surface.event_ids


def stored_name(kind: str, key: str, name: str) -> str:
    """Return the name of a value in the store. It reveals neither ``key`` nor ``name``, and other keys give other names."""
    return f"{kind}_{hmac.new(key.encode(), name.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


async def opened(request: web.Request, resuming: Resuming, log_id: str, offset: int = 0) -> tuple[StoredLog, Reading]:
    """Open a log that belongs to the client, to read it from byte ``offset`` on. Raises Refused."""
    with refusing(resuming):
        log = StoredLog(resuming.store, log_id, owner_of(resuming.key(request), checked_id(log_id)))
        return log, await log.open(offset)


@contextmanager
def refusing(resuming: Resuming) -> Iterator[None]:
    """Raise Refused for a LogError in the block."""
    try:
        yield
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
    resuming.counts.resumes[count] += 1
    retry_after_s = RETRY_S if kind == "unavailable" else None
    message = str(LogGone()) if kind == "not_found" else str(error)
    return Refused(ProviderFailed(kind, message, retry_after_s=retry_after_s))
