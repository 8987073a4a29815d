"""The gateway's streams as the inspector has them: every byte that was read and written, none that was not, and no stream changed."""

import asyncio
import inspect
import json
import re
import signal
import sys
from contextlib import asynccontextmanager
from functools import wraps

import orjson
import pytest
from aiohttp import ClientSession

from streamkit.cli.serve import inspection_at
from streamkit.errors import UsageError
from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import Server
from streamkit.gateway.demo import demo_config
from streamkit.gateway.metrics import Metrics
from streamkit.gateway.serve import Inspection, _inspected, serve
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import Feed
from streamkit.web.reply import Reply
from streamkit.web.source import TimedSource, Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.processes import serving as process
from tests.gateway.running import asking, config_of, upstream_at
from tests.vectors import VECTORS
from tests.web.evil import Delay, EvilUpstream, Hang, Script, Send
from tests.web.faults import END_OF_CHUNKS, FAULTS, as_asked, chunk, good, head, speech, status
from tests.web.raw_client import RawClient, ask
from tests.web.serving import eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
OWN, CLIENT, COOKIE = "own-canary-11d2e8", "client-canary-27a9f0", "cookie-canary-53bb1c"
QUICK = Timeouts(connect_s=0.2, first_byte_s=0.3, idle_s=0.3)
STREAM = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}


@asynccontextmanager
async def inspected(*scripts, dialect="openai-chat", server=None, captures=None, names=("one",), **upstream):
    """The address of a gateway, and what is kept of its streams; each of the upstreams plays the scripts of its own."""
    captures = Captures() if captures is None else captures
    async with EvilUpstream(*scripts) as evil, EvilUpstream(good(dialect)) as next_one:
        upstreams = [
            upstream_at(each, dialect, name, **upstream) for each, name in zip((evil, next_one), names, strict=False)
        ]
        app = gateway_app(config_of(upstreams, server=server), Metrics(), captures=captures)
        async with serving(app, handler_cancellation=True) as port:
            yield f"http://127.0.0.1:{port}", captures


async def asked(url, client="openai-chat", *, headers=None, **how):
    path, body = asking(client, **how)
    return await ask(url, path, body=orjson.dumps(body), headers=headers)


def only(captures):
    [capture] = captures
    return capture


def shown(captures, capture):
    """All that a page is sent of a stream."""
    feed = Feed(captures, capture.id)
    text = b""
    while data := feed.take():
        text += data
    return [json.loads(line) for line in text.splitlines()]


def bytes_of(capture, *kinds):
    return b"".join(step.data for step in capture.steps if step.kind in kinds)


@pytest.mark.parametrize("client", ["openai-chat", "anthropic", "ollama", "openai-responses", "gemini"])
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
async def test_what_was_read_and_written_is_kept_to_the_byte(dialect, client):
    async with inspected(good(dialect, delay_s=0.002), dialect=dialect, server={"stall_report_s": 0.5}) as (
        url,
        captures,
    ):
        answer = await asked(url, client, tools=True)
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    assert bytes_of(capture, "read") == b"".join(speech(dialect))
    assert bytes_of(capture, "write") == bytes(answer.body)
    times = [step.at for step in capture.steps]
    assert times == sorted(times)
    messages = shown(captures, capture)
    events = [event for message in messages for event in message.get("events", [])]
    assert [e["verdict"]["kind"] for e in events if e["type"] == "ToolCallFinished"] == ["complete"]
    assert {name: capture.ended[name] for name in ("ending", "status", "client")} == {
        "ending": "whole",
        "status": 200,
        "client": client,
    }
    assert (capture.about, capture.stall_s) == ({"model": "m", "route": "m"}, 0.5)


