"""How the HTTP body of a stream ends that had output and then failed: what a client sees that passes over the error frame."""

import asyncio

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit import transcode
from streamkit.dialects import DIALECTS
from streamkit.errors import SourceFailed
from streamkit.web import relay
from streamkit.web.reply import LIVE, Delivery, Reply, end_streams_on_shutdown
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource
from tests.gateway.running import behind
from tests.web import evil
from tests.web.evil import EvilUpstream, Hang, Send
from tests.web.faults import FAULTS, chunk, good
from tests.web.raw_client import RawClient, ask
from tests.web.serving import answering, eventually, serving
from tests.web.test_reply import ERROR, ROLE, STOP, TEXT, Script, Served

pytestmark = pytest.mark.usefixtures("no_leaks")

#: What stands in the place of the end, in the dialects whose bodies are left without one.
FAILED_ENDS = {
    "openai-chat": b"",
    "gemini": b'data: {"error":',
    "ollama": b"",
    "cohere": b"",
    "mistral": b"",
    "gemini-interactions": b"",
}
#: Longer than a busy machine takes, and shorter than a test may.
LINGER_S = 0.3
#: So long that no test waits for it.
LONG = Delivery(linger_s=60)
#: Ways to fail behind the first words: the upstream's body ends, its connection breaks, the provider says so, we have a bug.
FAILURES = [(), (SourceFailed("the connection broke"),), (ERROR,), (ValueError("a bug"),)]


async def answered(handler, **how):
    async with serving(answering(handler)) as port:
        return await ask(f"http://127.0.0.1:{port}", "/", **how)


def served(*steps, client="openai-chat", delivery=LONG):
    return Served(Script(ROLE, TEXT, *steps), client=client, delivery=delivery)


@pytest.mark.parametrize("client", DIALECTS.built_in)
@pytest.mark.parametrize("failure", FAILURES, ids=["cut", "broken", "error", "bug"])
async def test_a_failed_stream_ends_as_its_dialect_says(client, failure):
    site = served(*failure, client=client, delivery=Delivery(linger_s=LINGER_S))
    answer = await answered(site.answer)
    waited_s = answer.ended_at - answer.reads[-1][0]
    assert (answer.status, "connection" in answer.headers) == (200, False)
    assert site.reply.ending == "broken"
    if client not in FAILED_ENDS:
        assert (answer.end, DIALECTS[client].failed_end) == ("complete", None)
        assert waited_s < LINGER_S
        return
    assert answer.end == "cut"  # FIN without the last chunk: neither an end of the body nor a reset
    assert LINGER_S * 0.9 < waited_s < LINGER_S + 1
    frame = bytes(answer.body).removesuffix(FAILED_ENDS[client])
    assert frame.endswith(DIALECTS[client].frame_end)
    said = frame.rstrip().splitlines()[-1].removeprefix(b"data: ")
    assert b"rror" in said
    assert orjson.loads(said)


@pytest.mark.parametrize("client", DIALECTS.built_in)
async def test_a_whole_stream_ends_as_ever(client):
    site = served(STOP, client=client)
    answer = await answered(site.answer)
    assert (answer.end, site.reply.ending) == ("complete", "whole")


@pytest.mark.parametrize(("client", "end"), [("gemini", "cut"), ("ollama", "cut"), ("anthropic", "complete")])
async def test_so_does_one_that_failed_behind_keep_alives(client, end):
    """Its status says success, too."""
    site = Served(Script(0.2, ROLE, ERROR), client=client, delivery=Delivery(keep_alive_s=0.05, linger_s=0.1))
    answer = await answered(site.answer)
    assert (answer.status, answer.end, site.reply.ending) == (200, end, "error")


@pytest.mark.parametrize("cancellation", [True, False], ids=["aiohttp tells of it", "aiohttp does not"])
async def test_a_client_that_leaves_is_waited_for_no_longer(cancellation):
    site = served()
    connections = []

    async def handler(request):
        connections.append(request.transport)
        return await site.answer(request)

    async with serving(answering(handler), handler_cancellation=cancellation) as port:
        async with RawClient(f"http://127.0.0.1:{port}") as client:
            await client.send("POST", "/")
            await client.read_until(b"stream truncated")
        await eventually(connections[0].is_closing, within_s=1)
    assert site.reply.ending == "broken"


