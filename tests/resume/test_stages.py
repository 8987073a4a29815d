"""A log at the end of a pipe says how the pipe ended, and gives the same bytes again."""

from __future__ import annotations

import pytest

from streamkit.errors import SourceFailed
from streamkit.pipeline import pipe
from streamkit.recipes import transcode
from streamkit.resume import LogGone, MemoryStore, Meta, StoredLog, keep, read
from streamkit.testing import FaultySource, PlannedFailure, open_sources, source_of
from streamkit.web.reply import Entered
from tests.laws.running import OURS
from tests.resume.answers import frames_of

FRAMES = frames_of("openai-chat", next(s.body for s in OURS if s.dialect == "openai-chat" and s.name == "text"))
META = Meta(dialect="openai-chat", owner="me")


def kept(source, log):
    stream = transcode(source, "openai-chat", "openai-chat")
    return pipe(Entered(stream), keep(log), report=stream.report)


async def made():
    store = MemoryStore()
    return store, await store.create(store.new_id(), META)


async def test_what_passes_is_kept_and_the_end_is_the_reports():
    store, log = await made()
    async with kept(source_of(FRAMES), log) as answer:
        got = b"".join([chunk async for chunk in answer])
    assert got == b"".join(FRAMES)
    assert log.ended == "done"
    for after in (0, 7, len(got)):
        assert b"".join([chunk async for chunk in read(log, after=after)]) == got[after:]
        assert b"".join([chunk async for chunk in read(StoredLog(store, log.id, "me"), after=after)]) == got[after:]


async def test_a_cut_answer_is_kept_as_failed_with_its_error():
    _, log = await made()
    async with kept(source_of(FRAMES[:1]), log) as answer:
        got = b"".join([chunk async for chunk in answer])
    assert log.ended == "failed"
    assert b'"error"' in got
    assert b"".join([chunk async for chunk in read(log)]) == got


async def test_a_source_that_fails_is_kept_with_its_error():
    _, log = await made()
    with pytest.raises(PlannedFailure):
        async with kept(FaultySource(FRAMES, fail_after=1), log) as answer:
            async for _ in answer:
                pass
    assert log.ended == "failed"
    assert b'"error"' in b"".join([chunk async for chunk in read(log)])


async def test_an_answer_that_is_left_is_told_as_broken_off():
    _, log = await made()
    source = FaultySource(FRAMES)
    async with kept(source, log) as answer:
        await anext(answer)
    assert open_sources() == 0
    assert log.ended == "aborted"
    assert b"the response was interrupted" in b"".join([chunk async for chunk in read(log)])


async def test_nothing_says_that_it_is_whole_before_its_end_is_there():
    """The terminator and the end are appended together (resume.md §6.5)."""
    _, log = await made()
    async with kept(source_of(FRAMES), log) as answer:
        async for _ in answer:
            assert log.ended or b"[DONE]" not in log.data
    assert log.ended == "done"


async def test_what_can_not_be_read_is_a_failed_source():
    store, log = await made()
    for stored, why in ((StoredLog(store, log.id, "you"), LogGone), (StoredLog(store, log.id, "me"), None)):
        if why:
            with pytest.raises(SourceFailed) as raised:
                await anext(read(stored))
            assert isinstance(raised.value.__cause__, why)
    log.append(b"x")
    reading = read(log)
    assert await anext(reading) == b"x"
    log.discard()
    with pytest.raises(SourceFailed, match="no longer"):
        await anext(reading)


async def test_a_reader_that_leaves_is_counted_out():
    _, log = await made()
    log.append(b"x")
    reading = read(log)
    await anext(reading)
    assert log.readers == 1
    await reading.aclose()
    assert log.readers == 0
