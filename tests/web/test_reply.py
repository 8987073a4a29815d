"""One answer to one client: what it gets before, during and after the model speaks."""

import asyncio
import logging
import socket
import struct

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit import transcode
from streamkit.errors import Interrupted, SourceFailed
from streamkit.events import ProviderFailed
from streamkit.resume import MemoryStore
from streamkit.web.reply import LIVE, Delivery, Reply, end_streams_on_shutdown
from streamkit.web.resume.answer import resumable_outlet
from streamkit.web.resume.settings import RESUMING, Resuming
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource, Timeouts
from tests.web import raw_client
from tests.web.serving import answering, eventually, serving

ROLE = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
TEXT = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
STOP = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ERROR = b'data: {"error":{"message":"no capacity","type":"server_error","code":503}}\n\n'
QUICK = Delivery(keep_alive_s=0.05)


class Script:
    """A source that plays bytes and pauses, and knows whether it was closed."""

    def __init__(self, *steps):
        self.steps = steps
        self.closed = False
        self.reads = 0

    async def play(self):
        try:
            for step in self.steps:
                if isinstance(step, bytes):
                    self.reads += 1
                    yield step
                elif isinstance(step, Exception):
                    raise step
                else:
                    await asyncio.sleep(step)
        finally:
            self.closed = True


class Served:
    """A handler that answers with a script, and keeps its reply."""

    def __init__(self, script, *, client="anthropic", delivery=QUICK, timeouts=DEFAULT_TIMEOUTS, kept=False):
        self.script, self.client, self.delivery, self.timeouts, self.kept = script, client, delivery, timeouts, kept
        self.reply = None

    async def answer(self, request):
        outlet = resumable_outlet(request, self.client) if self.kept else None
        self.reply = Reply(request, self.client, delivery=self.delivery, headers={"x-request-id": "r1"}, outlet=outlet)

        async def work():
            source = TimedSource(self.script.play(), self.timeouts)
            failed = await self.reply.send(transcode(source, "openai-chat", self.client), source)
            if failed is not None:
                await self.reply.fail(failed)

        return await self.reply.run(work())


async def ask(handler, **runner):
    async with serving(answering(handler), **runner) as port:
        answer = await raw_client.ask(f"http://127.0.0.1:{port}", "/")
        return answer, answer.body


async def test_a_stream_goes_out_as_it_is_and_is_not_for_proxies_to_hold():
    served = Served(Script(ROLE, TEXT, STOP), delivery=Delivery())
    response, body = await ask(served.answer)
    assert response.status == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-request-id"] == "r1"
    assert "content-encoding" not in response.headers
    assert body.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    assert b"ping" not in body
    assert (served.reply.ending, served.reply.failure, served.script.closed) == ("whole", None, True)


BROKE = SourceFailed("the connection to the upstream broke")
#: How a source fails, the status, and what the body has and has not. Before the model spoke the failure is a status, and behind
#: that, or behind keep-alives, it is a frame.
FAILURES = {
    "an error first": ((ROLE, ERROR), {}, 500, [b'"no capacity"'], []),
    "an error behind keep-alives": (
        (0.6, ROLE, ERROR), {"delivery": QUICK}, 200, [b"event: ping\n", b"event: error\n"], [b"message_start"]
    ),
    "an error behind text": ((ROLE, TEXT, ERROR), {}, 200, [b"hello", b"event: error\n", b"no capacity"], []),
    "a cut first": ((ROLE,), {}, 500, [b"before its completion point"], []),
    "a cut behind text": ((ROLE, TEXT), {}, 200, [b"event: error"], []),
    "a transport that breaks": ((ROLE, TEXT, BROKE), {}, 200, [b"the connection to the upstream broke"], []),
    "no first byte": ((5.0, ROLE), {"timeouts": Timeouts(first_byte_s=0.1)}, 504, [b"no first byte within 0.1 s"], []),
    "silence": ((ROLE, 5.0), {"timeouts": Timeouts(idle_s=0.1)}, 504, [b"sent no further bytes"], []),
    "no end": ((ROLE, 5.0), {"timeouts": Timeouts(total_s=0.1)}, 504, [b"did not end within 0.1 s"], []),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "how", "status", "has", "lacks"), FAILURES.values(), ids=FAILURES)
async def test_a_failure_is_a_status_or_a_frame(steps, how, status, has, lacks):
    served = Served(Script(*steps), **{"delivery": Delivery(), **how})
    response, body = await ask(served.answer)
    assert (response.status, response.headers["x-request-id"]) == (status, "r1")
    assert [words in body for words in has] == [True] * len(has)
    assert not [words for words in (*lacks, b"message_stop") if words in body]
    assert body.count(b"event: error\n") == (status == 200)
    assert served.reply.ending == ("broken" if TEXT in steps else "error")
    assert served.script.closed
    if status != 200:
        assert response.headers["content-type"] == "application/json"


