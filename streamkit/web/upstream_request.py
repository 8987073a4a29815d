"""One request to an upstream, up to the headers of its response: translate it, send it, and check the response.

A failure is returned as a value, since another upstream may succeed. If an upstream repeats the keys of a request, they are
hidden from the client: ``cut`` removes them, and the AWS session token too (limits.md T6).

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
from streamkit.web.observers import ExchangeRecording
from streamkit.web.refusals import Refused
from streamkit.web.source import TimedSource, iter_upstream
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream, count_request, error_of, redactor, response_headers, send
from streamkit.web.upstream.hiding import Cut
from streamkit.web.upstream.requests import NO_HEADERS
from streamkit.web.upstream.socket import ask as ask_over_socket

UNFIT: Final = "request_unfit"  #: the code of a failure: the upstream's dialect can't express the request


@frozen
class Opened:
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
) -> Opened:
    """Send ``request`` to ``upstream``. The request includes the model and whether to stream.

    ``ask`` is the client's request with its ``client_headers``, of which the feature headers are passed on. A heavy request is
    translated in a thread. Media that are fetched for it count in the same memory budget until it was sent. ``prefill`` says
    how to make the upstream continue the last assistant turn. ``trace_headers`` are sent too. ``asked`` gets the losses of the
    request, ``report`` the errors, and ``recording`` the bytes over HTTP.
    """
    started = asyncio.get_running_loop().time()
    model, streams = request.model or "", request.stream is True
    client_headers, features = _marked(upstream, ask.mark, client_headers, upstream.wire.features(request))
    over_socket = upstream.transport == "websocket" and ask.operation == "generate"
    try:
        with Hold(ask.hold.budget) as fetched:
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
    """Return the client's headers and the feature headers, both with the features that the model name's suffix asks for."""
    for name, value in (upstream.endpoint.marks.get(mark, {}) if upstream.endpoint is not None else {}).items():
        if value not in client_headers.get(name, ""):
            client_headers = CIMultiDict(client_headers)
            client_headers.add(name, value)
        features = {**features, name: f"{features[name]},{value}" if name in features else value}
    return client_headers, features


def _forget_frames(error: BaseException) -> None:
    """Free the request that an error's frames refer to: a report keeps the error while other upstreams are tried."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        clear_frames(link.__traceback__)
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
