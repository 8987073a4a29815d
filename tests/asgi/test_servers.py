"""What a client gets is the same under aiohttp's own server, uvicorn and hypercorn."""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import asynccontextmanager, suppress

import orjson
import pytest
from aiohttp import ClientSession, web
from attrs import evolve
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from streamkit import accumulate_tool_calls, decode, encode, parse_sse, pipe, redact, transcode
from streamkit.asgi import application, relay
from streamkit.testing import open_sources
from streamkit.web import relay as aiohttp_relay
from streamkit.web import setup
from streamkit.web.reply import Delivery
from tests.asgi.servers import ASGI_SERVERS, SERVERS, served_by
from tests.gateway.running import TIMEOUTS, asking, upstream_at
from tests.web.evil import EvilUpstream, Hang, Script, Send
from tests.web.faults import FAULTS, TEXT, as_asked, chunk, head
from tests.web.raw_client import RawClient, ask
from tests.web.serving import answering, eventually, serving

CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
QUICK = Delivery(keep_alive_s=0.1, linger_s=0.2)


@asynccontextmanager
async def ready(server, play, *, connect_s=TIMEOUTS.connect_s, **how):
    """The ready routes under a server: its port, and the upstream."""

    def app():
        made = web.Application(client_max_size=1 << 20)
        timeouts = evolve(TIMEOUTS, connect_s=connect_s)
        setup(made, upstream_at(evil, "openai-chat", timeouts=timeouts), model="there", grace_s=1, **how)
        return made

    async with EvilUpstream(play) as evil, served_by(server, app) as port:
        yield port, evil


async def asked(port, client, **how):
    path, body = asking(client, **how)
    return await ask(f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
async def test_every_client_is_served(server, client, stream):
    async with ready(server, as_asked("openai-chat")) as (port, evil):
        answer = await asked(port, client, stream=stream)
    assert (answer.status, answer.end) == (200, "complete")
    assert TEXT.split()[0].encode() in answer.body
    assert evil.requests[0].json()["model"] == "there"
    assert answer.headers["date"].count(":") == 2  # one date, of the server


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("server", ASGI_SERVERS)
async def test_a_failed_upstream_gives_what_it_gives_under_aiohttp(server, stream, fault):
    answers = []
    connect_s = (
        5.0 if "TLS" in fault or "certificate" in fault else TIMEOUTS.connect_s
    )  # a handshake takes long on a busy machine
    # a keep-alive commits to a 200: with a fault that answers at once, it would depend on the machine's speed
    is_silent = "silence" in fault or "never" in fault
    delivery = QUICK if is_silent else evolve(QUICK, keep_alive_s=30.0)
    for each in ("aiohttp", server):
        play = FAULTS[fault]("openai-chat", whole=not stream)
        async with ready(each, play, connect_s=connect_s, delivery=delivery) as (port, _):
            answers.append(await asked(port, "anthropic", stream=stream))
    wanted, found = answers
    assert (found.status, known(found.body)) == (wanted.status, known(wanted.body))
    assert (found.end == "complete") == (wanted.end == "complete")
    assert found.headers.get("content-type") == wanted.headers.get("content-type")


def known(body):
    """A body without the ids that are made anew and without keep-alives, of which a slow machine sends more."""
    return re.sub(rb"event: ping\ndata: [^\n]*\n\n|msg_\w+", b"", bytes(body))


@pytest.mark.parametrize("server", SERVERS)
async def test_a_wrong_request_is_refused_in_its_dialect(server):
    async with ready(server, as_asked("openai-chat")) as (port, evil):
        answer = await ask(f"http://127.0.0.1:{port}", "/v1/messages", body=b'{"model": 5}')
        large = await ask(f"http://127.0.0.1:{port}", "/v1/messages", body=b" " * (2 << 20))
        missing = await ask(f"http://127.0.0.1:{port}", "/nowhere", body=b"{}")
    assert (answer.status, answer.json()["type"]) == (400, "error")
    assert (large.status, missing.status) == (413, 404)
    assert not evil.requests


@pytest.mark.parametrize("server", SERVERS)
async def test_silence_is_bridged(server):
    async with ready(server, Script((Hang(),)), delivery=QUICK) as (port, _):
        path, body = asking("anthropic")
        async with RawClient(f"http://127.0.0.1:{port}") as client:
            await client.send("POST", path, body=orjson.dumps(body))
            answer = await client.read_until(b"event: ping")
            assert answer.status == 200
            client.leave("fin")


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("begun", [True, False], ids=["in the body", "before the headers"])
@pytest.mark.parametrize("server", SERVERS)
async def test_a_client_that_leaves_closes_the_upstream(server, begun, how):
    first = chunk(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n')
    begin = Send(head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}) + first)
    async with ready(server, Script((begin, Hang()) if begun else (Hang(),))) as (port, evil):
        path, body = asking("anthropic")
        async with RawClient(f"http://127.0.0.1:{port}") as client:
            await client.send("POST", path, body=orjson.dumps(body))
            request = await evil.request(0)
            if begun:
                await client.read_until(b"Hello")
            client.leave(how)
            loop = asyncio.get_running_loop()
            left_at = loop.time()
            await request.left()
        assert request.left_at - left_at < 2.0


