"""Send a client's request to one upstream, until the headers of the response have arrived.

The request is written in the upstream's dialect. A failure is returned as a value, since the next upstream may succeed. If an
upstream repeats the keys of a request in its error, they are hidden from the client and from the log: ``cut`` removes them,
and the AWS session token too (limits.md T6).

Source: design.md §6; seeds.md S1, S3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from traceback import clear_frames
from typing import Final, TypeVar

import orjson
from aiohttp import ClientSession
from attrs import define, evolve, field, frozen
from multidict import CIMultiDict

from streamkit.conversation.messages import Request
from streamkit.dialects.profiles import Prefill
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import BadRequest, SourceFailed, StreamError
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.sources import causes
from streamkit.translation.bodies import drop_unreadable, encode_request
from streamkit.translation.changes import Change
from streamkit.translation.refused_members import refused_members
from streamkit.web.budget import Hold
from streamkit.web.fetching import with_fetched_media
from streamkit.web.heavy import in_thread
from streamkit.web.observers import ExchangeRecording, end_of
from streamkit.web.refusals import Refused
from streamkit.web.source import TimedSource, iter_upstream
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream, count_request, error_of, redactor, response_headers, send
from streamkit.web.upstream.hiding import Cut, redactor_for, without_keys_in
from streamkit.web.upstream.learning import MOST_REFUSED, REFUSALS
from streamkit.web.upstream.requests import NO_HEADERS, compact_request
from streamkit.web.upstream.sending import send_over_socket

T = TypeVar("T")
UNFIT: Final = "request_unfit"  #: the code of a failure: the upstream's dialect can't express the request


@frozen
class Answered:
    """What is known once the response's headers have arrived, or the request has failed."""

    #: A response with status 200, its body unread, whose timers run since the request was sent; else the failure.
    answer: TimedSource | ProviderFailed
    status: int | None = None  #: the upstream's HTTP status; None: it did not respond
    upstream_headers: Mapping[str, str] = field(default=NO_HEADERS, repr=False)  #: the headers for the client
    cut: Cut = field(default=str, repr=False)  #: removes the keys that were sent to the upstream from a text


