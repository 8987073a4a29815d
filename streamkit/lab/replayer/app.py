"""A server that answers recorded requests with their recordings, and other requests with an error in the client's dialect.

If several recordings match a request, each is given once, in the order of their times. Then the last one is repeated, or, with
``once``, the request is a miss. A recording without a request answers each POST that no other recording matches. A miss
has status 404 and a header that tells clients not to retry. The server uses the network only if it was made with a handler for
misses (``otherwise``).

Recordings have private content: a request for a host name other than this machine's is refused (421), and so is a request from
another site's page (403). Bodies are compared as sent, so the server must not decompress them.

Source: observe.md O27, O28; limits.md T15.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import hdrs, web
from attrs import evolve, field, frozen

from streamkit.errors import UsageError
from streamkit.lab.recording import RecordedRequest
from streamkit.lab.recording.matching import Pattern, RequestMatcher
from streamkit.lab.replayer.cutting import Cut, cut_reads
from streamkit.lab.replayer.loading import Loaded
from streamkit.lab.replayer.playing import Schedule, keep_recorded_headers, play
from streamkit.limits import MIB
from streamkit.web.client_dialect import client_dialect
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.refusals import Refused, shown, with_status
from streamkit.web.surfaces import read_body

#: The largest request body; the gateway has the same limit.
REQUEST_BYTES: Final = 32 * MIB
#: The official clients of OpenAI and Anthropic do not retry a response with this header; others decide by the status.
FINAL: Final = {"x-should-retry": "false"}
#: Handles a request that no recording answers, with its body (None: empty). May raise Refused.
Otherwise: TypeAlias = Callable[[web.Request, bytes | None], Awaitable[web.StreamResponse]]


@frozen(kw_only=True)
class ReplayOptions:
    """How recordings are replayed. Raises UsageError for invalid options."""

    speed: float = field(default=1.0)  #: 2 is twice as fast; 0 waits for nothing
    cut: Cut = field(factory=Cut)
    exact: bool = False  #: whether a request's body must have the same bytes as the recorded body
    ignored: Sequence[Pattern] = ()  #: places in JSON bodies that are not compared
    once: bool = False  #: whether each recording answers only one request
    silence_s: float = field(default=600.0)  #: seconds of silence in place of a recorded timeout

    @speed.validator
    @silence_s.validator
    def _check(self, attribute: Any, value: float) -> None:
        if not 0 <= value < math.inf:
            raise UsageError(f"{attribute.name} is a number from 0 on, not {value:g}")

    def __attrs_post_init__(self) -> None:
        if self.exact and self.ignored:
            raise UsageError("paths are ignored in a canonical match only, and an exact one is wanted")


class Outcome(NamedTuple):
    """The result of one request."""

    method: str
    path: str  #: without its query, in which keys are sent
    name: str  #: the recording that answers it; empty: none does
    reason: str  #: why no recording answers it, with the name of the nearest one


class Replay:
    """Recordings to serve, and the results of the requests for them."""

    def __init__(
        self,
        recordings: Sequence[Loaded],
        options: ReplayOptions,
        *,
        otherwise: Otherwise | None = None,
        notify: Callable[[Outcome], None] = lambda _outcome: None,
    ) -> None:
        self.misses: list[Outcome] = []
        self.otherwise = otherwise
        self._recordings, self._options = recordings, options
        self._notify = notify
        self._reads = [cut_reads(each.recording, options.cut) for each in recordings]
        self._requested = [number for number, each in enumerate(recordings) if each.request is not None]
        self._unrequested = [number for number, each in enumerate(recordings) if each.request is None]
        requests = [each.request for each in recordings if each.request is not None]
        self._matcher = RequestMatcher(requests, exact=options.exact, ignored=options.ignored)
        self._given: set[int] = set()

    @property
    def unasked(self) -> list[str]:
        """The names of the recordings that have answered no request."""
        return [each.name for number, each in enumerate(self._recordings) if number not in self._given]

    def app(self, hosts: Hosts | None = None) -> web.Application:
        """Return the web application. ``hosts`` are the accepted ``Host`` names (None: any)."""
        app = web.Application(client_max_size=REQUEST_BYTES)
        app.on_startup.append(keep_recorded_headers)
        app.router.add_route("*", "/{path:.*}", self._answer)
        if hosts is not None:
            app.middlewares.append(guarded(hosts, "replayer"))
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        dialect = client_dialect(request)
        try:
            return await self._answer_in(dialect, request, await read_body(request, dialect))
        except Refused as refused:
            return refused.response(dialect)

    async def _answer_in(self, dialect: str, request: web.Request, body: bytes) -> web.StreamResponse:
        schedule = Schedule(asyncio.get_running_loop().time(), self._options.speed)
        asked = RecordedRequest(method=request.method, path=request.raw_path, body=body)
        number, reason = self._next(asked)
        name = "" if number is None else self._recordings[number].name
        outcome = Outcome(request.method, request.path, name, reason)
        if number is not None:
            self._notify(outcome)
            recording = self._recordings[number].recording
            return await play(request, recording, self._reads[number], schedule, self._options.silence_s)
        if self.otherwise is not None:
            return await self.otherwise(request, body or None)
        self.misses.append(outcome)
        self._notify(outcome)
        message = f"no recording answers {request.method} {shown(request.path)}: {reason}"
        failed = with_status("not_found", message, 404, dialect)
        raise Refused(evolve(failed, code="not_recorded"), FINAL)

    def _next(self, asked: RecordedRequest) -> tuple[int | None, str]:
        """Return the position of the recording that answers a request; or None and the reason why there is none."""
        found = [self._requested[number] for number in self._matcher.matches(asked)]
        if not found and asked.method == hdrs.METH_POST:
            found = self._unrequested
        waiting = [number for number in found if number not in self._given]
        if waiting:
            self._given.add(waiting[0])
            return waiting[0], ""
        if found and not self._options.once:
            return found[-1], ""
        if found:
            return (
                None,
                f"each of the {len(found)} that do has answered one, as far as {self._recordings[found[-1]].name}",
            )
        if not self._requested:
            return None, "what is recorded has no requests, and answers POST alone"
        reason, nearest = self._matcher.explain(asked)
        return None, reason if nearest is None else f"{reason} ({self._recordings[self._requested[nearest]].name})"
