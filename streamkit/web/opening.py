"""Send a client's request to one upstream, until the headers of the response have arrived.

The request is written in the upstream's dialect. A failure is returned as a value, since the next upstream may succeed. If an
upstream repeats the keys of a request in its error, they are hidden from the client and from the log: ``cut`` removes them,
and the AWS session token too (limits.md T6).

Source: design.md §6; seeds.md S1, S3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from traceback import clear_frames
from typing import Final, TypeVar

import orjson
from aiohttp import ClientSession
from attrs import evolve, field, frozen
from multidict import CIMultiDict

from streamkit.conversation.messages import Request
from streamkit.dialects.http import Operation
from streamkit.dialects.profiles import Prefill
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import BadRequest, SourceFailed, StreamError
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.sources import causes
from streamkit.translation.bodies import encode_request
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
from streamkit.web.upstream.hiding import Cut
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


async def open_answer(
    session: ClientSession,
    upstream: Upstream,
    request: Request,
    ask: Ask,
    client_headers: Mapping[str, str],
    *,
    asked: StreamReport,
    report: StreamReport,
    prefill: Prefill | None = None,
    trace_headers: Mapping[str, str] = NO_HEADERS,
    recording: ExchangeRecording | None = None,
) -> Answered:
    """Send ``request`` to ``upstream``. The request includes the model and whether to stream.

    ``ask`` is the client's request with its ``client_headers``, of which the feature headers are passed on. A heavy request is
    translated in a thread. Media that are fetched for it count in the same memory budget until it was sent. ``prefill`` says
    how to make the upstream continue the last assistant turn. ``trace_headers`` are sent too. ``asked`` gets the losses of the
    request, ``report`` the errors, and ``recording`` the bytes over HTTP. If the upstream refuses a member of the request that
    the request can do without, the request is sent again without it (``Upstream.learn``).
    """
    started = asyncio.get_running_loop().time()
    model = request.model or ""
    client_headers, features = _marked(upstream, ask.mark, client_headers, upstream.wire.features(request))
    over_socket = upstream.transport == "websocket" and ask.operation == "generate"
    try:
        with Hold(ask.hold.budget) as fetched:
            post = partial(
                _posted_over_socket if over_socket else _posted,
                session,
                upstream,
                ask,
                model=model,
                stream=request.stream is True,
                started=started,
                client_headers=client_headers,
                features=features,
                trace_headers=trace_headers,
            )
            if over_socket:
                # over a WebSocket every response is a stream, so the member is not sent
                request = evolve(request, stream=None)
            if upstream.linked_media == "fetch":
                request = await with_fetched_media(request, upstream.wire, hold=fetched)
            write = partial(
                encode_request,
                request,
                upstream.dialect,
                max_tokens=upstream.max_tokens,
                emulate=upstream.emulate,
                assistant_first=upstream.assistant_first,
                assistant_last=upstream.assistant_last,
                linked_media="drop" if upstream.linked_media == "drop" else "refuse",
                model_like=upstream.model_like,
                prefill=prefill,
                cache=upstream.cache,
            )
            changes = (*upstream.changes, *upstream.learnt.changes(model, started))
            body = await _made(ask, partial(write, changes=changes, report=asked))
            answered = await post(body, recording=recording)
            if upstream.learn and answered.status in REFUSALS:
                write = partial(write, report=StreamReport())  # the losses are counted already
                remember = partial(upstream.learnt.add, model)
                return await _without_refused(answered, body, changes, write, post, ask, asked, recording, remember)
            return answered
    except Refused as error:
        return Answered(error.failed)
    except BadRequest as error:
        return Answered(ProviderFailed("invalid_request", str(error), code=UNFIT))
    except StreamError as error:
        _forget_frames(error)
        if isinstance(error, SourceFailed):
            error.upstream = upstream.name
        report.failed(error)
        return Answered(failure_from(error))


async def _made(ask: Ask, work: Callable[[], T]) -> T:
    """Return the result of ``work``, which runs in a thread if the client's request is heavy."""
    return await in_thread(work) if ask.heavy else work()


