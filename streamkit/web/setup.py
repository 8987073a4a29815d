"""Serve LLM clients in an aiohttp application: ``setup`` adds routes for one upstream, ``relay`` sends one stream.

The gateway does the same as ``setup`` for many upstreams. ``setup`` has no configuration file, client keys, metrics or choice
of upstreams: the application does these itself. ``inventory.py`` adds the routes that list models.

Source: design.md §6, §8; clients.md §5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import ClientResponse, ClientSession, web
from attrs import field, frozen

from streamkit.dialects import client_named, source_named
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.dialects.vocabulary.error_bodies import BROKEN, TRUNCATED
from streamkit.errors import SourceFailed, UsageError, check_type
from streamkit.events import ProviderFailed
from streamkit.pipeline import Pipe
from streamkit.recipes import transcode
from streamkit.rewrite.given import EventStage, given_stages
from streamkit.text.quoting import quoted
from streamkit.web.budget import BUDGET, Budget
from streamkit.web.compactions import Compaction, first_compaction
from streamkit.web.exchange import Exchange
from streamkit.web.hosts import is_foreign
from streamkit.web.opening import UNFIT
from streamkit.web.refusals import Refused
from streamkit.web.reply import DEFAULT_DELIVERY, LIVE, Delivery, Reply, end_streams_on_shutdown, reply_to
from streamkit.web.resume.answer import keeping, resumable_outlet
from streamkit.web.resume.following import attached
from streamkit.web.service import Service
from streamkit.web.socket import MESSAGE_BYTES, SOCKETS, Message, SocketLimits, close_sockets_on_shutdown
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource, Timeouts, iter_upstream
from streamkit.web.surfaces import Ask, surfaces
from streamkit.web.token_counts import Count, CountTokens, first_count
from streamkit.web.upstream import Upstream, client_session, error_of, response_headers
from streamkit.web.upstream.requests import as_gateway_failure
from streamkit.web.upstream.sending import in_time

log: Final = logging.getLogger("streamkit.web")

#: Returns the pipe that produces the client's bytes from a source: ``lambda source: transcode(source, provider, client)``.
Pipeline: TypeAlias = Callable[[AsyncIterable[bytes]], Pipe[bytes]]


#: A source of ``relay``: a response, an unsent request (``session.post(…)``), or bytes.
Source: TypeAlias = ClientResponse | Awaitable[ClientResponse] | AsyncIterable[bytes]


async def relay(
    request: web.Request,
    source: Source,
    pipeline: Pipeline | None = None,
    *,
    client: str,
    provider: str | None = None,
    stages: Iterable[EventStage] = (),
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    delivery: Delivery = DEFAULT_DELIVERY,
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Respond to ``request`` with a stream in the dialect of ``client``. Your handler must return the result.

    ``client`` names the client's dialect, or the client itself; it selects the media type, keep-alives and error format.
    ``provider`` names the dialect of the source, by default that of ``client``. The source is transcoded, and its events
    pass ``stages``. To build the pipe yourself, pass ``pipeline`` instead of ``stages``.

    ``source`` is an upstream's response, an unsent request (``session.post(…)``), or any async iterable of bytes. A failed
    request and a status other than 200 become an error in the client's dialect. The client also gets the response's
    rate-limit headers, and ``headers``. The source is closed before this function returns. It is closed at once if the
    client disconnects, unless the application keeps responses (``add_resuming``) and the client asked to be able to resume
    this one. Raises UsageError for an unknown name, and for stages together with a pipeline.
    """
    pipeline = pipeline_of(pipeline, client, provider, stages)
    outlet = resumable_outlet(request, client)
    reply = Reply(request, client, delivery=delivery, headers=headers, outlet=outlet)

    response: ClientResponse | None = None
    started = asyncio.get_running_loop().time()

    async def work() -> None:
        nonlocal response
        if isinstance(source, AsyncIterable):
            bytes_in = TimedSource(source, timeouts)
        else:
            try:
                response = source if isinstance(source, ClientResponse) else await in_time(timeouts, started, source)
            except SourceFailed as error:
                await reply.fail(failure_from(error))
                return
            reply.upstream_headers = response_headers(response.headers)
            if response.status != 200:
                await reply.fail(await error_of(response, provider or client_named(client)[0].name))
                return
            bytes_in = iter_upstream(response, timeouts=timeouts, started=started)
        failed = await reply.send(pipeline(bytes_in), bytes_in)
        if failed is not None:
            await reply.fail(failed)

    try:
        return await reply.run(work())
    finally:
        # here too: if ``work`` was cancelled before it started, it did not close the source
        for each in source, response:
            if isinstance(each, Coroutine | ClientResponse):
                each.close()