@define
class Sending:
    """One request to one upstream. Call ``open`` once.

    ``request`` includes the model and whether to stream. ``ask`` is the client's request with its ``client_headers``, of which
    the feature headers are passed on.
    """

    session: ClientSession
    upstream: Upstream
    request: Request
    ask: Ask
    client_headers: Mapping[str, str] = field(repr=False)  # includes the client's key
    asked: StreamReport = field(repr=False)  #: gets the losses of the request
    report: StreamReport = field(repr=False)  #: gets the errors
    prefill: Prefill | None = None  #: how to make the upstream continue the last assistant turn
    trace_headers: Mapping[str, str] = NO_HEADERS  #: request headers that tell the upstream the trace
    recording: ExchangeRecording | None = field(default=None, repr=False)  #: records the bytes over HTTP

    async def open(self) -> Answered:
        """Send the request, and return when the headers of the response have arrived, or the request has failed.

        A heavy request is translated in a thread. Media that are fetched for it count in the same memory budget until it was
        sent. If the upstream refuses a member of the request that the request can do without, the request is sent again
        without it (``Upstream.learn``).
        """
        self._started = asyncio.get_running_loop().time()
        upstream = self.upstream
        self._over_socket = upstream.transport == "websocket" and self.ask.operation == "generate"
        self._features = upstream.wire.features(self.request)
        if self.ask.mark:
            self._add_marks()
        try:
            if upstream.linked_media != "fetch":
                return await self._sent()
            with Hold(self.ask.hold.budget) as fetched:
                self.request = await with_fetched_media(self.request, upstream.wire, hold=fetched)
                return await self._sent()
        except Refused as error:
            return Answered(error.failed)
        except BadRequest as error:
            return Answered(ProviderFailed("invalid_request", str(error), code=UNFIT))
        except StreamError as error:
            _forget_frames(error)
            if isinstance(error, SourceFailed):
                error.upstream = upstream.name
            self.report.failed(error)
            return Answered(failure_from(error))

    def _add_marks(self) -> None:
        """Add the features that the model name's suffix asks for, to the client's headers and to the feature headers."""
        endpoint = self.upstream.endpoint
        for name, value in (endpoint.marks.get(self.ask.mark, {}) if endpoint is not None else {}).items():
            if value not in self.client_headers.get(name, ""):
                self.client_headers = CIMultiDict(self.client_headers)
                self.client_headers.add(name, value)
            features = self._features
            self._features = {**features, name: f"{features[name]},{value}" if name in features else value}

    async def _sent(self) -> Answered:
        upstream = self.upstream
        changes = (*upstream.changes, *upstream.learnt.changes(self.request.model or "", self._started))
        body = await self._made(partial(self._body, changes, self.asked))
        answered = await self._posted(body, self.recording)
        if upstream.learn and answered.status in REFUSALS:
            return await self._without_refused(answered, body, changes)
        return answered

    async def _made(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which runs in a thread if the client's request is heavy."""
        return await in_thread(work) if self.ask.heavy else work()

    def _body(self, changes: Sequence[Change], report: StreamReport) -> bytes:
        """Return the request for a response in the upstream's dialect, with ``changes``; ``report`` counts its losses."""
        upstream, request = self.upstream, self.request
        if upstream.unreadable == "drop":
            request = drop_unreadable(request, upstream.dialect, report=report)
        return encode_request(
            evolve(request, stream=None) if self._over_socket else request,  # there every response is a stream
            upstream.dialect,
            max_tokens=upstream.max_tokens,
            emulate=upstream.emulate,
            assistant_first=upstream.assistant_first,
            assistant_last=upstream.assistant_last,
            linked_media="drop" if upstream.linked_media == "drop" else "refuse",
            model_like=upstream.model_like,
            prefill=self.prefill,
            cache=upstream.cache,
            changes=changes,
            report=report,
        )

    async def _posted(self, body: bytes, recording: ExchangeRecording | None) -> Answered:
        """Send ``body``, a request for a response, or what the operation makes of it. Raises StreamError and BadRequest."""
        upstream, ask = self.upstream, self.ask
        model, features, traces = self.request.model or "", self._features, self.trace_headers
        headers = {"client_headers": self.client_headers, "features": features, "trace_headers": traces}
        if self._over_socket:
            opened = await send_over_socket(
                self.session,
                upstream,
                body,
                model=model,
                started=self._started,
                client_dialect=ask.dialect,
                recording=recording,
                **headers,
            )
            cut = redactor([upstream], opened.sent)
            return Answered(opened.answer, opened.status, without_keys_in(response_headers(opened.headers), cut), cut)
        if ask.operation == "count":
            body = count_request(upstream, body, model)
        elif ask.operation == "compact":
            body = compact_request(upstream, body)
        response = await send(
            self.session,
            upstream,
            body,
            model=model,
            stream=self.request.stream is True,
            operation=ask.operation,
            client_dialect=ask.dialect,
            recording=recording,
            **headers,
        )
        cut = redactor_for(upstream, response)
        upstream_headers = without_keys_in(response_headers(response.headers), cut)
        if response.status != 200:
            failed = await error_of(response, upstream, recording=recording)
            return Answered(failed, response.status, upstream_headers, cut)
        answer = iter_upstream(response, timeouts=upstream.timeouts, started=self._started, name=upstream.name)
        answer.recording = recording
        return Answered(answer, response.status, upstream_headers, cut)

    async def _without_refused(self, first: Answered, body: bytes, changes: Sequence[Change]) -> Answered:
        """Send a refused request again without the members that the refusals name, if it can do without them.

        ``first`` is the refusal of ``body``, in which ``changes`` were made. It is returned if the upstream refuses the
        request again for another reason, or refuses too many members. Otherwise the members are remembered, and counted in
        ``asked``.
        """
        answered, sent, recording = first, body, self.recording
        refused: list[Change] = []
        lasting: list[Change] = []
        while answered.status in REFUSALS and isinstance(answered.answer, ProviderFailed):
            found, lasts = await self._made(partial(refused_members, answered.answer, sent))
            if len(refused) + len(found) > MOST_REFUSED:
                self._remember(lasting)  # so that a later request gets further
            if not found or len(refused) + len(found) > MOST_REFUSED:
                return first
            refused += found
            lasting += found if lasts else ()
            # a report of its own: the losses are counted already
            sent = await self._made(partial(self._body, (*changes, *refused), StreamReport()))
            recording = None if recording is None else recording.again()
            try:
                answered = await self._posted(sent, recording)
            except BaseException as error:
                if recording is not None:
                    recording.end(end_of(error, answered=False))
                raise
        document = orjson.loads(body)
        for change in refused:
            document = change.apply(document, self.asked)
        self._remember(lasting)
        return answered

    def _remember(self, refused: Sequence[Change]) -> None:
        self.upstream.learnt.add(self.request.model or "", refused, asyncio.get_running_loop().time())

    _started: float = field(init=False, default=0.0)  #: the event loop's time from which the timers run
    _over_socket: bool = field(init=False, default=False)
    #: The feature headers that the request needs if the client speaks another dialect.
    _features: Mapping[str, str] = field(init=False, default=NO_HEADERS)


def _forget_frames(error: BaseException) -> None:
    """Free the request that an error's frames refer to: a report keeps the error while other upstreams are tried."""
    for each in causes(error):
        clear_frames(each.__traceback__)
        each.__traceback__ = None
