"""Where the time of a pipe goes: whose it is, what is counted, and that nothing else changes."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit import accumulate_tool_calls, check_json, collect, decode, encode, parse_sse, pipe, profiler, transcode
from streamkit.dialects import DIALECTS
from streamkit.errors import BrokenFrame, TooManyToolCalls
from streamkit.limits import Limits
from streamkit.pipeline import Stage
from streamkit.read_options import ReadOptions
from streamkit.recipes import client_events, events_of, parse
from streamkit.report import StageTiming, StreamReport
from streamkit.resume import MemoryStore, Meta, keep
from streamkit.testing import cut_at, source_of
from tests.corpora import CORPORA
from tests.laws.running import CLOCK, OURS, facts_of, maker, recorded
from tests.vectors.openai_chat import DONE, ROLE, STOP, call, calls, said
from tests.vectors.vector import sse

NO_CORPORA = pytest.mark.skipif(CORPORA is None, reason="no corpora: set STREAMKIT_CORPORA to their folder")
TEXT = [sse(ROLE), *(sse(said(f"word {number} ")) for number in range(20)), sse(STOP, DONE)]


class Clock:
    """Time that passes only where somebody takes it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def take(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(profiler, "perf_counter", clock)
    return clock


class Slow:
    """Gives each number twice. Takes a second to feed, ten to finish, a hundred to hand over; fails at 13."""

    def __init__(self, clock):
        self.fault = None
        self.clock = clock

    def feed(self, numbers):
        self.clock.take(1)
        if 13 in numbers:
            self.fault = BrokenFrame("unlucky", b"13")
        return [number for number in numbers if number != 13 for _ in range(2)]

    def finish(self):
        self.clock.take(10)
        return ["end"]

    def abandon(self):
        self.clock.take(100)
        return []


def slow(name, clock):
    return Stage(name, lambda _report: Slow(clock))


async def waited_for(clock, *batches):
    for batch in batches:
        clock.take(1000)
        yield batch


def own(clock, name, seconds):
    """A user's stage."""

    async def stage(batches):
        async for batch in batches:
            clock.take(seconds)
            yield batch

    stage.__qualname__ = name
    return stage


async def timed(source, *stages):
    async with pipe(source, *stages, timings=True) as stream:
        async for _ in stream:
            pass
    return stream.report.timings


# -- whose time it is --------------------------------------------------------------------------------------------------


async def test_stages_that_share_a_driver_are_told_apart_and_waiting_is_the_sources(clock):
    assert await timed(waited_for(clock, [1], [2, 3]), slow("one", clock), slow("two", clock)) == (
        StageTiming("source", 2000, 0, 3),
        StageTiming("one", 12, 3, 7),
        StageTiming("two", 17, 7, 15),  # each item by itself
        StageTiming("pipe", 0, 3, 15),
    )


async def test_a_stage_of_a_users_own_is_named_as_its_function_and_what_it_awaits_is_its_own(clock):
    stages = [slow("one", clock), own(clock, "shout", 5), slow("two", clock)]
    assert await timed(waited_for(clock, [1], [2, 3]), *stages) == (
        StageTiming("source", 2000, 0, 3),
        StageTiming("one", 12, 3, 7),
        StageTiming("shout", 15, 7, 7),
        StageTiming("two", 13, 7, 15),
        StageTiming("pipe", 0, 10, 22),
    )


async def test_without_a_built_in_stage_there_is_no_row_of_what_drives_them(clock):
    rows = await timed(waited_for(clock, [1]), own(clock, "one", 1), own(clock, "other", 2))
    assert rows == (StageTiming("source", 1000, 0, 1), StageTiming("one", 1, 1, 1), StageTiming("other", 2, 1, 1))


async def test_what_the_reader_does_with_the_output_is_nobodys(clock):
    async with pipe(waited_for(clock, [1], [2]), own(clock, "one", 1), timings=True) as stream:
        async for _ in stream:
            clock.take(50)
    assert [row.seconds for row in stream.report.timings] == [2000, 2]


async def test_a_driver_has_what_no_machine_of_its_own_took(clock):
    """``keep`` has a generator of its own around its machine's driver."""
    store = MemoryStore()
    log = await store.create(store.new_id(), Meta(dialect="anthropic"))
    rows = await timed(waited_for(clock, b"a", b"b"), keep(log))
    assert [(row.name, row.items_in, row.items_out) for row in rows] == [
        ("source", 0, 2),
        ("keep", 2, 2),
        ("pipe", 2, 2),
    ]


async def test_a_stage_that_reads_ahead_takes_no_time_less_than_none(clock):
    """It waits in a task of its own, while nobody asks it for anything."""

    async def ahead(batches):
        for batch in [batch async for batch in batches]:
            yield batch

    async def reading(batches):
        task = asyncio.ensure_future(anext(aiter(batches)))
        yield [0]
        yield await task

    async with pipe(waited_for(clock, [1]), ahead, reading, timings=True) as stream:
        await anext(stream)
        await asyncio.sleep(0)  # the task runs
        await anext(stream)
    assert [row.seconds for row in stream.report.timings] == [1000, 0, 0]


@pytest.mark.parametrize("batches", [([1, 13],), ([1], [13])])
async def test_a_stream_that_fails_is_timed_up_to_there(clock, batches):
    with pytest.raises(BrokenFrame):
        async with pipe(waited_for(clock, *batches), slow("one", clock), slow("two", clock), timings=True) as stream:
            async for _ in stream:
                pass
    one, two = stream.report.timings[1:3]
    assert (one.seconds, one.items_out) == (len(batches) + 100, 2)
    assert (two.seconds, two.items_out) == (102, 4)


async def test_a_source_that_fails_was_waited_for(clock):
    async def failing():
        clock.take(7)
        raise OSError("reset")
        yield

    with pytest.raises(OSError, match="reset"):
        async with pipe(failing(), slow("one", clock), timings=True) as stream:
            await anext(stream)
    assert stream.report.timings[:2] == (StageTiming("source", 7, 0, 0), StageTiming("one", 100, 0, 0))


async def test_what_stops_one_machine_of_a_stage_stops_a_pipe_that_is_timed():
    reads = [sse(calls(call(number, f"c{number}", "f", "{}"))) for number in range(3)]
    options = ReadOptions(limits=Limits(tool_calls=2))
    async with transcode(source_of(reads), "openai-chat", "anthropic", options, timings=True) as stream:
        assert b"limit tool_calls" in b"".join([chunk async for chunk in stream])
    assert type(stream.report.error) is TooManyToolCalls


async def test_a_callable_that_is_no_plain_function_has_a_name_too():
    async def stage(batches, times):
        async for batch in batches:
            yield batch * times

    class Again:
        def __call__(self, batches):
            return stage(batches, 2)

    rows = await timed(source_of([[1]]), partial(stage, times=2), Again())
    assert [row.name for row in rows] == ["source", "stage", "Again"]


# -- what is counted ---------------------------------------------------------------------------------------------------


def rows_of(report: StreamReport) -> dict[str, tuple[int, int]]:
    return {row.name: (row.items_in, row.items_out) for row in report.timings}


async def test_frames_and_events_are_counted_however_they_flow():
    """One read brings many."""
    async with pipe(
        source_of([b"".join(TEXT)]),
        parse_sse(),
        decode("openai-chat"),
        accumulate_tool_calls(),
        check_json(),
        encode("anthropic"),
        timings=True,
    ) as stream:
        pieces = [piece async for piece in stream]
    rows = rows_of(stream.report)
    assert rows["parse_sse"] == (1, 23)
    assert rows["decode openai-chat"][0] == 23
    assert rows["accumulate_tool_calls"][0] == rows["decode openai-chat"][1] >= 23
    assert rows["encode anthropic"] == (rows["check_json"][1], len(pieces))


async def test_frames_that_pass_within_one_dialect_are_one_stage():
    async with transcode(source_of(TEXT), "openai-chat", "openai-chat", timings=True) as stream:
        async for _ in stream:
            pass
    assert list(rows_of(stream.report)) == ["source", "pass openai-chat through", "pipe"]


async def test_every_recipe_that_reads_a_stream_can_be_timed():
    response = await collect(source_of(TEXT), "openai-chat", timings=True)
    for stream in (
        events_of(source_of(TEXT), "openai-chat", timings=True),
        client_events(source_of(TEXT), "openai-chat", "anthropic", timings=True),
    ):
        async with stream:
            async for _ in stream:
                pass
        names = [row.name for row in stream.report.timings if row.name != "carry_citations"]
        assert names == [row.name for row in response.report.timings]
    assert [row.name for row in response.report.timings] == [
        "source", "parse openai-chat", "decode openai-chat", "accumulate_tool_calls", "pipe"
    ]  # fmt: skip


async def test_pipes_that_share_a_report_add_to_it():
    report = StreamReport()
    for _ in range(2):
        async with pipe(source_of([[1]]), report=report, timings=True) as stream:
            await anext(stream)
    assert [row.items_out for row in report.timings] == [1, 1]


# -- nothing else changes ----------------------------------------------------------------------------------------------


async def test_a_pipe_that_is_not_timed_has_no_clock(monkeypatch):
    monkeypatch.setattr(profiler, "perf_counter", lambda: pytest.fail("a clock was looked at"))
    monkeypatch.setattr(profiler.Profiler, "__init__", lambda _self: pytest.fail("there are clocks"))
    async with transcode(source_of(TEXT), "openai-chat", "anthropic") as stream:
        assert [piece async for piece in stream]
    assert stream.report.timings == ()
    assert type(stream._iterators[-1]).__name__ == "async_generator"  # iterated without a hop


async def test_everything_is_closed_once_and_in_order():
    log = []

    class Source:
        async def __aiter__(self):
            try:
                yield [1]
            finally:
                log.append("its iterator")

        async def aclose(self):
            log.append("source")

    async def stage(batches):
        try:
            async for batch in batches:
                yield batch
        finally:
            log.append("stage")

    async with pipe(Source(), stage, timings=True) as stream:
        await anext(stream)
    assert log == ["stage", "its iterator", "source"]


async def through(batches):
    async for batch in batches:
        yield batch


def by_hand(source, dialect, target, **how):
    """The recipe with a stage of a user's own in it, behind which another driver begins."""
    stages = parse(dialect), decode(dialect), accumulate_tool_calls(make_id=maker()), check_json(), through
    return pipe(source, *stages, encode(target, make_id=maker(), clock=CLOCK), **how)


def recipe(source, dialect, target, **how):
    return transcode(source, dialect, target, ReadOptions(make_id=maker()), clock=CLOCK, **how)


async def written(make, stream, target, reads, *, timings):
    """The pieces that are written, and the report."""
    async with make(source_of(reads), stream.dialect, target, timings=timings) as pieces:
        output = [piece async for piece in pieces]
    return output, facts_of(pieces.report), pieces.report.bytes_in


def reads_of(data, body):
    """Events as they are often sent, or any pieces."""
    if data.draw(st.booleans()):
        return [event + b"\n\n" for event in body.split(b"\n\n")]
    return cut_at(body, sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=20))))


@pytest.mark.parametrize("streams", [lambda: OURS, pytest.param(recorded, marks=NO_CORPORA)], ids=["ours", "recorded"])
@given(data=st.data())
def test_a_stream_that_is_timed_is_written_in_the_same_pieces(streams, data):
    make, target = data.draw(st.sampled_from([recipe, by_hand])), data.draw(st.sampled_from(sorted(DIALECTS)))
    stream = streams()[
        data.draw(st.integers(0, len(streams()) - 1))
    ]  # by number, as hypothesis writes down what it draws
    reads = reads_of(data, stream.body)

    async def both():
        return [await written(make, stream, target, reads, timings=timings) for timings in (True, False)]

    timed_, plain = asyncio.run(both())
    assert timed_ == plain
