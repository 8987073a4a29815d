"""Connections to upstreams: used again after a whole stream, and never after one that broke off. Those of clients: closed
where nothing else tells the end of an answer, and left open otherwise.
"""

import asyncio
from urllib.parse import urlsplit

import orjson
import pytest

from tests.gateway.running import asking, behind, config_of, gateway, in_turn, leg, upstream_at
from tests.web.evil import Delay, EvilUpstream, Fin, Rst, Script
from tests.web.faults import as_asked, good, truncated_chunked, whole


async def test_a_connection_is_used_again_after_a_stream():
    """Unless it broke off."""
    async with behind(good("openai-chat"), truncated_chunked("openai-chat"), good("openai-chat")) as running:
        for ending in b"message_stop", b"event: error", b"message_stop":
            assert ending in (await running.asked("anthropic")).body
            await running.outcomes()
    assert [request.connection for request in running.evil.requests] == [0, 0, 1]


@pytest.mark.parametrize("ending", [Fin(), Rst()], ids=["fin", "rst"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_one_that_its_upstream_has_just_closed_costs_no_attempt_and_asks_no_other(ending, stream):
    answers = as_asked("openai-chat")
    async with in_turn(leg(answers, Script((ending,)), answers), answers) as running:
        for _ in range(2):
            answer = await running.asked("anthropic", stream=stream)
            assert (answer.status, answer.end) == (200, "complete")
            await running.outcomes()
        assert await running.outcomes() == {("one", "success"): 2}
    assert [request.connection for request in running.evils[0].requests] == [0, 0, 1]
    assert running.seen == [3, 0]


# -- those of clients --------------------------------------------------------------------------------------------------

CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]


async def exchanged(url, version, connection, path, body, method="POST"):
    """Headers, body and whether the server closed, of one request whose client leaves the connection open."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    said = f"Connection: {connection}\r\n" if connection else ""
    start = f"{method} {path} HTTP/{version}\r\nHost: {where.netloc}\r\n{said}Content-Length: {len(body)}\r\n\r\n"
    writer.write(start.encode() + body)
    try:
        async with asyncio.timeout(5):
            head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:-2])}
        answer = await whole_body_of(reader, headers, method)
        try:
            async with asyncio.timeout(0.5):
                closed = await reader.read(1) == b""
        except TimeoutError:
            closed = False
        return headers, answer, closed
    finally:
        writer.close()


async def whole_body_of(reader, headers, method):
    async with asyncio.timeout(5):
        if headers.get("transfer-encoding") == "chunked":
            return await reader.readuntil(b"\r\n0\r\n\r\n")
        if "content-length" in headers:
            return b"" if method == "HEAD" else await reader.readexactly(int(headers["content-length"]))
        return await reader.read()  # what has no length ends with the connection: nothing else tells


@pytest.mark.parametrize("connection", ["keep-alive", "Keep-Alive, x", "", "close"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_stream_for_http_1_0_ends_with_its_connection(client, connection):
    path, body = asking(client)
    async with EvilUpstream(good("openai-chat")) as upstream, gateway(chat_behind(upstream)) as running:
        headers, answer, closed = await exchanged(running.url, "1.0", connection, path, orjson.dumps(body))
    assert closed
    assert answer
    assert "transfer-encoding" not in headers
    assert headers.get("connection") != "keep-alive"


async def test_an_array_of_geminis_for_http_1_0_ends_with_its_connection():
    path, body = asking("gemini")
    async with EvilUpstream(good("openai-chat")) as upstream, gateway(chat_behind(upstream)) as running:
        path = path.removesuffix("?alt=sse")
        _, answer, closed = await exchanged(running.url, "1.0", "keep-alive", path, orjson.dumps(body))
    assert closed
    assert orjson.loads(answer)


async def test_a_whole_answer_behind_keep_alives_ends_with_its_connection_for_http_1_0():
    path, body = asking("openai-chat", stream=False)
    patient = {"whole_keep_alive": True, "keep_alive_s": 0.05}
    slow = Script((Delay(0.3), *whole("openai-chat").steps))
    async with EvilUpstream(slow) as upstream, gateway(chat_behind(upstream, patient)) as running:
        headers, answer, closed = await exchanged(running.url, "1.0", "keep-alive", path, orjson.dumps(body))
    assert closed
    assert answer.startswith(b" ")
    assert "content-length" not in headers


@pytest.mark.parametrize(("version", "connection"), [("1.0", "keep-alive"), ("1.1", ""), ("1.1", "keep-alive")])
@pytest.mark.parametrize(
    ("what", "status"), [("whole", 200), ("bad", 400), ("unknown", 404), ("page", 200), ("head", 200)]
)
async def test_what_has_a_length_leaves_the_connection_open(what, status, version, connection):
    path, body = asking("openai-chat", stream=False)
    sent = {
        "whole": (path, orjson.dumps(body), "POST"),
        "bad": (path, b"{", "POST"),
        "unknown": ("/v1/nothing", b"{}", "POST"),
        "page": ("/", b"", "GET"),
        "head": ("/", b"", "HEAD"),
    }[what]
    async with EvilUpstream(whole("openai-chat")) as upstream, gateway(chat_behind(upstream)) as running:
        headers, _, closed = await exchanged(running.url, version, connection, *sent)
    assert not closed
    assert headers.get("connection") == ("keep-alive" if version == "1.0" else None)


@pytest.mark.parametrize(("version", "connection"), [("1.0", ""), ("1.0", "close"), ("1.1", "close")])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_asks_for_it_gets_its_connection_closed(stream, version, connection):
    path, body = asking("openai-chat", stream=stream)
    answers = good("openai-chat") if stream else whole("openai-chat")
    async with EvilUpstream(answers) as upstream, gateway(chat_behind(upstream)) as running:
        headers, _, closed = await exchanged(running.url, version, connection, path, orjson.dumps(body))
    assert closed
    assert version == "1.0" or headers["connection"] == "close"


def chat_behind(upstream, server=None):
    return config_of([upstream_at(upstream, "openai-chat")], server=server)
