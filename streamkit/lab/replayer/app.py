"""A server that answers recorded requests with their recordings, and other requests with an error in the client's dialect.

If several recordings match a request, each is given once, in the order of their times. Then the last one is repeated, or, with
``once``, the request is a miss. A recording without a request answers each POST that no other recording matches. A miss
has status 404 and a header that tells clients not to retry. The server uses the network only if it was made with a handler for
misses (``otherwise``).

Recordings have private content: a request for a host name other than this machine's is refused (421), and so is a request from
another site's page (403). Bodies are compared as sent, so the server must not decompress them.

Each write has a deadline that counts from the request, ``start + t / speed``. Sleeping between reads would drift: by 90 ms in
400 reads. Reads that are due together are written 0.1 ms apart, since the client's kernel would join them otherwise. The end
is as recorded. If a body was cut, the connection closes inside a chunked body, or before the stated length. For a recorded
timeout nothing is sent until the client leaves. An end that the recorder caused is played like a cut: the recording client
left, the recorder was shut down, or the file was full.

Source: observe.md O27, O28, F45, F50; limits.md T15; RFC 9110 §7.6.1 (hop by hop); RFC 9112 §6.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import hdrs, web
from attrs import evolve, field, frozen

from streamkit.errors import UsageError
from streamkit.lab.recording import Read, RecordedRequest, RecordedResponse, Recording
from streamkit.lab.recording.headers import HOP_BY_HOP
from streamkit.lab.recording.matching import Pattern, RequestMatcher
from streamkit.lab.replayer.loading import Cut, Loaded, cut_reads
from streamkit.lab.server import reset
from streamkit.limits import MIB
from streamkit.web.client_dialect import client_dialect
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.refusals import Refused, shown, with_status
from streamkit.web.surfaces import read_body

REQUEST_BYTES: Final = 32 * MIB  #: the largest request body; the gateway has the same limit
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
            raise UsageError(f"{attribute.name} must be 0 or more, not {value:g}")

    def __attrs_post_init__(self) -> None:
        if self.exact and self.ignored:
            raise UsageError("paths can be ignored only in a canonical match, not in an exact one")


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
                f"each of the {len(found)} matching ones has answered a request, the last {self._recordings[found[-1]].name}",
            )
        if not self._requested:
            return None, "the recordings have no requests, and answer only POST"
        reason, nearest = self._matcher.explain(asked)
        return None, reason if nearest is None else f"{reason} ({self._recordings[self._requested[nearest]].name})"


# -- writing one response ----------------------------------------------------------------------------------------------


#: Seconds to wait between two writes, so that the client receives them as two reads. With a shorter time, 72 of 300 boundaries
#: between reads were lost over loopback.
APART_S: Final = 0.000_1
ADDED: Final = (hdrs.CONTENT_TYPE, hdrs.DATE, hdrs.SERVER)  #: headers that aiohttp adds to a response that lacks them
#: The headers of the recorded response, with names in lower case.
RECORDED: Final = web.ResponseKey("streamkit-recorded-headers", dict[str, str])


async def keep_recorded_headers(app: web.Application) -> None:
    """Give replayed responses the recorded headers and no others. A handler for ``on_startup``.

    It must run at startup: only then is its response handler after those that the application's server added.
    """
    app.on_response_prepare.append(_as_recorded)


async def _as_recorded(_request: web.Request, response: web.StreamResponse) -> None:
    if RECORDED in response:
        for name in ADDED:
            response.headers.pop(name, None)
            if name.lower() in response[RECORDED]:
                response.headers[name] = response[RECORDED][name.lower()]


class Schedule:
    """Deadlines of one response. ``start`` is in seconds on the event loop's clock. At speed 0 nothing waits."""

    def __init__(self, start: float, speed: float) -> None:
        self._start, self._speed = start, speed
        self._time = asyncio.get_running_loop().time
        self._wrote = 0.0

    async def until(self, t: float) -> None:
        """Wait until a read recorded ``t`` seconds after the request is due, and ``APART_S`` after the last write."""
        wait = self._start + t / self._speed - self._time() if self._speed else 0.0
        if wait > 0:
            await asyncio.sleep(wait)
        while self._time() < self._wrote + APART_S:  # noqa: ASYNC110 - an asyncio timer would wait a whole millisecond
            await asyncio.sleep(0)

    def wrote(self) -> None:
        self._wrote = self._time()


async def play(
    request: web.Request, recording: Recording, reads: Sequence[Read], schedule: Schedule, silence_s: float
) -> web.StreamResponse:
    """Answer a request with a recording, split into ``reads``. A recorded timeout is silent for ``silence_s`` at most."""
    transport = request.transport
    response: web.StreamResponse = web.Response()
    if transport is None:  # the client left
        return response
    transport.set_write_buffer_limits(0)
    try:
        if recording.response is not None:
            response = await _begin(request, recording, recording.response, schedule)
            for read in reads:
                await schedule.until(read.t)
                await response.write(read.data)
                await request.writer.drain()
                schedule.wrote()
        if recording.end is not None:
            await schedule.until(recording.end.t)
    except ConnectionError:  # the client left during the response
        return response
    kind, _, _ = recording.ending.partition(":")
    if kind == "whole":
        return response  # a complete body: aiohttp writes its end
    if kind == "timeout":
        await asyncio.sleep(silence_s)
    if kind == "reset":
        reset(request)
    transport.close()
    return response


async def _begin(
    request: web.Request, recording: Recording, recorded: RecordedResponse, schedule: Schedule
) -> web.StreamResponse:
    headers = {name: value for name, value in recorded.headers.items() if name not in HOP_BY_HOP}
    if not _length_is_true(recording, headers.get("content-length")):
        headers.pop("content-length", None)
    response = web.StreamResponse(status=recorded.status, headers=headers)
    response[RECORDED] = headers
    await schedule.until(recorded.t)
    await response.prepare(request)
    schedule.wrote()
    return response


def _length_is_true(recording: Recording, length: str | None) -> bool:
    """Return whether a recorded ``Content-Length`` fits: equal to the body's size, or larger if the body was cut."""
    if length is None or not length.isdecimal():
        return False
    size = sum(len(read.data) for read in recording.reads)
    return size == int(length) if recording.ending == "whole" else size < int(length)
