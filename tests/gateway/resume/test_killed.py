"""Processes that write answers are killed or paused at any moment, while readers drop and resume.

Whatever happens, every reader has a prefix of the answer and the dialect's error, or the whole of it, all the same; and a log
has one end, with nothing of the answer behind it.

Source: resume.md R1, R3, R4, R5, §1.3.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from streamkit.resume import BadCursor
from streamkit.resume.redis_client import END, Keys, fields_of
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.gateway.resume.producer import answer

ROOT = Path(__file__).parents[3]
LOG = logging.getLogger(__name__)
LEASE_S = 1.0
#: Within so long behind a lease readers are told that a process died: half a second (R3), and what a busy machine adds.
TOLD_S = 0.5 + 0.5
SETTINGS = RedisSettings(lease_s=LEASE_S, retry_s=5.0)
#: Events come so far apart at most, so that an answer takes a second or two.
PACE_S = 0.02


async def read(store, log_id, draw):
    """What a client has that reads to the end, how that was, and when; ``draw`` says when it drops and where it goes on."""
    got = bytearray()
    while True:
        reading = await store.open(log_id, "me", len(got))
        left = draw.randint(1, 5) if draw is not None else 1 << 30
        try:
            async for data in reading:
                left -= 1 if reading.ended != "aborted" else 0  # who has a part of the error is told all of it again
                got += data if left else data[: draw.randint(0, len(data))]
                if not left:
                    break
            if left:
                return bytes(got), reading.ended, asyncio.get_running_loop().time()
        finally:
            await reading.aclose()


async def start(url, seed):
    command = (sys.executable, "-m", "tests.gateway.resume.producer", url, str(seed), str(PACE_S), str(LEASE_S))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    return process, (await process.stdout.readline()).decode().strip()


async def moment(store, log_id, seed, whole, process):
    """Wait: a third of the times until nearly all is there, else for any time."""
    draw = random.Random(seed)
    if seed % 3:
        await asyncio.sleep(draw.random() * len(answer(seed)) * PACE_S / 2)
        return
    wanted = whole * draw.choice([0.9, 0.97, 0.999])
    while (await store._found(log_id, "me"))[2].end < wanted and process.returncode is None:  # noqa: ASYNC110 - none is set
        await asyncio.sleep(0.003)
    await asyncio.sleep(draw.random() * 0.04)


async def trial(url, seed, hit):
    """One answer, and what became of it."""
    whole = b"".join(answer(seed))
    store, elsewhere = RedisStore(url, settings=SETTINGS), RedisStore(url, settings=SETTINGS)
    process, log_id = await start(url, seed)
    try:
        draws = [None, None, *(random.Random(seed * 7 + number) for number in range(3))]
        readers = [
            asyncio.create_task(read(each, log_id, draw))
            for each, draw in zip([store, elsewhere, store, elsewhere, store], draws, strict=True)
        ]
        await moment(store, log_id, seed, len(whole), process)
        await hit(process, random.Random(seed))
        hit_at = asyncio.get_running_loop().time()
        seen = await asyncio.gather(*readers)
        late = await read(store, log_id, random.Random(seed))
        told = (await process.stdout.read()).decode().split()
        await process.wait()
        await _cursors(store, log_id, late)
        entries = await store.calls.call("XRANGE", Keys("sk").log(log_id), "-", "+")
        return whole, [*seen, late], max(at for *_, at in seen) - hit_at, told, entries
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await store.close()
        await elsewhere.close()


async def _cursors(store, log_id, late):
    """A client may have bytes that no store has; of a whole answer none has more than there is."""
    got, ended, _ = late
    with pytest.raises(BadCursor):
        await store.open(log_id, "me", len(got) + (2 << 20))
    if ended == "aborted":
        reading = await store.open(log_id, "me", len(got) + 7)
        told = b"".join([data async for data in reading])
        await reading.aclose()
        assert told.startswith(b"data: ")
        assert b'"error"' in told


def judge(whole, seen):
    """How it ended, for all."""
    (got, ended), *others = {(got, ended) for got, ended, _ in seen}
    assert not others, "readers disagree"
    if ended == "done":
        assert got == whole
        return ended
    assert ended == "aborted"
    answered, _, told = got.partition(b'data: {"error"')
    assert whole.startswith(answered), "a gap, or a duplicate"
    assert told.endswith(b"}\n\n")
    assert b"[DONE]" not in told
    return ended


def ends_of(entries):
    """The entries that end a log: one, the last."""
    ends = [entry for entry in entries if b"e" in fields_of(entry)]
    assert [entry[0] for entry in ends] == [END] == [entries[-1][0]]
    return fields_of(ends[0])


async def kill(process, _draw):
    with suppress(ProcessLookupError):
        process.kill()


async def pause(process, draw):
    """For less than a lease, or for longer: others take it for dead then."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(draw.choice([0.5, 2.6, 3.0]) * LEASE_S)
        process.send_signal(signal.SIGCONT)


def often(few, many):
    """Cases: a few in the ordinary run."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(few, many))]


@pytest.mark.parametrize("seed", often(1, 100))
async def test_an_answer_whose_process_is_killed_ends_with_an_error_for_everybody(one_server, seed):
    whole, seen, told_s, _, entries = await trial(one_server.url, seed, kill)
    ended = judge(whole, seen)
    ends = ends_of(entries)
    if ended == "aborted":
        assert b"f" in ends
        LOG.info("told after %.2f s", told_s)
        assert told_s < LEASE_S + TOLD_S


@pytest.mark.parametrize("seed", often(0, 100))
async def test_a_process_that_was_paused_too_long_can_t_write_behind_the_end_that_others_wrote(one_server, seed):
    whole, seen, _, told, entries = await trial(one_server.url, seed, pause)
    ended = judge(whole, seen)
    ends_of(entries)
    assert told[0] == "finished", "the process came to its own end all the same"
    assert told[1] == ("None" if ended == "done" else "sealed")
