"""Readers of another process's log: one end, errors in the place of silence, and nothing left behind.

Source: resume.md R5, R13, R14, R21.
"""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress

import pytest
from attrs import evolve

from streamkit.resume import LogGap, LogGone, LogLimits, StoreDown, redis_reading
from streamkit.resume.redis_client import END, Append, creation
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.resume.contract import EVENT, META, all_of, bytes_of
from tests.web.serving import eventually

FAST = RedisSettings(lease_s=0.8, retry_s=0.8, call_s=0.5, flush_s=0.005)
#: A process that lives no more.
DEAD = "deaddeaddead"


@pytest.fixture
async def stores(server):
    made = [RedisStore(server.url, LogLimits(readers=1000), FAST) for _ in range(2)]
    for store in made:
        await store.start()
    yield made
    for store in made:
        await store.close()


async def written(store, log_id, *pieces, boot=DEAD, ended=None):
    """A log as a process wrote it; returns its key."""
    key = store._keys.log(log_id)
    await store.calls.call(*creation(key, META, boot))
    begin = 0
    for piece in pieces:
        append = Append(begin=begin, data=piece)
        await store.calls.call(*append.command(key))
        begin = append.end
    if ended:
        await store.calls.call(*Append(begin=begin, data=b"", ended=ended).command(key))
    return key


async def test_fifty_readers_of_a_dead_log_write_one_end_and_are_told_the_same(stores):
    log_id = stores[0].new_id()
    key = await written(stores[0], log_id, EVENT)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    told = await asyncio.gather(*[all_of(await stores[n % 2].open(log_id, "me")) for n in range(50)])
    assert len({*told}) == 1
    assert told[0][0].startswith(EVENT + b'data: {"error":')
    assert told[0][1] == "aborted"
    assert loop.time() - begun >= FAST.lease_s, "a log is dead once it was quiet for a lease"
    entries = await stores[0].calls.call("XRANGE", key, "-", "+")
    assert [entry[0] for entry in entries[2:]] == [END]


async def test_where_the_end_can_t_be_written_its_readers_get_the_error_all_the_same(stores, server):
    log_id = stores[0].new_id()
    await written(stores[0], log_id, EVENT)
    reading = await stores[0].open(log_id, "me")
    assert server.say("CONFIG", "SET", "maxmemory", "1") == "+OK"
    try:
        got, ended = await all_of(reading)
    finally:
        server.say("CONFIG", "SET", "maxmemory", "0")
    assert (got[: len(EVENT)], ended) == (EVENT, "aborted")
    assert b'"error"' in got


async def test_a_log_that_is_quiet_while_its_process_lives_is_waited_for(stores):
    writes, reads = stores
    log = await writes.create(writes.new_id(), META)
    log.append(b"a")
    reading = asyncio.create_task(all_of(await reads.open(log.id, "me")))
    await asyncio.sleep(2.5 * FAST.lease_s)
    log.end("done", b"b")
    assert await reading == (b"ab", "done")


async def test_a_process_that_dies_while_its_log_is_quiet_is_dead_when_its_lease_is_over(stores):
    writes, reads = stores
    log = await writes.create(writes.new_id(), META)
    log.append(EVENT)
    reading = asyncio.create_task(all_of(await reads.open(log.id, "me")))
    loop, node = asyncio.get_running_loop(), f"sk:node:{writes.boot}"
    await asyncio.sleep(1.3 * FAST.lease_s)  # it was looked at, and lived
    writes._tasks[-1].cancel()  # its beat
    left_s = await reads.calls.call("PTTL", node) / 1000
    dies_at = loop.time() + left_s
    assert (await reading)[1] == "aborted"
    assert 0 <= loop.time() - dies_at + 0.01 < FAST.lease_s, "not another lease of silence"


async def test_a_reader_ahead_of_the_store_waits_for_what_it_has_not_got(stores):
    writes, reads = stores
    log_id = writes.new_id()
    key = await written(writes, log_id, b"abc", boot=writes.boot)
    reading = asyncio.create_task(all_of(await reads.open(log_id, "me", 5)))
    await asyncio.sleep(0.02)
    await writes.calls.call(*Append(begin=3, data=b"defg").command(key))
    await writes.calls.call(*Append(begin=7, data=b"h", ended="done").command(key))
    assert await reading == (b"fgh", "done")


