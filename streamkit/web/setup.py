"""``setup``: ready routes in an application of your own, answered by one upstream.

What the gateway does for many upstreams, without its configuration file, keys for clients, metrics and choice among upstreams:
those are the application's own matters here, and so is which models there are (``inventory.py``).

Source: design.md §6, §8; clients.md §5.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientSession, web
from attrs import field, frozen

from streamkit.events import ProviderFailed
from streamkit.web.budget import BUDGET, Budget
from streamkit.web.exchange import Exchange
from streamkit.web.hosts import is_foreign
from streamkit.web.refusals import Refused
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, Reply, reply_to
from streamkit.web.resume.background import keeping
from streamkit.web.resume.routes import attached
from streamkit.web.service import Service
from streamkit.web.shutdown import LIVE, end_streams_on_shutdown
from streamkit.web.socket import MESSAGE_BYTES, SOCKETS, Message, SocketLimits, close_sockets_on_shutdown
from streamkit.web.surfaces import Ask, surfaces
from streamkit.web.token_counts import Count, first_count
from streamkit.web.token_estimate import CountTokens
from streamkit.web.upstream import Upstream, client_session
from streamkit.web.upstream.auth import as_gateway_failure

log = logging.getLogger("streamkit.web")
#: The connections to upstreams, while the application runs. One that is there already is used, and not closed.
SESSION: Final = web.AppKey("streamkit-session", ClientSession)


@frozen(kw_only=True)
class _OneUpstream(Service):
    """Everything from one upstream."""

    upstream: Upstream
    model: str | None
    delivery: Delivery
    count_tokens: CountTokens
    max_sockets: int
    kept: Budget = field(factory=Budget)  #: what WebSockets keep between two messages

    def check(self, request: web.Request) -> None:
        """Nothing is refused here: the application's middlewares say who may ask."""

    async def read_on(self, request: web.Request) -> web.StreamResponse | None:
        return await attached(request, self.delivery)

    async def answer(self, request: web.Request, ask: Ask, message: Message | None = None) -> web.StreamResponse:
        if ask.operation == "count":
            counting = Count(ask, self.upstream, request.config_dict[SESSION], request.headers, self.model)
            return await first_count(ask, [counting], self.count_tokens)
        if message is not None and message.warm_up:
            await message.prepared(ask.model)
            return web.Response()
        kept = await keeping(request, ask, outlet=None if message is None else message.outlet)
        reply = reply_to(request, ask, self.delivery, outlet=kept.outlet, shape=kept.shape)
        response = await answered(request, ask, reply, self.upstream, self.model)
        return kept.response or response

    def most_sockets(self, _request: web.Request) -> int:
        return self.max_sockets

    def socket_limits(self, request: web.Request) -> SocketLimits:
        _refuse_other_sites(request)
        return SocketLimits(
            message_bytes=request.client_max_size or MESSAGE_BYTES,  # 0 is no bound on bodies
            ping_s=self.delivery.keep_alive_s,
            unsent_bytes=self.delivery.unsent_bytes,
            kept=self.kept,
        )


async def answered(
    request: web.Request, ask: Ask, reply: Reply, upstream: Upstream, model: str | None
) -> web.StreamResponse:
    """The answer of ``upstream`` to what is asked, which calls the model so there (None: as the client calls it)."""
    exchange = Exchange(ask, upstream, request.config_dict[SESSION], reply, model)

    async def work() -> None:
        answer = await (exchange.stream() if ask.stream else exchange.fetch())
        if isinstance(answer, ProviderFailed):
            await reply.fail(as_gateway_failure(answer, [upstream], reply.client_headers))
        elif answer is not None:
            await exchange.deliver(answer)

    return await reply.run(work())


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
) -> None:
    """Serve clients of the dialects ``clients`` (None: of all) from ``upstream``: answers and counts of tokens.

    The paths are those of their official clients. ``add_inventory`` has those that list models.

    ``model`` is what the upstream is asked for, whatever the client calls it; None: what the client says. ``prefix`` stands in
    front of every path. Streaming and whole; errors are in the client's dialect; live streams end within ``grace_s`` seconds
    when the application shuts down. ``count_tokens`` says what is answered where the upstream gives no count: an ``estimate``
    that is marked as one, or an error (``upstream``; ``off`` without asking it). ``max_sockets`` WebSockets may be open at
    once in the application, where a dialect has them, with messages as large as bodies; beyond it they are refused with 426,
    at which clients ask over HTTP. A browser lets any page open one, with the cookies that this application gave it, so pages
    of other sites are refused. May be called again for another upstream under another prefix. Who may ask is for the
    application's middlewares to say; its ``client_max_size`` bounds the requests'
    bodies, and aiohttp's default of 1 MiB is too small for prompts with images. Raises UsageError for a dialect that is not
    served.
    """
    service = _OneUpstream(
        upstream=upstream, model=model, delivery=delivery, count_tokens=count_tokens, max_sockets=max_sockets
    )
    service.add_to(app, surfaces() if clients is None else clients, prefix=prefix)
    add_answering(app, grace_s=grace_s)


def add_answering(app: web.Application, *, grace_s: float) -> None:
    """Give an application what ``answered`` needs, where it does not have it: connections, a budget, an end of its streams."""
    if BUDGET not in app:
        app[BUDGET] = Budget()
    if SESSION not in app and _connected not in app.cleanup_ctx:
        app.cleanup_ctx.append(_connected)
    if SOCKETS not in app:
        close_sockets_on_shutdown(app)  # before the streams end, or messages would begin new ones meanwhile
    if LIVE not in app:
        end_streams_on_shutdown(app, grace_s=grace_s)


def _refuse_other_sites(request: web.Request) -> None:
    origin = request.headers.get("Origin")
    if is_foreign(origin) and urlsplit(origin or "").netloc != request.host:
        raise Refused(ProviderFailed("permission", "pages of other sites open no WebSocket here"))


async def _connected(app: web.Application) -> AsyncGenerator[None, None]:
    async with client_session() as session:
        app[SESSION] = session
        yield
