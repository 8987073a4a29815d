"""A port is had, or it is told why not; connections on which nothing comes do not stay."""

import asyncio
import socket

import pytest
from aiohttp import ClientSession, web

from streamkit.errors import UsageError
from streamkit.gateway.app import gateway_app, private_app
from streamkit.gateway.metrics import Metrics
from streamkit.web.listening import listening, reserved, url_of
from streamkit.web.upstream import Secret
from tests.gateway.running import config_of, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import good, whole
from tests.web.raw_client import RawClient

HOST = "127.0.0.1"
IDLE_S = 75.0


async def hello(_request):
    return web.Response(text="hello")


def application():
    app = web.Application()
    app.router.add_get("/", hello)
    return app


async def says_hello(port):
    async with ClientSession() as session, session.get(f"http://{HOST}:{port}/") as response:
        return await response.text() == "hello"


def reason(port, what):
    return f"^cannot listen on http://{HOST}:{port} for {what}: address already in use$"


async def test_a_port_that_somebody_has_is_told_with_what_it_was_for():
    async with listening(application(), (HOST, 0), idle_s=IDLE_S) as (_, port):
        with pytest.raises(UsageError, match=reason(port, "metrics")):
            async with listening(application(), (HOST, port), idle_s=IDLE_S, what="metrics"):
                pass
        with pytest.raises(UsageError, match=reason(port, "clients")):
            reserved((HOST, port))


async def test_a_port_is_shared_with_those_whom_it_was_reserved_for_and_with_no_other():
    with reserved((HOST, 0)) as held:
        port = held.getsockname()[1]
        async with (
            listening(application(), (HOST, port), idle_s=IDLE_S, shared=True),
            listening(application(), (HOST, port), idle_s=IDLE_S, shared=True),
        ):
            assert await says_hello(port)
            with pytest.raises(UsageError, match=reason(port, "clients")):
                reserved((HOST, port))  # another gateway with workers: the system alone would let it in


@pytest.mark.parametrize("shared", [True, False])
async def test_connections_that_linger_in_the_system_do_not_keep_the_next_one_from_the_port(shared):
    with reserved((HOST, 0)) as held:
        port = held.getsockname()[1]
    async with listening(application(), (HOST, port), idle_s=IDLE_S, shared=shared):
        _, writer = await asyncio.open_connection(HOST, port)
    writer.close()  # behind the server, which so has the connection that lingers
    await writer.wait_closed()
    reserved((HOST, port)).close()
    async with listening(application(), (HOST, port), idle_s=IDLE_S):
        assert await says_hello(port)


@pytest.mark.parametrize(
    ("host", "words"), [("nosuch.invalid", "cannot listen on http://nosuch.invalid:1"), ("192.0.2.1", "cannot assign")]
)
async def test_an_interface_that_is_not_there_is_told(host, words):
    with pytest.raises(UsageError, match=words):
        async with listening(application(), (host, 1), idle_s=IDLE_S):
            pass
    with pytest.raises(UsageError, match=words):
        reserved((host, 1))


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], ids=["nothing", "half"]
)
async def test_a_connection_on_which_no_request_comes_is_closed(sent):
    async with listening(application(), (HOST, 0), idle_s=0.2) as bound, RawClient(url_of(bound)) as client:
        await client.send_bytes(sent)
        assert (await client.read_to_end()).end in {"cut", "reset"}


async def test_header_lines_that_trickle_in_do_not_keep_it():
    async with listening(application(), (HOST, 0), idle_s=0.3) as bound, RawClient(url_of(bound)) as client:
        await client.send_bytes(b"POST / HTTP/1.1\r\n")
        reading = asyncio.create_task(client.read_to_end())
        while not reading.done():
            try:
                await client.send_bytes(b"X-More: 1\r\n")
            except ConnectionError:
                break
            await asyncio.sleep(0.05)
        assert (await reading).end in {"cut", "reset"}


def test_an_address_is_a_url():
    assert url_of(("127.0.0.1", 80)) == "http://127.0.0.1:80"
    assert url_of(("::1", 80)) == "http://[::1]:80"


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_version_6_too():
    with reserved(("::1", 0)) as held:
        port = held.getsockname()[1]
        async with (
            listening(application(), ("::1", port), idle_s=IDLE_S, shared=True) as bound,
            ClientSession() as session,
            session.get(url_of(bound)) as response,
        ):
            assert await response.text() == "hello"


# -- what answers ------------------------------------------------------------------------------------------------------


