"""What every store of logs does: ``from tests.resume.contract import *`` where ``stores`` is a fixture.

``stores`` has the store that ``writes`` and one that ``reads``, which may be the same; both are made with ``LIMITS``.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from attrs import define

from streamkit.resume import BadCursor, LogGone, LogLimits, Meta, Store, StoreDown
from tests.web.serving import eventually

LIMITS = LogLimits(log_bytes=200_000, all_bytes=1_000_000, readers=3)
META = Meta(dialect="openai-chat", owner="me", created=1.5, model="a model")
EVENT = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'


@define
class Stores:
    """Two stores of one service."""

    writes: Store
    reads: Store


async def bytes_of(reading):
    return b"".join([data async for data in reading])


async def all_of(reading):
    """What is read, and how it ended."""
    try:
        return await bytes_of(reading), reading.ended
    finally:
        await reading.aclose()


async def log_in(stores, stop=lambda: None):
    return await stores.writes.create(stores.writes.new_id(), META, stop)


async def test_readers_get_what_is_there_and_what_comes(stores):
    log = await log_in(stores)
    log.append(b"one ")
    early = await stores.reads.open(log.id, "me")
    assert early.meta == META
    first = await anext(early)
    log.append(b"two ")
    here = asyncio.create_task(all_of(await log.open(4)))
    there = asyncio.create_task(all_of(await stores.reads.open(log.id, "me", 4)))
    await asyncio.sleep(0)
    assert early.ended is None
    log.end("done", b"three")
    assert (first + await bytes_of(early), early.ended) == (b"one two three", "done")
    assert await there == await here == (b"two three", "done")


async def test_every_cut_is_gone_on_from_and_every_reader_has_the_same(stores):
    log = await log_in(stores)
    draw = random.Random(7)
    pieces = [draw.randbytes(draw.choice([1, 40, 3000])) for _ in range(60)]

    async def cut_again_and_again(seed):
        draw, got = random.Random(seed), b""
        while True:
            reading = await stores.reads.open(log.id, "me", len(got))
            left = draw.randint(1, 4)
            async for data in reading:
                left -= 1
                got += data if left else data[: draw.randint(0, len(data))]
                if not left:
                    break
            await reading.aclose()
            if reading.ended is not None and left:
                return got

    # one below the limit: another process hears late that a reader has left
    readers = [asyncio.create_task(cut_again_and_again(seed)) for seed in range(LIMITS.readers - 1)]
    for piece in pieces[:-1]:
        log.append(piece)
        await asyncio.sleep(draw.choice([0, 0.002]))
    log.end("done", pieces[-1])
    assert await asyncio.gather(*readers) == [b"".join(pieces)] * len(readers)


async def test_what_comes_behind_the_end_is_dropped(stores):
    log = await log_in(stores)
    log.end("failed", b"all")
    log.append(b" more")
    log.end("done", b" more")
    assert await all_of(await stores.reads.open(log.id, "me")) == (b"all", "failed")
    assert log.size == 3


@pytest.mark.parametrize("written", [b"", EVENT])
async def test_an_end_that_nobody_could_write_is_the_dialects_error(stores, written):
    log = await log_in(stores)
    log.append(written)
    log.end("aborted")
    got, ended = await all_of(await stores.reads.open(log.id, "me"))
    assert ended == "aborted"
    assert got.startswith(written)
    assert b'"error"' in got[len(written) :]
    assert b"[DONE]" not in got


@pytest.mark.parametrize("owner", ["", "you"])
async def test_anothers_log_is_as_one_that_never_was(stores, owner):
    log = await log_in(stores)
    errors = []
    for log_id in (log.id, stores.reads.new_id(), "no id"):
        for ask in (stores.reads.open, stores.reads.stop, stores.reads.delete):
            with pytest.raises(LogGone) as raised:
                await ask(log_id, owner)
            errors.append(str(raised.value))
    assert len({*errors}) == 1


@pytest.mark.parametrize("why", ["done", "failed"])
async def test_a_cursor_at_the_end_has_nothing_left_and_one_behind_it_is_refused(stores, why):
    log = await log_in(stores)
    log.append(b"ab")
    log.end(why, b"c")
    reading = await stores.reads.open(log.id, "me")
    assert await bytes_of(reading) == b"abc"
    at_end = await stores.reads.open(log.id, "me", 3)
    assert at_end.ended == why  # before anything is read
    assert await bytes_of(at_end) == b""
    for reader in (reading, at_end):
        await reader.aclose()
    for far in (4, 2**53 - 2):
        with pytest.raises(BadCursor, match=f"{far:,}"):
            await stores.reads.open(log.id, "me", far)


async def test_an_id_has_one_log(stores):
    log = await log_in(stores)
    log.append(b"a")
    for store in (stores.writes, stores.reads):
        with pytest.raises(StoreDown, match="already"):
            await store.create(log.id, META)
    log.end("done")
    assert await all_of(await stores.reads.open(log.id, "me")) == (b"a", "done")


async def test_stopping_calls_whoever_writes_while_it_lives(stores):
    stopped = []
    log = await log_in(stores, lambda: stopped.append(1))
    await stores.reads.stop(log.id, "me")
    await eventually(lambda: stopped)
    log.end("cancelled")
    await stores.writes.stop(log.id, "me")
    await all_of(await stores.reads.open(log.id, "me"))
    await stores.reads.stop(log.id, "me")
    assert stopped == [1]


async def gone(stores, log_id):
    """Wait until there is no such log."""
    while True:
        try:
            await (await stores.reads.open(log_id, "me")).aclose()
        except LogGone:
            return
        await asyncio.sleep(0.01)


async def test_a_log_that_is_deleted_is_gone_and_its_writer_stopped(stores):
    stopped = []
    log = await log_in(stores, lambda: stopped.append(1))
    log.append(b"a")
    await stores.reads.delete(log.id, "me")
    await eventually(lambda: stopped)
    log.append(b"b")
    await gone(stores, log.id)
    await eventually(lambda: log.lost == "gone")


async def test_a_log_of_which_nobody_was_told_is_forgotten(stores):
    log = await log_in(stores)
    log.append(b"a")
    log.discard()
    log.append(b"b")
    await gone(stores, log.id)


@pytest.mark.parametrize("size", [LIMITS.log_bytes - 1, LIMITS.log_bytes, LIMITS.log_bytes + 1])
async def test_a_log_that_is_too_long_is_lost(stores, size):
    log = await log_in(stores)
    log.append(b"a")
    reading = await stores.reads.open(log.id, "me")
    assert await anext(reading) == b"a"
    log.append(b"x" * (size - 1))
    if size <= LIMITS.log_bytes:
        assert log.lost is None
        log.end("done")
        assert len(await bytes_of(reading)) == size - 1
    else:
        assert log.lost == "too_long"
        with pytest.raises(LogGone):
            await bytes_of(reading)
        await gone(stores, log.id)
        with pytest.raises(LogGone):
            await log.open()
    await reading.aclose()


async def test_too_many_readers_are_told_to_come_again(stores):
    log = await log_in(stores)
    readings = [await stores.reads.open(log.id, "me") for _ in range(LIMITS.readers)]
    with pytest.raises(StoreDown, match="3 readers"):
        await stores.reads.open(log.id, "me")
    await readings.pop().aclose()
    readings.append(await stores.reads.open(log.id, "me"))
    for reading in readings:
        await reading.aclose()
        await reading.aclose()


async def test_who_writes_knows_when_it_was_last_read(stores):
    log = await log_in(stores)
    loop = asyncio.get_running_loop()
    log.append(b"a")
    assert log.read_at is None
    reading = await stores.reads.open(log.id, "me")
    await anext(reading)
    waiting = asyncio.create_task(bytes_of(reading))
    await eventually(lambda: log.read_at is not None)
    first = log.read_at
    await eventually(lambda: log.read_at > first)  # it is still being read
    log.end("done")
    await waiting
    await reading.aclose()
    assert log.read_at <= loop.time()


async def test_values_are_their_owners(stores):
    await stores.writes.save("a", b"one\ntwo", "me")
    assert await stores.reads.load("a", "me") == b"one\ntwo"
    for name, owner in (("a", "you"), ("a", ""), ("b", "me")):
        with pytest.raises(LogGone):
            await stores.reads.load(name, owner)
    await stores.writes.save("a", b"", "")
    assert await stores.reads.load("a", "") == b""


async def test_a_value_is_kept_for_as_long_as_it_says(stores):
    await stores.writes.save("a", b"one", "me", ttl_s=0.05)
    await stores.writes.save("b", b"two", "me", ttl_s=60.0)
    assert await stores.reads.load("a", "me") == b"one"
    await asyncio.sleep(0.2)
    with pytest.raises(LogGone):
        await stores.reads.load("a", "me")
    assert await stores.reads.load("b", "me") == b"two"
