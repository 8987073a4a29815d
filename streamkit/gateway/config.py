"""The gateway's configuration, as values. ``config_file`` reads them from a file; a program may also create them itself.

The values check themselves, however they are created. They contain keys, which are never shown: ``describe`` returns the whole
configuration for people to read, without keys, and ``store_of`` the store of responses that it names.

Source: limits.md §1 (defaults), §3 (T5, T6, T8); clients.md §10.3; resume.md §12, §18.4, §18.5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from attrs import Attribute, AttrsInstance, Factory, field, fields, frozen, has
from attrs.validators import ge, gt, le

from streamkit.dialects.profiles import KeepAliveForm
from streamkit.errors import UsageError
from streamkit.gateway.log import LogFormat
from streamkit.gateway.routing import Route, Target
from streamkit.lab.recording.headers import Bodies
from streamkit.limits import MIB
from streamkit.otel.conventions import CONTENT_CHARS, SemConv
from streamkit.policy import POLICIES, PolicyName
from streamkit.resume import MemoryStore, Store, StoreDown
from streamkit.resume.log import DEFAULT_LOG_LIMITS, LogLimits
from streamkit.resume.memory import new_boot
from streamkit.resume.worker_store import WorkerStore
from streamkit.toml.findings import Finding, Refusal
from streamkit.web.budget import BODIES_BYTES
from streamkit.web.hosts import Hosts, is_host_name, is_loopback, is_origin
from streamkit.web.listening import url_of
from streamkit.web.observers import STALL_S
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery
from streamkit.web.resume.settings import State
from streamkit.web.token_counts import CountTokens
from streamkit.web.upstream import Secret, Upstream

LOOPBACK: Final = "127.0.0.1"


def _can_be_looked_up(host: str) -> bool:
    """Return whether the system can look up a name. Python encodes it with IDNA before, which fails for ``a..b``."""
    try:
        return bool(host.encode("idna")) and host.isprintable() and " " not in host
    except UnicodeError:
        return False


def _is_host(_instance: object, _attribute: Attribute[str], value: str) -> None:
    # one colon means a port; an IPv6 address has more colons
    if not _can_be_looked_up(value) or any(letter in value for letter in "/@[]") or value.count(":") == 1:
        raise Refusal('must be the name or address of an interface, without a port: "127.0.0.1", "0.0.0.0", "::"')


def _each(fits: Callable[[str], bool], reason: str) -> Callable[[object, Attribute[Any], tuple[str, ...]], None]:
    """Return a validator for a tuple of strings. It raises Refusal with the first string for which ``fits`` is false."""

    def validate(_instance: object, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
        for index, text in enumerate(value):
            if not fits(text):
                raise Refusal(reason, at=(index,))

    return validate


_are_host_names = _each(
    is_host_name, 'must be a name without scheme, port and path: "llm.example.org", "*.example.org", or "*" for any'
)
_are_origins = _each(is_origin, 'must be an origin such as "https://chat.example.org", or "*" for any')


def _is_listener(_instance: object, _attribute: Attribute[str], value: str) -> None:
    if value not in {"auto", "off"} and address_in(value) is None:
        raise Refusal('must be "host:port", "auto" or "off"')


@frozen(kw_only=True)
class Server:
    """Where the gateway listens, which clients it serves, and its limits."""

    #: The network interface on which the gateway listens. The default is loopback, because everyone who can reach the gateway
    #: can use your provider keys.
    host: str = field(default=LOOPBACK, validator=_is_host)
    #: The host names that clients may send in the header `Host`. Examples are `"llm.example.org"`, `"*.example.org"` for all
    #: names below this domain, and `"*"` for any name. IP addresses, `localhost`, `host.docker.internal` and
    #: `host.containers.internal` are always allowed. A request with another name gets status 421. Without this check, a web
    #: page could make its own host name resolve to this machine and read the gateway's responses (DNS rebinding). If the
    #: gateway listens on loopback, or if this list is not empty, the gateway checks the name in each request. On the private
    #: listener, the gateway always checks the name. If a proxy on the same machine forwards requests, list the host name that
    #: the proxy sends.
    hosts: tuple[str, ...] = field(default=(), validator=_are_host_names)
    #: The sites whose web pages may send requests to the gateway. Write each site as browsers write it in the header `Origin`:
    #: `"https://chat.example.org"`, or `"*"` for any site. Browsers hide responses from the pages of all other sites (CORS).
    #: If `keys` is empty, the gateway also refuses requests from the pages of other sites.
    cors: tuple[str, ...] = field(default=(), validator=_are_origins)
    #: The port on which the gateway listens. With 0, the gateway takes any free port, which is useful in tests.
    port: int = field(default=8080, validator=[ge(0), le(65_535)])
    #: The address of the private listener, which serves `/metrics`: `"host:port"`, `"auto"` (loopback, at `port` + 1), or
    #: `"off"`. The metrics have their own port because clients should not see how much the service is used.
    private: str = field(default="auto", validator=_is_listener)
    #: The number of processes (workers) that serve requests. All workers listen on the same port. Each worker uses one CPU
    #: core.
    workers: int = field(default=1, validator=ge(1))
    #: If there are several workers, the gateway kills and replaces a worker whose event loop does not respond for this many
    #: seconds. Until then, a worker that hangs still gets its share of new connections.
    worker_silent_s: float = field(default=30.0, validator=ge(1))
    #: Seconds that streams in progress may continue after SIGTERM. After this time, they end with an error in the client's
    #: dialect. By default, Kubernetes kills the process 30 s after SIGTERM. So on Kubernetes, set a smaller `grace_s`, or a
    #: larger `terminationGracePeriodSeconds`.
    grace_s: float = field(default=30.0, validator=ge(0))
    #: The size of the largest request body that the gateway accepts. The default is more than the 1 MiB that servers usually
    #: allow, because prompts with images may be larger.
    body_bytes: int = field(default=32 * MIB, validator=ge(1))
    #: The memory in a process for all request bodies. A body counts from the time when it begins to arrive until the
    #: upstream's model begins to respond. If this memory is full, clients get status 503 with `Retry-After`. Each JSON value
    #: in a body counts as 256 bytes in addition to its text. If a request contains the id of a stored item several times, the
    #: item counts each time. The first 64 KiB of a request do not count. `bodies_bytes` must be at least `body_bytes`.
    #: Together with their decoded and translated forms, requests take up to three times the memory that is counted here.
    bodies_bytes: int = field(default=BODIES_BYTES, validator=ge(1))
    #: The largest number of responses that may be in progress at the same time in a process. Further requests get status 503
    #: with `Retry-After`. Each response may keep `unsent_bytes` in memory, so the defaults allow 1 GiB in the worst case.
    max_streams: int = field(default=1000, validator=ge(1))
    #: The largest number of WebSockets that clients may have open at the same time in a process (`GET /v1/responses`). A
    #: client that tries to open another WebSocket gets status 426. With 0, every client gets status 426. Codex then
    #: immediately continues over HTTP. A message in a WebSocket may be at most `body_bytes` long.
    max_sockets: int = field(default=1000, validator=ge(0))
    #: The memory in a process for the last request and response of each WebSocket. A client refers to this response with
    #: `previous_response_id` in its next message. The first 64 KiB of each WebSocket do not count. If this memory is full,
    #: clients must send the whole input again, as Codex does.
    sockets_bytes: int = field(default=128 * MIB, validator=ge(0))
    #: Seconds that a WebSocket may stay open without a message and without a response in progress.
    socket_idle_s: float = field(default=600.0, validator=gt(0))
    #: The lowest level that is logged. The log line of a request has the level `info`. It has the level `warning` if the
    #: status is 500 or higher, or if a stream broke.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: The format of the log. `json`: each request and each event is one line of JSON. `text`: the log is text for people.
    #: `auto`: text if the log is written to a terminal, and JSON in all other cases.
    log_format: LogFormat = "auto"
    #: If true, the log line of a stream shows the time that each stage took, in the member `timings`.
    timings: bool = False
    #: If true, the gateway checks the text of a response against the JSON schema of its request, and reports the result in the
    #: log and the metrics. This needs the extra `schema`. A check usually takes a millisecond. With a schema of 900 KB or a
    #: text of 200 KB, it takes 0.2 s, and the process does nothing else in this time. If false, the gateway only checks that
    #: the text is JSON. Valid JSON then gets the verdict `unchecked` if the request has a schema.
    check_schemas: bool = False
    #: The keys that clients may send. Write each key as `{ env = "NAME" }` or `{ file = "path" }`. A client must send one of
    #: these keys in `Authorization: Bearer`, `x-api-key`, `x-goog-api-key` or `api-key`. If the list is empty, the gateway
    #: serves everyone who can reach it.
    keys: tuple[Secret, ...] = ()
    #: If true, clients may list models without a key, but only on the paths where many clients can't send a key (`/api/tags`,
    #: `/api/show`, `/api/ps`, `/api/version`). Requests to a model still need a key.
    keyless_listing: bool = False
    #: The response to a request for a token count, if no upstream of the model can count tokens, or if counting failed.
    #: `estimate`: an estimate, with the header `x-streamkit-count`. If the extra `tokens` is installed, the gateway estimates
    #: with a vocabulary. Otherwise, it estimates from the number of bytes. `upstream`: an error. Claude Code then requests a
    #: completion for each count. `off`: the client gets an error even if an upstream can count tokens.
    count_tokens: CountTokens = "estimate"
    #: Seconds of silence after which the gateway sends a keep-alive to a client. By default, many proxies close a connection
    #: after 60 s of silence.
    keep_alive_s: float = field(default=DEFAULT_DELIVERY.keep_alive_s, validator=gt(0))
    #: The form of a keep-alive. `dialect`: the form that clients of the dialect handle best. `comment`: a comment. `event`: an
    #: event. If the dialect does not have the chosen form, the gateway uses the form of `dialect`. Choose `event` for clients
    #: that parse every line as JSON. Choose `comment` for clients that fail if they receive unknown events.
    keep_alive: KeepAliveForm = "dialect"
    #: If true, a whole JSON response may begin with white space as a keep-alive. Use this if clients are behind a proxy that
    #: closes connections after 60 s of silence. The HTTP status is then 200 even if the request fails.
    whole_keep_alive: bool = DEFAULT_DELIVERY.whole_keep_alive
    #: The number of bytes of a response that may wait to be sent to the client. If more bytes wait, the gateway stops reading
    #: from the upstream. Most responses are smaller than the default, so a slow client usually does not slow the upstream.
    unsent_bytes: int = field(default=DEFAULT_DELIVERY.unsent_bytes, validator=ge(1))
    #: Seconds after which the gateway disconnects a client that reads nothing although bytes are waiting to be sent to it.
    #: Otherwise, such a client would keep a connection to an upstream open.
    stall_s: float = field(default=DEFAULT_DELIVERY.stall_s, validator=gt(0))
    #: Seconds that the gateway waits after an error frame before it closes the connection, if the client does not close it.
    #: The gateway waits only in dialects whose clients may not know the error frame. The gateway does not end the HTTP body,
    #: so these clients notice that the stream failed. A client that has not read the whole stream by then may lose text.
    linger_s: float = field(default=DEFAULT_DELIVERY.linger_s, validator=ge(0))
    #: If more than this many seconds pass between two outputs of a model, the metrics and the log count a stall.
    stall_report_s: float = field(default=STALL_S, validator=gt(0))
    #: Seconds that a client's connection may stay open without a request. The headers of a request may also take this long to
    #: arrive. A proxy in front of the gateway must close its idle connections earlier. Otherwise the proxy may send a request
    #: over a connection that the gateway is closing. nginx and AWS balancers close idle connections after 60 s, and Google's
    #: balancers after 600 s.
    idle_connection_s: float = field(default=75.0, validator=gt(0))
    #: A directory for recordings. The gateway records each exchange with an upstream in a separate file. If this setting is
    #: empty, the gateway records nothing. The files contain prompts and responses but no keys. A relative path is resolved
    #: from the directory in which the gateway was started. If the directory is missing, the gateway creates it so that only
    #: the gateway's user can read it. A file may be up to 64 MiB large. All files together may be up to 4 GiB large, and there
    #: may be up to 10,000 files.
    record: str = ""
    #: How much of a request's body a recording contains. `full`: everything. `shape`: all members, but each value is replaced
    #: with the name of its type. `none`: nothing.
    record_bodies: Bodies = "full"
    #: If true, responses and errors have three headers about the upstream that responded: `x-streamkit-upstream` (its name),
    #: `x-streamkit-model` (its name for the model), and `x-streamkit-attempts` (the number of attempts). These headers show
    #: clients which providers you use.
    name_upstreams: bool = False
    #: Which faults of upstreams the gateway tolerates. `tolerant`: the gateway repairs faults. `strict`: the gateway repairs
    #: no faults, so a fault that needs a repair ends the stream with an error. `lenient`: the gateway repairs faults, accepts
    #: more streams without a stop reason, and splits two calls that were merged into one. [Choose what is
    #: tolerated](../how-to/choose-a-policy.md) has the details.
    policy: PolicyName = "tolerant"

    def __attrs_post_init__(self) -> None:
        if self.private == "auto" and self.port == 65_535:
            raise Refusal('leaves no port for /metrics; set server.private to "host:port" or "off"', at=("port",))
        if self.private_address is not None and _overlap((self.host, self.port), self.private_address):
            raise Refusal("must not be the clients' port; choose another port or interface", at=("private",))
        if self.check_schemas and find_spec("jsonschema_rs") is None:
            raise Refusal("needs the extra `schema`: pip install 'streamkit-llm[schema]'", at=("check_schemas",))

    @property
    def private_address(self) -> tuple[str, int] | None:
        """Host and port of the listener for ``/metrics``; None: it is off."""
        if self.private == "auto":
            return LOOPBACK, self.port + 1 if self.port else 0
        return address_in(self.private)

    @property
    def served_hosts(self) -> Hosts | None:
        """The host names that clients may use for the gateway; None: any."""
        return Hosts((self.host, *self.hosts)) if self.hosts or is_loopback(self.host) else None

    @property
    def private_hosts(self) -> Hosts:
        """The host names for the private listener. They are checked on every interface, because it requires no key."""
        address = self.private_address
        return Hosts((() if address is None else address[:1]) + self.hosts)

    @property
    def delivery(self) -> Delivery:
        """How responses are sent to clients. Its policy also applies to reading upstreams."""
        return Delivery(
            keep_alive_s=self.keep_alive_s,
            whole_keep_alive=self.whole_keep_alive,
            unsent_bytes=self.unsent_bytes,
            stall_s=self.stall_s,
            linger_s=self.linger_s,
            keep_alive=self.keep_alive,
            policy=POLICIES[self.policy],
            check_schemas=self.check_schemas,
            timings=self.timings,
        )


URL_FORM: Final = "redis://host:port/0, rediss://… over TLS, or unix:///path"
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _is_prefix(_instance: object, _attribute: Attribute[str], value: str) -> None:
    if _PREFIX.fullmatch(value) is None:
        raise Refusal("must be 1 to 64 letters, digits or any of _.:-")


def _check_url(url: str) -> None:
    """Raise Refusal if the URL is invalid. The message shows nothing of the URL."""
    try:
        parts = urlsplit(url)
        named = parts.path if parts.scheme == "unix" else parts.hostname
        options = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        well = parts.scheme in {"redis", "rediss", "unix"} and bool(named) and (parts.port or 0) >= 0
    except ValueError:
        well = False
    if not well:
        raise Refusal(f"must be the URL of a server: {URL_FORM}", at=("url",))
    if any(not name.startswith("ssl_") and name != "db" for name in options):
        raise Refusal("may have only the query options db and ssl_…; set others in this table", at=("url",))


@frozen(kw_only=True)
class Resume:
    """How responses are kept for clients that reconnect."""

    #: Where the gateway keeps responses. `memory`: in the memory of the process that served the response. `redis`: in Redis or
    #: Valkey, so that any node can read the responses. This needs the extra `redis`. `off`: the gateway keeps no responses.
    store: Literal["memory", "redis", "off"] = "memory"
    #: Seconds after the end of a response during which clients can still read it.
    ttl_s: float = field(default=DEFAULT_LOG_LIMITS.ttl_s, validator=gt(0))
    #: Seconds that a response continues while no client reads it.
    unattended_s: float = field(default=300.0, validator=gt(0))
    #: The largest number of bytes that are kept of one response. A longer response can't be resumed, but its client still gets
    #: all of it.
    log_bytes: int = field(default=DEFAULT_LOG_LIMITS.log_bytes, validator=ge(1))
    #: The largest number of bytes that are kept of all responses in a process. If more bytes are needed, the gateway drops the
    #: responses that ended first.
    all_bytes: int = field(default=DEFAULT_LOG_LIMITS.all_bytes, validator=ge(1))
    #: The largest number of clients that may read one response at the same time.
    readers: int = field(default=DEFAULT_LOG_LIMITS.readers, validator=ge(1))
    #: The address of Redis: `redis://user:password@host:6379/0`, or `unix:///path`. For TLS, write `rediss://…`, with
    #: `?ssl_ca_certs=path` if the server's certificate comes from a private certificate authority. The server may have
    #: replicas, but Redis Cluster is not supported.
    url: Secret | None = None
    #: The prefix of all names that the gateway uses in Redis. Other programs that use the same Redis server need another
    #: prefix.
    prefix: str = field(default="sk", validator=_is_prefix)
    #: Seconds of silence after which other nodes consider a process dead. Clients that read responses of this process then get
    #: an error.
    lease_s: float = field(default=10.0, validator=gt(0))
    #: Milliseconds that bytes wait before the gateway writes them to Redis, so that one command writes many bytes. Bytes for
    #: the client are not delayed.
    flush_ms: int = field(default=50, validator=ge(0))
    #: If Redis can't be reached, the gateway retries for this many seconds. After that, clients that read a response from
    #: Redis get an error.
    retry_s: float = field(default=10.0, validator=ge(0))
    #: The largest number of bytes of one response that may wait to be written to Redis. If more bytes wait, the response can't
    #: be resumed, but its client still gets all of it.
    behind_bytes: int = field(default=MIB, validator=ge(1))
    #: The same limit as `behind_bytes`, for all responses of a process together.
    all_behind_bytes: int = field(default=64 * MIB, validator=ge(1))
    #: The number of Redis replicas that must receive bytes before the gateway counts the bytes as written. With 0, bytes may
    #: be lost if the master fails.
    wait_replicas: int = field(default=0, validator=ge(0))

    def __attrs_post_init__(self) -> None:
        if self.store == "redis" and self.url is None:
            raise Refusal(f'is required for store = "redis": {URL_FORM}', at=("url",))
        if self.url is not None:
            if self.store != "redis":
                raise Refusal('is allowed only with store = "redis"', at=("url",))
            _check_url(self.url.reveal())

    @property
    def secrets(self) -> list[str]:
        """The texts that must not be shown: the whole URL and its password."""
        url = "" if self.url is None else self.url.reveal()
        return [text for text in (url, urlsplit(url).password) if text]

    @property
    def limits(self) -> LogLimits:
        return LogLimits(ttl_s=self.ttl_s, log_bytes=self.log_bytes, all_bytes=self.all_bytes, readers=self.readers)


@frozen(kw_only=True)
class Responses:
    """How responses are kept for later requests that refer to them."""

    #: If true, a request may refer to earlier responses from any upstream, with `previous_response_id` or with items of type
    #: `item_reference`. The gateway then keeps responses in the store of `[resume]`, except if the request has `store: false`.
    #: A request and everything that it refers to may together be at most `server.body_bytes` long.
    state: bool = False
    #: Seconds that the gateway keeps a response so that later requests can refer to it.
    ttl_s: float = field(default=3600.0, validator=gt(0))
    #: The largest size of a response together with the conversation before it. A larger response is not kept.
    #: `resume.all_bytes` limits everything that is kept for `[resume]` and `[responses]` together.
    response_bytes: int = field(default=8 * MIB, validator=ge(1))

    @property
    def kept(self) -> State | None:
        """The same settings for ``streamkit.web``; None: no response is kept."""
        return State(ttl_s=self.ttl_s, response_bytes=self.response_bytes) if self.state else None


@frozen(kw_only=True)
class Telemetry:
    """What is sent to OpenTelemetry."""

    #: If true, the gateway sends traces and metrics with OTLP over HTTP. This needs the extra `otel`. The environment
    #: variables of OpenTelemetry set the destination, the sampling and the service name: `OTEL_EXPORTER_OTLP_ENDPOINT`,
    #: `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME` and others.
    otlp: bool = False
    #: The version of OpenTelemetry's conventions for generative AI, which defines the names of the metrics. `1.41`: the names
    #: that tools read today. `genai`: the newer names.
    semconv: SemConv = "1.41"
    #: If `on`, spans contain the conversation: prompts, responses and tool definitions, without texts that look like keys. The
    #: gateway then parses each stream a second time if its span is recorded (sampled).
    content: Literal["off", "on"] = "off"
    #: The largest number of characters in each span attribute that contains parts of the conversation. If an attribute would
    #: be longer, it contains only the newest messages.
    content_chars: int = field(default=CONTENT_CHARS, validator=ge(1000))
    #: If true, the gateway records each pause between two outputs of a stream as
    #: `gen_ai.client.operation.time_per_output_chunk`. Each recorded pause costs as much CPU time as two or three stream
    #: events. `/metrics` reports the pauses without this cost.
    time_per_output_chunk: bool = False
    #: Seconds for sending the remaining traces and metrics when the gateway stops, in addition to `server.grace_s`.
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
    #: Settings that are allowed but probably wrong. Errors are not in this list: they are raised.
    warnings: tuple[Finding, ...] = ()


# -- addresses ---------------------------------------------------------------------------------------------------------


def address_in(text: str) -> tuple[str, int] | None:
    """Return host and port of ``"host:port"`` or ``"[::1]:port"``; None for anything else."""
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:
        return None
    if not host or not _can_be_looked_up(host) or port is None or url.netloc != text or "@" in text:
        return None
    return host, port


def _overlap(one: tuple[str, int], other: tuple[str, int]) -> bool:
    everywhere = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    same_host = one[0] == other[0] or bool(everywhere & {one[0], other[0]})
    return same_host and one[1] == other[1] and one[1] != 0


# -- description for people --------------------------------------------------------------------------------------------


def describe(config: Config) -> str:
    """Return the configuration as a few lines: addresses, upstreams and routes with changed settings, warnings. No keys."""
    return "\n".join(_lines(config))


def _lines(config: Config) -> Iterator[str]:
    server = config.server
    private = server.private_address
    yield f"listens on {url_of((server.host, server.port))}, {_counted(server.workers, 'worker')}"
    yield f"/metrics on {url_of(private)}" if private else "no /metrics"
    yield f"{_counted(len(server.keys), 'client key')}{'' if server.keys else ': anyone who reaches the gateway is served'}"
    yield _kept(config.resume)
    if config.responses.state:
        yield f"conversations are kept for {config.responses.ttl_s:g} s, for requests that refer to earlier responses"
    if server.record:
        yield f"exchanges with upstreams are recorded in {server.record}, request bodies: {server.record_bodies}"
    if config.telemetry.otlp:
        yield f"traces and metrics are sent by OTLP, with the names of conventions {config.telemetry.semconv}"
    if server.cors:
        yield f"pages of {', '.join(server.cors)} may send requests"
    yield "upstreams:"
    width = max(map(len, config.upstreams), default=0)
    for name, upstream in config.upstreams.items():
        yield f"  {name:{width}}  {upstream.dialect}, {upstream.base_url}, {_access(upstream)}"
        yield from (f"    {setting}" for setting in _changed(upstream))
    yield "routes:"
    for route in config.routes:
        stages = "".join(f", through {stage.use}" for stage in route.stages)
        yield f"  {', '.join(route.models)} -> {', then '.join(_groups(route))}{stages}"
        yield from (f"    {setting}" for setting in _changed(route))
    if config.warnings:
        yield "warnings:"
        yield from (f"  {warning}" for warning in config.warnings)


def _kept(resume: Resume) -> str:
    if resume.store == "off":
        return "no responses are kept for clients that reconnect"
    where = "memory" if resume.url is None else f"Redis, {_place_of(resume.url.reveal())}"
    return f"responses are kept in {where}, for clients that reconnect within {resume.ttl_s:g} s"


def _place_of(url: str) -> str:
    """Return a server's URL without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _access(upstream: Upstream) -> str:
    access = "no key" if upstream.auth == "none" else upstream.auth
    access += f", {len(upstream.keys)} keys" if upstream.keys else ""
    access += ", over WebSockets" if upstream.transport == "websocket" else ""
    access += f", through {_place_of(upstream.proxy_url)}" if upstream.proxy_url is not None else ""
    access += ", with a client certificate" if upstream.client_cert is not None else ""
    return access if upstream.tools else f"{access}, no tools"


