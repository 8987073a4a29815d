"""The gateway as an aiohttp application: the paths of all client dialects, answered by the upstreams of a route.

Requests share the connections to upstreams, what this process learned of them (``Health``) and the metrics. Nothing in a
request can name an upstream, and only allowed client headers are passed to one (limits.md T5, T6).

Source: design.md §6; limits.md §3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp import ClientSession, web
from attrs import define, evolve, field

from streamkit.dialects.http import ModelCard
from streamkit.events import ProviderFailed
from streamkit.gateway.attempts import Attempts, may_go_on
from streamkit.gateway.config import Config, Server, store_of
from streamkit.gateway.front_page import front_page
from streamkit.gateway.health import Health
from streamkit.gateway.log import log
from streamkit.gateway.metrics import Metrics, exposition, resting
from streamkit.gateway.record import Record, log_begun, log_record
from streamkit.gateway.routing import Route
from streamkit.gateway.rules import RULES, Rules, rules_of
from streamkit.gateway.side_attempts import SideAttempts
from streamkit.lab.inspector.captures import Capture, Captures
from streamkit.lab.recording.recorder import Recorder
from streamkit.resume import Store
from streamkit.text.identifiers import random_id
from streamkit.web.budget import BUDGET, Budget
from streamkit.web.client_dialect import Handler, client_dialect, expect_anything, expected, is_of_api, unrouted
from streamkit.web.heavy import Turns
from streamkit.web.hosts import Hosts, admit, refuse_other_hosts
from streamkit.web.inventory import add_inventory, add_misspelt_inventory, keyless_paths
from streamkit.web.refusals import FAILURE, Refused, error_response, no_such_model
from streamkit.web.reply import LIVE, Delivery, Outlet, Reply, end_streams_on_shutdown, reply_to
from streamkit.web.resume.answer import ResumableOutlet, keeping
from streamkit.web.resume.following import attached
from streamkit.web.resume.routes import add_resuming
from streamkit.web.resume.settings import RESUMING, Resuming
from streamkit.web.service import Service
from streamkit.web.socket import Message, Socket, SocketLimits, close_sockets_on_shutdown
from streamkit.web.surfaces import Ask, surfaces
from streamkit.web.upstream import client_session

if TYPE_CHECKING:  # OpenTelemetry is an optional extra
    from streamkit.gateway.telemetry import Telemetry

BUSY_S: Final = 1.0  #: seconds after which a client may retry if there are too many streams
KEPT_S: Final = 1.0  #: seconds between updates of the metrics of kept responses, recordings and resting upstreams
REQUEST_ID: Final = "x-request-id"
#: The response header that marks a stream that another upstream may continue after an interruption.
ON_CUT: Final = "x-streamkit-on-cut"
PROBES: Final = frozenset({"/healthz", "/readyz"})
OPEN_PATHS: Final = PROBES | {"/"}  #: paths that need no key
#: The error that a client gets if the gateway's code raises an unexpected exception.
GATEWAY_FAILED: Final = ProviderFailed("server", "the gateway failed; its log has the reason")
RECORD: Final = web.RequestKey("streamkit-record", Record)


@define(eq=False)
class Gateway(Service):
    """What the handlers of one process share, and how they respond."""

    failed = GATEWAY_FAILED

    rules: Rules  #: for the requests that begin now; ``load`` replaces them, and a request keeps its own in ``RULES``
    metrics: Metrics
    health: Health = field(factory=Health)
    stopping: bool = False
    streams: int = 0  #: how many responses may be in progress at once
    connections: int = 0  #: how many clients may be connected at once, if the server bounds them
    turns: Turns = field(factory=Turns)
    bodies: Budget = field(factory=Budget)  #: memory for request bodies
    telemetry: Telemetry | None = None  #: None: OpenTelemetry is not used, and not imported
    kept: Budget = field(factory=Budget)  #: memory for what WebSockets keep from one message to the next
    captures: Captures | None = None  #: keeps streams for the inspector; None: the inspector is off
    recorder: Recorder | None = None  #: records the exchanges with upstreams while the application runs; None: off
    session: ClientSession = field(init=False, repr=False)  #: the connections to upstreams, while the application runs

    def load(self, rules: Rules, streams: int) -> None:
        """Serve the requests that begin from now on by these rules, at most ``streams`` at once."""
        before, self.rules = self.rules.config.upstreams, rules
        config, server = rules.config, rules.config.server
        self.health.forget({name for name, upstream in before.items() if config.upstreams.get(name) != upstream})
        self.streams = streams
        self.bodies.limit_bytes, self.kept.limit_bytes = _budgets(server)
        if self.recorder is not None:
            self.recorder.hide(rules.secrets)
        self.metrics.begin(config)

    def cards(self) -> Sequence[ModelCard]:
        return self.rules.cards

    def card(self, model: str, dialect: str) -> ModelCard | None:
        return self.rules.card(model, dialect)

    async def connected(self, _app: web.Application) -> AsyncGenerator[None, None]:
        async with client_session() as self.session:
            yield

    async def recorded(self, _app: web.Application) -> AsyncGenerator[None, None]:
        """Record exchanges while the application runs. Raises UsageError for a directory that can't be written."""
        server, keys = self.rules.config.server, self.rules.secrets
        recorder = self.recorder = Recorder(server.record, keys=keys, bodies=server.record_bodies, warn=log.warning)
        log.info("exchanges with upstreams are recorded", extra={"fields": {"record": server.record}})
        counting = asyncio.create_task(self._count_recorded(recorder))
        yield
        counting.cancel()
        await asyncio.wait({counting})
        if not await asyncio.to_thread(recorder.close):
            log.warning("the last exchanges could not be recorded in time")
        self.metrics.recorded(recorder)

    async def _count_recorded(self, recorder: Recorder) -> None:
        while True:
            self.metrics.recorded(recorder)
            await asyncio.sleep(KEPT_S)

    def begin(self, request: web.Request, record: Record) -> None:
        """Count and trace a request or message from now on. Call ``end`` when it is over, however it ends."""
        record.started = asyncio.get_running_loop().time()
        if self.telemetry is not None:
            record.trace = self.telemetry.begin(request, record)
        self.metrics.active(1)

    def end(self, record: Record) -> None:
        """Count, trace and log a request or message that is over."""
        record.ending = record.ending or "client left"
        record.seconds = asyncio.get_running_loop().time() - record.started
        self.metrics.active(-1)
        self.metrics.observe(record)
        if record.trace is not None:
            record.trace.end(record)
        log_record(record)

    async def resting(self, _app: web.Application) -> AsyncGenerator[None, None]:
        """Update the metrics of upstreams that rest, and the inspector, while the application runs: rests end with time."""

        async def watch() -> None:
            while True:
                found = self.health.resting(asyncio.get_running_loop().time())
                self.metrics.upstreams_rest(found, self.health.opened)
                if self.captures is not None:
                    self.captures.show_resting(found)
                await asyncio.sleep(KEPT_S)

        watching = asyncio.create_task(watch())
        yield
        watching.cancel()
        await asyncio.wait({watching})

    # -- the methods of Service ------------------------------------------------------------------------------------------

    def check(self, request: web.Request) -> None:
        if len(request.app[LIVE]) >= self.streams:
            raise Refused(ProviderFailed("unavailable", "the gateway is busy; retry later", retry_after_s=BUSY_S))

    async def read_on(self, request: web.Request) -> web.StreamResponse | None:
        """Return the rest of a response if the client repeats its request with the id of its last event."""
        found = await attached(request, request[RULES].delivery)
        if found is None:
            return None
        response, reply = found
        if reply is not None:
            _read_to_the_end(request, reply)
        return response

    async def answer(self, request: web.Request, ask: Ask, message: Message | None = None) -> web.StreamResponse:
        record: Record = request[RECORD] if message is None else message.about
        rules = request[RULES]
        if message is not None:
            admit(request, rules.ring, rules.origins)  # the key may have been removed since the WebSocket was opened
        self.check(request)  # again: other responses may have begun while this request's body was read
        record.model, record.stream, record.asked = ask.model, ask.stream, ask.report
        found = rules.find(ask.model, ask.dialect)
        if found is None:
            raise Refused(no_such_model(ask.model))
        model, route = found
        ask, record.route = (ask if model == ask.model else evolve(ask, model=model)), route.name
        log_begun(record)
        if ask.operation != "generate":
            server, headers = rules.config.server, request.headers
            return await SideAttempts(
                ask, route, self.session, headers, record, self.health, lambda: self.stopping, server
            ).run()
        if message is not None and message.warm_up:
            await message.prepared(ask.model)
            record.status, record.ending = 200, "whole"
            return web.Response()
        return await self._generate(request, ask, route, record, None if message is None else message.outlet)

    async def _generate(
        self, request: web.Request, ask: Ask, route: Route, record: Record, outlet: Outlet | None
    ) -> web.StreamResponse:
        headers, rules = _own_headers(record), request[RULES]
        if continues := may_go_on(route, ask):
            headers[ON_CUT] = "continue"
        kept = await keeping(request, ask, resumable=route.resumable, outlet=outlet, headers=headers)
        loop = asyncio.get_running_loop()
        started = loop.time()
        reply = reply_to(request, ask, rules.delivery, headers, outlet=kept.outlet, shape=kept.shape, is_kept=continues)
        stall_s = rules.config.server.stall_report_s
        names = rules.config.server.name_upstreams
        attempts = Attempts(route, ask, reply, record, self.health, self.session, stall_s, self.recorder, names=names)
        capture = reply.tap = _capture(self, rules, ask, record)
        try:
            response = await reply.run(attempts.run())
            return kept.response or response
        finally:
            _take_over(record, reply)
            record.went_on_s = kept.outlet.went_on_s if isinstance(kept.outlet, ResumableOutlet) else 0.0
            record.first_byte_s = None if reply.first_at is None else reply.first_at - started
            record.wrote_at = reply.first_at
            if capture is not None:
                capture.end(record.document())

    def most_sockets(self, request: web.Request) -> int:
        return 0 if self.stopping else request[RULES].config.server.max_sockets

    def socket_limits(self, request: web.Request) -> SocketLimits:
        server = request[RULES].config.server
        return SocketLimits(
            message_bytes=server.body_bytes,
            idle_s=server.socket_idle_s,
            ping_s=server.keep_alive_s,
            unsent_bytes=server.unsent_bytes,
            kept=self.kept,
        )

    async def run_socket(self, request: web.Request, socket: Socket) -> web.StreamResponse:
        self.metrics.active(-1)  # an open WebSocket without a message does not count as a response in progress
        self.metrics.sockets(1)
        request[RECORD].status, request[RECORD].ending = 101, "whole"  # the same values however the WebSocket is closed
        try:
            return await super().run_socket(request, socket)
        finally:
            self.metrics.sockets(-1)
            self.metrics.active(1)

    async def answer_message(self, request: web.Request, message: Message) -> Refused | None:
        """Respond to a message, and count and log it as a separate request."""
        request[RULES] = self.rules  # messages are answered one after the other, each by the rules of its beginning
        record = message.about = _record_of(request)
        record.socket = request[RECORD].id
        self.begin(request, record)
        try:
            refused = await super().answer_message(request, message)
            if refused is not None:
                record.status = refused.response(record.client).status
                record.ending, record.error = "error", refused.failed.message
            return refused
        finally:
            self.end(record)

    def log_fault(self, _request: web.Request, message: Message, error: Exception) -> None:
        log.error("a message failed", extra={"fields": {"request_id": message.about.id}}, exc_info=error)


