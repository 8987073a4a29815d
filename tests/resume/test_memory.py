"""The default store: what it keeps, for how long, and what it lets go of."""

from __future__ import annotations

import asyncio

import pytest

from streamkit.resume import BadCursor, LogGone, LogLimits, MemoryStore, StoreDown
from tests.resume.contract import *  # noqa: F403 - the tests are its
from tests.resume.contract import LIMITS, META, Stores


@pytest.fixture
async def stores():
    store = MemoryStore(LIMITS)
    yield Stores(store, store)
    await store.close()


async def test_a_cursor_behind_the_end_is_refused():
    store = MemoryStore()
    log = await store.create(store.new_id(), META)
    log.append(b"abc")
    assert await store.open(log.id, "me", 3)
    with pytest.raises(BadCursor, match="4"):
        await store.open(log.id, "me", 4)


async def test_logs_expire_behind_their_end():
    store = MemoryStore(LogLimits(ttl_s=0.02))
    live, over = [await store.create(store.new_id(), META) for _ in range(2)]
    over.end("done", b"abc")
    await asyncio.sleep(0.05)
    assert await store.open(live.id, "me")
    with pytest.raises(LogGone):
        await store.open(over.id, "me")
    assert (store.live, store.kept) == (1, 0)


@pytest.mark.parametrize("size", [9, 10, 11])
async def test_a_log_that_is_too_long_is_lost_and_takes_no_memory(size):
    store = MemoryStore(LogLimits(log_bytes=10))
    log = await store.create(store.new_id(), META)
    reading = await store.open(log.id, "me")
    log.append(b"x" * size)
    assert log.lost == (None if size <= 10 else "too_long")
    if log.lost:
        with pytest.raises(LogGone):
            await anext(reading)
        assert store.held_bytes > 0, "its reader may have to say what went wrong"
        await reading.aclose()
        assert store.held_bytes == 0
    else:
        assert await anext(reading) == b"x" * size


async def test_where_logs_are_full_those_that_ended_first_go():
    store = MemoryStore(LogLimits(all_bytes=10_000))
    logs = [await store.create(store.new_id(), META) for _ in range(3)]
    for log in logs[:2]:
        log.end("done", b"x" * 1000)
    logs[2].append(b"x" * 3000)
    with pytest.raises(LogGone):
        await store.open(logs[0].id, "me")
    assert await store.open(logs[1].id, "me")
    logs[2].append(b"x" * 6000)  # more than there is, with nobody left to go
    assert logs[2].lost == "full"


async def test_no_log_is_made_where_live_ones_fill_it():
    store = MemoryStore(LogLimits(all_bytes=5000))
    await store.create(store.new_id(), META)
    await store.create(store.new_id(), META)
    with pytest.raises(StoreDown, match="full"):
        await store.create(store.new_id(), META)


async def test_values_without_bytes_fill_it_too():
    store = MemoryStore(LogLimits(all_bytes=10_000))
    for number in range(1000):
        await store.save(f"v{number}", b"", "me")
    assert 5_000 < store.held_bytes <= 10_000
    assert await store.load("v999", "me") == b""
    with pytest.raises(LogGone):
        await store.load("v0", "me")
    await store.close()


async def test_values_are_kept_and_expire():
    store = MemoryStore(LogLimits(ttl_s=0.02))
    await store.save("a", b"value", "me")
    assert await store.load("a", "me") == b"value"
    with pytest.raises(LogGone):
        await store.load("a", "you")
    await asyncio.sleep(0.05)
    with pytest.raises(LogGone):
        await store.load("a", "me")
    assert store.held_bytes == 0