async def test_keep_alives_fill_every_silence_and_none_is_written_behind_the_end():
    served = Served(Script(ROLE, TEXT, 0.6, STOP))
    _, body = await ask(served.answer)
    assert 2 <= body.count(b"event: ping\n") <= 12
    assert body.index(b"hello") < body.index(b"event: ping\n") < body.index(b"message_stop")


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"])
async def test_the_silence_before_the_first_byte_is_filled_in_each_dialect_and_the_answer_still_reads(client):
    served = Served(Script(0.6, ROLE, TEXT, STOP), client=client)
    response, body = await ask(served.answer)
    assert response.status == 200
    assert b"hello" in body
    assert served.reply.ending == "whole"


async def test_somebodys_bug_is_logged_and_the_client_learns_that_much_and_no_more(caplog):
    response, body = await ask(Served(Script(ROLE, ValueError("secret detail"))).answer)
    assert response.status == 500
    assert b"secret detail" not in body
    assert "secret detail" in caplog.text


# -- the client leaves -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cancellation", [False, True])
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("script", [(30.0,), (ROLE, 30.0), (ROLE, TEXT, 30.0)], ids=["before", "role only", "within"])
async def test_a_client_that_leaves_closes_the_source_at_once(script, how, cancellation, caplog):
    caplog.set_level(logging.WARNING)
    served = Served(Script(*script), delivery=Delivery())
    async with serving(answering(served.answer), handler_cancellation=cancellation) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        await eventually(lambda: served.reply is not None and served.script.reads == len(script) - 1)
        if how == "rst":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()
        await eventually(lambda: served.script.closed, within_s=1.0)
        await eventually(lambda: served.reply.ending == "client left")
    assert not caplog.records  # no traceback: a client that leaves is no error


@pytest.mark.parametrize("cancellation", [False, True])
async def test_an_answer_that_is_kept_goes_on_without_its_client(cancellation):
    served = Served(Script(ROLE, TEXT, 0.3, STOP), kept=True)
    app = answering(served.answer)
    app[RESUMING] = Resuming(store=MemoryStore(), resumable="always")
    async with serving(app, handler_cancellation=cancellation) as port, ClientSession() as session:
        response = await session.post(f"http://127.0.0.1:{port}/")
        await response.content.readany()
        response.close()
        await eventually(lambda: served.reply.ending is not None)
        assert served.reply.ending == "whole"
        log_id = response.headers["Location"].rpartition("/")[2]
        kept = b"".join([piece async for piece in await app[RESUMING].store.open(log_id)])
    assert b"hello" in kept
    assert b"message_stop" in kept


