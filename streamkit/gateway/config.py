"""What the gateway is configured with, as values. ``config_file`` reads them from a file; a program may make them itself.

Values refuse what can't be, however they are made. They hold keys, which show themselves nowhere: ``describe`` is the whole
configuration for people, without any.

Source: limits.md §1 (defaults), §3 (T5, T6, T8); clients.md §10.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from attrs import Attribute, field, frozen
from attrs.validators import ge, gt, le

from streamkit.dialects.profiles import KeepAliveForm
from streamkit.gateway.routing import Route, Target
from streamkit.lab.recording.request_bodies import Bodies
from streamkit.limits import MIB
from streamkit.otel.conventions import CONTENT_CHARS, SemConv
from streamkit.policy import POLICIES, PolicyName
from streamkit.resume.log import DEFAULT_LOG_LIMITS, LogLimits
from streamkit.toml.findings import Finding, Refusal
from streamkit.web.budget import BODIES_BYTES
from streamkit.web.cors import is_origin
from streamkit.web.hosts import Hosts, is_host_name, is_loopback
from streamkit.web.listening import url_of
from streamkit.web.output_times import STALL_S
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery
from streamkit.web.resume.settings import State
from streamkit.web.token_estimate import CountTokens
from streamkit.web.upstream import Secret, Upstream

LOOPBACK: Final = "127.0.0.1"


def _is_host(_instance: object, _attribute: Attribute[str], value: str) -> None:
    if not value or any(letter in value for letter in "/@[] \t\n") or value.count(":") == 1:  # more are IPv6
        raise Refusal(
            'the name or the address of an interface is needed, without the port: "127.0.0.1", "0.0.0.0", "::"'
        )


def _each(fits: Callable[[str], bool], reason: str) -> Callable[[object, Attribute[Any], tuple[str, ...]], None]:
    """A validator of several texts, which refuses the first that does not fit."""

    def validate(_instance: object, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
        for index, text in enumerate(value):
            if not fits(text):
                raise Refusal(reason, at=(index,))

    return validate


_are_host_names = _each(
    is_host_name, 'a name without scheme, port and path is needed: "llm.example.org", "*.example.org", or "*" for any'
)
_are_origins = _each(
    is_origin, 'scheme, host and port as a browser says them are needed: "https://chat.example.org", or "*" for any'
)


def _is_listener(_instance: object, _attribute: Attribute[str], value: str) -> None:
    if value not in {"auto", "off"} and address_in(value) is None:
        raise Refusal('"host:port" is needed, or "auto", or "off"')


@frozen(kw_only=True)
class Server:
    """Where the gateway listens, whom it serves, and what it allows itself."""

    #: The interface. Loopback unless you say so: who reaches the gateway uses your keys.
    host: str = field(default=LOOPBACK, validator=_is_host)
    #: The names by which clients may call it, as they stand in `Host`: `"llm.example.org"`, `"*.example.org"` for all below,
    #: `"*"` for any. Addresses, `localhost`, `host.docker.internal` and `host.containers.internal` always may. Other names are
    #: told 421, since a page of the web could turn its own to this machine and read what the gateway answers (DNS rebinding):
    #: on loopback, at `private`, and everywhere once names stand here. Name what a proxy on the same machine passes on.
    hosts: tuple[str, ...] = field(default=(), validator=_are_host_names)
    #: The sites whose pages may ask, as browsers name them in `Origin`: `"https://chat.example.org"`, or `"*"` for any.
    #: Browsers keep answers from the pages of all others (CORS), and without `keys` those are refused besides.
    cors: tuple[str, ...] = field(default=(), validator=_are_origins)
    #: The port; 0: any that is free, for tests.
    port: int = field(default=8080, validator=[ge(0), le(65_535)])
    #: Where `/metrics` listens: `"host:port"`, `"auto"` (loopback, the port behind `port`), or `"off"`. Apart from clients,
    #: since counts tell how a service is used.
    private: str = field(default="auto", validator=_is_listener)
    #: Processes, all on one port. A process uses one core.
    workers: int = field(default=1, validator=ge(1))
    #: How long live streams may go on after SIGTERM; what is left then ends with an error in its dialect. Kubernetes kills
    #: after 30 s: there it has to be less, or `terminationGracePeriodSeconds` more.
    grace_s: float = field(default=30.0, validator=ge(0))
    #: The longest body of a request. Prompts with images pass the 1 MiB that servers usually allow.
    body_bytes: int = field(default=32 * MIB, validator=ge(1))
    #: Bytes of all requests in a process that are arriving, or held for their upstreams until the model speaks; beyond it
    #: clients get 503 with `Retry-After`. Each of their JSON values counts as 256 bytes more, and what a request names as
    #: often as it is named; the first 64 KiB of a request are free. At least `body_bytes`. What is counted takes up to three
    #: times as much memory while it is translated.
    bodies_bytes: int = field(default=BODIES_BYTES, validator=ge(1))
    #: Answers under way at once in a process; beyond it clients get 503 with `Retry-After`. Each may hold `unsent_bytes`, so
    #: that these are 1 GiB at worst.
    max_streams: int = field(default=1000, validator=ge(1))
    #: WebSockets open at once in a process, for clients that ask over one (`GET /v1/responses`). Beyond it, and where it is 0,
    #: they are told 426, at which Codex goes on over HTTP at once. A message may have `body_bytes`.
    max_sockets: int = field(default=1000, validator=ge(0))
    #: Bytes of their last answers and requests that all WebSockets of a process keep, for messages with
    #: `previous_response_id`; the first 64 KiB of each are free. Beyond it clients are told to send the whole input, which
    #: Codex does by itself.
    sockets_bytes: int = field(default=128 * MIB, validator=ge(0))
    #: How long a WebSocket may stay without a message and without an answer under way.
    socket_idle_s: float = field(default=600.0, validator=gt(0))
    #: What is logged: this and what is graver. A request is one line of `info`.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: One line of JSON for each request and event, or the same for people.
    log_format: Literal["json", "text"] = "json"
    #: Whether the log's line of a stream says what each stage of it took, in its member `profile`.
    profile: bool = False
    #: What clients must present, each `{ env = "NAME" }` or `{ file = "path" }`, in `Authorization: Bearer`, `x-api-key`,
    #: `x-goog-api-key` or `api-key`. Without any, whoever reaches the gateway is served.
    keys: tuple[Secret, ...] = ()
    #: Whether clients may look up which models there are without a key, in dialects in which many have no place for one there
    #: (`/api/tags`, `/api/show`, `/api/ps`, `/api/version`). Asking a model takes a key all the same.
    keyless_listing: bool = False
    #: What clients get that ask how many tokens a request has, where no upstream of the model can count or its count fails:
    #: an `estimate`, marked by the header `x-streamkit-count` (with the extra `tokens` by a vocabulary, else by bytes);
    #: `upstream`: an error, as Claude Code then asks for a completion each time; `off`: an error always, and nobody is asked.
    count_tokens: CountTokens = "estimate"
    #: Silence after which a client gets a keep-alive. Proxies and balancers cut after 60 s by default.
    keep_alive_s: float = field(default=DEFAULT_DELIVERY.keep_alive_s, validator=gt(0))
    #: Its form: what the client's dialect reads best, or a `comment` or an `event` wherever the dialect has one. Some clients
    #: take every line for JSON, others stumble over events that they do not know.
    keep_alive: KeepAliveForm = "dialect"
    #: Whether whole JSON answers get leading white space meanwhile, for clients behind proxies that cut after 60 s. Their
    #: status is then 200, whatever comes.
    whole_keep_alive: bool = DEFAULT_DELIVERY.whole_keep_alive
    #: Bytes that wait for a client before its upstream is left unread. Most answers fit, and free their upstream.
    unsent_bytes: int = field(default=DEFAULT_DELIVERY.unsent_bytes, validator=ge(1))
    #: How long a client may take none of the bytes that wait for it before it is dropped: it costs memory, and an upstream's
    #: connection.
    stall_s: float = field(default=DEFAULT_DELIVERY.stall_s, validator=gt(0))
    #: How long a client that does not leave at the error frame of a stream that had begun keeps its connection, which is then
    #: closed without an end of the body, in the dialects whose clients may not know the frame. One that reads more slowly than
    #: that may lose text.
    linger_s: float = field(default=DEFAULT_DELIVERY.linger_s, validator=ge(0))
    #: Silence between two outputs of a model that counts as a stall, in metrics and in the log.
    stall_report_s: float = field(default=STALL_S, validator=gt(0))
    #: How long a client's connection may stay without a request, and how long a request's headers may take. What is in front
    #: has to give up first, or a request meets a connection that is being closed: nginx and AWS balancers keep theirs for
    #: 60 s, Google's for 600 s.
    idle_connection_s: float = field(default=75.0, validator=gt(0))
    #: A directory in which each exchange with an upstream is recorded, in a file of its own; empty: nothing is. Prompts and
    #: answers stand there; keys do not. A path that is not absolute begins where the gateway is started. The directory is made
    #: for this user alone if it is not there; a file may have 64 MiB, and all of them 10,000 files and 4 GiB.
    record: str = ""
    #: What is recorded of requests' bodies: all (`full`), their members with the names of types in place of values (`shape`),
    #: or nothing (`none`).
    record_bodies: Bodies = "full"
    #: What is tolerated of upstreams: `strict` repairs nothing, `lenient` accepts more ends and splits calls.
    policy: PolicyName = "tolerant"

    def __attrs_post_init__(self) -> None:
        if self.private == "auto" and self.port == 65_535:
            raise Refusal(
                'there is no port behind it for /metrics; set server.private to "host:port" or "off"', at=("port",)
            )
        if self.private_address is not None and _overlap((self.host, self.port), self.private_address):
            raise Refusal("the same port as clients have; choose another, or another interface", at=("private",))

    @property
    def private_address(self) -> tuple[str, int] | None:
        """Host and port of the private listener; None: there is none."""
        if self.private == "auto":
            return LOOPBACK, self.port + 1 if self.port else 0
        return address_in(self.private)

    @property
    def served_hosts(self) -> Hosts | None:
        """The names by which clients may call it; None: any."""
        return Hosts((self.host, *self.hosts)) if self.hosts or is_loopback(self.host) else None

    @property
    def private_hosts(self) -> Hosts:
        """The same of the private listener, on whatever interface: it asks for no key."""
        address = self.private_address
        return Hosts((() if address is None else address[:1]) + self.hosts)

    @property
    def delivery(self) -> Delivery:
        """How answers reach clients. Its policy is the one for reading upstreams, too."""
        return Delivery(
            keep_alive_s=self.keep_alive_s,
            whole_keep_alive=self.whole_keep_alive,
            unsent_bytes=self.unsent_bytes,
            stall_s=self.stall_s,
            linger_s=self.linger_s,
            keep_alive=self.keep_alive,
            policy=POLICIES[self.policy],
            timings=self.profile,
        )


URL_FORM: Final = "redis://host:port/0, rediss://… over TLS, or unix:///path"
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _is_prefix(_instance: object, _attribute: Attribute[str], value: str) -> None:
    if _PREFIX.fullmatch(value) is None:
        raise Refusal("up to 64 letters, digits and any of _.:- are needed")


def _check_url(url: str) -> None:
    """Raises Refusal, in which nothing of the URL stands."""
    try:
        parts = urlsplit(url)
        named = parts.path if parts.scheme == "unix" else parts.hostname
        options = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        well = parts.scheme in {"redis", "rediss", "unix"} and bool(named) and (parts.port or 0) >= 0
    except ValueError:
        well = False
    if not well:
        raise Refusal(f"no URL of a server; it is written as {URL_FORM}", at=("url",))
    if any(not name.startswith("ssl_") and name != "db" for name in options):
        raise Refusal("of options behind the ? only db and ssl_… are taken; others stand in this table", at=("url",))


@frozen(kw_only=True)
class Resume:
    """How answers are kept for clients that come back."""

    #: Where: in the `memory` of the process that made them; in `redis`, also Valkey, from which any node reads them on (the
    #: extra `redis`); or nowhere (`off`).
    store: Literal["memory", "redis", "off"] = "memory"
    #: How long an answer can be read behind its end, in seconds.
    ttl_s: float = field(default=DEFAULT_LOG_LIMITS.ttl_s, validator=gt(0))
    #: How long an answer goes on without its client and without a reader, in seconds.
    unattended_s: float = field(default=300.0, validator=gt(0))
    #: Bytes that are kept of one answer. A longer one can't be resumed; its client gets it whole all the same.
    log_bytes: int = field(default=DEFAULT_LOG_LIMITS.log_bytes, validator=ge(1))
    #: Bytes that are kept of all answers of a process. Where they are full, those that ended first go.
    all_bytes: int = field(default=DEFAULT_LOG_LIMITS.all_bytes, validator=ge(1))
    #: Readers of one answer at once.
    readers: int = field(default=DEFAULT_LOG_LIMITS.readers, validator=ge(1))
    #: Where Redis is: `redis://user:password@host:6379/0`, `rediss://…` over TLS (`?ssl_ca_certs=path` for private roots), or
    #: `unix:///path`. A server on its own or with replicas, no Redis Cluster.
    url: Secret | None = None
    #: The beginning of all keys in Redis. What else uses the same server has another.
    prefix: str = field(default="sk", validator=_is_prefix)
    #: Silence after which other nodes take a process for dead, and readers of its answers get an error.
    lease_s: float = field(default=10.0, validator=gt(0))
    #: Milliseconds for which bytes wait for others, to go to Redis together. Clients do not wait for that.
    flush_ms: int = field(default=50, validator=ge(0))
    #: How long readers try again where Redis can't be reached, before they get an error.
    retry_s: float = field(default=10.0, validator=ge(0))
    #: Bytes of one answer that may wait for Redis. Beyond it the answer can't be resumed; its client gets it whole.
    behind_bytes: int = field(default=MIB, validator=ge(1))
    #: The same of all answers of a process.
    all_behind_bytes: int = field(default=64 * MIB, validator=ge(1))
    #: Replicas of Redis that must have bytes before they count as written: where the master fails, none of those is missing.
    wait_replicas: int = field(default=0, validator=ge(0))

    def __attrs_post_init__(self) -> None:
        if self.store == "redis" and self.url is None:
            raise Refusal(f'is needed for store = "redis": {URL_FORM}', at=("url",))
        if self.url is not None:
            if self.store != "redis":
                raise Refusal('only store = "redis" has one', at=("url",))
            _check_url(self.url.reveal())

    @property
    def secrets(self) -> list[str]:
        """What nobody may be shown of the URL: all of it, and its password."""
        url = "" if self.url is None else self.url.reveal()
        return [text for text in (url, urlsplit(url).password) if text]

    @property
    def limits(self) -> LogLimits:
        return LogLimits(ttl_s=self.ttl_s, log_bytes=self.log_bytes, all_bytes=self.all_bytes, readers=self.readers)


@frozen(kw_only=True)
class Responses:
    """What is kept of responses for requests that lean on them."""

    #: Whether a request may lean on earlier responses (`previous_response_id`, items of the type `item_reference`), whichever
    #: upstream answers. They are kept where `[resume]` keeps answers; a request with `store: false` keeps nothing. With all
    #: that it leans on, a request may be no longer than `server.body_bytes`.
    state: bool = False
    #: How long a response can be leaned on, in seconds.
    ttl_s: float = field(default=3600.0, validator=gt(0))
    #: Bytes of one response with all that was said before it; a larger one is not kept. All of them together, and all logs,
    #: have `resume.all_bytes`.
    response_bytes: int = field(default=8 * MIB, validator=ge(1))

    @property
    def kept(self) -> State | None:
        """The same for the web layer; None: nothing is."""
        return State(ttl_s=self.ttl_s, response_bytes=self.response_bytes) if self.state else None


@frozen(kw_only=True)
class Telemetry:
    """What OpenTelemetry is told."""

    #: Whether traces and metrics are sent by OTLP over HTTP (the extra `otel`). Where to, what is sampled, and how the service
    #: is called stand in OpenTelemetry's own environment variables: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`,
    #: `OTEL_SERVICE_NAME` and the others.
    otlp: bool = False
    #: Which version of the conventions for generative AI names the metrics: `1.41`, which tools read today, or `genai`, in
    #: which they have other names.
    semconv: SemConv = "1.41"
    #: Whether spans have what people and models said: prompts, answers, definitions of tools, without what looks like a key.
    #: Each stream is then read a second time, for the spans that are recorded.
    content: Literal["off", "on"] = "off"
    #: Characters of each of these attributes. Of a longer conversation the newest messages are told.
    content_chars: int = field(default=CONTENT_CHARS, validator=ge(1000))
    #: Whether each gap between two outputs of a stream is recorded, as `gen_ai.client.operation.time_per_output_chunk`. A
    #: record takes as much of the processor as two or three events of a stream; `/metrics` has the gaps without.
    time_per_output_chunk: bool = False
    #: How long the last of both may take to be sent when the gateway stops, in seconds, beyond `server.grace_s`.
    shutdown_s: float = field(default=3.0, validator=gt(0))


@frozen(kw_only=True)
class Config:
    """The gateway's configuration."""

    server: Server = field(factory=Server)
    resume: Resume = field(factory=Resume)
    responses: Responses = field(factory=Responses)
    telemetry: Telemetry = field(factory=Telemetry)
    upstreams: Mapping[str, Upstream]
    routes: tuple[Route, ...]
    #: What may be meant, and may not be. Faults are no warnings: they are raised.
    warnings: tuple[Finding, ...] = ()


