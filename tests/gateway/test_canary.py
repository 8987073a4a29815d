"""No secret is in anything that leaves the gateway, whatever an upstream does with those that it was sent (limits.md C14, T6).

Canaries are in every key and header. The gateway goes through successes, every fault, and upstreams that repeat what they were
sent; then every byte that clients got, every line of the log at every level and in both forms, the metrics, and whatever
describes an object is searched for them.
"""

import asyncio
import base64
import logging
from contextlib import asynccontextmanager
from itertools import product
from urllib.parse import quote

import orjson
import pytest
from attrs import define, field

from streamkit.dialects import DIALECTS
from streamkit.gateway import app as app_module
from streamkit.gateway import attempts as attempts_module
from streamkit.gateway.app import GATEWAY, gateway_app
from streamkit.gateway.attempts import Attempts
from streamkit.gateway.config import describe
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.log import TALKATIVE, JSONLines, Text
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.web.exchange import Exchange
from streamkit.web.hosts import KeyRing
from tests.gateway.running import Running, asking
from tests.sampling import part_of, parts
from tests.web import faults
from tests.web.evil import EvilUpstream, Fin, Script, Send
from tests.web.faults import END_OF_CHUNKS, FAULTS, PAGE, answer, as_asked, asks_for_stream, chunk, good, head, speech
from tests.web.serving import eventually, serving
from tests.web.upstream.conftest import aws

__all__ = ["aws"]
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
FORMS = JSONLines(), Text()
#: How an upstream is shown its key, whose dialect it is, and where the key stands then.
AUTHS = {
    "bearer": ("openai-chat", "authorization"),
    "x-api-key": ("anthropic", "x-api-key"),
    "x-goog-api-key": ("gemini", "x-goog-api-key"),
    "azure": ("openai-chat", "api-key"),
    "bedrock-bearer": ("bedrock", "authorization"),
    "sigv4": ("bedrock", "x-amz-security-token"),
}
#: Whether a busy machine is slower is all the same: no secret in this failure or in that.
TIMES = "{ connect_s = 0.5, first_byte_s = 0.5, idle_s = 0.5 }"
MORE = {"azure": 'api_version = "2024-10-21"', "sigv4": 'region = "eu-west-1"'}


def canary(name):
    """A key that looks like no key of a vendor's, with letters that JSON and URLs may escape."""
    return f"Zq7/{name}+canary/{base64.b16encode(name.encode()).decode()}=~0123456789"


#: Which keys there are: of the upstream that is asked first, of the one that is asked next, and of clients.
OWN, HEADER, NEXT, CLIENT, WRONG = map(canary, ["own", "header", "next", "client", "wrong"])
PRIVATE = {name: canary(name) for name in ("cookie", "goog", "query", "proxy", "forwarded", "amz", "secret")}
SECRETS = {"own": OWN, "header": HEADER, "next": NEXT, "client": CLIENT, "wrong": WRONG, **PRIVATE}


def forms(secret):
    """The secret, as it may be written, and each half of it."""
    for text in (
        secret,
        secret.replace("/", "\\/"),
        secret.replace("/", "\\/").replace("+", "\\u002B"),
        quote(secret, safe=""),
    ):
        yield from (text, text[:20], text[-20:])
    yield base64.b64encode(secret.encode()).decode()


SOUGHT = {form.encode(): name for name, secret in SECRETS.items() for form in forms(secret)}


def found(data):
    """The names of the canaries in some bytes or text."""
    data = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else bytes(data)
    return sorted({name for form, name in SOUGHT.items() if form in data})


@define
class Everything(logging.Handler):
    """All that left the gateway, by where it left."""

    left: list[tuple[str, bytes | str]] = field(factory=list)
    made: list[Attempts | Exchange] = field(factory=list)

    def __attrs_pre_init__(self):
        super().__init__(logging.DEBUG)

    __hash__ = logging.Handler.__hash__

    def emit(self, record):
        for form in FORMS:
            self.left.append((f"the log, {record.name}, {record.levelname}", form.format(record)))
        self.left.append((f"a message, {record.name}", record.getMessage()))

    def took(self, where, answer):
        self.left += [(f"{where}: body", answer.body), (f"{where}: headers", repr(answer.headers))]

    def tell_apart(self, running):
        """What describes the gateway's objects, and what it counted."""
        self.left.append(("metrics", exposition(running.metrics)))
        self.left.append(("gateway", repr(running.app[GATEWAY])))
        self.left += [("attempts and exchanges", repr(thing)) for thing in self.made]
        for record in (thing.record for thing in self.made if isinstance(thing, Attempts)):
            self.left += [("record", repr(record)), ("its line", repr(record.document()))]

    def hits(self):
        return [(where, names, data) for where, data in self.left if (names := found(data))]


