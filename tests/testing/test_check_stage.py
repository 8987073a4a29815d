"""``check_stage`` finds each way to break a law, and leaves good stages alone."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from itertools import takewhile
from operator import eq

import pytest
from attrs import evolve

from streamkit import UsageError, accumulate_tool_calls, check_json, decode, encode, guard, parse_sse
from streamkit.dialects import DIALECTS
from streamkit.events import ResponseFinished, StopReasonSeen, StreamEnded, TextDelta, ToolCallArguments
from streamkit.recipes import parse
from streamkit.report import StreamReport
from streamkit.testing import FaultySource, adrive, check_stage, drive, drive_machine, joined, open_sources
from tests.laws.running import CLOCK, machines, maker, says
from tests.vectors import VECTORS

pytest_plugins = ("pytester",)

EVENTS = [
    [TextDelta("Hel"), TextDelta("lo")],
    [ToolCallArguments(0, "{"), ToolCallArguments(0, "}")],
    [ResponseFinished("tool_calls"), StreamEnded(clean=True)],
]
STOPS = [ResponseFinished("stop", choice=choice) for choice in (0, 1)]
LENGTH = ResponseFinished("length"), StreamEnded(clean=True)


async def upper(batches):
    async for batch in batches:
        yield [evolve(event, text=event.text.upper()) if isinstance(event, TextDelta) else event for event in batch]


async def first_of_each_batch(batches):
    async for batch in batches:
        yield batch[:1]


async def forgets_between_batches(batches):
    """The joints of batches show: text is only changed where one event has all of it."""
    async for batch in batches:
        text = "".join(event.text for event in batch if isinstance(event, TextDelta))
        yield [TextDelta(text.replace("ell", "ipp")), *(event for event in batch if not isinstance(event, TextDelta))]


async def one_by_one(batches):
    async for batch in batches:
        for event in batch:
            yield event


async def always_ends_well(batches):
    async for batch in batches:
        yield [event for event in batch if not isinstance(event, StreamEnded)] or batch[:0]
    yield [*STOPS, StreamEnded(clean=True)]


def stops_at_a_call(*ending, reads_on=False):
    async def stage(batches):
        over = False
        async for batch in batches:
            if not over:
                kept = [*takewhile(lambda event: not isinstance(event, ToolCallArguments), batch)]
                over = len(kept) < len(batch)
                yield [*kept, *ending] if over else kept
            if over and not reads_on:
                return

    return stage


async def completes_what_broke_off(batches):
    async for batch in batches:
        events = [event for event in batch if not isinstance(event, StreamEnded)]
        yield events if len(events) == len(batch) else [*events, *STOPS, StreamEnded(clean=True)]


async def ends_at_a_stop(batches):
    async for batch in batches:
        kept = [event for event in batch if not isinstance(event, StreamEnded)]
        if any(isinstance(event, ResponseFinished) for event in batch):
            yield [*kept, StreamEnded(clean=True)]
            return
        yield kept


async def changes_events_in_place(batches):
    async for batch in batches:
        for event in batch:
            if isinstance(event, TextDelta):
                event.text = event.text.upper()
        yield batch


async def changes_earlier_events(batches):
    async for batch in batches:
        yield batch
        for event in batch:
            if isinstance(event, TextDelta):
                event.text += "!"


async def takes_a_batch_for_an_event(events):
    async for event in events:
        yield [event]


async def joins_each_batch(batches):
    async for batch in batches:
        yield joined(batch)


async def marks_each_read(chunks):
    async for chunk in chunks:
        yield chunk + b"|"


async def swallows_errors(batches):
    try:
        async for batch in batches:
            yield batch
    except Exception:  # noqa: BLE001 - the fault it is here to show
        pass


async def swallows_cancellation(batches):
    try:
        async for batch in batches:
            yield batch
    except asyncio.CancelledError:
        pass


async def yields_while_closing(batches):
    try:
        async for batch in batches:
            yield batch
    finally:
        yield []


async def test_good_stages_pass(stage_checker):
    await stage_checker(upper, EVENTS)
    await stage_checker(stops_at_a_call(*LENGTH), EVENTS)
    await stage_checker(stops_at_a_call(*LENGTH, reads_on=True), EVENTS)
    for reply in "refusal", "error":
        for judge in {}, {"succeeds": succeeds}:
            await stage_checker(guard(lambda text: "ell" in text, hold=3, reply=reply), EVENTS, **judge)
    await stage_checker(check_json(), EVENTS)
    await stage_checker(
        encode("anthropic", make_id=lambda prefix: prefix, clock=CLOCK),
        EVENTS,
        equal=says("anthropic"),
        succeeds=succeeds,
    )


def succeeds(flow):
    if isinstance(flow, bytes):
        return b"message_stop" in flow
    return any(isinstance(event, StreamEnded) and event.clean for event in flow)


def reached_its_end(flow):
    """A stop reason is the completion point; what fails behind it takes nothing back."""
    return not isinstance(flow, bytes) and any(
        isinstance(event, StopReasonSeen) or (isinstance(event, StreamEnded) and event.clean) for event in flow
    )


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_built_in_stage_passes(dialect, stage_checker):
    vector = next(v for v in VECTORS if v.dialect == dialect and v.name == "text")
    accumulate = accumulate_tool_calls(make_id=maker())
    items = [vector.body]
    for stage in (parse(dialect), decode(dialect), accumulate, check_json()):
        judge = {"succeeds": reached_its_end} if stage is accumulate else {}
        await stage_checker(stage, items, **judge)
        items = await adrive(stage, items)
    for target in DIALECTS:
        await stage_checker(encode(target, make_id=lambda prefix: prefix, clock=CLOCK), items, equal=says(target))


@pytest.mark.parametrize(
    ("stage", "law"),
    [
        (first_of_each_batch, "L1"),
        (forgets_between_batches, "L1"),
        (always_ends_well, "L3"),
        (stops_at_a_call(), "L3, an exception of the input passes through"),
        (stops_at_a_call(StreamEnded(clean=True)), "L3, success is never invented"),
        (completes_what_broke_off, "L3"),
        (ends_at_a_stop, "L3"),
        (swallows_errors, "L3"),
        (swallows_cancellation, "L7"),
        (yields_while_closing, "L7"),
        (changes_events_in_place, r"use attrs\.evolve\n  TextDelta\(text='Hel', .*\nbecame\n  TextDelta\(text='HEL'"),
        (changes_earlier_events, r"use attrs\.evolve\n  TextDelta\(text='Hel', "),
        (takes_a_batch_for_an_event, "not lists of lists: .* so write for event in batch"),
        (
            one_by_one,
            r"a stage must yield lists or bytes, not ResponseFinished, StreamEnded, .*: write yield \[event\]",
        ),
    ],
)
async def test_a_broken_stage_is_named_with_its_law(stage, law):
    with pytest.raises(AssertionError, match=law):
        await check_stage(stage, deepcopy(EVENTS))
    assert open_sources() == 0


@pytest.mark.parametrize(
    ("stage", "items", "options", "message"),
    [
        (
            joins_each_batch,
            [EVENTS[0]],
            {"equal": eq},
            """\