@pytest.mark.parametrize("server", SERVERS)
async def test_a_reader_that_takes_nothing_holds_the_upstream(server):
    event = chunk(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"a" * 60000))
    begin = Send(head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))
    play = Script((begin, *[Send(event)] * 1000))
    async with ready(server, play, delivery=Delivery(unsent_bytes=1 << 17, stall_s=60)) as (port, evil):
        path, body = asking("anthropic")
        async with RawClient(f"http://127.0.0.1:{port}", receive_buffer_bytes=4096) as client:
            await client.send("POST", path, body=orjson.dumps(body))
            await client.read_headers()
            request = await evil.request(0)
            await asyncio.sleep(0.5)
            assert request.left_at is None
            assert request.played_at is None  # most of its 60 MB are not written
            client.leave("rst")


@pytest.mark.parametrize("server", ASGI_SERVERS)
async def test_a_response_of_a_handler_of_starlette(server):
    async def handler(request):
        async def source():
            yield BODY

        return relay(source(), lambda bytes_in: transcode(bytes_in, "openai-chat", "anthropic"), client="anthropic")

    async with EvilUpstream(as_asked("openai-chat")) as evil:
        mounted = application(upstream_at(evil, "openai-chat"), clients=["anthropic"])
        app = Starlette(
            routes=[Route("/one", handler, methods=["POST"]), Mount("/llm", mounted)], lifespan=mounted.lifespan
        )
        async with ASGI_SERVERS[server](app) as port:
            one = await ask(f"http://127.0.0.1:{port}", "/one", body=b"{}")
            other = await ask(f"http://127.0.0.1:{port}", "/llm/v1/messages", body=orjson.dumps(asking("anthropic")[1]))
    assert (one.status, one.headers["content-type"], one.end) == (200, "text/event-stream", "complete")
    assert b"message_stop" in one.body
    assert (other.status, other.end) == (200, "complete")


BODY = (
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize("times", [10, pytest.param(500, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("server", SERVERS)
async def test_clients_that_leave_anywhere_leave_nothing_behind(server, stream, times):
    rng = random.Random(times)
    before = len(asyncio.all_tasks())
    within = 0

    async def slow(batches):
        nonlocal within
        within += 1
        try:
            async for batch in batches:
                await asyncio.sleep(0.002)
                yield batch
        finally:
            within -= 1

    stages = [redact("Oslo"), slow]
    async with ready(server, as_asked("openai-chat"), stages=stages) as (port, evil), ClientSession() as session:
        path, body = asking("anthropic", stream=stream)
        for _ in range(times):
            asking_once = asyncio.ensure_future(session.post(f"http://127.0.0.1:{port}{path}", json=body))
            await asyncio.sleep(rng.random() / 50)
            if asking_once.done():
                (await asking_once).close()
            else:
                asking_once.cancel()
                with suppress(asyncio.CancelledError):
                    (await asking_once).close()
        await eventually(lambda: all(each.left_at or each.played_at for each in evil.requests), within_s=15)
    await eventually(lambda: len(asyncio.all_tasks()) <= before)
    assert (open_sources(), within) == (0, 0)


@pytest.mark.parametrize("times", [10, pytest.param(200, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("server", SERVERS)
async def test_stages_that_raise_end_the_response_as_failed(server, times):
    raised = 0

    async def raising(batches):
        nonlocal raised
        async for batch in batches:
            raised += 1
            if raised % 2:
                yield batch
            raise ValueError("a stage of somebody's own")

    async def source():
        yield BODY[:80]
        yield BODY[80:]

    def pipeline(bytes_in):
        reading = parse_sse(), decode("openai-chat"), accumulate_tool_calls(), raising, encode("anthropic")
        return pipe(bytes_in, *reading)

    async def handler(request):
        return await aiohttp_relay(request, source(), pipeline, client="anthropic", delivery=QUICK)

    async def starlette_handler(request):
        return relay(source(), pipeline, client="anthropic", delivery=QUICK)

    def served():
        if server == "aiohttp":
            return serving(answering(handler))
        return ASGI_SERVERS[server](Starlette(routes=[Route("/", starlette_handler, methods=["POST"])]))

    async with served() as port:
        for _ in range(times):
            answer = await ask(f"http://127.0.0.1:{port}", "/", body=b"{}")
            assert answer.status == 500 or b"event: error" in answer.body
            assert b"message_stop" not in answer.body