@pytest.fixture
def everything(monkeypatch):
    handler = Everything()
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.DEBUG)
    for name in TALKATIVE:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.INFO)  # as `configure` does
    logging.getLogger().manager._clear_cache()
    root.addHandler(handler)

    for module, kind in ((app_module, Attempts), (attempts_module, Exchange)):

        def make(*arguments, kind=kind, **named):
            handler.made.append(kind(*arguments, **named))
            return handler.made[-1]

        monkeypatch.setattr(module, kind.__name__, make)
    yield handler
    root.removeHandler(handler)
    handler.close()
    root.manager._clear_cache()


@define
class Started(Running):
    app: object = None
    config: object = None


def config_file(folder, auth, first, second):
    """A configuration as an operator writes it: keys in files and in the environment."""
    dialect, _ = AUTHS[auth]
    names = {"client": CLIENT, "own": OWN, "header": HEADER, "next": NEXT}
    for name, secret in names.items():
        (folder / name).write_text(f"{secret}\n")
        (folder / name).chmod(0o600)
    base = "/v1" if dialect == "openai-chat" and auth != "azure" else ""
    (folder / "gateway.toml").write_text(f"""
[server]
port = 0
grace_s = 1
keys = [{{ file = "client" }}]

[upstreams.first]
dialect = "{dialect}"
base_url = "{first.url}{base}"
auth = "{auth}"
{"" if auth == "sigv4" else 'key = { file = "own" }'}
{MORE.get(auth, "")}
headers = {{ X-Portkey-Api-Key = {{ file = "header" }}, X-Title = "streamkit" }}
timeouts = {TIMES}

[upstreams.next]
dialect = "openai-chat"
base_url = "{second.url}/v1"
key = {{ file = "next" }}
timeouts = {TIMES}

[[routes]]
models = ["both-*"]
to = ["first", "next"]
retries = 0

[[routes]]
models = ["*"]
to = ["first"]
retries = 0
""")
    return ConfigFile(folder / "gateway.toml").load()


@asynccontextmanager
async def started(folder, auth, *plays, after=None):
    """A gateway in front of two upstreams, of which the second plays ``after``, or answers."""
    async with EvilUpstream(*plays) as first, EvilUpstream(after or as_asked("openai-chat")) as second:
        config, metrics = config_file(folder, auth, first, second), Metrics()
        app = gateway_app(config, metrics)
        async with serving(app, handler_cancellation=True) as port:
            yield Started(f"http://127.0.0.1:{port}", metrics, [first, second], app, config)


#: A client shows all that it has, wherever a client might.
SHOWN = {
    "authorization": f"Bearer {CLIENT}",
    "x-api-key": CLIENT,
    "x-goog-api-key": CLIENT,
    "api-key": CLIENT,
    "cookie": f"session={PRIVATE['cookie']}",
    "x-goog-user-project": PRIVATE["goog"],
    "proxy-authorization": f"Basic {PRIVATE['proxy']}",
    "x-forwarded-authorization": PRIVATE["forwarded"],
    "x-amz-security-token": PRIVATE["amz"],
}


async def asked(running, client, model, *, stream, headers=SHOWN, body=None):
    path, usual = asking(client, model=model, stream=stream, tools=True)
    path += f"{'&' if '?' in path else '?'}key={quote(PRIVATE['query'])}"
    return await running.ask(path, body=orjson.dumps(usual) if body is None else body, headers=headers)


def check_requests(running, header):
    """Each upstream got its own key in its own place, and no other secret anywhere."""
    for upstream, (where, key) in zip(running.evils, ((header, OWN), ("authorization", NEXT)), strict=True):
        allowed = {where: key} | ({"x-portkey-api-key": HEADER} if key is OWN else {})
        for request in upstream.requests:
            assert key in (request.header(where) or "")
            rest = [(name, value) for name, value in request.headers if name not in allowed]
            assert not found(repr(rest)), request
            assert not found(request.target), request
            assert not found(request.body), request
            for name, secret in allowed.items():
                assert set(found(request.header(name) or "")) <= set(found(secret)), request


