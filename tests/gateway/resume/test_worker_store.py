"""The store of several workers: each reads the logs of the others, and hears of it when one of them dies."""

from __future__ import annotations

import asyncio
import random

import orjson
import pytest

from streamkit.resume import LogGone, MemoryStore, StoreDown, closing, worker_store
from streamkit.resume.memory import new_boot
from streamkit.resume.worker_store import (
    DATA,
    ERROR,
    FRAME_BYTES,
    OPENED,
    Frames,
    Question,
    WorkerStore,
    frame,
    opened_frame,
    socket_path,
)
from tests.gateway.resume.test_worker_wire import header
from tests.resume.contract import *  # noqa: F403 - the tests of every store
from tests.resume.contract import LIMITS, META, all_of, log_in
from tests.web.leaks import in_use
from tests.web.serving import eventually


@pytest.fixture
def stores(workers):
    return workers


EVENT = b'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"some text"}}]}\n\n'


async def dead_behind(directory, sent):
    """A worker that sends so much of an answer and dies; the id of its log."""
    boot = new_boot()
    log_id = f"st_{'a' * 22}.{boot}"

    async def die(reader, writer):
        Question.read(*await Frames(reader).read())
        writer.write(sent)
        await writer.drain()
        writer.close()

    return log_id, await asyncio.start_unix_server(die, socket_path(directory, boot))


@pytest.mark.parametrize("after", [0, 7, len(EVENT), len(EVENT) + 20])
@pytest.mark.parametrize("torn", [0, 1, 40])
async def test_readers_of_a_dead_worker_get_the_dialects_error_behind_what_there_was(directory, stores, after, torn):
    log = EVENT * 2 + EVENT[:torn]
    pieces = [log[at : at + 50] for at in range(0, len(log), 50)]
    sent = opened_frame(META, None) + b"".join(frame(DATA, piece) for piece in pieces) + frame(DATA, b"lost")[:7]
    log_id, server = await dead_behind(directory, sent)
    async with server:
        data, ended = await all_of(await stores.reads.open(log_id, "me", after))
    assert data.startswith(log[after:])
    assert (ended, data.count(b'"error"'), b"[DONE]" in data) == ("aborted", 1, False)
    assert data == log[after:] + closing(META, log)


async def test_nothing_follows_an_answer_that_was_whole_when_its_worker_died(directory, stores):
    log = (
        EVENT
        + EVENT.replace(b'"delta":{"content":"some text"}', b'"delta":{},"finish_reason":"stop"')
        + b"data: [DONE]\n\n"
    )
    log_id, server = await dead_behind(directory, opened_frame(META, None) + frame(DATA, log))
    async with server:
        assert await all_of(await stores.reads.open(log_id, "me")) == (log, "aborted")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(b"?"),
        frame(DATA, b"no meta"),
        header(OPENED, FRAME_BYTES + 1) + b"x" * 100,
        header(OPENED, 2**32 - 1),
        frame(OPENED, b"{"),
        frame(OPENED, b"[{},null]"),
        frame(OPENED, orjson.dumps([{"dialect": "no-such"}, None])),
        frame(OPENED, orjson.dumps([{"dialect": "openai-chat", "is_array": 1}, None])),
        frame(OPENED, orjson.dumps([{"dialect": "openai-chat", "more": 1}, None])),
        frame(OPENED, orjson.dumps([{"dialect": "openai-chat"}, "well"])),
        frame(ERROR, b"[]"),
        frame(ERROR, orjson.dumps(["what", "else"])),
        frame(ERROR, orjson.dumps([["gone"], "else"])),
    ],
)
async def test_another_that_says_nonsense_is_one_that_can_not_be_reached(directory, stores, sent):
    log_id, server = await dead_behind(directory, sent)
    async with server:
        with pytest.raises(StoreDown):
            await stores.reads.open(log_id, "me")
        with pytest.raises(StoreDown):
            await stores.reads.stop(log_id, "me")