async def test_a_reader_that_stalls_is_dropped_without_a_terminator():
    filler = TEXT.replace(b"hello", b"x" * 60_000)
    script = Script(ROLE, *[filler] * 400, STOP)
    served = Served(script, delivery=Delivery(stall_s=0.3, unsent_bytes=100_000))
    async with serving(answering(served.answer)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        await eventually(lambda: served.reply is not None and served.reply.ending == "client stalled")
        await eventually(lambda: script.closed)
        assert script.reads < 400  # nothing more was read for it
        writer.close()


async def test_a_slow_reader_is_not_a_stalled_one():
    filler = TEXT.replace(b"hello", b"x" * 50_000)
    script = Script(ROLE, *[filler] * 100, STOP)
    served = Served(script, delivery=Delivery(stall_s=0.4, unsent_bytes=100_000))
    got = bytearray()
    async with serving(answering(served.answer)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=8192)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while data := await reader.read(500_000):
            got += data
            await asyncio.sleep(0.005)
        writer.close()
    assert served.reply.ending == "whole"
    assert b"message_stop" in got


# -- whole answers -----------------------------------------------------------------------------------------------------


async def whole(delay, delivery, failed=None):
    reply = None

    async def handler(request):
        nonlocal reply
        reply = Reply(request, "openai-chat", stream=False, delivery=delivery)

        async def work():
            await asyncio.sleep(delay)
            await (reply.whole(b'{"answer":1}') if failed is None else reply.fail(failed))

        return await reply.run(work())

    return (*await ask(handler), reply)


async def test_a_whole_answer_has_its_length():
    response, body, _ = await whole(0, Delivery())
    assert (response.headers["content-length"], body) == ("12", b'{"answer":1}')
    assert response.headers["content-type"] == "application/json"


async def test_white_space_leads_a_slow_whole_answer_where_it_is_wanted():
    response, body, reply = await whole(0.6, Delivery(keep_alive_s=0.05, whole_keep_alive=True))
    assert response.status == 200
    assert body.startswith(b" ")
    assert orjson.loads(body) == {"answer": 1}
    assert reply.keep_alives == len(body) - 12
    _, body, _ = await whole(0.6, Delivery(keep_alive_s=0.05))
    assert body == b'{"answer":1}'


async def test_an_error_behind_white_space_is_a_body():
    failed = ProviderFailed("rate_limit", "too fast", retry_after_s=2.5)
    response, body, _ = await whole(0.6, Delivery(keep_alive_s=0.05, whole_keep_alive=True), failed)
    assert (response.status, orjson.loads(body)["error"]["message"]) == (200, "too fast")
    response, body, _ = await whole(0, Delivery(), failed)
    assert (response.status, response.headers["retry-after"]) == (429, "3")


# -- the server stops --------------------------------------------------------------------------------------------------


async def stopped_while(*served, grace_s):
    """What clients read from a server that stops as soon as it has begun to answer them all."""
    app = web.Application()
    for number, answer in enumerate(served):
        app.router.add_post(f"/{number}", answer.answer)
    end_streams_on_shutdown(app, grace_s=grace_s)
    async with ClientSession() as session:

        async def read(url):
            async with session.post(url) as response:
                return response.status, await response.read()

        async with serving(app) as port:
            urls = [f"http://127.0.0.1:{port}/{number}" for number in range(len(served))]
            reading = [asyncio.create_task(read(url)) for url in urls]
            wanted = [sum(isinstance(step, bytes) for step in answer.script.steps[:2]) for answer in served]
            await eventually(
                lambda: [answer.script.reads for answer in served] >= wanted and len(app[LIVE]) == len(served)
            )
        answers = await asyncio.gather(*reading)
    assert not app[LIVE]
    return answers


async def test_streams_get_the_grace_time_and_then_their_error():
    quick, endless = Served(Script(ROLE, TEXT, 0.3, STOP)), Served(Script(ROLE, TEXT, 60.0))
    (_, whole), (_, broken) = await stopped_while(quick, endless, grace_s=2.0)
    assert b"message_stop" in whole
    assert b"hello" in broken
    assert b"message_stop" not in broken
    assert b"shutting down" in broken
    assert (quick.reply.ending, endless.reply.ending) == ("whole", "broken")
    assert endless.script.closed


async def test_a_server_that_stops_before_the_model_spoke_says_so_with_a_status():
    [(status, body)] = await stopped_while(Served(Script(60.0), delivery=Delivery()), grace_s=1.0)
    assert (status, b"shutting down" in body) == (529, True)


async def test_a_server_that_stops_behind_keep_alives_says_so_in_the_stream():
    [(status, body)] = await stopped_while(Served(Script(60.0)), grace_s=1.5)
    assert (status, body.startswith(b"event: ping\n"), b"shutting down" in body) == (200, True, True)


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "gemini", "ollama"])
@pytest.mark.parametrize("how", ["raises", "is interrupted"])
@pytest.mark.parametrize("end", [ERROR, STOP], ids=["an error", "the terminator"])
async def test_nothing_is_told_behind_the_end_of_a_stream(client, how, end):
    """L3: what fails once all of it is written, as a source that can't be closed, makes no other answer of it."""
    replies, bodies = [], []
    for ends in False, True:

        async def answer(request, ends=ends):
            replies.append(reply := Reply(request, client, delivery=Delivery()))

            async def work():
                source = TimedSource(Closing(ends, how, reply, Script(ROLE, TEXT, end)), DEFAULT_TIMEOUTS)
                await reply.send(transcode(source, "openai-chat", client), source)

            return await reply.run(work())

        bodies.append((await ask(answer))[1])
    assert [len(body) for body in bodies[1:]] == [len(bodies[0])]
    assert replies[1].ending == replies[0].ending


class Closing:
    """A source that is hard to close: it raises, or the server stops meanwhile."""

    def __init__(self, ends, how, reply, script):
        self.ends, self.how, self.reply, self.source = ends, how, reply, script.play()

    def __aiter__(self):
        return self

    def __anext__(self):
        return anext(self.source)

    async def aclose(self):
        await self.source.aclose()
        if self.ends and self.how == "raises":
            raise RuntimeError("a source could not be closed")
        if self.ends:
            self.reply._source = None
            self.reply.interrupt(Interrupted("the server is shutting down"))
            await asyncio.sleep(5)


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
async def test_nothing_is_told_behind_a_whole_body(client, caplog):
    async def answer(request):
        reply = Reply(request, client, stream=False, delivery=Delivery())

        async def work():
            await reply.whole(b'{"a":1}')
            raise RuntimeError("a source could not be closed")

        return await reply.run(work())

    response, body = await ask(answer)
    assert (response.status, body) == (200, b'{"a":1}')
    assert "a source could not be closed" in caplog.text


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("end", [ERROR, STOP], ids=["an error", "the terminator"])
async def test_no_keep_alive_stands_behind_the_end_of_a_body_that_stays_open(client, end):
    served = Served(Script(ROLE, TEXT, 0.2, end, 5), client=client)
    _, body = await ask(served.answer)
    last = b"no capacity" if end is ERROR else b"message_stop" if client == "anthropic" else b"[DONE]"
    assert last in body
    alive = b"event: ping" if client == "anthropic" else b": keep-alive"
    assert alive in body
    assert alive not in body[body.index(last) :]
