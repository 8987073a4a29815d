"""``relay``: answer an aiohttp request with a pipeline that reads an upstream's response."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Mapping
from typing import TypeAlias

from aiohttp import ClientResponse, web

from streamkit.dialects import client_named
from streamkit.pipeline import Pipe
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, Reply
from streamkit.web.resume.answer import resumable_outlet
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource, Timeouts, iter_upstream
from streamkit.web.upstream import error_of, response_headers

#: Returns the pipe that produces the client's bytes from a source: ``lambda source: transcode(source, provider, client)``.
Pipeline: TypeAlias = Callable[[AsyncIterable[bytes]], Pipe[bytes]]


async def relay(
    request: web.Request,
    source: ClientResponse | AsyncIterable[bytes],
    pipeline: Pipeline,
    *,
    client: str,
    provider: str | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    delivery: Delivery = DEFAULT_DELIVERY,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Answer ``request`` with the output of ``pipeline`` over ``source``. The handler must return the returned response.

    ``client`` names the client's dialect, or the client itself; it selects the media type, keep-alives and error format.
    ``source`` is an upstream's response or any async iterable of bytes. A response whose status is not 200 becomes an error in
    the client's dialect; it is parsed as an error of ``provider`` (by default: of ``client``'s dialect). The response's
    rate-limit headers and ``headers`` are sent to the client. The source is closed before this function returns, and at once
    when the client disconnects, unless the application keeps responses (``add_resuming``) and the client asked to be able to
    resume this one. Raises UsageError for an unknown name.
    """
    outlet = resumable_outlet(request, client)
    reply = Reply(request, client, delivery=delivery, headers=headers, outlet=outlet)

    async def work() -> None:
        if isinstance(source, ClientResponse):
            reply.upstream_headers = response_headers(source.headers)
            if source.status != 200:
                await reply.fail(await error_of(source, provider or client_named(client)[0].name))
                return
            bytes_in = iter_upstream(source, timeouts=timeouts)
        else:
            bytes_in = TimedSource(source, timeouts)
        failed = await reply.send(pipeline(bytes_in), bytes_in)
        if failed is not None:
            await reply.fail(failed)

    try:
        return await reply.run(work())
    finally:
        if isinstance(source, ClientResponse):
            source.close()  # here too: if ``work`` was cancelled before it started, it did not close the source
