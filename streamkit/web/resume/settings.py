"""How an application keeps answers, and where it is found.

Source: resume.md §5, §14.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from aiohttp import web
from attrs import field, frozen
from attrs.validators import ge, gt

from streamkit.limits import MIB
from streamkit.resume import Store

#: Which streams can be resumed: those whose client asks for it by a header; all; none.
Resumable: TypeAlias = Literal["asked", "always", "never"]
#: By which a client asks for a stream that it can come back to, with the value 1.
ASKED_HEADER: Final = "x-streamkit-resumable"


class ResumeCounts:
    """What became of resuming, by fixed words: for metrics."""

    def __init__(self) -> None:
        #: Of requests that asked for the rest of an answer: ``resumed``, ``nothing_left``, ``not_found``, ``bad_cursor``,
        #: ``unavailable``; ``broken``: resumed, and the log could not be read to its end; ``stopped``.
        self.resumes: Counter[str] = Counter()
        #: Of streams that were to be resumable and are not: why (``slow``, ``down``).
        self.not_resumable: Counter[str] = Counter()

    def resumed(self, result: str) -> None:
        self.resumes[result] += 1

    def unkept(self, why: str) -> None:
        self.not_resumable[why] += 1


@frozen(kw_only=True)
class State:
    """How responses are kept for requests that lean on them, in dialects whose clients do."""

    #: How long a response can be leaned on, in seconds. Those of a conversation are kept anew with each turn.
    ttl_s: float = field(default=3600.0, validator=gt(0))
    #: Bytes of one response with all that was said before it; a larger one is not kept.
    response_bytes: int = field(default=8 * MIB, validator=ge(1))


def _nobody(_request: web.Request) -> str:
    return ""


@frozen(kw_only=True)
class Resuming:
    """How answers are kept and read on."""

    store: Store
    resumable: Resumable = "asked"
    #: How long an answer goes on without its client and without a reader, in seconds. Answers that nobody reads cost tokens.
    unattended_s: float = field(default=300.0, validator=gt(0))
    #: Where streams are read on: ``GET`` and ``DELETE`` of ``{path}/{id}``.
    path: str = "/v1/streams"
    #: The key that a client showed, to which the answers belong that it asks for; empty: to whoever has their ids.
    key: Callable[[web.Request], str] = _nobody
    #: None: no request may lean on an earlier one.
    state: State | None = None
    counts: ResumeCounts = field(factory=ResumeCounts)

    def wanted(self, request: web.Request, resumable: Resumable | None = None) -> bool:
        """Whether the answer to ``request`` is to be kept; ``resumable`` stands in the place of this one's own."""
        mode = resumable or self.resumable
        return mode == "always" or (mode == "asked" and request.headers.get(ASKED_HEADER) == "1")


#: How an application keeps answers; an application without it keeps none.
RESUMING: Final = web.AppKey("streamkit-resuming", Resuming)