def raw(line, *headers, body=""):
    """A request in bytes."""
    size = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([line, "Host: localhost", "Connection: close", *headers, *size, "", body]).encode()


KEY = "Authorization: Bearer canary-in-7e2f"
ASKED = '{"model":"m","stream":%s,"messages":[{"role":"user","content":"hi"}]}'
CHAT = "POST /v1/chat/completions HTTP/1.1"
SOCKET = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
ANSWERS = {
    "the page": (raw("GET / HTTP/1.1"), 200),
    "HEAD": (raw("HEAD / HTTP/1.1"), 200),
    "the page in HTTP/1.0": (raw("GET / HTTP/1.0"), 200),
    "a probe": (raw("GET /healthz HTTP/1.1"), 200),
    "the models": (raw("GET /v1/models HTTP/1.1", KEY), 200),
    "a stream": (raw(CHAT, KEY, body=ASKED % "true"), 200),
    "a whole answer": (raw(CHAT, KEY, body=ASKED % "false"), 200),
    "no key": (raw("GET /v1/models HTTP/1.1"), 401),
    "a path that is not served": (raw("GET /nothing HTTP/1.1", KEY), 404),
    "a method that is not served": (raw("PUT /v1/messages HTTP/1.1", KEY), 405),
    "a body that is no JSON": (raw(CHAT, KEY, body="{"), 400),
    "a name that is not served": (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
    "a WebSocket": (raw("GET /v1/responses HTTP/1.1", KEY, *SOCKET).replace(b"close", b"Upgrade"), 101),
    "a WebSocket that is not served": (raw("GET /v1/messages HTTP/1.1", KEY, "Upgrade: websocket"), 426),
    "no HTTP": (b"nonsense\r\n\r\n", 400),
    "no HTTP but TLS": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    "a header that is none": (raw("GET / HTTP/1.1", "nonsense"), 400),
    "a line that is too long": (raw(f"GET /{'x' * 70_000} HTTP/1.1"), 414),
    "two lengths": (raw("POST / HTTP/1.1", "Content-Length: 1", "Content-Length: 2"), 400),
}


async def headers_of(bound, request):
    """The status and the values of ``Server`` in the answer to a request in bytes."""
    reader, writer = await asyncio.open_connection(*bound)
    writer.write(request)
    try:
        async with asyncio.timeout(5):
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    finally:
        writer.close()
    named = [line.partition(":") for line in lines]
    return int(first.split()[1]), [value.strip() for name, _, value in named if name.lower() == "server"]


def with_a_version(asked):
    """An upstream that says what it is."""
    answer = good if asked.json()["stream"] else whole
    return answer("openai-chat", headers={"Server": "uvicorn/9.9"})


@pytest.fixture
async def gateway():
    async with EvilUpstream(with_a_version) as evil:
        server = {"keys": (Secret("canary-in-7e2f"),)}
        app = gateway_app(config_of([upstream_at(evil, "openai-chat")], server=server), Metrics())
        async with listening(app, (HOST, 0), idle_s=IDLE_S) as bound:
            yield bound


@pytest.mark.parametrize(("request_bytes", "status"), ANSWERS.values(), ids=ANSWERS)
async def test_no_answer_says_a_version(gateway, request_bytes, status):
    assert await headers_of(gateway, request_bytes) == (status, ["streamkit"])


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [(raw("GET /metrics HTTP/1.1"), 200), (raw("GET /nothing HTTP/1.1"), 404), ANSWERS["no HTTP"]],
)
async def test_nor_does_one_of_the_private_listener(request_bytes, status):
    async with listening(private_app(Metrics()), (HOST, 0), idle_s=IDLE_S) as bound:
        assert await headers_of(bound, request_bytes) == (status, ["streamkit"])


async def test_nor_does_one_of_an_application_that_failed():
    async def fail(_request):
        raise ValueError("unforeseen")

    app = web.Application()
    app.router.add_get("/", fail)
    async with listening(app, (HOST, 0), idle_s=IDLE_S) as bound:
        assert await headers_of(bound, raw("GET / HTTP/1.1")) == (500, ["streamkit"])


@pytest.mark.parametrize(("path", "status"), [("/", 503), ("/healthz", 200)])
async def test_nor_does_one_to_a_connection_too_many(path, status):
    async with listening(application(), (HOST, 0), idle_s=IDLE_S, connections=lambda: 0) as bound:
        assert await headers_of(bound, raw(f"GET {path} HTTP/1.1")) == (status, ["streamkit"])