# -- addresses ---------------------------------------------------------------------------------------------------------


def address_in(text: str) -> tuple[str, int] | None:
    """Host and port of ``"host:port"`` or ``"[::1]:port"``; None for anything else."""
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:
        return None
    if not host or port is None or url.netloc != text or "@" in text:
        return None
    return host, port


def _overlap(one: tuple[str, int], other: tuple[str, int]) -> bool:
    everywhere = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    same_host = one[0] == other[0] or bool(everywhere & {one[0], other[0]})
    return same_host and one[1] == other[1] and one[1] != 0


# -- for people --------------------------------------------------------------------------------------------------------


def describe(config: Config) -> str:
    """The configuration in a few lines: where it listens, upstreams, routes, warnings. No keys."""
    return "\n".join(_lines(config))


def _lines(config: Config) -> Iterator[str]:
    server = config.server
    private = server.private_address
    yield f"listens on {url_of((server.host, server.port))}, {_counted(server.workers, 'worker')}"
    yield f"/metrics on {url_of(private)}" if private else "no /metrics"
    yield f"{_counted(len(server.keys), 'client key')}{'' if server.keys else ': whoever reaches it is served'}"
    yield _kept(config.resume)
    if server.record:
        yield f"exchanges with upstreams are recorded in {server.record}, with bodies of requests: {server.record_bodies}"
    if config.telemetry.otlp:
        yield f"traces and metrics are sent by OTLP, with the names of conventions {config.telemetry.semconv}"
    if server.cors:
        yield f"pages of {', '.join(server.cors)} may ask"
    yield "upstreams:"
    width = max(map(len, config.upstreams), default=0)
    for name, upstream in config.upstreams.items():
        yield f"  {name:{width}}  {upstream.dialect}, {upstream.base_url}, {_access(upstream)}"
    yield "routes:"
    for route in config.routes:
        yield f"  {', '.join(route.models)} -> {', then '.join(map(_target, route.targets))}"
    if config.warnings:
        yield "warnings:"
        yield from (f"  {warning}" for warning in config.warnings)


def _kept(resume: Resume) -> str:
    if resume.store == "off":
        return "no answers are kept for clients that come back"
    where = "memory" if resume.url is None else f"Redis, {_place_of(resume.url)}"
    return f"answers are kept in {where}, for clients that come back within {resume.ttl_s:g} s"


def _place_of(url: Secret) -> str:
    """Where a server is, without its user and password."""
    parts = urlsplit(url.reveal())
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _access(upstream: Upstream) -> str:
    access = "no key" if upstream.auth == "none" else upstream.auth
    access += ", over WebSockets" if upstream.transport == "websocket" else ""
    return access if upstream.tools else f"{access}, no tools"


def _target(target: Target) -> str:
    return target.upstream.name if target.model is None else f"{target.upstream.name} as {target.model}"