async def test_while_it_lingers_nothing_else_of_the_answer_is_there():
    site = served(ERROR)
    returned = asyncio.Event()

    @web.middleware
    async def watched(request, handler):
        response = await handler(request)
        returned.set()
        return response

    app = answering(site.answer, middlewares=[watched])
    end_streams_on_shutdown(app, grace_s=0)
    async with serving(app) as port, RawClient(f"http://127.0.0.1:{port}") as client:
        await client.send("POST", "/")
        await client.read_until(b"no capacity")
        async with asyncio.timeout(1):
            await returned.wait()
        assert (site.script.closed, app[LIVE], client.answer.end) == (True, set(), None)


async def test_a_server_that_stops_does_not_wait_for_it():
    site, loop = served(), asyncio.get_running_loop()
    async with serving(answering(site.answer), shutdown_timeout=0.1) as port:
        asked = asyncio.create_task(ask(f"http://127.0.0.1:{port}", "/"))
        await eventually(lambda: site.reply is not None and site.reply.ending == "broken")
        await asyncio.sleep(0.05)
        stopping = loop.time()
    assert loop.time() - stopping < 2
    assert (await asked).end == "cut"


@pytest.mark.parametrize("client", ["gemini", "openai-chat"])
async def test_in_http_1_0_only_what_is_written_tells_of_it(client):
    """The end of the connection is the end of every body there."""
    site = served(client=client)
    async with serving(answering(site.answer)) as port, RawClient(f"http://127.0.0.1:{port}") as raw:
        await raw.send_bytes(b"POST / HTTP/1.0\r\nHost: x\r\n\r\n")
        answer = await raw.read_to_end()
    assert answer.end == "closed"
    assert bytes(answer.body).endswith(FAILED_ENDS[client] or b"\n\n")


async def test_a_client_that_asks_for_close_gets_no_last_chunk_either():
    site = served(delivery=Delivery(linger_s=0.1))
    answer = await answered(site.answer, headers={"Connection": "close"})
    assert answer.end == "cut"


async def test_a_slow_reader_gets_every_byte():
    site = served(*[TEXT.replace(b"hello", b"x" * 4000)] * 200, ERROR, delivery=Delivery(linger_s=0))
    answer = await answered(site.answer, pace_bytes_s=1_600_000, receive_buffer_bytes=4096)
    assert answer.end == "cut"
    assert answer.body.count(b"x" * 4000) == 200
    assert bytes(answer.body).endswith(ERROR)


@pytest.mark.parametrize("kept", [False, True], ids=["in full", "half"])
async def test_an_array_is_left_without_an_end_and_without_more(kept):
    """Its last element is the error; half of an array has none, and is no answer of a client that left."""

    async def handler(request):
        reply = replies["one"] = Reply(request, "gemini", as_array=True, delivery=Delivery(linger_s=0.1))

        async def work():
            source = TimedSource(Script(ROLE, TEXT, ERROR).play(), DEFAULT_TIMEOUTS)
            if kept:
                reply._begin()
                await reply._write(b'[{"candidates":[]}')
                raise RuntimeError("a bug")
            await reply.send(transcode(source, "openai-chat", "gemini"), source)

        return await reply.run(work())

    replies = {}
    answer = await answered(handler)
    assert (answer.end, replies["one"].ending) == ("cut", "broken")
    if not kept:
        assert "error" in answer.json()[-1]


async def test_relay_does_the_same():
    async with EvilUpstream(FAULTS["error mid-stream"]("anthropic", whole=False)) as upstream:

        async def handler(request):
            async with session.post(upstream.url) as response:
                return await relay(
                    request,
                    response,
                    lambda source: transcode(source, "anthropic", "cohere"),
                    client="cohere",
                    provider="anthropic",
                    delivery=Delivery(linger_s=0.1),
                )

        async with ClientSession() as session, serving(answering(handler)) as port:
            answer = await ask(f"http://127.0.0.1:{port}", "/")
    assert answer.end == "cut"
    assert b"usage" not in bytes(answer.body).rpartition(b"event: message-end")[2]


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_a_client_that_leaves_at_the_error_frame_had_its_answer(client):
    """Many do, while the upstream's body may go on."""
    script = good("openai-chat")
    steps = [*script.steps[:2], Send(chunk(ERROR)), Hang()]
    async with behind(evil.Script(tuple(steps))) as at:
        async with at.client(client) as raw:
            await raw.read_until(b"no capacity")
        assert await at.outcomes() == {("one", "error_event"): 1}
    assert at.counted("requests_total", ending="broken") == 1