@pytest.mark.parametrize("foreign", [("SET", "x"), ("XADD", "9007199254740991-0", "e", "done", "at", "9" * 5000)])
async def test_what_another_program_writes_fails_the_readers_of_that_log_alone(stores, foreign):
    writes, reads = stores
    log, spoilt = await writes.create(writes.new_id(), META), writes.new_id()
    key = await written(writes, spoilt, b"abc", boot=writes.boot)
    both = [asyncio.create_task(all_of(await reads.open(log_id, "me"))) for log_id in (log.id, spoilt)]
    await asyncio.sleep(0.05)  # the hub waits for both
    command, *words = foreign
    if command == "SET":
        await writes.calls.call("DEL", key)
    await writes.calls.call(command, key, *words)
    with pytest.raises(LogGap):
        await both[1]
    log.append(b"a")
    log.end("done", b"b")
    assert await both[0] == (b"ab", "done")


async def test_a_foreign_key_in_place_of_a_process_s_messages_is_replaced(stores):
    writes, reads = stores
    log = await writes.create(writes.new_id(), META)
    await reads.calls.call("SET", reads._keys.node(reads.boot), "x")
    reading = asyncio.create_task(all_of(await reads.open(log.id, "me")))
    await asyncio.sleep(2 * FAST.lease_s)
    log.end("done", b"ab")
    assert await reading == (b"ab", "done")
    assert reads._hub._down_since is None


async def test_what_was_deleted_in_the_middle_is_a_gap_for_those_before_it_only(stores):
    reads = stores[1]
    log_id = reads.new_id()
    key = await written(reads, log_id, b"aa", b"bb", b"cc", ended="done")
    assert await reads.calls.call("XDEL", key, "4-0") == 1
    for after in (0, 1, 2, 3):
        with pytest.raises(LogGap, match="to 4 of the response"):
            await all_of(await reads.open(log_id, "me", after))
    assert await all_of(await reads.open(log_id, "me", 4)) == (b"cc", "done")


async def test_a_gap_in_what_comes_is_an_error(stores):
    writes, reads = stores
    log_id = writes.new_id()
    key = await written(writes, log_id, b"aa", boot=writes.boot)
    reading = await reads.open(log_id, "me")
    assert await anext(reading) == b"aa"
    waiting = asyncio.create_task(anext(reading))
    await asyncio.sleep(0.05)
    await writes.calls.call(*Append(begin=4, data=b"cc").command(key))
    with pytest.raises(LogGap):
        await waiting
    await reading.aclose()


async def test_an_entry_of_somebody_else_is_an_error_for_the_readers_of_its_log_only(stores):
    writes, reads = stores
    spoilt, fine = writes.new_id(), writes.new_id()
    keys = [await written(writes, log_id, b"aa", boot=writes.boot) for log_id in (spoilt, fine)]
    readers = [await reads.open(log_id, "me") for log_id in (spoilt, fine)]
    for reading in readers:
        assert await anext(reading) == b"aa"
    waiting = [asyncio.create_task(anext(reading)) for reading in readers]
    await asyncio.sleep(0.05)
    await writes.calls.call("XADD", keys[0], "9-7", "d", "zz")
    await writes.calls.call(*Append(begin=2, data=b"bb").command(keys[1]))
    with pytest.raises(LogGap, match="invalid"):
        await waiting[0]
    assert await waiting[1] == b"bb"
    for reading in readers:
        await reading.aclose()


async def test_a_key_that_is_deleted_under_a_quiet_reader_is_an_error(stores):
    writes, reads = stores
    key = await written(writes, log_id := writes.new_id(), b"aa", boot=writes.boot)
    reading = await reads.open(log_id, "me")
    await writes.calls.call("DEL", key)
    with pytest.raises(LogGone):
        await bytes_of(reading)
    await reading.aclose()


