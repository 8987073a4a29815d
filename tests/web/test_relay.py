"""``relay``: an upstream's answer, or any source, as the answer to a request."""

import asyncio

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit import accumulate_tool_calls, check_json, collect, decode, encode, parse_sse, pipe, transcode
from streamkit.dialects import DIALECTS
from streamkit.events import TextDelta
from streamkit.testing import source_of
from streamkit.web import Delivery, Timeouts, relay
from tests.web.evil import EvilUpstream, Hang, Script
from tests.web.faults import FAULTS, TEXT, good, status
from tests.web.raw_client import RawClient, ask
from tests.web.serving import answering, serving


def anthropic(source):
    return transcode(source, "openai-chat", "anthropic")


def relaying(upstream, **how):
    """A handler as a user would write it."""

    async def handler(request):
        async with ClientSession() as session, session.post(upstream.url) as response:
            return await relay(request, response, anthropic, client="anthropic", **how)

    return handler


async def relayed(script, **how):
    async with EvilUpstream(script) as upstream, serving(answering(relaying(upstream, **how))) as port:
        return await ask(f"http://127.0.0.1:{port}", "/")


async def test_an_upstreams_stream_reaches_the_client_in_its_dialect_with_the_rate_limits():
    headers = {"x-ratelimit-remaining-requests": "7", "x-request-id": "up-1", "set-cookie": "a=b"}
    answer = await relayed(good("openai-chat", headers=headers), headers={"x-own": "1"})
    assert (answer.status, answer.end) == (200, "complete")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-ratelimit-remaining-requests"] == "7"
    assert answer.headers["x-upstream-request-id"] == "up-1"
    assert answer.headers["x-own"] == "1"
    assert "set-cookie" not in answer.headers
    assert TEXT.split()[0].encode() in answer.body
    assert answer.body.endswith(b'data: {"type":"message_stop"}\n\n')


async def test_an_upstreams_refusal_is_the_clients_error():
    answer = await relayed(status(429, headers={"retry-after": "7"}), provider="openai-chat")
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert orjson.loads(answer.body)["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize("fault", ["200 with HTML", "200 with an error first", "bad gzip"])
async def test_what_is_no_answer_is_an_error_in_the_dialect(fault):
    answer = await relayed(FAULTS[fault]("openai-chat"), delivery=Delivery(keep_alive_s=5))
    assert answer.end == "complete"
    assert b"message_stop" not in answer.body
    assert b'"type":"error"' in answer.body


async def test_timers_are_the_callers():
    answer = await relayed(FAULTS["silence mid-stream"]("openai-chat"), timeouts=Timeouts(idle_s=0.2))
    assert b"sent no further bytes" in answer.body
    assert b"message_stop" not in answer.body


async def test_the_upstream_hears_of_a_client_that_left():
    async with (
        EvilUpstream(FAULTS["silence mid-stream"]("openai-chat")) as upstream,
        serving(answering(relaying(upstream))) as port,
        RawClient(f"http://127.0.0.1:{port}") as client,
    ):
        await client.send("POST", "/")
        await client.read_headers()
        client.leave("fin")
        await (await upstream.request()).left()


async def test_any_async_iterable_of_bytes_is_a_source():
    closed = asyncio.Event()

    async def source():
        try:
            yield b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
            yield b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
        finally:
            closed.set()

    async def handler(request: web.Request):
        return await relay(request, source(), anthropic, client="claude-code")

    async with serving(answering(handler)) as port:
        answer = await ask(f"http://127.0.0.1:{port}", "/")
    assert answer.body.endswith(b'data: {"type":"message_stop"}\n\n')
    assert closed.is_set()


async def broken(batches):
    """A stage with a bug that shows behind the first words."""
    async for batch in batches:
        yield batch
        if any(isinstance(event, TextDelta) for event in batch):
            raise ValueError("a bug")


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "ollama", "gemini"])
async def test_a_stage_that_raises_ends_the_answer_with_one_error(client):
    def pipeline(source):
        stages = parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json(), broken, encode(client)
        return pipe(source, *stages)

    async def source():
        yield b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'

    async def handler(request: web.Request):
        return await relay(request, source(), pipeline, client=client, delivery=Delivery(linger_s=0.1))

    async with serving(answering(handler)) as port:
        answer = await ask(f"http://127.0.0.1:{port}", "/")
    assert (answer.status, answer.end) == (200, "complete" if DIALECTS[client].failed_end is None else "cut")
    said = answer.body.count(b"the stream could not be processed")
    assert said == (3 if client == "openai-responses" else 1)  # `error` says it twice, `response.failed` once


@pytest.mark.parametrize(
    ("upstream", "client"),
    [
        ("openai-chat", "anthropic"),
        ("openai-chat", "openai-chat"),
        ("anthropic", "gemini"),
        ("anthropic", "anthropic"),
        ("openai-responses", "openai-chat"),
        ("ollama", "openai-responses"),
        ("cohere", "ollama"),
        ("bedrock", "anthropic"),
        ("mistral", "openai-chat"),
    ],
)
async def test_the_end_is_told_though_the_upstream_leaves_its_body_open(upstream, client, monkeypatch):
    """quirks.md 69: minutes of silence would go by between the last word and the end that makes clients act."""
    monkeypatch.setattr("streamkit.web.source.DRAIN_S", 0.1)  # a second in life: tests/web/test_exchange.py
    open_ended = Script((*good(upstream).steps[:-1], Hang()))
    async with EvilUpstream(open_ended) as evil:

        async def handler(request):
            async with ClientSession() as session, session.post(evil.url) as response:
                return await relay(
                    request,
                    response,
                    lambda source: transcode(source, upstream, client),
                    client=client,
                    provider=upstream,
                )

        async with serving(answering(handler)) as port:
            answer = await ask(f"http://127.0.0.1:{port}", "/")
            assert (await evil.request()).played_at is None
            await (await evil.request()).left()
    read = await collect(source_of([bytes(answer.body)]), client)
    assert (answer.end, read.clean, read.text) == ("complete", True, TEXT)
