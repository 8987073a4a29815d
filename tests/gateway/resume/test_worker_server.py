"""A worker's socket: what it refuses, and how it stops."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from streamkit.resume import worker_store
from streamkit.resume.worker_store import ERROR, FRAME_BYTES, QUESTION, Frames, frame, socket_path
from tests.gateway.resume.test_worker_wire import header
from tests.resume.contract import EVENT, all_of, log_in


@pytest.mark.parametrize(
    "sent",
    [
        b"no frame at all",
        frame(b"?", b"[]"),
        frame(QUESTION, b"["),
        frame(QUESTION, b"[]"),
        header(QUESTION, FRAME_BYTES + 1),
        *(
            frame(QUESTION, orjson.dumps(words))
            for words in (["drop", "a", "b", 0], [[], "a", "b", 0], ["open", 1, "b", 0], ["open", "a", None, 0])
        ),
        *(frame(QUESTION, orjson.dumps(["open", "a", "b", after])) for after in (-1, 2**53, 1.0, True, "1")),
    ],
)
async def test_a_question_that_is_none_is_refused_and_the_worker_lives(directory, workers, sent):
    log = await log_in(workers)
    reader, writer = await asyncio.open_unix_connection(socket_path(directory, workers.writes.own.boot))
    writer.write(sent)
    writer.write_eof()
    kind, payload = await Frames(reader).read()
    assert (kind, orjson.loads(payload)[0]) == (ERROR, "down")
    writer.close()
    log.end("done", b"all")
    assert await all_of(await workers.reads.open(log.id, "me")) == (b"all", "done")


async def test_readers_elsewhere_get_the_rest_of_what_ended_as_the_worker_stopped(workers):
    log = await log_in(workers)
    readings = [await workers.reads.open(log.id, "me") for _ in range(3)]
    log.end("shut_down", b"x" * 150_000)
    _, *read = await asyncio.gather(workers.writes.close(), *map(all_of, readings))
    assert read == [(b"x" * 150_000, "shut_down")] * 3


async def test_a_worker_that_stops_waits_for_no_reader_for_long(workers, monkeypatch):
    monkeypatch.setattr(worker_store, "CLOSE_S", 0.05)
    log = await log_in(workers)
    log.append(EVENT)
    reading = await workers.reads.open(log.id, "me")
    await asyncio.wait_for(workers.writes.close(), 2)
    data, ended = await all_of(reading)
    assert (data.startswith(EVENT), b'"error"' in data, ended) == (True, True, "aborted")
