"""Whatever a server does, who writes an answer does not wait, and nothing is written twice.

Source: resume.md §10, §11; R12, R13, R14, R23, R25.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from contextlib import asynccontextmanager

import pytest
from attrs import evolve

from streamkit.resume import LogGap, LogGone, LogLimits, Meta, StoreDown
from streamkit.resume.redis_client import Keys, entry_of
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.gateway.resume.proxy import proxy
from tests.resume.contract import META, all_of
from tests.resume.servers import running
from tests.web.serving import eventually

FAST = RedisSettings(lease_s=0.8, retry_s=5.0, call_s=0.5, flush_s=0.01)
#: What no append may take of this process's time, whatever Redis does.
APPEND_S = 0.001


@asynccontextmanager
async def two_on(url, settings=FAST, limits=None):
    stores = [RedisStore(url, limits or LogLimits(), settings) for _ in range(2)]
    for store in stores:
        await store.start()
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


async def stored(store, log):
    await eventually(lambda: log.stored == log.size or log.lost, within_s=15)


def timed(log, data):
    """Append, and say what it took."""
    begun = time.thread_time()
    log.append(data)
    return time.thread_time() - begun


class Faults:
    """What a server does in the middle of an answer, and how that ends."""

    def __init__(self, server):
        self.server = server

    def stopped(self):
        self.server.signal(signal.SIGSTOP)
        yield 2 * FAST.lease_s  # nobody can say there that it lives
        self.server.signal(signal.SIGCONT)

    def out_of_memory(self):
        assert self.server.say("CONFIG", "SET", "maxmemory", "1") == "+OK"
        yield 0.4
        self.server.say("CONFIG", "SET", "maxmemory", "0")

    def read_only(self):
        assert self.server.say("REPLICAOF", "127.0.0.1", "1") == "+OK"
        yield 0.4
        self.server.say("REPLICAOF", "NO", "ONE")

    def restarted_with_its_data(self):
        self.server.signal(signal.SIGTERM)
        self.server.process.wait()
        yield 0.4
        self.server.start("--appendonly", "yes")

    def restarted_empty(self):
        self.server.kill()
        yield 0.4
        self.server.start()

    def emptied(self):
        assert self.server.say("FLUSHALL") == "+OK"
        yield 0.1

    def evicted(self):
        for policy, most in (("allkeys-lru", "1"), ("noeviction", "0")):
            assert self.server.say("CONFIG", "SET", "maxmemory-policy", policy) == "+OK"
            assert self.server.say("CONFIG", "SET", "maxmemory", most) == "+OK"
            self.server.say("SET", "x", "y")
        yield 0.1


PASSING = ["stopped", "out_of_memory", "read_only"]
LASTING = ["emptied", "evicted"]


async def in_the_middle(server, name):
    """An answer in whose middle a server fails: its log, the longest append, what readers elsewhere got, then and later."""
    async with two_on(server.url) as (writes, reads):
        log = await writes.create(writes.new_id(), META)
        first = b"first "
        log.append(first)
        await stored(writes, log)
        reading = await reads.open(log.id, "me")
        assert await anext(reading) == first
        there = asyncio.create_task(_told(reading))
        pieces = [b"%d " % number for number in range(40)]
        fault = getattr(Faults(server), name)()
        lasts_s = next(fault)
        longest = 0.0
        for piece in pieces:
            longest = max(longest, timed(log, piece))
            await asyncio.sleep(lasts_s / len(pieces))
        next(fault, None)
        await asyncio.sleep(0.05)
        log.end("done", b"last")
        got = await there
        later = await _told_of(reads, log.id)
        return log, longest, first + b"".join(pieces) + b"last", (first + got if isinstance(got, bytes) else got), later


async def _told(reading):
    try:
        return (await all_of(reading))[0]
    except (LogGone, LogGap, StoreDown) as error:
        return type(error)


async def _told_of(store, log_id):
    try:
        return await _told(await store.open(log_id, "me"))
    except LogGone as error:
        return type(error)


@pytest.mark.parametrize("name", PASSING)
async def test_what_passes_nobody_notices(server, name):
    log, longest, whole, got, later = await in_the_middle(server, name)
    assert (got, later, log.lost) == (whole, whole, None)
    assert longest <= APPEND_S


@pytest.mark.parametrize("name", LASTING)
async def test_a_log_that_the_server_lost_is_an_error_for_readers_and_nothing_for_who_writes(server, name):
    log, longest, _, got, later = await in_the_middle(server, name)
    assert (got, later, log.lost) == (LogGone, LogGone, "gone")
    assert longest <= APPEND_S


@pytest.mark.parametrize("name", ["restarted_with_its_data", "restarted_empty"])
async def test_a_server_that_restarts_has_its_logs_or_has_lost_them(servers, tmp_path, name):
    keeps = name == "restarted_with_its_data"
    kind = servers("valkey").name
    with running(kind, tmp_path, *(("--appendonly", "yes") if keeps else ())) as server:
        log, longest, whole, got, later = await in_the_middle(server, name)
    assert (got, later, log.lost) == ((whole, whole, None) if keeps else (LogGone, LogGone, "gone"))
    assert longest <= APPEND_S


async def test_a_server_that_comes_late_is_used_from_then_on(servers, tmp_path, caplog):
    kind = servers("valkey").name
    with running(kind, tmp_path) as server:
        server.kill()
        async with two_on(server.url, RedisSettings(lease_s=0.3, call_s=0.3)) as (store, _):
            for _ in range(2):
                with pytest.raises(StoreDown):
                    await store.create(store.new_id(), META)
            await asyncio.sleep(0.3)
            server.start()
            await eventually(lambda: "can be used again" in caplog.text)
            log = await store.create(store.new_id(), META)
            log.end("done", b"a")
            await stored(store, log)
    said = [record.message for record in caplog.records if record.name == "streamkit.resume"]
    assert (
        said
        == ["the store of responses can't be used; new responses can't be resumed"] * 2
        + ["the store of responses can be used again"] * 2
    ), "each store says it once"


async def test_a_log_is_lost_where_the_server_is_too_long_away_and_is_deleted_when_it_comes_back(server):
    async with two_on(server.url, RedisSettings(lease_s=0.6, call_s=0.2, behind_bytes=1000)) as (writes, reads):
        logs = [await writes.create(writes.new_id(), META) for _ in range(2)]
        for log in logs:
            log.append(b"a")
            await stored(writes, log)
        server.signal(signal.SIGSTOP)
        try:
            logs[0].append(b"x" * 1000)
            logs[1].append(b"x" * 1000)
            logs[1].append(b"x")
        finally:
            server.signal(signal.SIGCONT)
        assert [log.lost for log in logs] == [None, "behind"]
        assert writes.lost == {"behind": 1}
        await stored(writes, logs[0])
        assert writes.behind_bytes == 0
        await eventually(lambda: writes._writer.is_idle)
        with pytest.raises(LogGone):
            await reads.open(logs[1].id, "me")
        assert await reads.open(logs[0].id, "me", 1001)


async def test_what_all_logs_together_have_behind_is_bounded(server):
    async with two_on(server.url, RedisSettings(call_s=0.2, all_behind_bytes=1500)) as (writes, _):
        logs = [await writes.create(writes.new_id(), META) for _ in range(2)]
        server.signal(signal.SIGSTOP)
        try:
            for log in logs:
                log.append(b"x" * 1000)
        finally:
            server.signal(signal.SIGCONT)
        assert [log.lost for log in logs] == [None, "behind"]
        assert writes.behind_bytes == 1000


async def test_the_copy_in_memory_goes_once_the_end_is_stored_and_nobody_reads_it(server):
    async with two_on(server.url) as (writes, _):
        log = await writes.create(writes.new_id(), META)
        reading = await log.open()
        log.end("done", b"x" * 100_000)
        await eventually(lambda: writes.live == 0)
        assert writes.held_bytes > 100_000
        assert len((await all_of(reading))[0]) == 100_000
        await eventually(lambda: writes.held_bytes == 0)
        assert len((await all_of(await log.open()))[0]) == 100_000  # from Redis


async def test_an_append_whose_answer_is_lost_is_not_written_twice(server):
    draw = random.Random(3)
    async with proxy(server.port) as between, two_on(f"redis://127.0.0.1:{between.port}/0") as (writes, _):
        log = await writes.create(writes.new_id(), META)
        between.swallows = lambda answer: b"-0\r\n" in answer and draw.random() < 0.5
        pieces = [b"%d" % number * draw.randint(1, 20) for number in range(12)]
        for piece in pieces[:-1]:
            log.append(piece)
            await asyncio.sleep(0.1)  # more comes while the answer to what was sent is lost
        log.end("done", pieces[-1])
        await eventually(lambda: writes.live == 0, within_s=15)
        assert between.swallowed >= 3
        between.swallows = lambda _answer: False
        found = await writes.calls.call("XRANGE", Keys("sk").log(log.id), "-", "+")
    assert log.lost is None
    entries = [entry_of(raw) for raw in found[1:]]
    assert b"".join(entry.data for entry in entries) == b"".join(pieces), "nothing twice, not in another entry either"
    assert [entry.begin for entry in entries] == [0, *(entry.end for entry in entries[:-1])]


async def test_a_process_that_was_silent_for_a_lease_asks_before_it_serves_its_own_copy(server):
    async with proxy(server.port) as between, two_on(server.url) as (_, reads):
        writes = RedisStore(f"redis://127.0.0.1:{between.port}/0", settings=FAST)
        try:
            log = await writes.create(writes.new_id(), Meta(dialect="openai-chat"))
            log.append(b'data: {"choices":[]}\n\n')
            await stored(writes, log)
            reading = await reads.open(log.id)
            between.cut()
            got, ended = await all_of(reading)
            assert ended == "aborted", "it was taken for dead"
            here = await writes.open(log.id)
            assert await anext(here) == b'data: {"choices":[]}\n\n', "nobody can be asked, and the copy is true"
            await here.aclose()
            between.is_cut = False
            await eventually(lambda: writes._alive_at > asyncio.get_running_loop().time() - 0.3, within_s=5)
            assert await all_of(await writes.open(log.id)) == (got, "aborted")
            assert log.lost == "sealed"
        finally:
            await writes.close()


async def test_the_end_is_flushed_and_the_process_gone_when_the_store_is_closed(server):
    async with two_on(server.url) as (writes, reads):
        log = await writes.create(writes.new_id(), META)
        reading = await reads.open(log.id, "me")
        left = await writes.create(writes.new_id(), Meta(dialect="anthropic"))
        log.append(b"a")
        log.end("shut_down", b"stopped")
        await writes.close()
        assert server.say("EXISTS", f"sk:node:{writes.boot}") == ":0"
        assert await all_of(reading) == (b"astopped", "shut_down")
        got, ended = await all_of(await reads.open(left.id))
        assert ended == "aborted", "nobody ended it"
        assert b'"error"' in got


async def test_every_key_expires(server):
    async with two_on(server.url, limits=LogLimits(ttl_s=60)) as (writes, _):
        logs = [await writes.create(writes.new_id(), META) for _ in range(3)]
        logs[0].append(b"a")
        logs[1].end("done")
        await writes.save("v", b"a")
        await eventually(lambda: writes.live == 2)
        keys = await writes.calls.call("KEYS", "*")
        lives = {key: await writes.calls.call("PTTL", key) for key in keys}
        assert len(lives) == 6  # three logs, a value, two processes
        assert all(0 < ms <= 180_000 for ms in lives.values())
        assert 0 < lives[logs[1].key] <= 60_000
        assert server.say("PEXPIRE", logs[0].key.decode(), "5000") == ":1"
        writes._writer._touched_at -= 60
        await writes._beat()
        assert await writes.calls.call("PTTL", logs[0].key) > 100_000


# -- failover ----------------------------------------------------------------------------------------------------------


async def failover(kind, folder, wait_replicas):
    """An answer whose master dies after it was parted from its replica; what a reader got, and the log."""
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    settings = RedisSettings(lease_s=2.0, call_s=0.4, flush_s=0.01, wait_replicas=wait_replicas)
    at_once = ("--repl-diskless-sync-delay", "0")
    with running(kind, folder / "a", *at_once) as master, running(kind, folder / "b", *at_once) as replica:
        async with proxy(master.port) as link, proxy(master.port) as front:
            assert replica.say("REPLICAOF", "127.0.0.1", str(link.port)) == "+OK"
            await eventually(lambda: ":1" in master.say("WAIT", "1", "100"), within_s=20)
            async with two_on(f"redis://127.0.0.1:{front.port}/0", settings) as (writes, reads):
                log = await writes.create(writes.new_id(), META)
                log.append(b"before ")
                await stored(writes, log)
                await asyncio.sleep(0.1)
                link.cut()
                for number in range(10):
                    log.append(b"parted %d " % number)
                    await asyncio.sleep(0.02)
                confirmed = log.stored
                front.cut()
                master.kill()
                assert replica.say("REPLICAOF", "NO", "ONE") == "+OK"
                front.targets, front.is_cut = [replica.port], False
                log.append(b"after")
                writes._writer._settings = evolve(writes._writer._settings, wait_replicas=0)  # the new master has none
                log.end("done")
                await eventually(lambda: writes.live == 0, within_s=10)
                return await _told_of(reads, log.id), confirmed, log


@pytest.mark.exhaustive
async def test_after_a_failover_what_is_missing_is_a_gap(servers, tmp_path):
    got, confirmed, log = await failover(servers("redis").name, tmp_path, 0)
    assert confirmed == log.size - len(b"after"), "the master took it all"
    assert got is LogGap


@pytest.mark.exhaustive
async def test_where_replicas_are_waited_for_nothing_is_missing_after_a_failover(servers, tmp_path):
    got, confirmed, _ = await failover(servers("redis").name, tmp_path, 1)
    assert confirmed == len(b"before "), "nothing behind the partition was confirmed"
    assert got == b"before " + b"".join(b"parted %d " % number for number in range(10)) + b"after"