@pytest.mark.parametrize(
    "boot", ["../../../../x", "..", "a/b/c/d/e/f", "%2e%2e%2f%2e%2e", "aaaaaaaaaaaa\n", "aaaaaaaaaaaa\0"]
)
async def test_no_id_names_another_path(stores, boot):
    for ask in (stores.reads.open, stores.reads.stop, stores.reads.delete):
        with pytest.raises(LogGone):
            await ask(f"st_{'a' * 22}.{boot}", "me")


async def test_a_worker_that_does_not_answer_is_told_of_within_a_second(directory, stores, monkeypatch):
    monkeypatch.setattr(worker_store, "CALL_S", 0.05)
    boot, hanging = new_boot(), asyncio.Event()

    async def hang(_reader, writer):
        await hanging.wait()
        writer.close()

    async with await asyncio.start_unix_server(hang, socket_path(directory, boot)):
        with pytest.raises(StoreDown, match="does not respond"):
            await stores.reads.open(f"st_{'a' * 22}.{boot}")
        with pytest.raises(StoreDown, match="does not respond"):
            await stores.reads.load("a value")
        hanging.set()


async def test_a_log_is_none_of_others_where_its_worker_is_gone(directory, stores):
    log = await log_in(stores)
    path = socket_path(directory, stores.writes.own.boot)
    assert path.is_socket()
    await stores.writes.close()
    assert not path.exists()
    with pytest.raises(LogGone):
        await stores.reads.open(log.id, "me")


async def test_a_log_that_is_lost_while_others_read_it_is_gone_for_them_too(stores):
    log = await log_in(stores)
    reading = await stores.reads.open(log.id, "me")
    log.append(b"x" * (LIMITS.log_bytes + 1))
    with pytest.raises(LogGone, match="too_long"):
        await anext(reading)
    await reading.aclose()
    assert stores.writes.lost == {"too_long": 1}


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES - 8, FRAME_BYTES - 7, 300_000])
async def test_values_of_any_size_are_found_wherever_they_are(stores, size):
    await stores.writes.save("a name\n\0", b"x" * size, "me")
    assert await stores.reads.load("a name\n\0", "me") == b"x" * size
    with pytest.raises(LogGone):
        await stores.reads.load("a name\n\0", "you")
    with pytest.raises(LogGone):
        await stores.reads.load("a name" * FRAME_BYTES, "me")


async def test_of_two_values_of_one_name_the_newer_counts(stores):
    for number in range(4):
        await (stores.writes, stores.reads)[number % 2].save("a", b"%d" % number)
        assert [await store.load("a") for store in (stores.writes, stores.reads)] == [b"%d" % number] * 2


async def test_a_thousand_readers_that_leave_anywhere_leave_nothing_behind(stores):
    draw = random.Random(21)
    logs = [await log_in(stores) for _ in range(100)]
    before = await in_use()

    async def read(log):
        reading = await stores.reads.open(log.id, "me")
        try:
            async for _ in reading:
                pass
        finally:
            await reading.aclose()

    for _ in range(4):  # 250 at once, since each takes two descriptors
        tasks = [asyncio.create_task(read(logs[number % 100])) for number in range(250)]
        for number in range(20):
            logs[number].append(EVENT)
            await asyncio.sleep(0.002)
            for task in draw.sample(tasks, 13):
                task.cancel()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        await eventually(lambda: not any(log.readers for log in logs))
    assert await in_use() == before


async def test_where_no_socket_can_be_made_nothing_is_kept_and_it_is_logged_once(directory, caplog):
    store = WorkerStore(MemoryStore(LIMITS, boot=new_boot()), directory / "gone")
    for _ in range(2):
        with pytest.raises(StoreDown, match="no such file"):
            await store.create(store.new_id(), META)
        with pytest.raises(StoreDown, match="no such file"):
            await store.save("a", b"value")
    assert [record.message for record in caplog.records] == ["other workers can't read this worker's responses"]
    assert (store.live, store.kept, store.held_bytes) == (0, 0, 0)
    await store.close()