async def _posted(
    session: ClientSession,
    upstream: Upstream,
    ask: Ask,
    body: bytes,
    *,
    model: str,
    stream: bool,
    started: float,
    recording: ExchangeRecording | None,
    **headers: Mapping[str, str],
) -> Answered:
    response = await send(
        session,
        upstream,
        _body_for(ask.operation, upstream, body, model),
        model=model,
        stream=stream,
        operation=ask.operation,
        client_dialect=ask.dialect,
        recording=recording,
        **headers,
    )
    cut = redactor([upstream], response.request_info.headers)
    upstream_headers = {name: cut(value) for name, value in response_headers(response.headers).items()}
    if response.status != 200:
        return Answered(await error_of(response, upstream, recording=recording), response.status, upstream_headers, cut)
    answer = iter_upstream(response, timeouts=upstream.timeouts, started=started, name=upstream.name)
    answer.recording = recording
    return Answered(answer, response.status, upstream_headers, cut)


async def _posted_over_socket(
    session: ClientSession,
    upstream: Upstream,
    ask: Ask,
    body: bytes,
    *,
    model: str,
    stream: bool,  # noqa: ARG001 - over a WebSocket every response is a stream
    started: float,
    recording: ExchangeRecording | None,
    **headers: Mapping[str, str],
) -> Answered:
    opened = await send_over_socket(
        session,
        upstream,
        body,
        model=model,
        started=started,
        client_dialect=ask.dialect,
        recording=recording,
        **headers,
    )
    cut = redactor([upstream], opened.sent)
    upstream_headers = {name: cut(value) for name, value in response_headers(opened.headers).items()}
    return Answered(opened.answer, opened.status, upstream_headers, cut)


async def _without_refused(
    first: Answered,
    body: bytes,
    changes: Sequence[Change],
    write: Callable[..., bytes],
    post: Callable[..., Awaitable[Answered]],
    ask: Ask,
    asked: StreamReport,
    recording: ExchangeRecording | None,
    remember: Callable[[Sequence[Change], float], None],
) -> Answered:
    """Send a refused request again without the members that the refusals name, if it can do without them.

    ``first`` is the refusal of ``body``, in which ``changes`` were made. It is returned if the upstream refuses the request
    again for another reason, or refuses too many members. Otherwise the members are remembered, and counted in ``asked``.
    """
    answered, sent = first, body
    refused: list[Change] = []
    lasting: list[Change] = []
    while answered.status in REFUSALS and isinstance(answered.answer, ProviderFailed):
        found, lasts = await _made(ask, partial(refused_members, answered.answer, sent))
        if len(refused) + len(found) > MOST_REFUSED:
            remember(lasting, asyncio.get_running_loop().time())  # so that a later request gets further
        if not found or len(refused) + len(found) > MOST_REFUSED:
            return first
        refused += found
        lasting += found if lasts else ()
        sent = await _made(ask, partial(write, changes=(*changes, *refused)))
        recording = None if recording is None else recording.again()
        try:
            answered = await post(sent, recording=recording)
        except BaseException as error:
            if recording is not None:
                recording.end(end_of(error, answered=False))
            raise
    document = orjson.loads(body)
    for change in refused:
        document = change.apply(document, asked)
    remember(lasting, asyncio.get_running_loop().time())
    return answered


def _body_for(operation: Operation, upstream: Upstream, body: bytes, model: str) -> bytes:
    """Return what to send for ``body``, a request for a response."""
    match operation:
        case "count":
            return count_request(upstream, body, model)
        case "compact":
            return compact_request(upstream, body)
        case "generate":
            return body


def _marked(
    upstream: Upstream, mark: str, client_headers: Mapping[str, str], features: Mapping[str, str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the client's headers and the feature headers, both with the features that the model name's suffix asks for."""
    for name, value in (upstream.endpoint.marks.get(mark, {}) if upstream.endpoint is not None else {}).items():
        if value not in client_headers.get(name, ""):
            client_headers = CIMultiDict(client_headers)
            client_headers.add(name, value)
        features = {**features, name: f"{features[name]},{value}" if name in features else value}
    return client_headers, features


def _forget_frames(error: BaseException) -> None:
    """Free the request that an error's frames refer to: a report keeps the error while other upstreams are tried."""
    for each in causes(error):
        clear_frames(each.__traceback__)
        each.__traceback__ = None
