"""A request to an upstream up to the headers of its answer: written in its dialect, sent, and what came back looked at.

What fails is a value, since another upstream may do better. An upstream that repeats the keys it was sent does not tell them
to the client: ``cut`` takes them out, the session's token included (limits.md T6).

Source: design.md §6; seeds.md S1, S3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from traceback import clear_frames
from typing import Final

from aiohttp import ClientSession
from attrs import evolve, field, frozen
from multidict import CIMultiDict

from streamkit.conversation.messages import Request
from streamkit.dialects.profiles import Prefill
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import BadRequest, SourceFailed, StreamError
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_request
from streamkit.web.budget import Hold
from streamkit.web.fetching import with_fetched_media
from streamkit.web.heavy import beside
from streamkit.web.recording import ExchangeRecording
from streamkit.web.refusals import Refused
from streamkit.web.source import TimedSource, iter_upstream
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream, count_request, error_of, redactor, response_headers, send
from streamkit.web.upstream.headers import NO_HEADERS
from streamkit.web.upstream.hiding import Cut
from streamkit.web.upstream.socket import ask as ask_over_socket

#: The code of a failure: the dialect of this upstream has no place for what the request wants.
UNFIT: Final = "request_unfit"


@frozen
class Opened:
    """What is known once the headers are there, or nothing comes any more."""

    #: With status 200, its body unread, whose clocks run since it was asked; else what is wrong.
    answer: TimedSource | ProviderFailed
    status: int | None = None  #: if it answered
    upstream_headers: Mapping[str, str] = field(default=NO_HEADERS, repr=False)  #: the headers that are for the client
    cut: Cut = field(default=str, repr=False)  #: takes the keys that were sent out of what comes back


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
) -> Opened:
    """Ask ``upstream`` for what ``request`` says, its model and whether to stream included.

    ``ask`` is where it came from, with ``client_headers``, of which the feature headers are passed on. A heavy request is
    written in a thread, and what is fetched for it is held of the same budget until it was sent.
    ``prefill`` is how it is asked to go on with the assistant's turn that stands last; ``trace_headers`` go with the request.
    ``asked`` gets what the request loses on its way, ``report`` what broke, and ``recording`` what goes over HTTP.
    """
    started = asyncio.get_running_loop().time()
    model, streams = request.model or "", request.stream is True
    client_headers, features = _marked(upstream, ask.mark, client_headers, upstream.wire.features(request))
    over_socket = upstream.transport == "websocket" and ask.operation == "generate"
    try:
        with Hold(ask.hold.budget) as fetched:
            if over_socket:
                request = evolve(request, stream=None)  # every answer is a stream there
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
                prefill=prefill,
                report=asked,
            )
            body = await beside(write) if ask.heavy else write()
            if over_socket:
                opened = await ask_over_socket(
                    session,
                    upstream,
                    body,
                    model=model,
                    started=started,
                    client_dialect=ask.dialect,
                    client_headers=client_headers,
                    features=features,
                    trace_headers=trace_headers,
                    recording=recording,
                )
                cut = redactor([upstream], opened.sent)
                headers = {name: cut(value) for name, value in response_headers(opened.headers).items()}
                return Opened(opened.answer, opened.status, headers, cut)
            response = await send(
                session,
                upstream,
                count_request(upstream, body, model) if ask.operation == "count" else body,
                model=model,
                stream=streams,
                operation=ask.operation,
                client_dialect=ask.dialect,
                client_headers=client_headers,
                features=features,
                trace_headers=trace_headers,
                recording=recording,
            )
    except Refused as error:
        return Opened(error.failed)
    except BadRequest as error:
        return Opened(ProviderFailed("invalid_request", str(error), code=UNFIT))
    except StreamError as error:
        _forget_frames(error)
        if isinstance(error, SourceFailed):
            error.upstream = upstream.name
        report.failed(error)
        return Opened(failure_from(error))
    cut = redactor([upstream], response.request_info.headers)
    upstream_headers = {name: cut(value) for name, value in response_headers(response.headers).items()}
    if response.status != 200:
        return Opened(await error_of(response, upstream, recording=recording), response.status, upstream_headers, cut)
    answer = iter_upstream(response, timeouts=upstream.timeouts, started=started, name=upstream.name)
    answer.recording = recording
    return Opened(answer, response.status, upstream_headers, cut)


def _marked(
    upstream: Upstream, mark: str, client_headers: Mapping[str, str], features: Mapping[str, str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the client's headers and the feature headers, each with those that the mark of the model's name asks for."""
    for name, value in (upstream.endpoint.marks.get(mark, {}) if upstream.endpoint is not None else {}).items():
        if value not in client_headers.get(name, ""):
            client_headers = CIMultiDict(client_headers)
            client_headers.add(name, value)
        features = {**features, name: f"{features[name]},{value}" if name in features else value}
    return client_headers, features


def _forget_frames(error: BaseException) -> None:
    """Let go of the request that stands in the frames of an error, which a report keeps while others are asked."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        clear_frames(link.__traceback__)
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