GATEWAY: Final = web.AppKey("streamkit-gateway", Gateway)


def _budgets(server: Server) -> tuple[int, int]:
    """Return the bytes that request bodies may take, and those that WebSockets may keep."""
    return max(server.bodies_bytes, server.body_bytes), server.sockets_bytes


def telemetry_of(config: Config) -> Telemetry | None:
    """Return what sends data to OpenTelemetry, if the configuration says so. Raises UsageError for a bad environment."""
    if not config.telemetry.otlp:
        return None
    from streamkit.gateway.telemetry import otlp_telemetry  # noqa: PLC0415 - an extra, of 0.2 s and 16 MiB

    return otlp_telemetry(config.telemetry)


def gateway_app(
    config: Config,
    metrics: Metrics,
    *,
    streams: int | None = None,
    store: Store | None = None,
    telemetry: Telemetry | None = None,
    captures: Captures | None = None,
    hurry: asyncio.Event | None = None,
) -> web.Application:
    """Return the public application of one process. ``streams`` limits its streams, if fewer than ``max_streams``.

    ``store`` keeps responses for clients that resume, and ``telemetry`` sends data to OpenTelemetry; None: as the
    configuration says. ``captures`` keeps streams for the inspector. ``hurry`` ends the grace time of live streams early.
    """
    gateway = Gateway(rules_of(config), metrics)
    gateway.streams = config.server.max_streams if streams is None else min(streams, config.server.max_streams)
    gateway.health = Health(lambda text: Record("", "", "", hide=gateway.rules.hide).logged(text))
    gateway.telemetry = telemetry or telemetry_of(config)
    gateway.captures = captures
    metrics.begin(config)
    app = web.Application(client_max_size=config.server.body_bytes, middlewares=[_recorded])
    app[GATEWAY] = gateway
    bodies, kept = _budgets(config.server)
    app[BUDGET] = gateway.bodies = Budget(bodies)
    gateway.kept = Budget(kept)
    if gateway.telemetry is not None:
        app.cleanup_ctx.append(gateway.telemetry.running)
    if config.server.record:
        app.cleanup_ctx.append(gateway.recorded)
    app.cleanup_ctx.append(gateway.connected)
    app.cleanup_ctx.append(gateway.resting)
    app.on_shutdown.append(_stopping)
    app.on_response_prepare.append(_name_origins)
    close_sockets_on_shutdown(app)
    end_streams_on_shutdown(app, grace_s=config.server.grace_s, hurry=hurry)
    gateway.add_to(app, surfaces(), misspelt=True)
    if config.resume.store != "off":
        kept_in, unattended_s = store or store_of(config), config.resume.unattended_s
        resuming = Resuming(store=kept_in, unattended_s=unattended_s, key=_key_of, state=config.responses.kept)
        add_resuming(app, resuming, delivery=_delivery_of, observe=_read_to_the_end, misspelt_too=True)
        app.cleanup_ctx.append(_counted)
    add_inventory(app.router, gateway.cards, gateway.card)
    add_misspelt_inventory(app.router, gateway.cards, gateway.card)
    expect_anything(app.router)
    app.router.add_get("/", _front_page, expect_handler=expected)
    app.router.add_get("/healthz", _healthy, expect_handler=expected)
    app.router.add_get("/readyz", _ready, expect_handler=expected)
    return app


