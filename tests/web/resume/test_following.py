"""A reader whose log can't be read on is told so behind what it has."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from streamkit.resume import MemoryStore, Meta
from streamkit.web.resume.following import Following
from streamkit.web.resume.settings import takes_ids
from tests.laws.running import OURS, read
from tests.resume.answers import CLIENTS, answers_of
from tests.resume.reading import without_ids
from tests.web.resume.keeping import FRAMES, keeping


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("torn", [0, 30])
async def test_an_answer_that_is_lost_while_it_is_read_ends_with_an_error(client, torn):
    """Half of an event that it does not have whole is kept from a client that reads ids."""
    stream = next(s for s in OURS if s.dialect == "openai-chat" and s.name == "two calls in turn")
    answer = next(iter(answers_of(stream, client)))
    store = MemoryStore()
    log = await store.create(store.new_id(), answer.meta)
    log.append(answer.frames[0] + answer.frames[1] + answer.frames[2][:torn])
    after = len(answer.frames[0])
    has_ids = takes_ids(client, is_array=False)
    following = Following(log, after, await log.open(after), has_ids=has_ids)
    got = b""
    async with following.pipe() as pipe:
        async for data in pipe:
            got += data
            await store.close()
    assert following.is_broken
    told = read(client, [answer.frames[0] + without_ids(got)])
    assert not told.clean
    assert told.error is not None or (not has_ids and told.fault)
    if has_ids:
        assert not told.fault


@pytest.mark.parametrize("has_ids", [False, True])
async def test_readers_of_one_answer_hold_no_copy_of_it(has_ids):
    """Twelve readers of 4 MiB held 48 MiB in addition to the log."""
    store = MemoryStore()
    log = await store.create(store.new_id(), Meta(dialect="openai-chat"))
    for _ in range(64):
        log.append(b"data: %b\n\n" % (b"x" * 65_528))

    async def follow():
        following = Following(log, 0, await log.open(), has_ids=has_ids)
        size = 0
        async with following.pipe() as pipe:
            async for data in pipe:
                size += len(data)
                if size >= log.size:
                    reached.release()
        return size

    reached = asyncio.Semaphore(0)
    tracemalloc.start()
    try:
        readers = [asyncio.create_task(follow()) for _ in range(12)]
        for _ in readers:
            await reached.acquire()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < log.size / 2
    log.end("done")
    assert min(await asyncio.gather(*readers)) >= log.size


async def test_readers_get_what_a_stopping_server_tells():
    async with keeping() as site:
        async with site.asked() as (client, upstream):
            upstream.say(FRAMES[0], FRAMES[1])
            location = (await client.read_headers()).headers["location"]
            client.leave("rst")
        reader = asyncio.create_task(site.get(location))
        await asyncio.sleep(0.05)
    answer = await reader
    assert answer.end == "cut"  # as the stream itself would
    assert b'data: {"error"' in answer.body
    assert b"[DONE]" not in answer.body