class Checks:
    """How often it is looked at whether somebody wants to see the bytes, beside the reads and writes that there were."""

    def __init__(self, patch):
        self.of_reads = self.of_writes = self.reads = self.writes = 0

        def counted(count):
            def get(owner):
                setattr(self, count, getattr(self, count) + 1)
                return vars(owner)["tap"]

            return property(get, lambda owner, tap: vars(owner).update(tap=tap))

        patch.setattr(TimedSource, "tap", counted("of_reads"), raising=False)
        patch.setattr(Reply, "tap", counted("of_writes"), raising=False)
        self._count(patch, TimedSource, "__anext__", "reads")
        self._count(patch, TimedSource, "unread", "reads")
        self._count(patch, Reply, "_noted", "writes")

    def _count(self, patch, owner, name, count):
        method = getattr(owner, name)

        @wraps(method)
        async def call(*arguments, **values):
            found = await method(*arguments, **values)  # the last read raises, and brings nothing
            setattr(self, count, getattr(self, count) + 1)
            return found

        @wraps(method)
        def plain(*arguments, **values):
            setattr(self, count, getattr(self, count) + 1)
            return method(*arguments, **values)

        patch.setattr(owner, name, call if inspect.iscoroutinefunction(method) else plain)


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_where_nobody_looks_a_read_and_a_write_cost_one_check_each(monkeypatch, client):
    checks, called = Checks(monkeypatch), set()

    def watch(frame, event, _argument):
        if event == "call" and "streamkit/inspector" in frame.f_code.co_filename:
            called.add(frame.f_code.co_qualname)

    async with EvilUpstream(good("openai-chat", delay_s=0.002)) as evil:
        config = config_of([upstream_at(evil, "openai-chat")])
        async with serving(gateway_app(config, Metrics()), handler_cancellation=True) as port:
            sys.setprofile(watch)
            try:
                answer = await asked(f"http://127.0.0.1:{port}", client)
            finally:
                sys.setprofile(None)
    assert answer.end == "complete"
    assert checks.reads > len(speech("openai-chat")) / 2
    assert checks.of_reads == checks.reads
    assert checks.of_writes == checks.writes + 1  # and one for each try with an upstream
    assert called == set()


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_fault_is_told_otherwise_while_somebody_looks(fault):
    script = FAULTS[fault]("openai-chat")
    answers = []
    for captures in None, Captures():
        async with EvilUpstream(script) as evil:
            config = config_of([upstream_at(evil, "openai-chat", timeouts=QUICK)])
            async with serving(gateway_app(config, Metrics(), captures=captures), handler_cancellation=True) as port:
                answer = await asked(f"http://127.0.0.1:{port}")
                answers.append((answer.status, _without_ids(answer.body), answer.end))
                if captures is not None:
                    await eventually(lambda captures=captures: only(captures).ended is not None)
    assert answers[0] == answers[1]
    assert bytes_of(only(captures), "write", "keep-alive") == bytes(answer.body)
    assert shown(captures, only(captures))[-1] == {"type": "ended"}


def _without_ids(body):
    return re.sub(rb"127\.0\.0\.1:\d+|chatcmpl-\w+", b"", bytes(body))


async def test_the_upstreams_that_were_asked_are_told_with_what_became_of_them():
    async with inspected(status(503, "openai-chat"), names=("one", "two")) as (url, captures):
        answer = await asked(url, "anthropic")
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    assert answer.status == 200
    assert [attempt.upstream for attempt in capture.attempts] == ["one", "two"]
    assert [attempt["outcome"] for attempt in capture.ended["attempts"]] == ["http_503", "success"]
    messages = shown(captures, capture)
    assert [message["upstream"] for message in messages if message["type"] == "attempt"] == ["one", "two"]
    assert {message["attempt"] for message in messages if message["type"] == "read"} == {1}


async def test_keep_alives_of_both_sides_are_told_apart_from_the_answer():
    pause = [Send(chunk(b": still here\n\n")), Delay(0.25)]
    script = Script(
        (Send(head(200, STREAM)), *pause, *(Send(chunk(c)) for c in speech("openai-chat")), Send(END_OF_CHUNKS))
    )
    async with inspected(script, server={"keep_alive_s": 0.1}) as (url, captures):
        answer = await asked(url, "anthropic")
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    messages = shown(captures, capture)
    assert next(read["alive"] for read in messages if read["type"] == "read") is True
    assert any(message["type"] == "keep-alive" for message in messages)
    assert bytes_of(capture, "write", "keep-alive") == bytes(answer.body)