def pipeline_of(pipeline: Pipeline | None, client: str, provider: str | None, stages: Iterable[EventStage]) -> Pipeline:
    """Return the pipeline of ``relay``. Raises UsageError for the arguments that ``relay`` refuses."""
    source_dialect = client_named(client)[0].name
    if provider is not None:
        source_named(provider)
        source_dialect = provider
    own = given_stages(stages, "relay")
    if pipeline is None:
        return lambda source: transcode(source, source_dialect, client, stages=own)
    if own:
        raise UsageError(
            "relay: give either a pipeline or stages; in a pipeline, write transcode(source, …, stages=stages)"
        )
    return pipeline


# The client session for upstreams, while the application runs. If the application already set one, it is used and not closed.
SESSION: Final = web.AppKey("streamkit-session", ClientSession)


@frozen(kw_only=True)
class _OneUpstream(Service):
    """The service behind ``setup``: one upstream answers every request."""

    upstream: Upstream
    model: str | None
    delivery: Delivery
    count_tokens: CountTokens
    max_sockets: int
    stages: tuple[EventStage, ...] = ()
    kept: Budget = field(factory=Budget)  #: memory for what WebSockets keep from one message to the next

    def check(self, request: web.Request) -> None:
        """Refuse nothing: the application's middlewares decide which clients may send requests."""

    async def read_on(self, request: web.Request) -> web.StreamResponse | None:
        found = await attached(request, self.delivery)
        return None if found is None else found[0]

    async def answer(self, request: web.Request, ask: Ask, message: Message | None = None) -> web.StreamResponse:
        if ask.operation == "count":
            counting = Count(ask, self.upstream, request.config_dict[SESSION], request.headers, self.model)
            return await first_count(ask, [counting], self.count_tokens)
        if ask.operation == "compact":
            session = request.config_dict[SESSION]
            return await first_compaction(ask, [Compaction(ask, self.upstream, session, request.headers, self.model)])
        if message is not None and message.warm_up:
            await message.prepared(ask.model)
            return web.Response()
        kept = await keeping(request, ask, outlet=None if message is None else message.outlet)
        reply = reply_to(request, ask, self.delivery, outlet=kept.outlet, shape=kept.shape)
        response = await answered(request, ask, reply, self.upstream, self.model, self.stages)
        return kept.response or response

    def most_sockets(self, _request: web.Request) -> int:
        return self.max_sockets

    def socket_limits(self, request: web.Request) -> SocketLimits:
        origin = request.headers.get("Origin")
        if is_foreign(origin) and urlsplit(origin or "").netloc != request.host:
            raise Refused(ProviderFailed("permission", "pages of other sites may not open WebSockets here"))
        return SocketLimits(
            message_bytes=request.client_max_size or MESSAGE_BYTES,  # 0 means that bodies are not limited
            ping_s=self.delivery.keep_alive_s,
            unsent_bytes=self.delivery.unsent_bytes,
            kept=self.kept,
        )


async def answered(
    request: web.Request,
    ask: Ask,
    reply: Reply,
    upstream: Upstream,
    model: str | None,
    stages: Sequence[EventStage] = (),
) -> web.StreamResponse:
    """Send ``ask`` to ``upstream``, and its response through ``stages`` to the client.

    ``model`` is the upstream's model name, or None for the name that the client sent.
    """
    exchange = Exchange(ask, upstream, request.config_dict[SESSION], reply, model, stages=stages)

    async def work() -> None:
        answer = await (exchange.stream() if ask.stream else exchange.fetch())
        failed = answer if isinstance(answer, ProviderFailed) else reply.failure
        if failed is not None and reply.interrupted is None:
            _log_failed(exchange, failed)
        if isinstance(answer, ProviderFailed):
            await reply.fail(as_gateway_failure(answer, [upstream], reply.client_headers))
        elif answer is not None:
            await exchange.deliver(answer)

    return await reply.run(work())