async def test_readers_wait_for_a_server_and_give_up_in_time(stores, server):
    writes, reads = stores
    reads.settings = evolve(FAST, lease_s=20.0)  # it is not silence that they give up for
    loop = asyncio.get_running_loop()
    key = await written(writes, log_id := writes.new_id(), b"aa", boot=writes.boot)
    readers = [await reads.open(log_id, "me") for _ in range(2)]
    assert await anext(readers[0]) == b"aa"
    waiting = asyncio.create_task(anext(readers[0]))
    await asyncio.sleep(0.02)
    server.signal(signal.SIGSTOP)
    begun = loop.time()
    try:
        for ask in (waiting, anext(readers[1])):  # one waits for what comes, one for what is there
            with pytest.raises(StoreDown):
                await ask
        assert FAST.retry_s <= loop.time() - begun < 2 * FAST.retry_s + 4 * FAST.call_s
        begun = loop.time()
        with pytest.raises(StoreDown):
            await reads.open(log_id, "me")
        assert loop.time() - begun < FAST.retry_s, "who comes meanwhile is told at once"
    finally:
        server.signal(signal.SIGCONT)
    for reading in readers:
        await reading.aclose()
    assert key


async def test_a_reader_that_is_slow_reads_again_what_it_had_no_room_for(stores, monkeypatch):
    monkeypatch.setattr(redis_reading, "WAITING_BYTES", 1000)
    monkeypatch.setattr(redis_reading, "PAGE", 4)
    writes, reads = stores
    log = await writes.create(writes.new_id(), META)
    log.append(b"first")
    reading = await reads.open(log.id, "me")
    got = await anext(reading)
    waiting = asyncio.create_task(anext(reading))
    await asyncio.sleep(0.05)
    pieces = [b"%03d" % number * 50 for number in range(40)]
    for piece in pieces:
        log.append(piece)
        await asyncio.sleep(0.006)
    log.end("done", b"last")
    await eventually(lambda: writes.live == 0)
    await asyncio.sleep(0.05)
    assert sum(len(entry.data) for entry in reading._entries) <= 1000 + 4 * 150
    got += await waiting
    assert (got + await bytes_of(reading), reading.ended) == (b"first" + b"".join(pieces) + b"last", "done")
    await reading.aclose()


async def test_a_new_reader_is_handed_what_comes_at_once(stores, monkeypatch):
    writes, reads = stores
    monkeypatch.setattr(redis_reading, "BLOCK_S", 2.0)
    reads.settings = evolve(FAST, lease_s=20.0)
    await asyncio.sleep(0.6)  # the last beat is over, and the task waits at the server
    key = await written(writes, log_id := writes.new_id(), b"aa", boot=writes.boot)
    reading = await reads.open(log_id, "me")
    assert await anext(reading) == b"aa"
    waiting = asyncio.create_task(anext(reading))
    await asyncio.sleep(0.02)
    begun = asyncio.get_running_loop().time()
    await writes.calls.call(*Append(begin=2, data=b"bb").command(key))
    assert await waiting == b"bb"
    assert asyncio.get_running_loop().time() - begun < 0.5
    await reading.aclose()


async def test_a_thousand_readers_that_are_cancelled_leave_nothing(stores, server):
    writes, reads = stores
    writes.calls.call_s = reads.calls.call_s = 10.0  # it is not for a busy machine that they end
    draw = random.Random(5)
    logs = [await writes.create(writes.new_id(), META) for _ in range(20)]
    for log in logs:
        log.append(b"a" * 100)
    await eventually(lambda: all(log.stored for log in logs))
    before = asyncio.all_tasks()

    async def read(log):
        reading = await reads.open(log.id, "me")
        try:
            await bytes_of(reading)
        finally:
            await reading.aclose()

    readers = [asyncio.create_task(read(draw.choice(logs))) for _ in range(1000)]
    draw.shuffle(readers)
    for number, reader in enumerate(readers):
        reader.cancel()
        if number % 10 == 0:
            await asyncio.sleep(draw.random() * 0.002)
            draw.choice(logs).append(b"b")
    for reader in readers:
        with suppress(asyncio.CancelledError):
            await reader
    await eventually(lambda: asyncio.all_tasks() == before)
    assert not reads._hub._watched
    assert not reads._hub.readers
    lists = (await reads.calls.call("CLIENT", "LIST")).decode().splitlines()
    assert len(lists) <= 2 * 18, "two stores have a pool each"
    await eventually(lambda: server.say("PING") == "+PONG")
    blocked = [line for line in lists if " cmd=xread" in line]
    assert len(blocked) <= 2, "each store has one task that waits"
    assert await all_of(await _ended(reads, logs[0])) == (b"a" * 100 + b"b" * (logs[0].size - 100), "done")


async def _ended(store, log):
    log.end("done")
    return await store.open(log.id, "me")
