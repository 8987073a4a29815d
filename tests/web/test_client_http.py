"""What providers accept of a request is accepted; what can't be read is refused in the dialect of its path, without a value."""

import asyncio
import logging

import orjson
import pytest
from aiohttp import web

from streamkit.gateway.app import gateway_app, private_app
from streamkit.gateway.metrics import Metrics
from streamkit.web.listening import HEAD_BYTES, HEADERS, LINE_BYTES, listening
from streamkit.web.upstream import Secret
from tests.gateway.running import asking, config_of, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import as_asked
from tests.web.serving import answering

KEY = "canary-" + "k" * 20_000
BODY = orjson.dumps(asking("anthropic", stream=False)[1])


def head(*lines, path="/v1/messages", method="POST", version="HTTP/1.1"):
    return "\r\n".join([f"{method} {path} {version}", "host: localhost", *lines, "", ""]).encode(
        "utf-8", "surrogateescape"
    )


def request(*lines, **first):
    return head(*lines, f"content-length: {len(BODY)}", **first) + BODY


async def exchanged(port, *parts, until=b"}"):
    """The status, the headers and the body of the first response to bytes that are sent one part after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.01)
        async with asyncio.timeout(10):
            first = await reader.readuntil(b"\r\n\r\n")
            headers = dict(line.lower().split(": ", 1) for line in first.decode().split("\r\n")[1:-2])
            return int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
    finally:
        writer.close()


@pytest.fixture
async def port():
    server = {"keys": (Secret(KEY),)}
    async with EvilUpstream(as_asked("anthropic")) as evil:
        app = gateway_app(config_of([upstream_at(evil, "anthropic")], server=server), Metrics())
        async with listening(app, ("127.0.0.1", 0), idle_s=20) as (_, bound):
            yield bound


KEYED = f"x-api-key: {KEY}"
ACCEPTED = {
    "a key of 20 KB": request(KEYED),
    "a bearer token of 20 KB": request(f"Authorization: Bearer {KEY}"),
    "cookies of 40 KB": request(KEYED, "cookie: " + "a=b; " * 8000),
    "a query of 40 KB": request(KEYED, path="/v1/messages?beta=" + "x" * 40_000),
    "200 headers": request(KEYED, *(f"x-{number}: y" for number in range(200))),
    "two lines of User-Agent": request("user-agent: sdk/1", KEYED, "User-Agent: app/2"),
    "three, two of Content-Type, and the last comes last": request(
        "user-agent: a", "content-type: application/json", KEYED, "User-Agent: b", "Content-Type: application/json", "user-agent: c"
    ),
    "an upgrade that nobody speaks": request(KEYED, "connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk"),
    "an expectation": request(KEYED, "expect: nothing"),
    "an absolute address": request(KEYED, path="http://localhost/v1/messages"),
}  # fmt: skip


@pytest.mark.parametrize("pieces", [1, 40])
@pytest.mark.parametrize("sent", ACCEPTED.values(), ids=ACCEPTED)
async def test_what_providers_accept_is_accepted(sent, pieces, port):
    size = len(sent) // pieces + 1
    status, _, body = await exchanged(port, *(sent[at : at + size] for at in range(0, len(sent), size)))
    assert (status, orjson.loads(body)["type"]) == (200, "message")


async def test_every_user_agent_is_known_and_the_next_request_of_the_connection_too():
    agents = []

    async def handle(request):
        agents.append(request.headers.getall("User-Agent"))
        return web.Response(body=await request.read())

    async with listening(answering(handle), ("127.0.0.1", 0), idle_s=20) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for name in "ab":
            writer.write(request(f"user-agent: {name}/1", f"User-Agent:  {name}/2 "))
            await reader.readuntil(BODY)
        writer.close()
    assert agents == [["a/1 a/2"], ["b/1 b/2"]]


LONG = "v" * LINE_BYTES
#: What is sent, the status, and what the client and the log are told of the reason.
REFUSED = {
    "a header that is too long": (request(f"authorization: Bearer {LONG}"), 431, "65,536 bytes"),
    "headers that are too long": (request(*(f"x-{n}: {'v' * 60_000}" for n in range(3))), 431, f"{HEAD_BYTES:,}"),
    "headers that do not end": (head(*(f"x-{n}: {'v' * 60_000}" for n in range(3)))[:-4], 431, f"{HEAD_BYTES:,}"),
    "too many headers": (request(*(f"x-{n}: v" for n in range(HEADERS + 1))), 431, "256 headers"),
    "an address that is too long": (request(path=f"/v1/messages?key={LONG}"), 414, "65,536 bytes"),
    "a character of control": (request("x-api-key: vvv\0"), 400, "Invalid header value char"),
    "a name with a blank": (request("x api: vvv"), 400, "Invalid header token"),
    "a folded header": (request("x-a: b", " vvv"), 400, "whitespace after header value"),
    "two lengths": (request("content-length: 3"), 400, "Duplicate Content-Length"),
    "a length and chunks": (request("transfer-encoding: chunked"), 400, "Content-Length can't be present"),
    "two hosts": (request("host: vvv"), 400, "Duplicate 'Host'"),
    "no host": (request().replace(b"host: localhost\r\n", b""), 400, "Missing 'Host'"),
    "a version that is none": (request(version="HTTP/3.0"), 400, "Invalid HTTP version"),
    "a method that is none": (request(method="post"), 400, "Invalid method"),
    "an old WebSocket": (request("sec-websocket-key1: vvv"), 400, "a header has an invalid name or value"),
    "chunks that are none": (head("transfer-encoding: chunked") + b"vvv\r\n", 400, "Invalid character in chunk size"),
}


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/chat/completions", "/api/chat", "/v1beta/models/m:generateContent"]
)
@pytest.mark.parametrize(("sent", "expected", "reason"), REFUSED.values(), ids=REFUSED)
async def test_what_can_not_be_read_is_told_in_the_dialect_of_its_path(sent, expected, reason, path, port, caplog):
    caplog.set_level(logging.INFO, logger="streamkit.web")
    status, headers, body = await exchanged(port, sent.replace(b"/v1/messages", path.encode(), 1))
    told = orjson.loads(body)
    assert (status, headers["content-type"], headers["server"]) == (expected, "application/json", "streamkit")
    assert told["error"] if path == "/api/chat" else told["error"]["message"]
    assert reason in body.decode()
    assert ("type" in told) is (path == "/v1/messages")
    assert (
        told["error"].get("status") == ("INVALID_ARGUMENT" if "v1beta" in path else None)
        if path != "/api/chat"
        else True
    )
    line = next(record for record in caplog.records if record.msg == "a request can't be parsed")
    assert (line.fields["path"], line.fields["status"]) == (path, expected)
    assert reason in line.fields["error"]
    assert not [record for record in caplog.records if record.exc_info]
    assert b"vvv" not in body
    assert "vvv" not in caplog.text + str([record.__dict__ for record in caplog.records])


async def test_a_dialect_that_shares_its_path_is_told_by_its_header(port):
    _, _, body = await exchanged(port, head("anthropic-version: 2023-06-01", "x y: z", path="/v1/models", method="GET"))
    assert orjson.loads(body)["type"] == "error"


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"?\r\n\r\n"]
)
async def test_what_is_no_request_is_told_something_all_the_same(sent, port):
    status, _, body = await exchanged(port, sent)
    assert (status, orjson.loads(body)["error"]["type"]) == (400, "invalid_request_error")


async def test_a_body_whose_chunks_break_is_refused_at_once_and_closes_the_connection(port, caplog):
    begun = head(KEYED, "transfer-encoding: chunked") + b'5\r\n{"a":\r\n'
    status, headers, body = await exchanged(port, begun, b"vvv\r\n")
    assert (status, headers["connection"], orjson.loads(body)["type"]) == (400, "close", "error")
    assert b"the body was interrupted" in body
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "path", ["/v1/streams/stream_secret", "/v1/responses/resp_secret", "/v1/responses/resp_secret/cancel"]
)
async def test_no_id_of_a_response_is_logged(path, port, caplog):
    caplog.set_level(logging.INFO, logger="streamkit.web")
    await exchanged(port, head("x y: z", path=path, method="GET"))
    assert "secret" not in str([record.__dict__ for record in caplog.records])


async def test_other_listeners_refuse_so_too():
    async with listening(private_app(Metrics()), ("127.0.0.1", 0), idle_s=20) as (_, port):
        status, _, body = await exchanged(port, head("x y: z", path="/metrics", method="GET"))
        assert (status, orjson.loads(body)["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("path", ["/nothing", "/messages/nothing", "/base/chat/completions"])
async def test_a_path_that_nobody_serves_is_told_so_in_json(path, port):
    status, _, body = await exchanged(port, request(KEYED, path=path))
    assert status == 404
    assert "does not exist" in orjson.loads(body)["error"]["message"]