def _log_failed(exchange: Exchange, failed: ProviderFailed) -> None:
    """Log that the upstream failed, unless the request or a guard caused that. A provider's own words are left out.

    They may repeat parts of the conversation.
    """
    if failed.code == UNFIT or "blocked" in exchange.report.losses:
        return
    name = exchange.upstream.name
    status = "no response" if exchange.status is None else f"status {exchange.status}"
    is_ours = failed.code in {BROKEN, TRUNCATED} and not failed.vendor
    reason = f": {failed.message.removeprefix(f'{name}: ')}" if is_ours else ""
    log.warning("the upstream %s failed (%s, %s)%s", quoted(name), status, failed.type, reason)


def setup(
    app: web.Application,
    upstream: Upstream,
    *,
    clients: Iterable[str] | None = None,
    model: str | None = None,
    prefix: str = "",
    delivery: Delivery = DEFAULT_DELIVERY,
    grace_s: float = 30.0,
    count_tokens: CountTokens = "estimate",
    max_sockets: int = 0,
    stages: Iterable[EventStage] = (),
) -> None:
    """Serve clients of the dialects ``clients`` (None: all dialects) from ``upstream``: responses and token counts.

    The paths are those that the dialects' official clients use. ``add_inventory`` adds the paths that list models. Responses
    are streamed or sent whole, as the client asks; errors are in the client's dialect.

    * ``model``: the model name to send to the upstream. None: the name that the client sent.
    * ``prefix``: text before every path.
    * ``grace_s``: seconds that live streams have to end when the application shuts down.
    * ``count_tokens``: the response if the upstream can't count tokens. ``estimate``: an estimate, marked as one.
      ``upstream``: an error. ``off``: always an error; the upstream gets no such request.
    * ``max_sockets``: how many WebSockets may be open at once in the application, in dialects that have them. Further ones
      are refused with 426; clients then use HTTP. The limit for bodies also applies to a message. WebSockets from pages of
      other sites are refused, because a browser would send this application's cookies with them.
    * ``stages``: the stages that each streamed or whole response passes before the client gets it, as in ``transcode``:
      ``redact``, or your own. If one raises an exception, the client gets an error that does not show the exception.

    If the upstream fails, the logger ``streamkit.web`` writes a warning, without keys and without text of the conversation.
    The application's middlewares decide which clients may send requests. Its ``client_max_size`` limits request bodies;
    aiohttp's default of 1 MiB is too small for prompts with images. ``setup`` may be called again for another upstream with
    another prefix. Raises UsageError for a dialect that can't be served, and for an object that is not a stage.
    """
    check_type("upstream", upstream, Upstream, "Upstream(name=…, dialect=…, base_url=…, key=…)")
    service = _OneUpstream(
        upstream=upstream,
        model=model,
        delivery=delivery,
        count_tokens=count_tokens,
        max_sockets=max_sockets,
        stages=given_stages(stages, "setup"),
    )
    service.add_to(app, surfaces() if clients is None else clients, prefix=prefix)
    add_answering(app, grace_s=grace_s)


def add_answering(app: web.Application, *, grace_s: float) -> None:
    """Add to an application what ``answered`` needs, unless it has it: a session, a budget, an end of its streams."""
    if BUDGET not in app:
        app[BUDGET] = Budget()
    if SESSION not in app and _connected not in app.cleanup_ctx:
        app.cleanup_ctx.append(_connected)
    if SOCKETS not in app:
        close_sockets_on_shutdown(app)  # before the streams end; otherwise messages would begin new streams meanwhile
    if LIVE not in app:
        end_streams_on_shutdown(app, grace_s=grace_s)


async def _connected(app: web.Application) -> AsyncGenerator[None, None]:
    async with client_session() as session:
        app[SESSION] = session
        yield