def private_app(
    metrics: Metrics | None,
    hosts: Callable[[], Hosts | None] = lambda: None,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> web.Application:
    """Return the application for the operator only: ``/metrics``, and ``/readyz`` with the upstreams that rest.

    ``hosts`` returns the names under which it is served now; None: under any name.
    """

    @web.middleware
    async def addressed(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            refuse_other_hosts(request, hosts())
        except Refused as refused:
            return web.Response(text=f"{refused}\n", status=421)
        return await handler(request)

    app = web.Application(middlewares=[addressed])
    expect_anything(app.router)

    async def measured(_request: web.Request) -> web.Response:
        text = await asyncio.to_thread(exposition, metrics)  # with several workers, this reads files
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def ready(_request: web.Request) -> web.Response:
        if stopping():
            return web.Response(text="stopping\n", status=503)
        lines = await asyncio.to_thread(resting, metrics)
        return web.Response(text="".join(f"{line}\n" for line in ("ready", *lines)))

    app.router.add_get("/metrics", measured, expect_handler=expected)
    app.router.add_get("/readyz", ready, expect_handler=expected)
    app.router.add_get("/healthz", _healthy, expect_handler=expected)
    return app


async def _front_page(request: web.Request) -> web.Response:
    """Serve the page at ``/``. It needs no key, but shows the models only to clients that may list them."""
    gateway, rules = request.app[GATEWAY], request[RULES]
    models: list[str] | Refused = [card.id for card in rules.cards]
    try:
        admit(request, rules.ring, rules.origins)
    except Refused as refused:
        models = refused.with_traceback(None)
    inspector = None if gateway.captures is None else gateway.captures.url
    return front_page(request, models, has_keys=rules.ring is not None, inspector=inspector)


async def _healthy(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _ready(request: web.Request) -> web.Response:
    if request.app[GATEWAY].stopping:
        return web.Response(text="stopping\n", status=503)
    return web.Response(text="ready\n")


async def _stopping(app: web.Application) -> None:
    app[GATEWAY].stopping = True


# -- the middleware ----------------------------------------------------------------------------------------------------


@web.middleware
async def _recorded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id; count and log it when it is over. An unexpected exception becomes a server error."""
    gateway = request.app[GATEWAY]
    rules = request[RULES] = gateway.rules
    if request.path in PROBES:
        try:
            return await _admitted(request, handler, rules)
        except Refused as refused:
            return refused.response(client_dialect(request))
    await gateway.turns.wait()
    record = request[RECORD] = _record_of(request)
    gateway.begin(request, record)
    try:
        try:
            response = await _admitted(request, handler, rules)
        except Refused as refused:
            response = refused.response(record.client)
        except web.HTTPException as error:  # an unknown path
            record.error = error.reason
            response = unrouted(request, error)
        except Exception:  # noqa: BLE001 - the client gets any exception as its dialect's error; the log has it
            log.exception("a request failed", extra={"fields": {"request_id": record.id}})
            record.ending = "error"
            response = error_response(GATEWAY_FAILED, record.client)
        record.status = response.status
        record.ending = record.ending or ("error" if response.status >= 400 else "whole")
        if FAILURE in response:
            record.error = response[FAILURE].message
        if not response.prepared:
            response.headers.update(_own_headers(record))
        return response
    finally:
        gateway.end(record)


async def _admitted(request: web.Request, handler: Handler, rules: Rules) -> web.StreamResponse:
    """Return the response to an admitted request. Raises Refused and ``web.HTTPException``.

    A request that names another host than the gateway is refused before anything else. A browser's preflight for a page of
    another site comes next, since browsers send no key with it. An unknown path of an API gets its error without a key, too.
    """
    refuse_other_hosts(request, rules.hosts)
    if (preflight := rules.origins.preflight(request)) is not None:
        return preflight
    unknown = request.match_info.http_exception
    if unknown is not None and is_of_api(request.path):
        return unrouted(request, unknown)
    if request.path not in OPEN_PATHS:
        keyless = rules.config.server.keyless_listing and request.path in keyless_paths()
        admit(request, None if keyless else rules.ring, rules.origins)
    return await handler(request)


def _record_of(request: web.Request) -> Record:
    path = request.path
    if "stream_id" in request.match_info and (resource := request.match_info.route.resource) is not None:
        # the route's pattern, because anyone with the id in the path can read the response (resume.md §13.3)
        path = resource.canonical
    record = Record(random_id("req_"), request.method, path, client=client_dialect(request), status=499)
    record.hide = request[RULES].hide
    return record


def _own_headers(record: Record) -> dict[str, str]:
    """Return the headers that identify the request, for its client and for support."""
    headers = {REQUEST_ID: record.id}
    surface = surfaces().get(record.client)
    if surface is not None and surface.request_id:
        headers[surface.request_id] = record.id
    if record.trace is not None:
        headers.update(record.trace.headers)
    return headers


async def _name_origins(request: web.Request, response: web.StreamResponse) -> None:
    """Name the site whose pages may read the response. A response to a refused ``Expect`` is made before the middlewares."""
    await request.get(RULES, request.app[GATEWAY].rules).origins.tell(request, response)


# -- kept responses ----------------------------------------------------------------------------------------------------


async def _counted(app: web.Application) -> AsyncGenerator[None, None]:
    """Update the metrics of kept responses while the application runs: they also change with time."""

    async def count_on() -> None:
        while True:
            app[GATEWAY].metrics.answers_kept(app[RESUMING].counts, app[RESUMING].store)
            await asyncio.sleep(KEPT_S)

    counting = asyncio.create_task(count_on())
    yield
    counting.cancel()
    await asyncio.wait({counting})


def _key_of(request: web.Request) -> str:
    """Return the gateway key of a request. Without configured keys return "", since a client's key then identifies nobody."""
    ring = request[RULES].ring
    return (ring and ring.accepted(request)) or ""


def _delivery_of(request: web.Request) -> Delivery:
    return request[RULES].delivery


def _read_to_the_end(request: web.Request, reply: Reply) -> None:
    record = request[RECORD]
    record.client, record.stream, record.resumed = reply.client, True, True
    _take_over(record, reply)


def _take_over(record: Record, reply: Reply) -> None:
    """Copy the end of a reply to its record."""
    record.status, record.ending = reply.status, reply.ending or "client left"
    record.error = reply.failure.message if reply.failure is not None else ""
    record.keep_alives = reply.keep_alives


def _capture(gateway: Gateway, rules: Rules, ask: Ask, record: Record) -> Capture | None:
    """Return where to store a stream for the inspector, with the request's data in the log; None: it is not stored."""
    if gateway.captures is None or not ask.stream:
        return None
    known = record.document()
    about = {name: known[name] for name in ("model", "route") if name in known}
    stall_s = rules.config.server.stall_report_s
    return gateway.captures.open(record.id, about=about, client=ask.dialect, hide=rules.hide, stall_s=stall_s)