async def test_an_error_over_http_is_what_was_written():
    async with inspected(status(500, "openai-chat")) as (url, captures):
        answer = await asked(url)
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    assert (answer.status, capture.ended["status"], capture.ended["ending"]) == (500, 500, "error")
    assert bytes_of(capture, "write") == bytes(answer.body)


async def test_a_stream_that_lives_is_seen_and_a_client_that_left_is_told():
    script = Script((Send(head(200, STREAM)), *(Send(chunk(c)) for c in speech("openai-chat")[:4]), Hang()))
    async with inspected(script) as (url, captures):
        path, body = asking("openai-chat")
        async with RawClient(url) as client:
            await client.send("POST", path, body=orjson.dumps(body))
            await client.read_until(b"data:")
            capture = only(captures)
            assert capture.ended is None
            messages = shown(captures, capture)
            assert any(message["type"] == "read" for message in messages)
            assert messages[-1]["type"] != "ended"
            client.leave("rst")
        await eventually(lambda: capture.ended is not None)
    assert capture.ended["ending"] == "client left"


@pytest.mark.parametrize(("client", "lost"), [("openai-chat", set()), ("anthropic", {"unknown_event"})])
async def test_what_passes_byte_for_byte_loses_nothing(client, lost):
    """One member that nobody knows: within a dialect it goes on, and elsewhere it is lost at its byte."""
    [vector] = [each for each in VECTORS if each.name == "things that only Chat has"]
    async with inspected(good("openai-chat", [vector.body])) as (url, captures):
        await asked(url, client)
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    losses = [each for message in shown(captures, capture) for each in message.get("losses", [])]
    assert lost <= {each["kind"] for each in losses}
    assert bool(losses) is bool(lost)
    assert sum(each["times"] for each in losses) == sum(capture.ended.get("losses", {}).values())


async def test_whole_answers_and_refused_requests_are_not_kept():
    async with inspected(as_asked("openai-chat")) as (url, captures):
        assert (await asked(url, stream=False)).status == 200
        assert (await ask(url, "/v1/chat/completions", body=b"{")).status == 400
        assert list(captures) == []


async def test_keys_cookies_and_what_people_said_never_come_in():
    """And what an upstream repeats of its key in its stream is cut out of what is shown."""
    echo = b'data: {"error":{"message":"bad key ' + OWN.encode() + b'","type":"server_error"}}\n\n'
    chunks = [*speech("openai-chat")[:3], echo]
    key = Secret(OWN)
    server = {"keys": (Secret(CLIENT),)}
    async with inspected(good("openai-chat", chunks), server=server, auth="bearer", key=key) as (url, captures):
        headers = {"Authorization": f"Bearer {CLIENT}", "Cookie": COOKIE, "X-Secret": COOKIE}
        path, body = asking("openai-chat", model="sk-model-canary-0011223344")
        body["messages"] = [{"role": "user", "content": "prompt-canary-90"}]
        await ask(url, path, body=orjson.dumps(body), headers=headers)
        capture = only(captures)
        await eventually(lambda: capture.ended is not None)
    feed = json.dumps(shown(captures, capture))
    assert "[removed]" in feed
    memory = repr([capture.about, capture.attempts, capture.ended, bytes_of(capture, "write", "keep-alive")])
    for secret in OWN, CLIENT, COOKIE, "prompt-canary-90", "sk-model-canary":
        assert secret not in feed
        assert secret not in memory


async def test_a_watcher_sees_a_stream_grow_and_the_stream_does_not_wait_for_it():
    gate = asyncio.Event()
    captures = Captures()
    captures.watchers.add(gate)
    async with inspected(good("openai-chat", delay_s=0.002), captures=captures) as (url, captures):
        answer = await asked(url)
        assert answer.end == "complete"
        assert gate.is_set()


# -- streamkit serve --inspect -----------------------------------------------------------------------------------------


