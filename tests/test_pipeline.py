"""The pipe: who closes what, in which order and in whose task; what a driver does with faults."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial

import pytest

from streamkit import (
    accumulate_tool_calls,
    check_json,
    decode,
    encode,
    find_text_calls,
    guard,
    map_text,
    parse_sse,
    split_thinking,
)
from streamkit.detection import detect
from streamkit.errors import BrokenFrame, NotThisDialect, UsageError, stage_of
from streamkit.events import TextDelta
from streamkit.pipeline import Stage, pipe
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.web.reply import Entered
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource


class Doubler:
    """Yields each number twice; fails at 13, having handed over what came before it in the batch; holds one back."""

    def __init__(self, report=None):
        self.fault = None
        self.held = []
        self.report = report

    def feed(self, numbers):
        out, self.held = list(self.held), []
        for number in numbers:
            if number == 13:
                self.fault = BrokenFrame("unlucky", b"13")
                break
            out += [number, number]
        if out:
            self.held = [out.pop()]
        return out

    def finish(self):
        return self.held + ["end"]

    def abandon(self):
        held, self.held = self.held, []
        return held


double = Stage("double", Doubler)


async def source(*batches, log=None, error=None):
    try:
        for batch in batches:
            yield batch
        if error is not None:
            raise error
    finally:
        if log is not None:
            log.append(("source", asyncio.current_task()))


def watched(name, log):
    async def stage(batches):
        try:
            async for batch in batches:
                yield batch
        finally:
            log.append((name, asyncio.current_task()))

    return stage


async def read(stream):
    return [item async for batch in stream for item in batch]


async def test_stages_run_in_order_and_finish():
    async with pipe(source([1], [2, 3]), double, double) as stream:
        assert await read(stream) == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, "end", "end", "end"]


async def test_a_pipe_without_stages_gives_its_source():
    async with pipe(source_of([[1], [2]])) as stream:
        assert [batch async for batch in stream] == [[1], [2]]


async def test_everything_is_closed_outermost_first_in_the_callers_task():
    log = []
    async with pipe(source([1], [2], log=log), watched("inner", log), watched("outer", log)) as stream:
        await anext(stream)
    assert log == [(name, asyncio.current_task()) for name in ("outer", "inner", "source")]


async def test_what_precedes_a_fault_comes_before_it():
    got = []
    with pytest.raises(BrokenFrame, match="unlucky"):
        async with pipe(source([1], [2, 13, 4]), double) as stream:
            async for batch in stream:
                got += batch
    assert got == [1, 1, 2, 2]


async def test_an_error_of_the_source_passes_after_what_was_held():
    got = []
    with pytest.raises(OSError, match="reset"):
        async with pipe(source([1], error=OSError("reset")), double) as stream:
            async for batch in stream:
                got += batch
    assert got == [1, 1]


async def test_nothing_is_yielded_after_cancellation():
    """``abandon`` would hand something over; a cancelled reader must not see it."""
    waiting = asyncio.Event()
    got = []

    async def stalled():
        yield [1]
        waiting.set()
        await asyncio.Event().wait()

    async def run():
        async with pipe(stalled(), double) as stream:
            async for batch in stream:
                got.append(batch)

    task = asyncio.create_task(run())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert got == [[1]]


async def test_a_stage_that_fails_to_close_does_not_leave_the_others_open():
    log = []

    async def broken(batches):
        try:
            async for batch in batches:
                yield batch
        finally:
            raise RuntimeError("cannot close")

    with pytest.raises(RuntimeError, match="cannot close"):
        async with pipe(source([1], [2], log=log), watched("inner", log), broken) as stream:
            await anext(stream)
    assert [name for name, _ in log] == ["inner", "source"]


async def test_several_failures_to_close_are_all_told():
    async def broken(batches):
        try:
            async for batch in batches:
                yield batch
        finally:
            raise RuntimeError("cannot close")

    with pytest.raises(BaseExceptionGroup) as caught:
        async with pipe(source([1], [2]), broken, broken) as stream:
            await anext(stream)
    assert len(caught.value.exceptions) == 2


async def test_a_source_that_is_no_generator_is_fine():
    class Plain:
        def __aiter__(self):
            self.left = [[1], [2]]
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    async with pipe(Plain(), double) as stream:
        assert await read(stream) == [1, 1, 2, 2, "end"]


async def test_a_pipe_that_was_not_entered_says_so():
    stream = pipe(source([1]), double)
    with pytest.raises(UsageError, match="async with"):
        await anext(stream)
    async with stream:
        pass
    with pytest.raises(UsageError, match="once"):
        async with stream:
            pass


async def test_built_in_stages_share_the_pipes_report_and_can_be_used_again():
    seen = []
    stage = Stage("spy", lambda report: seen.append(report) or Doubler())
    mine = StreamReport()
    async with pipe(source([1]), stage, stage, report=mine) as stream:
        assert stream.report is mine
        await read(stream)
    async with pipe(source([1]), stage) as other:
        await read(other)
    assert seen[0] is seen[1] is mine
    assert seen[2] is other.report is not mine


class Counted:
    """A source that counts how often it is closed, and may fail at it. ``apart``: its iterator is another object."""

    def __init__(self, *, fails: bool, apart: bool = False) -> None:
        self.closed = 0
        self._fails = fails
        self._apart = apart

    def __aiter__(self):
        return self._iterator() if self._apart else self

    async def _iterator(self):
        async for chunk in source(b"nothing known\n\n"):
            yield chunk

    async def __anext__(self):
        return b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'

    async def aclose(self):
        self.closed += 1
        if self._fails:
            raise RuntimeError("cannot close")


async def as_it_is(counted):
    return counted


async def detected(counted):
    return (await detect(counted))[1]


async def timed(counted):
    return TimedSource(counted, DEFAULT_TIMEOUTS)


async def piped(counted):
    return Entered(pipe(counted, passed_on))


async def passed_on(chunks):
    async for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("wrapped", [as_it_is, detected, timed, piped])
async def test_a_source_is_closed_once_and_tells_itself_why_it_could_not_be(wrapped, fails):
    counted = Counted(fails=fails)
    stream = pipe(await wrapped(counted), passed_on)
    with pytest.raises(RuntimeError, match=r"^cannot close$") if fails else nullcontext():
        async with stream:
            await anext(stream)
    await stream.__aexit__()
    assert counted.closed == 1


@pytest.mark.parametrize("wrapped", [as_it_is, timed, piped])
async def test_a_source_whose_iterator_is_another_object_is_closed_too(wrapped):
    counted = Counted(fails=False, apart=True)
    async with pipe(await wrapped(counted), passed_on) as stream:
        await anext(stream)
    assert counted.closed == 1


async def test_a_source_whose_dialect_nobody_knows_is_closed_once():
    counted = Counted(fails=False, apart=True)
    with pytest.raises(NotThisDialect):
        await detect(counted)
    assert counted.closed == 1


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([parse_sse(), accumulate_tool_calls()], "accumulate_tool_calls takes wire events, but parse_sse before it yields frames"),
        ([decode("openai-chat"), check_json()], "check_json takes events, but decode openai-chat before it yields wire events"),
        ([parse_sse(), encode("anthropic")], "encode anthropic takes events, but parse_sse before it yields frames"),
        ([encode("anthropic"), check_json()], "check_json takes events, but encode anthropic before it yields bytes"),
        ([decode("cohere"), find_text_calls("hermes"), check_json()], "check_json takes events, but find_text_calls before it"),
        ([check_json(), split_thinking()], "split_thinking takes wire events, but check_json before it yields events"),
    ],
)  # fmt: skip
def test_a_wrong_order_of_stages_is_told_in_a_sentence(stages, message):
    with pytest.raises(UsageError) as told:
        pipe(source_of([b""]), *stages)
    assert str(told.value).startswith(message)
    assert "the order is parse_sse" in str(told.value)
    assert len(str(told.value)) < 250


async def passes(batches):
    async for batch in batches:
        yield batch


class Raising:
    """A stage that is no generator function."""

    def __init__(self, batches):
        self.batches = batches

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise ValueError(await anext(self.batches))


async def raises(batches):
    async for batch in batches:
        raise ValueError(batch)
        yield batch


async def raises_within(batches):
    async for batch in raises(batches):
        yield batch


async def broken_source():
    yield [1]
    raise ValueError("not a stage")


def out_of_text(text):
    raise ValueError(text)


@pytest.mark.parametrize(
    ("given", "stages", "name"),
    [
        ("source", [raises], "raises"),
        ("source", [passes, raises, double], "raises"),
        ("source", [raises, double, passes], "raises"),
        ("source", [double, partial(raises), passes], "raises"),
        ("source", [Raising], "Raising"),
        ("source", [raises_within], "raises_within"),
        ("source", [passes, map_text(out_of_text, hold=0), passes], "map_text(out_of_text)"),
        ("source", [map_text(lambda _text: 3, hold=0)], "map_text(<lambda>)"),
        ("source", [guard(out_of_text, hold=3)], "guard(out_of_text)"),
        ("broken", [passes, double, passes], None),
        ("source", [passes], None),  # the error is of the block
    ],
)
@pytest.mark.parametrize("timings", [False, True], ids=["", "timed"])
async def test_an_error_says_which_stage_raised_it(given, stages, name, timings):
    reads_text = any(isinstance(stage, Stage) and stage is not double for stage in stages)
    given = broken_source() if given == "broken" else source([TextDelta("one")] if reads_text else [1, 2])
    with pytest.raises((ValueError, UsageError)) as raised:
        async with pipe(given, *stages, timings=timings) as stream:
            async for batch in stream:
                if stages == [passes]:
                    raise ValueError(batch)
    assert stage_of(raised.value) == name
    assert getattr(raised.value, "__notes__", []) == ([f"raised by the stage {name}"] if name else [])


def test_a_stage_of_a_users_own_may_stand_anywhere_and_so_may_an_encoder_before_another_parser():
    async def mine(batches):
        async for batch in batches:
            yield batch

    pipe(source_of([b""]), parse_sse(), mine, check_json())
    pipe(source_of([b""]), encode("anthropic"), parse_sse(), decode("anthropic"))