@pytest.fixture
def signing(aws):
    """Credentials of AWS, of which the session's token is sent and the secret is not."""
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", PRIVATE["secret"])
    aws.setenv("AWS_SESSION_TOKEN", OWN)


# -- upstreams that repeat what they were sent -------------------------------------------------------------------------


def sent_to(request):
    """The request's headers as text."""
    return "\n".join(f"{name}: {value}" for name, value in request.headers)


def failure(request, message=None):
    return faults.failure(503, message or f"I was sent {sent_to(request)}")


def key_in(request):
    """The request's most secret header, alone."""
    return next(value for name, value in request.headers if name in {where for _, where in AUTHS.values()})


def whole_or_stream(request, dialect, body, frame):
    """An answer with status 200: a body, or half a stream and a frame."""
    if not asks_for_stream(request, dialect):
        return answer(200, body, {"Content-Type": "application/json"})
    return good(dialect, [*speech(dialect)[:4], frame])


def error_frame(request, dialect):
    return b"".join(faults._written(dialect, [failure(request)]))


def escaped(data):
    """JSON as PHP and .NET write it."""
    return data.replace(b"/", b"\\/").replace(b"+", b"\\u002B")


def raw(line):
    return Script((Send(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n"), Send(chunk(b"x") + END_OF_CHUNKS), Fin()))


def error_body(request, dialect):
    return faults.encode_error(failure(request), dialect).body


def in_headers(request):
    key = key_in(request)
    names = "x-request-id", "request-id", "retry-after", "x-ratelimit-key", "set-cookie", "www-authenticate", "location"
    return dict.fromkeys(names, key)


ECHOES = {
    "401 JSON": lambda request, dialect: answer(401, error_body(request, dialect)),
    "401 JSON with escapes": lambda request, dialect: answer(401, escaped(error_body(request, dialect))),
    "400 text": lambda request, _: answer(400, sent_to(request).encode(), {"Content-Type": "text/plain"}),
    "500 page": lambda request, _: answer(500, PAGE.replace(b"Sign in", key_in(request).encode())),
    "429 headers": lambda request, dialect: faults.status(429, dialect, headers=in_headers(request)),
    "307": lambda request, _: faults.redirect(f"http://127.0.0.1:9/?key={key_in(request)}"),
    "404 kind and code": lambda request, _: answer(
        404,
        orjson.dumps(
            {"error": {"message": "no", "type": key_in(request), "code": key_in(request), "x": [key_in(request)]}}
        ),
    ),
    "403 names": lambda request, _: answer(
        403, orjson.dumps({"error": {key_in(request): key_in(request), "message": "no"}})
    ),
    "400 at length": lambda request, dialect: answer(
        400,
        faults.encode_error(failure(request, "LONG"), dialect).body.replace(
            b"LONG", b"m" * 1970 + key_in(request).encode() * 9
        ),
    ),
    "an error first": lambda request, dialect: (
        good(dialect, [error_frame(request, dialect)])
        if asks_for_stream(request, dialect)
        else answer(200, error_body(request, dialect), {"Content-Type": "application/json"})
    ),
    "an error mid-stream": lambda request, dialect: whole_or_stream(
        request, dialect, error_body(request, dialect), error_frame(request, dialect)
    ),
    "an error with escapes": lambda request, dialect: whole_or_stream(
        request, dialect, escaped(error_body(request, dialect)), escaped(error_frame(request, dialect))
    ),
    "200 text": lambda request, _: answer(200, sent_to(request).encode()),
    "200 the key": lambda request, _: answer(200, key_in(request).encode()),
    "200 the key in a list": lambda request, _: answer(200, orjson.dumps([key_in(request)])),
    "200 an excerpt": lambda request, _: answer(200, b'{"a": "' + b"x" * 20 + key_in(request).encode()),
    "a frame of the key": lambda request, dialect: whole_or_stream(
        request,
        dialect,
        orjson.dumps({"a": "x" * 20 + key_in(request)}),
        b'data: {"a": "' + b"x" * 20 + key_in(request).encode() + b"\n\n",
    ),
    "a frame of another kind": lambda request, _: answer(
        200, b"data: " + orjson.dumps({"key": key_in(request)}) + b"\n\n"
    ),
    "headers of an answer": lambda request, dialect: (
        good(dialect, headers=in_headers(request))
        if asks_for_stream(request, dialect)
        else faults.whole(dialect, headers=in_headers(request))
    ),
    "a header that is none": lambda request, _: raw(f"x-echo: {key_in(request)}\x00".encode()),
    "a first line that is none": lambda request, _: Script((Send(f"{key_in(request)} HTTP\r\n\r\n".encode()), Fin())),
    "a chunk that is none": lambda request, _: Script(
        (Send(head(200, {"Transfer-Encoding": "chunked"})), Send(f"{key_in(request)}\r\n".encode()), Fin())
    ),
}


@pytest.mark.parametrize("part", parts(2))
@pytest.mark.parametrize("auth", AUTHS)
async def test_no_upstream_that_repeats_its_key_tells_it_to_anybody(auth, part, everything, signing, tmp_path):
    """Of each way to repeat it half of the ways to ask, by turns: each client, whole and as a stream, with one upstream and two."""
    dialect, header = AUTHS[auth]
    names = list(ECHOES)

    def play(request):
        name = next(
            name for number, name in enumerate(names) if f"echo-{number}-" in request.target + request.body.decode()
        )
        return ECHOES[name](request, dialect)

    async with started(
        tmp_path, auth, play, after=lambda request: answer(500, error_body(request, "openai-chat"))
    ) as running:
        for number, name in enumerate(names):
            clients = dialect if dialect in CLIENTS else "anthropic", CLIENTS[number % 5]
            for turn, (client, stream) in enumerate(product(clients, (True, False))):
                for route in part_of(("one", "both"), part, turn=number + turn + turn // 2):
                    found_answer = await asked(running, client, f"{route}-echo-{number}-", stream=stream)
                    everything.took(f"{name}, {client}, {'stream' if stream else 'whole'}", found_answer)
        await eventually(lambda: "streamkit_streams_active 0.0" in exposition(running.metrics).decode())
        everything.tell_apart(running)
    assert running.seen[0] == len(names) * 4
    assert running.seen[1] > len(names) // 2
    check_requests(running, header)
    assert everything.hits() == []


# -- successes and faults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auth", AUTHS)
async def test_nothing_that_goes_well_tells_a_secret(auth, everything, signing, tmp_path):
    dialect, header = AUTHS[auth]
    async with started(tmp_path, auth, as_asked(dialect)) as running:
        for client in CLIENTS:
            for stream in (True, False):
                found_answer = await asked(running, client, "m", stream=stream)
                assert found_answer.status == 200
                everything.took(client, found_answer)
        for path in ("/v1/models", "/v1beta/models", "/api/tags", "/healthz", "/nothing", "/v1/nothing"):
            everything.took(path, await running.get(f"{path}?key={PRIVATE['query']}", headers=SHOWN))
        everything.tell_apart(running)
    check_requests(running, header)
    config = running.config
    assert len(everything.made) == 20  # of each request, who chose and who asked
    for what in (config, config.server, *config.upstreams.values(), *config.routes, KeyRing([CLIENT])):
        everything.left += [("repr", repr(what)), ("str", str(what)), ("format", f"{what}")]
    everything.left += [("describe", describe(config)), *(("warning", str(warning)) for warning in config.warnings)]
    assert everything.hits() == []
    assert "first" in describe(config)


@pytest.mark.parametrize("part", parts(2))
@pytest.mark.parametrize("fault", FAULTS)
async def test_no_fault_of_an_upstream_tells_a_secret(fault, part, everything, signing, tmp_path):
    async def suffer(number, auth):
        folder = tmp_path / auth
        folder.mkdir()
        dialect, header = AUTHS[auth]
        plays = [FAULTS[fault](dialect, whole=whole) for whole in (False, True)]
        async with started(folder, auth, *plays, after=FAULTS[fault]("openai-chat", whole=False)) as running:
            for stream in (True, False):
                client = CLIENTS[(number + stream) % 5]
                everything.took(f"{fault}, {auth}", await asked(running, client, f"both-{number}", stream=stream))
            await eventually(lambda: "streamkit_streams_active 0.0" in exposition(running.metrics).decode())
            everything.tell_apart(running)
        check_requests(running, header)

    auths = part_of(list(enumerate(AUTHS)), part, turn=list(FAULTS).index(fault))
    await asyncio.gather(*(suffer(number, auth) for number, auth in auths))
    assert everything.left
    assert everything.hits() == []


async def test_nothing_that_a_client_does_wrong_tells_a_secret(everything, signing, tmp_path):
    wrong = {name: value.replace(CLIENT, WRONG) for name, value in SHOWN.items()}
    async with started(tmp_path, "bearer", as_asked("openai-chat")) as running:
        for client in CLIENTS:
            everything.took("401", await asked(running, client, "m", stream=True, headers=wrong))
            everything.took(
                "no key", await asked(running, client, "m", stream=True, headers={"cookie": SHOWN["cookie"]})
            )
            everything.took("no JSON", await asked(running, client, "m", stream=True, body=b"{"))
            everything.took(
                "a type", await asked(running, client, "m", stream=True, body=b'{"model":7,"messages":7,"input":7}')
            )
            header = {**SHOWN, "anthropic-beta": CLIENT * 99, "content-encoding": CLIENT}
            everything.took("a header", await asked(running, client, "m", stream=True, headers=header))
        everything.tell_apart(running)
    assert running.seen == [0, 0]
    assert everything.hits() == []


@pytest.mark.parametrize("line", [b"x-api-key: %b\x01", b"x-api-key %b", b"%b: a b: c\x7f\x00", b"content-length: %b"])
async def test_the_log_has_no_line_of_what_is_no_http(line, everything, signing, tmp_path):
    """aiohttp answers with the line that it could not read: to whom it is from. See docs/explanation/threat-model.md."""
    async with started(tmp_path, "bearer", as_asked("openai-chat")) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        start_line = b"POST /v1/messages?key=%b HTTP/1.1\r\n" % quote(PRIVATE["query"]).encode()
        writer.write(start_line + b"host: x\r\n" + line.replace(b"%b", CLIENT.encode()) + b"\r\n\r\n")
        assert b" 400 " in await reader.read()
        writer.close()
        await writer.wait_closed()
    assert any("Error handling request" in str(data) for _, data in everything.left)
    assert everything.hits() == []


# -- what fails within -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", ["streamkit.web.opening.encode_request", "streamkit.web.exchange.transcode", "streamkit.web.opening.send"]
)
async def test_an_exception_that_shows_the_gateways_objects_shows_no_secret(
    where, everything, signing, tmp_path, monkeypatch
):
    def fail(*arguments, **named):
        headers = named.pop("client_headers", None)  # aiohttp's own; no code of ours writes them anywhere
        raise RuntimeError(f"{arguments!r} {named!r} {everything.made!r} {type(headers)}")

    monkeypatch.setattr(where, fail)
    async with started(tmp_path, "x-api-key", as_asked("anthropic")) as running:
        for client in CLIENTS:
            failed = await asked(running, client, "m", stream=True)
            assert failed.status == 500
            everything.took(client, failed)
    assert any("RuntimeError" in str(data) for where, data in everything.left if "log" in where)
    assert everything.hits() == []


# -- that this would be seen -------------------------------------------------------------------------------------------


async def test_the_search_sees_what_is_there(everything, signing, tmp_path):
    """Every upstream of these tests did send the canaries back: without the gateway in between they are found."""
    async with started(tmp_path, "bearer", as_asked("openai-chat")) as running:
        await asked(running, "openai-chat", "m", stream=True)
        [request] = running.evils[0].requests
    assert found(repr(request.headers)) == ["header", "own"]
    for name, echo in ECHOES.items():
        for dialect in DIALECTS:
            data = b"".join(step.data for step in echo(request, dialect).steps if isinstance(step, Send))
            streamed = (
                dialect in {"gemini", "bedrock"} and "mid-stream" in name
            )  # their streams are told by their paths
            assert "own" in found(data) or streamed, f"{name}, {dialect}"
    logging.getLogger("streamkit.gateway").debug("a %s", CLIENT)
    assert {names[0] for _, names, _ in everything.hits()} == {"client"}
    for secret in SECRETS.values():
        for data in (f"x{secret}", orjson.dumps({"a": secret}), secret[:25], quote(secret), secret.replace("/", "\\/")):
            assert found(data)
