"""Two gateways with one Redis: an answer of one is read on, watched over and stopped at the other.

Source: resume.md R2, R10, R11, R20, R26.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import ClientPayloadError, ClientSession
from attrs import evolve

from streamkit.gateway.config import Resume
from streamkit.resume import redis_store
from streamkit.web.upstream import Secret
from tests.gateway.running import TIMEOUTS, asking, behind, config_of, gateway, upstream_at
from tests.resume.servers import free_port
from tests.web.evil import EvilUpstream, Hang, Script, Send
from tests.web.faults import chunk, good, silence_midstream, speech

ASKED = {"x-streamkit-resumable": "1"}
PATIENT = evolve(TIMEOUTS, idle_s=30.0)
CLIENTS = ["openai-chat", "anthropic", "openai-responses", "gemini", "ollama"]


@asynccontextmanager
async def two_gateways(server, script, **resume):
    """An upstream, and two gateways in front of it."""
    async with EvilUpstream(script) as upstream, ClientSession() as session:
        kept = Resume(store="redis", url=Secret(server.url), lease_s=1.0, flush_ms=10, **resume)
        config = config_of([upstream_at(upstream, "openai-chat", timeouts=PATIENT)], resume=kept)
        async with gateway(config) as one, gateway(config) as other:
            yield upstream, session, one, other


@asynccontextmanager
async def one_gateway(url):
    """A gateway that can keep no answers there, and has answered all the same."""
    kept = Resume(store="redis", url=Secret(url))
    async with behind(good("openai-chat"), resume=kept) as node, ClientSession() as session:
        async with posted(session, node) as answer:
            assert "Location" not in answer.headers
            assert b"[DONE]" in await answer.read()
        yield session, node


def posted(session, node, client="openai-chat"):
    path, body = asking(client)
    return session.post(node.url + path, json=body, headers=ASKED)


def without_ids(data: bytes) -> bytes:
    """Without what only resumable streams have, and keep-alives."""
    return b"".join(line for line in data.splitlines(keepends=True) if not line.startswith((b"id: ", b": ")))


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_answer_of_one_node_is_the_same_at_another_from_any_byte(one_server, client):
    script = good("openai-chat", delay_s=0.01)
    async with two_gateways(one_server, script) as (upstream, session, one, other):
        async with posted(session, one, client) as answer:
            assert answer.status == 200
            where = answer.headers["Location"]
            early = asyncio.create_task(_got(session, other.url + where))
            whole = await answer.read()
        log = without_ids(whole)
        assert without_ids(await early) == log
        for after in (0, 1, len(log) // 2, len(log) - 1):
            for node in (one, other):
                assert without_ids(await _got(session, f"{node.url}{where}?after={after}")) == log[after:]
        async with session.get(f"{other.url}{where}?after={len(log)}") as nothing:
            assert nothing.status == 204
        async with session.get(f"{other.url}{where}?after={len(log) + 1}") as behind:
            assert behind.status == 400
        assert len(upstream.requests) == 1


async def _got(session, url):
    async with session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await _rest(answer)


async def _rest(answer):
    """What is left of an answer, whose body has no end where it failed."""
    found = b""
    with suppress(ClientPayloadError):
        async for data in answer.content.iter_any():
            found += data
    return found


async def test_an_answer_is_stopped_at_another_node(one_server):
    async with two_gateways(one_server, silence_midstream("openai-chat")) as (upstream, session, one, other):
        async with posted(session, one) as answer:
            where = answer.headers["Location"]
            await answer.content.readany()
            elsewhere = asyncio.create_task(_got(session, other.url + where))
            await asyncio.sleep(0.1)
            begun = asyncio.get_running_loop().time()
            assert (await session.delete(other.url + where)).status == 204
            assert await (await upstream.request(0)).left() - begun < 0.25
            told = await _rest(answer)
        assert b"stopped" in told
        seen = await elsewhere
        assert b'"error"' in seen
        assert b"[DONE]" not in seen
        assert without_ids(seen).endswith(without_ids(told))
        for node in (one, other):  # once more changes nothing
            assert (await session.delete(node.url + where)).status == 204
        assert await _got(session, other.url + where) == seen


async def test_a_reader_at_another_node_keeps_an_answer_and_without_one_it_ends(one_server):
    script = silence_midstream("openai-chat")
    async with two_gateways(one_server, script, unattended_s=1.0) as (upstream, session, one, other):
        async with posted(session, one) as answer:
            where = answer.headers["Location"]
            await answer.content.readany()
            answer.close()  # the client is gone
        received = await upstream.request(0)
        reading = asyncio.create_task(_got(session, other.url + where))
        await asyncio.sleep(2.0)
        assert received.left_at is None, "somebody reads it"
        reading.cancel()
        begun = asyncio.get_running_loop().time()
        assert await received.left() - begun < 2.5
        assert b"had no reader for" in await _got(session, other.url + where)


async def test_a_node_that_ends_in_peace_tells_readers_elsewhere(one_server):
    script = Script(
        (
            Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
            *(Send(chunk(data)) for data in speech("openai-chat")[:-2]),
            Hang(),
        )
    )
    async with EvilUpstream(script) as upstream, ClientSession() as session:
        kept = Resume(store="redis", url=Secret(one_server.url), lease_s=5.0)
        config = config_of([upstream_at(upstream, "openai-chat")], server={"grace_s": 0.1}, resume=kept)
        async with gateway(config) as other:
            async with gateway(config) as one:
                answer = await posted(session, one)
                where = answer.headers["Location"]
                await answer.content.readany()
                reading = asyncio.create_task(_got(session, other.url + where))
                await asyncio.sleep(0.1)
            seen = await asyncio.wait_for(reading, 1.0)  # before any lease is over
            answer.close()
            assert b'"error"' in seen
            assert b"[DONE]" not in seen


async def test_without_its_store_a_gateway_answers_all_the_same(caplog):
    caplog.set_level(logging.DEBUG)
    async with one_gateway(f"redis://me:canary-password@127.0.0.1:{free_port()}/0") as (session, node):
        async with session.get(f"{node.url}/v1/streams/st_{'a' * 22}") as resumed:
            assert resumed.status == 503
            assert resumed.headers["Retry-After"] == "1"
        async with session.get(f"{node.url}/readyz") as ready:
            assert ready.status == 200
    assert caplog.text.count("the store of responses can't be used") == 1
    assert "canary" not in caplog.text


async def test_a_cluster_keeps_no_answers(one_server, monkeypatch, caplog):
    async def is_cluster(_calls):
        return "the store is a cluster", []

    monkeypatch.setattr(redis_store, "faults_of", is_cluster)
    async with one_gateway(one_server.url):
        pass
    (said,) = [
        record for record in caplog.records if record.name == "streamkit.resume" and record.levelno >= logging.WARNING
    ]
    assert said.fields == {"why": "the store is a cluster"}
