"""Without an event loop a pipe gives what it gives in one: output, report, errors, and a prompt close."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from streamkit import (
    ReadOptions,
    SourceFailed,
    Status,
    SyncPipe,
    UsageError,
    collect,
    collect_sync,
    decode,
    parse_sse,
    pipe,
    source_of,
    transcode,
    transcode_sync,
)
from tests.docs.pages import DEMO
from tests.sampling import few, name_of
from tests.vectors import VECTORS

BODY = DEMO.read_bytes()
HALF = len(BODY) // 2
PIECE_BYTES = 97  # no multiple of anything
FIXED = ReadOptions(make_id="{}made".format)
CLOCK = {"clock": lambda: 0.0}
NAMES = "openai-chat", "anthropic"


def pieces_of(body):
    return [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]


def facts(report):
    return report.status, report.repairs, report.losses, str(report.error)


async def awaited(pieces, source, target):
    async with transcode(source_of(pieces), source, target, FIXED, **CLOCK) as stream:
        return [chunk async for chunk in stream], stream.report


@pytest.mark.parametrize("vector", few(VECTORS, 12, "without an event loop", name=name_of))
def test_output_and_report_are_those_of_the_pipe(vector):
    pieces = pieces_of(vector.body)
    with transcode_sync(pieces, vector.dialect, "anthropic", FIXED, **CLOCK) as stream:
        written = list(stream)
    expected, report = asyncio.run(awaited(pieces, vector.dialect, "anthropic"))
    assert written == expected
    assert facts(stream.report) == facts(report)


async def test_a_running_event_loop_is_no_hindrance():
    assert collect_sync(pieces_of(BODY), "openai-chat", FIXED) == await collect(source_of([BODY]), "openai-chat", FIXED)


def test_a_chain_of_ones_own():
    batches = list(SyncPipe(pipe(source_of(pieces_of(BODY)), parse_sse(), decode("openai-chat"))))
    assert sum(map(len, batches)) == 25


class Chunks:
    """A generator's half: what was read, and how often it was closed."""

    def __init__(self, *chunks, error=None):
        self._chunks, self._error = iter(chunks), error
        self.closed = 0

    def __iter__(self):
        return self

    def __next__(self):
        for chunk in self._chunks:
            return chunk
        raise self._error or StopIteration

    def close(self):
        self.closed += 1


def test_the_source_is_closed_at_the_end_when_it_is_left_and_once():
    read, left, unread = Chunks(BODY), Chunks(BODY[:HALF], BODY[HALF:]), Chunks(BODY)
    assert b"message_stop" in b"".join(transcode_sync(read, *NAMES))
    with transcode_sync(left, *NAMES) as stream:
        next(stream)
        assert left.closed == 0
    assert list(stream) == []
    transcode_sync(unread, *NAMES).close()
    assert [read.closed, left.closed, unread.closed] == [1, 1, 1]


def test_a_file_is_a_source():
    with DEMO.open("rb") as file:
        assert len(collect_sync(file, "openai-chat").tool_calls) == 2
        assert file.closed


def test_a_transport_that_fails_is_an_error_frame_and_in_the_report():
    chunks = Chunks(BODY[:HALF], error=SourceFailed("the line is dead"))
    stream = transcode_sync(chunks, *NAMES)
    assert b"the line is dead" in list(stream)[-1]
    assert (stream.report.status, chunks.closed) == (Status.FAILED, 1)


def test_any_other_error_is_raised_after_the_error_frame():
    chunks = Chunks(BODY[:HALF], error=KeyError("mine"))
    written = []
    with pytest.raises(KeyError, match="mine"):
        written.extend(transcode_sync(chunks, *NAMES))
    stream = transcode_sync(Chunks(BODY[:HALF], error=KeyError("mine")), *NAMES)
    assert b"message_start" in next(stream)
    assert b"event: error" in next(stream)
    with pytest.raises(KeyError, match="mine"):
        next(stream)
    assert chunks.closed == 1


async def waits(source):
    async for batch in source:
        await asyncio.sleep(0)
        yield batch


async def waits_again(source):
    async for batch in source:
        try:
            await asyncio.sleep(0)
        except UsageError:
            await asyncio.sleep(0)
        yield batch


async def waits_for_ever(source):
    async for batch in source:
        while True:
            with suppress(Exception):
                await asyncio.sleep(0)
        yield batch


@pytest.mark.parametrize("stage", [waits, waits_again, waits_for_ever])
def test_a_stage_that_waits_is_told_where_to_run(stage):
    chunks = Chunks(BODY)
    with pytest.raises(UsageError, match=r"^a stage or the source waits for an event loop; in an event loop, use"):
        list(transcode_sync(chunks, *NAMES, stages=[stage]))
    assert chunks.closed == 1


@pytest.mark.parametrize("given", [b"data: {}", "data: {}", bytearray(b"x")])
def test_bytes_are_no_iterable_of_bytes(given):
    with pytest.raises(UsageError, match=r"^a source must be an iterable of bytes, not \w+; write \[data\]"):
        transcode_sync(given, *NAMES)


def test_a_pipe_is_entered_once():
    made = pipe(source_of([BODY]))
    assert list(SyncPipe(made)) == [BODY]
    with pytest.raises(UsageError, match="entered only once"):
        next(SyncPipe(made))