L1, chunk invariance: if the input is cut into [1, 1], the stage yields
  TextDelta(text='Hel', choice=0, block=0)
instead of
  TextDelta(text='Hello', choice=0, block=0)
as item 0""",
        ),
        (
            first_of_each_batch,
            EVENTS,
            {},
            """\
L1, chunk invariance: if the input is cut into [1, 1, 1, 1, 1, 1], the stage yields
  TextDelta(text='Hello', choice=0, block=0)
instead of
  TextDelta(text='Hel', choice=0, block=0)
as item 0 (adjacent deltas joined)""",
        ),
        (
            marks_each_read,
            [b"ab" * 100],
            {},
            f"""\
L1, chunk invariance: if the input is cut into 200 batches, [1, 1, 1, 1, 1, 1] …, the stage yields
  {b"a|b|" * 10 + b"a"!r}
instead of
  {b"ab" * 20 + b"a"!r}
around byte 1""",
        ),
    ],
)
async def test_only_the_first_difference_is_shown(stage, items, options, message):
    with pytest.raises(AssertionError) as caught:
        await check_stage(stage, items, **options)
    assert str(caught.value) == message


async def test_nothing_to_cut_is_a_mistake():
    with pytest.raises(ValueError, match="at least one item"):
        await check_stage(upper, [])


@pytest.mark.parametrize("items", [EVENTS[0], [EVENTS[0], "text"], b"data", [tuple(EVENTS[0])]], ids=str)
async def test_items_that_are_no_batches_are_refused(items):
    kind = type(next(item for item in items if not isinstance(item, list))).__name__
    with pytest.raises(UsageError, match=rf"takes a list of batches, .*, not of {kind}: write \[\[event, …\], …\]"):
        await check_stage(upper, items)


async def test_a_faulty_source_fails_and_stalls_on_cue():
    source = FaultySource([1, 2, 3], fail_after=2)
    assert not source.open
    found = []
    with pytest.raises(type(source.error)):
        async for item in source:
            found.append(item)
    assert (found, source.given, source.open, open_sources()) == ([1, 2], 2, True, 1)
    await source.aclose()
    assert (source.open, source.closed_in, open_sources()) == (False, asyncio.current_task(), 0)
    stalling = FaultySource([1], stall_after=1)
    assert await anext(aiter(stalling)) == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stalling), 0.01)
    assert stalling.stalled.is_set()
    await stalling.aclose()


def test_the_fixture_fails_a_test_that_leaves_a_source_open(pytester):
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        """
        from streamkit.testing import FaultySource

        async def test_leak(open_sources):
            aiter(FaultySource([1]))

        async def test_next(open_sources):
            assert open_sources() == 0
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2, errors=1)


def test_machine_and_stage_yield_the_same():
    vector = next(v for v in VECTORS if v.name == "two calls that interleave")
    parser = machines("openai-chat", StreamReport())[0]
    reads = [vector.body[:700], vector.body[700:]]
    assert drive_machine(parser, reads) == drive(parse_sse(), reads)