def _groups(route: Route) -> Iterator[str]:
    for _, targets in groupby(route.targets, key=lambda target: target.place):
        group = list(targets)
        if len(group) == 1:
            yield _target(group[0])
        else:
            equals = (f"{_target(each)}{'' if each.weight == 1 else f' (weight {each.weight:g})'}" for each in group)
            yield f"one of {', '.join(equals)} by {route.balance.replace('_', ' ')}"


#: Members of upstreams and routes that are not listed as settings: their own lines show them, or they contain keys.
_NOT_LISTED: Final = frozenset(
    {"name", "dialect", "base_url", "auth", "key", "keys", "transport", "proxy", "client_cert", "client_key", "tools"}
    | {"models", "targets", "stages"}
)


def _changed(settings: AttrsInstance, table: str = "") -> Iterator[str]:
    """Yield the settings that differ from the defaults, as in the file. Values in tables are hidden: they may be keys."""
    for member in fields(type(settings)):
        value = getattr(settings, member.name)
        default = member.default.factory() if isinstance(member.default, Factory) else member.default  # type: ignore[arg-type]
        if member.name in _NOT_LISTED or value == default:
            continue
        if has(type(value)):
            yield from _changed(value, f"{member.name}.")
        elif isinstance(value, Mapping):
            yield f"{member.name} = {{ {', '.join(f'{json.dumps(name)} = …' for name in value)} }}"
        else:
            yield f"{table}{member.name} = {json.dumps(value, ensure_ascii=False)}"