async def test_the_command_prints_an_address_with_its_token_once(tmp_path):
    async with process(tmp_path, "--port", "0", "--inspect") as gateway:
        await eventually(lambda: "streamkit serves" in gateway.printed, within_s=20)
        [line] = [line for line in gateway.printed.splitlines() if "inspector" in line]
        url, _, token = line.removeprefix("The inspector is at ").partition("/#")
        assert url.startswith("http://127.0.0.1:")
        assert token not in gateway.said
        served = next(line for line in gateway.printed.splitlines() if line.startswith("streamkit serves ")).split()[2]
        async with ClientSession() as session:
            async with session.get(f"{url}/feed") as refused:
                assert refused.status == 401
            async with session.get(f"{served}/feed") as elsewhere:
                assert elsewhere.status == 404
            async with session.post(f"{served}/v1/chat/completions", json=asking("openai-chat")[1]) as answer:
                assert b"[DONE]" in await answer.read()
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{url}/feed", headers=headers) as feed:
                listed = json.loads(await feed.content.readline())
                assert [each["client"] for each in listed["changed"]] == ["openai-chat"]
                gateway.signal(signal.SIGTERM)  # with a page that is open
                assert await gateway.ended() == 0


@pytest.mark.parametrize(
    ("listens", "host", "status"),
    [
        ("127.0.0.1", "llm.example.org", 421),
        ("127.0.0.1", "localhost", 200),
        ("0.0.0.0", "llm.example.org", 200),
        ("0.0.0.0", "evil.example", 421),
    ],
)
async def test_the_names_of_the_gateway_are_its_own_beyond_loopback_alone(listens, host, status):
    config = demo_config("http://127.0.0.1:9/v1", Server(hosts=("*.example.org",)))
    urls = []
    async with (
        _inspected(config, Inspection((listens, 0), "t" * 16, urls.append)) as captures,
        ClientSession() as session,
    ):
        assert list(captures) == []
        async with session.get(urls[0].replace("0.0.0.0", "127.0.0.1"), headers={"Host": host}) as answer:
            assert answer.status == status


def test_several_workers_are_refused():
    inspection = Inspection(("127.0.0.1", 0), "t", print)
    with pytest.raises(UsageError, match="one worker"):
        serve(None, Server(workers=2), print, inspection=inspection)


@pytest.mark.parametrize("host", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org:80"])
def test_beyond_loopback_it_wants_a_key(host):
    with pytest.raises(UsageError, match="STREAMKIT_INSPECT_KEY"):
        inspection_at(host, "")
    assert inspection_at(host, "k" * 16).token == "k" * 16


@pytest.mark.parametrize("host", ["127.0.0.1:0", "[::1]:0", "localhost:9000"])
def test_on_loopback_its_token_is_a_new_one_each_time(host):
    first, second = inspection_at(host, ""), inspection_at(host, "")
    assert len(first.token) == len(second.token) == 43
    assert first.token != second.token
    assert first.token not in repr(first)


@pytest.mark.parametrize("key", ["short", "with space in the key", "k" * 15, "keyöööööööööööööö"])
def test_a_key_that_is_none_is_refused_and_not_shown(key):
    with pytest.raises(UsageError) as raised:
        inspection_at("0.0.0.0:0", key)
    assert key not in str(raised.value)


@pytest.mark.parametrize("text", ["", "9000", ":9000", "127.0.0.1", "http://127.0.0.1:1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match="host:port"):
        inspection_at(text, "")


async def test_the_front_page_links_the_page_and_never_its_token():
    captures = Captures()
    async with inspected(good("openai-chat"), captures=captures) as (url, _):
        for page, wanted in ((None, False), ("http://127.0.0.1:9000", True)):
            captures.url = page
            async with ClientSession() as session, session.get(url) as response:
                assert ("http://127.0.0.1:9000" in await response.text()) is wanted


async def test_the_page_is_told_of_upstreams_that_rest_and_of_their_return():
    captures = Captures()
    feed = Feed(captures)
    told = []
    for resting in ({}, {("one", "refused"): 2}, {("one", "refused"): 2}, {}):
        captures.show_resting(resting)
        told.append(feed.take())
    rests = b'{"type":"upstreams","resting":[{"upstream":"one","why":"refused","models":2}]}\n'
    assert told == [b"", rests, b"", b'{"type":"upstreams","resting":[]}\n']
