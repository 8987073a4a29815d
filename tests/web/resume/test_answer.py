"""Answers that go on without their client: from the first byte on, for how long, and what a client that is there sees of it."""

from __future__ import annotations

import asyncio

import pytest

from streamkit.resume import LogLimits
from streamkit.web.reply import Delivery
from tests.resume.reading import cursors, resumed_from, without_ids
from tests.sampling import part_of, parts
from tests.web.resume.keeping import FRAMES, WHOLE, chat_frame, keeping
from tests.web.serving import eventually

SLOW = Delivery(unsent_bytes=16 * 1024)
LONG = [chat_frame("x" * 4000) for _ in range(400)]
pytestmark = pytest.mark.usefixtures("no_leaks")


async def test_the_live_client_the_one_that_comes_back_and_the_log_have_the_same_bytes():
    async with keeping() as site, site.asked() as (client, upstream):
        upstream.say(*FRAMES[:2])
        await client.read_until(FRAMES[1][:-2])
        location = client.answer.headers["location"]
        late = asyncio.create_task(site.get(location))
        await asyncio.sleep(0.01)
        upstream.say(*FRAMES[2:])
        upstream.end()
        live = bytes((await client.read_to_end()).body)
        assert without_ids(live) == WHOLE
        assert bytes((await late).body) == live
        assert len(cursors(live)) == len(FRAMES)
        for end, offset in cursors(live)[:-1]:
            rest = await site.get(location, last_event_id=f"{location.rpartition('/')[2]}.{offset}")
            assert (rest.status, bytes(rest.body)) == (200, live[end:])
        assert rest.headers["cache-control"] == "no-store, no-transform"


@pytest.mark.parametrize("how", ["fin", "rst"])
async def test_without_asking_nothing_changes(how):
    async with keeping() as site, site.asked(headers={}) as (client, upstream):
        upstream.say(*FRAMES[:2])
        answer = await client.read_until(FRAMES[1])
        assert "location" not in answer.headers
        assert bytes(answer.body) == b"".join(FRAMES[:2])
        left = asyncio.get_running_loop().time()
        client.leave(how)
        assert await upstream.closed() - left <= 0.25
        assert site.store.live == site.store.kept == site.store.held_bytes == 0


async def test_a_client_that_leaves_before_the_headers_leaves_no_log():
    async with keeping() as site, site.asked() as (client, upstream):
        await eventually(lambda: site.store.live == 1)
        left = asyncio.get_running_loop().time()
        client.leave("rst")
        assert await upstream.closed() - left <= 0.25
        await eventually(lambda: site.store.live == 0)
        assert site.store.held_bytes == 0


@pytest.mark.parametrize("part", parts(16))
async def test_a_client_gone_at_any_byte_of_the_first_event_finds_all_of_it(part):
    async with keeping() as site:
        whole = (await site.get(await site.finished())).body
        first = cursors(whole)[0][0]
        for count in part_of(range(first + 1), part):
            async with site.asked() as (client, upstream):
                upstream.say(FRAMES[0], FRAMES[1])
                await client.read_headers()
                while len(client.answer.body) < count:
                    await client._read(1)
                client.leave("rst")
            upstream.say(*FRAMES[2:])
            upstream.end()
            await upstream.closed()
            kept, offset = resumed_from(bytes(client.answer.body))
            rest = await site.get(f"{client.answer.headers['location']}?after={offset}")
            assert kept + without_ids(bytes(rest.body)) == WHOLE, count


@pytest.mark.parametrize("handler_cancellation", [True, False])
async def test_an_answer_that_nobody_reads_ends(handler_cancellation):
    """Also where aiohttp cancels the handler of a client that left."""
    async with (
        keeping(unattended_s=0.1, handler_cancellation=handler_cancellation) as site,
        site.asked() as (client, upstream),
    ):
        upstream.say(FRAMES[0], FRAMES[1])
        location = (await client.read_headers()).headers["location"]
        left = asyncio.get_running_loop().time()
        client.leave("rst")
        assert 0.1 <= await upstream.closed() - left <= 0.5
        told = (await site.get(location)).body
        assert b"the response had no reader for 0.1 s" in told
        assert b"[DONE]" not in told


async def test_a_reader_keeps_it_from_ending():
    async with keeping(unattended_s=0.1) as site, site.asked() as (client, upstream):
        upstream.say(FRAMES[0], FRAMES[1])
        location = (await client.read_headers()).headers["location"]
        client.leave("rst")
        reader = asyncio.create_task(site.get(location))
        await asyncio.sleep(0.3)
        assert upstream.closed_at is None
        upstream.say(*FRAMES[2:])
        upstream.end()
        assert without_ids(bytes((await reader).body)) == WHOLE


async def test_a_slow_client_slows_no_upstream_and_gets_every_byte():
    async with keeping(delivery=SLOW) as site, site.asked(receive_buffer_bytes=4096) as (client, upstream):
        upstream.say(*LONG, *FRAMES[1:])
        upstream.end()
        await client.read_headers()
        await eventually(lambda: upstream.taken == len(LONG) + len(FRAMES) - 1)
        assert len(client.answer.body) < 100_000
        assert without_ids(bytes((await client.read_to_end()).body)) == b"".join(LONG) + b"".join(FRAMES[1:])


@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_client_that_is_there_gets_all_of_an_answer_that_is_too_long_to_be_kept(is_slow):
    limits, buffer = LogLimits(log_bytes=500_000), 4096 if is_slow else None
    async with (
        keeping(limits=limits, delivery=SLOW) as site,
        site.asked(receive_buffer_bytes=buffer) as (client, upstream),
    ):
        upstream.say(*LONG, *FRAMES[1:])
        upstream.end()
        location = (await client.read_headers()).headers["location"]
        if is_slow:
            await eventually(lambda: site.store.live == 0)
            await asyncio.sleep(0.05)
            assert upstream.taken < len(LONG)  # which waits for the client again
        assert without_ids(bytes((await client.read_to_end()).body)) == b"".join(LONG) + b"".join(FRAMES[1:])
        assert (await site.get(location)).status == 404


async def test_an_answer_without_its_client_ends_where_it_is_too_long_to_be_kept():
    async with keeping(limits=LogLimits(log_bytes=500_000)) as site, site.asked() as (client, upstream):
        upstream.say(FRAMES[0], FRAMES[1])
        await client.read_headers()
        client.leave("rst")
        await asyncio.sleep(0.05)
        upstream.say(*LONG)
        await upstream.closed()
        assert upstream.taken < len(LONG)


async def test_where_no_log_can_be_made_the_answer_is_as_any_other():
    async with keeping(limits=LogLimits(all_bytes=100)) as site, site.asked() as (client, upstream):
        upstream.say(*FRAMES)
        upstream.end()
        answer = await client.read_to_end()
        assert bytes(answer.body) == WHOLE
        assert "location" not in answer.headers
        assert site.resuming.counts.not_resumable == {"down": 1}


async def test_keep_alives_are_in_no_log_and_end_no_event():
    async with keeping(delivery=Delivery(keep_alive_s=0.03)) as site, site.asked() as (client, upstream):
        upstream.say(FRAMES[0], FRAMES[1])
        await client.read_until(b": keep-alive\n")
        upstream.say(*FRAMES[2:])
        upstream.end()
        body = bytes((await client.read_to_end()).body)
        assert b": keep-alive\n\n" not in body
        assert without_ids(body.replace(b": keep-alive\n", b"")) == WHOLE
        assert without_ids(bytes((await site.get(client.answer.headers["location"])).body)) == WHOLE