def _target(target: Target) -> str:
    return target.upstream.name if target.model is None else f"{target.upstream.name} as {target.model}"


# -- the store of responses --------------------------------------------------------------------------------------------


EXTRA: Final = "resume.store = \"redis\" needs the extra `redis`: pip install 'streamkit-llm[redis]' (missing: {})"


def store_of(config: Config, *, boot: str = "", directory: str = "") -> Store:
    """Return the configured store, not started yet. ``boot`` names this process. Raises UsageError without its extra.

    ``directory`` has the sockets by which the workers of this host read each other's responses; empty: there is one process.
    """
    resume = config.resume
    if resume.url is None and directory:
        return WorkerStore(MemoryStore(resume.limits, boot=boot or new_boot()), Path(directory))
    if resume.url is None:
        return MemoryStore(resume.limits, boot=boot)
    try:
        from streamkit.resume.redis_store import RedisSettings, RedisStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    settings = RedisSettings(
        prefix=resume.prefix,
        lease_s=resume.lease_s,
        flush_s=resume.flush_ms / 1000,
        retry_s=resume.retry_s,
        behind_bytes=resume.behind_bytes,
        all_behind_bytes=resume.all_behind_bytes,
        wait_replicas=resume.wait_replicas,
    )
    return RedisStore(resume.url.reveal(), resume.limits, settings, boot=boot)


async def look_at_store(config: Config) -> tuple[str, list[str]]:
    """Check the configured store. Return why it can't be used, empty if it can, and remarks about it."""
    if config.resume.url is None:
        return "", []
    from streamkit.resume.redis_client import Calls, faults_of  # noqa: PLC0415

    calls = Calls(config.resume.url.reveal())
    try:
        return await faults_of(calls)
    except StoreDown as error:
        return "", [f"{error}; the gateway serves anyway, and retries"]
    finally:
        await calls.close()
