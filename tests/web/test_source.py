"""The upstream's answer as a source: four clocks, each with its own error; ``fail``; closing; what breaks a transport.

The clocks are tested in virtual time, the transport over real sockets against the evil upstream.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import traceback
import weakref
from collections.abc import Mapping, Sequence

import aiohttp
import pytest
from attrs import frozen

from streamkit import pipe, transcode
from streamkit.errors import (
    BodyTooLong,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.web.source import READ_BYTES, TimedSource, Timeouts, iter_upstream, whole_body
from tests.laws.running import read
from tests.web.evil import Delay, EvilUpstream, Fin, Hang, Rst, Script, Send, Until
from tests.web.faults import (
    TEXT,
    bad_gzip,
    chunk,
    good,
    head,
    reset_mid_line,
    silence_midstream,
    speech,
    truncated_chunked,
)

CHUNKED = {"Transfer-Encoding": "chunked"}
pytestmark = pytest.mark.usefixtures("no_leaks")
virtual = pytest.mark.virtual_time


class Paced:
    """A source of chunks, each after so many seconds; then it ends, or is silent for ever. It counts its closings."""

    def __init__(self, *steps: tuple[float, bytes], silent: bool = False) -> None:
        self.closed = 0
        self._steps = iter(steps)
        self._silent = silent

    def __aiter__(self):
        return self

    async def __anext__(self):
        for delay_s, data in self._steps:
            await asyncio.sleep(delay_s)
            return data
        if self._silent:
            await asyncio.Event().wait()
        raise StopAsyncIteration

    async def aclose(self):
        self.closed += 1


@contextlib.asynccontextmanager
async def timed(*steps, silent=True, started=None, **timeouts):
    source = TimedSource(Paced(*steps, silent=silent), Timeouts(**timeouts), started=started)
    try:
        yield source
    finally:
        await source.aclose()


def now() -> float:
    return asyncio.get_running_loop().time()


# -- the clocks --------------------------------------------------------------------------------------------------------


PINGS = {
    "comments": b": OPENROUTER PROCESSING\n\n",
    "a comment in CRLF": b": keep-alive\r\n\r\n",
    "blank lines": b"\n",
    "blanks": b"  ",
    "Anthropic's": b'event: ping\ndata: {"type": "ping"}\n\n',
    "with more in it": b'event: ping\r\ndata: {"type":"ping","cost":"0"}\r\n\r\n',
    "without its name": b'data: {"type":"ping"}\n\n',
    "Responses'": b'event: keepalive\ndata: {"type":"keepalive","sequence_number":2}\n\n',
    "an id and a time": b"id: 7\nretry: 3000\n\n",
    "an empty event": b"data:\n\n",
}
ANSWERS = {
    "an event": b'data: {"id":"1"}\n\n',
    "an event with its name": b'event: message_start\ndata: {"type":"message_start"}\n\n',
    "a long line without its end": b"data: " + b"x" * 300,
    "a line of JSON": b'{"model":"m"',
    "a binary message": b"\x00\x00\x00\x98",
    "a web page": b"<!DOCTYPE html>",
    "behind a ping": b': ping\n\nevent: ping\ndata: {"type":"ping"}\n\ndata: {}\n\n',
}


def cut(ping: bytes, at: int | None) -> list[tuple[float, bytes]]:
    """Twenty pings, one each ten seconds, of which each comes in pieces."""
    pieces = [piece for piece in (ping[:at], ping[at:] if at is not None else b"") if piece]
    return [(10 / len(pieces), piece) for _ in range(20) for piece in pieces]


@frozen
class Clock:
    """What comes when, the times that are allowed, and after how many reads which error comes when."""

    steps: Sequence[tuple[float, bytes]]
    times: Mapping[str, float]
    at: float
    error: type[TimedOut] | None
    words: str = ""
    reads: int | None = None
    asked_s: float = 0  #: how long ago the request was sent


X = (1, b"x")
CLOCKS = {
    "no first byte": Clock([], {"first_byte_s": 120}, 120, FirstByteTimeout, "sent no first byte within 120 s"),
    "and the request was before": Clock([], {"first_byte_s": 120}, 20, FirstByteTimeout, asked_s=100),
    **{
        f"silence for {idle_s} s": Clock(
            [X], {"first_byte_s": 120, "idle_s": idle_s}, 1 + idle_s, IdleTimeout,
            f"sent no further bytes within {idle_s} s", 1,
        )
        for idle_s in (300, 50, 120)  # longer and shorter than the first byte's
    },
    "every byte is life": Clock(
        [(1, b"data: x\n\n"), *[(299, b": ping\n")] * 10], {"first_byte_s": 300, "idle_s": 300}, 2991, None, "", 11
    ),
    "the whole, though bytes flow": Clock(
        [(99, b"x")] * 100, {"total_s": 1000}, 1000, TotalTimeout, "response did not end within 1000 s", 10
    ),
    "the whole, and the request was before": Clock(
        [X], {"first_byte_s": 900, "idle_s": 10_000, "total_s": 1000}, 600, TotalTimeout, "", 1, asked_s=400
    ),
    **{
        f"the whole in silence, {total_s} s": Clock(
            steps, {"first_byte_s": 120, "idle_s": 300, "total_s": total_s}, total_s, TotalTimeout
        )
        for steps, total_s in (([], 100), ([], 120), ([X], 200), ([X], 301))
    },
    **{
        f"no first byte, but {name}, cut at {at}": Clock(
            cut(ping, at), {"first_byte_s": 60, "idle_s": 300}, 60, FirstByteTimeout
        )
        for name, ping in PINGS.items()
        for at in (None, 1, 3, -1)
    },
    **{
        f"begun by {name}": Clock(
            [(1, b": ping\n\n"), (1, begun), (100, b": ping\n\n")], {"first_byte_s": 60}, 102, None, "", 3
        )
        for name, begun in ANSWERS.items()
    },
}  # fmt: skip


@virtual
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
async def test_each_clock_has_its_error(clock):
    await asyncio.sleep(500)
    got = []
    async with timed(
        *clock.steps, silent=clock.error is not None, started=now() - clock.asked_s, **clock.times
    ) as source:
        with (
            pytest.raises(clock.error, match=clock.words or None) if clock.error else contextlib.nullcontext() as caught
        ):
            async for data in source:
                got.append(data)
    assert now() == 500 + clock.at
    assert clock.reads in {None, len(got)}
    if clock.error is FirstByteTimeout:
        assert (caught.value.allowed_s, caught.value.type) == (clock.times["first_byte_s"], "timeout")


@virtual
async def test_bytes_that_wait_are_taken_however_late():
    await asyncio.sleep(500)
    source = TimedSource(source_of([b"x"]), Timeouts(first_byte_s=120), started=0)
    assert await anext(source) == b"x"
    await source.aclose()


@virtual
@pytest.mark.parametrize("over", [{"terminated": True}, {"failure": "said"}], ids=["terminator", "error"])
@pytest.mark.parametrize(
    ("behind", "read"),
    [
        ([], 0),
        ([(0.4, b"usage")], 1),
        ([(0.4, b": ping\n")] * 1000, 2),  # comments are no life any more
        ([(1.5, b"late")], 0),
    ],
    ids=["nothing", "usage", "comments for ever", "too late"],
)
async def test_a_body_that_stays_open_behind_its_terminator_ends_a_second_later(over, behind, read):
    async with timed((200, b"[DONE]"), *behind, first_byte_s=300, idle_s=300) as source:
        source.report = StreamReport()
        assert await anext(source) == b"[DONE]"
        for name, value in over.items():
            setattr(source.report, name, value)
        assert len([data async for data in source]) == read
        assert 201 <= now() <= 201.4
        with pytest.raises(StopAsyncIteration):
            await anext(source)


@virtual
async def test_nobody_is_silent_whom_nobody_asks():
    async with timed((1, b"a"), (250, b"b"), idle_s=300) as source:
        assert await anext(source) == b"a"
        await asyncio.sleep(10_000)  # a client that reads slowly
        assert await anext(source) == b"b"
        await asyncio.sleep(10_000)
        before = now()
        with pytest.raises(IdleTimeout):
            await anext(source)
    assert now() == before + 300


@virtual
async def test_the_silence_is_counted_from_the_read_and_not_from_a_timer_that_was_set_before():
    async with timed((1, b"a"), (1, b"b"), idle_s=300) as source:
        await anext(source)
        await anext(source)  # sets the timer for 301
        await asyncio.sleep(299.5)
        with pytest.raises(IdleTimeout):
            await anext(source)
    assert now() == 2 + 299.5 + 300


@virtual
@pytest.mark.parametrize("idle_s", [50, 5000])
async def test_the_whole_runs_out_even_if_nobody_reads(idle_s):
    async with timed((1, b"a"), (1, b"b"), (1, b"c"), idle_s=idle_s, total_s=1000) as source:
        await anext(source)
        await anext(source)
        await asyncio.sleep(2000)
        with pytest.raises(TotalTimeout):
            await anext(source)
    assert now() == 2002


@virtual
async def test_after_its_end_there_is_no_timer_though_nobody_closed_it():
    source = TimedSource(Paced((1, b"x"), (1, b"y"), silent=False), Timeouts(total_s=100))
    assert [data async for data in source] == [b"x", b"y"]
    assert asyncio.get_running_loop().timers == []
    with pytest.raises(StopAsyncIteration):
        await anext(source)


@virtual
async def test_after_an_error_it_gives_that_error_and_keeps_no_timer():
    async with timed((1, b"x"), idle_s=10, total_s=20) as source:
        await anext(source)
        with pytest.raises(IdleTimeout) as first:
            await anext(source)
        assert asyncio.get_running_loop().timers == []
        await asyncio.sleep(100)
        with pytest.raises(IdleTimeout) as second:
            await anext(source)
    assert first.value is second.value


@virtual
async def test_an_error_of_the_source_passes_and_leaves_no_timer():
    class Broken(Paced):
        async def __anext__(self):
            await asyncio.sleep(1)
            raise SourceFailed("broken")

    source = TimedSource(Broken(), Timeouts())
    with pytest.raises(SourceFailed, match="broken"):
        await anext(source)
    assert asyncio.get_running_loop().timers == []


@pytest.mark.parametrize("name", ["connect_s", "first_byte_s", "idle_s", "total_s"])
def test_no_time_is_no_time_out(name):
    for seconds in (0, -1):
        with pytest.raises(ValueError, match=name):
            Timeouts(**{name: seconds})


@virtual
async def test_the_client_is_told_in_its_dialect_that_it_took_too_long():
    report = StreamReport()
    first = speech("openai-chat")[0]
    async with transcode(
        TimedSource(Paced((1, first), silent=True), Timeouts(idle_s=5)), "openai-chat", "anthropic", report=report
    ) as stream:
        output = b"".join([piece async for piece in stream])
    found = read("anthropic", [output])
    assert "It " in found.text()
    assert found.error == "The upstream sent no further bytes within 5 s"
    assert not found.clean
    assert isinstance(report.error, IdleTimeout)


@virtual
@pytest.mark.parametrize(("body_bytes", "fits"), [(4, True), (3, True), (2, False)])
async def test_a_whole_body_has_a_bound(body_bytes, fits):
    inner = Paced((1, b"ab"), (1, b"c"), silent=False)
    source = TimedSource(inner, Timeouts())
    if fits:
        assert await whole_body(source, body_bytes=body_bytes) == b"abc"
    else:
        with pytest.raises(BodyTooLong) as caught:
            await whole_body(source, body_bytes=body_bytes)
        assert caught.value.allowed == 2
    assert inner.closed


@virtual
async def test_a_whole_body_that_fails_is_closed():
    inner = Paced((1, b"ab"), silent=True)
    with pytest.raises(IdleTimeout):
        await whole_body(TimedSource(inner, Timeouts(idle_s=5)))
    assert inner.closed


# -- fail, and cancellation --------------------------------------------------------------------------------------------


STOPPED = Interrupted("the server is shutting down")


@virtual
async def test_a_failure_during_a_read_is_raised_at_once():
    async with timed((100, b"x")) as source:
        asyncio.get_running_loop().call_later(7, source.fail, STOPPED)
        with pytest.raises(Interrupted):
            await anext(source)
        assert now() == 7
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(1)  # the task goes on


@virtual
@pytest.mark.parametrize("reads", [0, 1], ids=["before the first read", "between two"])
async def test_a_failure_beside_a_read_is_raised_by_the_next_and_the_first_one_counts(reads):
    async with timed((1, b"x"), (1, b"y"), idle_s=5) as source:
        for _ in range(reads):
            assert await anext(source) == b"x"
        source.fail(STOPPED)
        source.fail(TotalTimeout(1))
        await asyncio.sleep(1)  # no error between two stages
        for _ in range(2):
            with pytest.raises(Interrupted):
                await anext(source)
        assert asyncio.current_task().cancelling() == 0
    assert now() == reads + 1


@virtual
async def test_a_failure_in_the_moment_in_which_bytes_come_is_raised_once_and_harms_nothing():
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()

    async def one():
        yield await arrived

    source = TimedSource(one(), Timeouts())
    reading = asyncio.create_task(anext(source))
    await asyncio.sleep(0)
    arrived.set_result(b"x")
    source.fail(STOPPED)
    with pytest.raises(Interrupted):
        await reading
    with pytest.raises(Interrupted):
        await anext(source)
    await source.aclose()


@virtual
async def test_a_failure_keeps_its_cause():
    try:
        raise SourceFailed("broken") from OSError("reset by upstream.example")
    except SourceFailed as caught:
        error = caught
    async with timed() as source:
        asyncio.get_running_loop().call_later(1, source.fail, error)
        with pytest.raises(SourceFailed) as raised:
            await anext(source)
    assert isinstance(raised.value.__cause__, OSError)


@virtual
async def test_a_timer_that_fires_shows_no_cancellation_in_its_traceback():
    async with timed(first_byte_s=1) as source:
        with pytest.raises(FirstByteTimeout) as caught:
            await anext(source)
    assert "CancelledError" not in "".join(traceback.format_exception(caught.value))


@virtual
@pytest.mark.parametrize("steps", [(), ((1, b"x"),)], ids=["before the first byte", "after it"])
async def test_cancellation_from_outside_stays_what_it_is(steps):
    async with timed(*steps) as source:

        async def consume():
            return [data async for data in source]

        task = asyncio.create_task(consume())
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()


@virtual
@pytest.mark.parametrize("first", ["cancel", "fail"])
async def test_cancellation_from_outside_wins_over_a_failure_of_the_same_moment(first):
    async with timed() as source:
        task = asyncio.create_task(anext(source))
        await asyncio.sleep(1)
        acts = [task.cancel, lambda: source.fail(STOPPED)]
        for act in acts if first == "cancel" else reversed(acts):
            act()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 1  # ours is taken back, theirs is not


@virtual
async def test_a_task_that_was_cancelled_once_and_went_on_gets_the_error():
    async with timed(first_byte_s=5) as source:

        async def stubborn():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(100)
            await anext(source)

        task = asyncio.create_task(stubborn())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(FirstByteTimeout):
            await task


@virtual
async def test_a_timeout_around_a_read_is_still_a_timeout():
    async with timed((1, b"x"), (100, b"y")) as source:
        await anext(source)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await anext(source)
        assert now() == 6


@virtual
async def test_each_read_may_be_another_tasks():
    async with timed((1, b"x"), (100, b"y"), idle_s=5) as source:
        assert await asyncio.create_task(anext(source)) == b"x"
        with pytest.raises(IdleTimeout):
            await asyncio.create_task(anext(source))


@virtual
async def test_closing_closes_what_it_reads_and_its_timer():
    async def same(chunks):
        async for data in chunks:
            yield data

    inner = Paced((1, b"x"), (1, b"y"), silent=True)
    async with pipe(TimedSource(inner, Timeouts()), same) as stream:
        assert [await anext(stream), await anext(stream)] == [b"x", b"y"]
        assert asyncio.get_running_loop().timers
    assert inner.closed
    assert asyncio.get_running_loop().timers == []


# -- over the network --------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def answered(script, *, session_options=None, **timeouts):
    """The evil upstream's answer as a source, and the upstream."""
    async with EvilUpstream(script) as upstream, aiohttp.ClientSession(**(session_options or {})) as session:
        response = await session.post(upstream.url, data=b"{}")
        yield iter_upstream(response, timeouts=Timeouts(**timeouts)), upstream, session


async def test_the_bytes_come_as_the_network_cut_them():
    chunks = [b"data: \xe2", b"\x82\xac\r", b"\n\r\nda"]
    async with answered(good("openai-chat", chunks, delay_s=0.02)) as (source, _, _):
        assert [data async for data in source] == chunks
        await source.aclose()


@pytest.mark.parametrize("session_options", [{}, {"read_bufsize": READ_BYTES}])
async def test_a_read_brings_no_more_than_a_bounded_part_of_what_is_there(session_options):
    body = bytes(range(256)) * 8192
    async with answered(good("openai-chat", [body]), session_options=session_options) as (source, _, _):
        chunks = [data async for data in source]
        assert (b"".join(chunks), max(map(len, chunks))) == (body, READ_BYTES)
        await source.aclose()


async def test_an_answer_that_is_over_is_not_kept_by_the_connection_that_goes_on():
    async with EvilUpstream(good("anthropic")) as upstream, aiohttp.ClientSession() as session:
        kept = []
        for _ in range(5):
            source = iter_upstream(await session.post(upstream.url, data=b"{}"))
            kept.append(weakref.ref(source._source))
            _ = [data async for data in source]
        del source
        gc.collect()
        assert {request.connection for request in upstream.requests} == {0}
        assert [ref() for ref in kept] == [None] * 5


@pytest.mark.parametrize("reads", [0, 1])
async def test_closing_early_closes_the_connection(reads):
    first = speech("anthropic")[0]
    silent = Script((Send(head(headers=CHUNKED)), Send(chunk(first)), Hang()))
    async with answered(silent) as (source, upstream, _):
        for _ in range(reads):
            assert await anext(source) == first
        await source.aclose()
        request = await upstream.request()
        await request.left()
        assert request.played_at is None


async def test_cancelling_the_reader_closes_the_connection():
    async with answered(silence_midstream("anthropic")) as (source, upstream, _):
        reading = asyncio.Event()

        async def consume():
            async with transcode(source, "anthropic", "openai-chat") as stream:
                async for _ in stream:
                    reading.set()

        task = asyncio.create_task(consume())
        request = await upstream.request()
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await request.left()


async def test_silence_in_the_middle_ends_by_its_timer_and_closes_the_connection():
    async with answered(silence_midstream("anthropic"), idle_s=0.05) as (source, upstream, _):
        got = []
        with pytest.raises(IdleTimeout):
            async for data in source:
                got.append(data)
        await source.aclose()
        assert TEXT.startswith(read("anthropic", got).text())
        await (await upstream.request()).left()


GARBAGE = Script((Send(head(headers=CHUNKED) + chunk(b"data: x\n\n")), Delay(0.05), Send(b"zz\r\nyy\r\n")))
SHORT = Script((Send(head(headers={"Content-Length": "99"}) + b"data: x\n\n"), Delay(0.05), Fin()))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(reset_mid_line("openai-chat"), id="reset in the middle of a line"),
        pytest.param(truncated_chunked("openai-chat"), id="chunk that is cut"),
        pytest.param(bad_gzip("openai-chat"), id="bad gzip"),
        pytest.param(SHORT, id="shorter than it said"),
    ],
)
async def test_a_broken_transport_is_our_error_with_its_cause_and_without_names(script):
    async with answered(script) as (source, upstream, _):
        got = []
        with pytest.raises(SourceFailed) as caught:
            async for data in source:
                got.append(data)
        await source.aclose()
        assert not isinstance(caught.value, TimedOut)
        assert caught.value.__cause__ is not None
        assert "127.0.0.1" not in str(caught.value)
        assert str(upstream.port) not in str(caught.value)
        assert b"".join(got).startswith(b"data: ")  # what came before is not lost


async def test_a_chunk_without_a_length_is_an_error_at_once():
    """aiohttp 3.14 closes the connection and leaves whoever reads the body waiting."""
    async with answered(GARBAGE) as (source, upstream, _):
        with pytest.raises(SourceFailed) as caught:
            _ = [data async for data in source]
        assert not isinstance(caught.value, TimedOut)
        await source.aclose()
        await (await upstream.request()).left()


@pytest.mark.parametrize("end", [Fin(), Rst()])
async def test_what_came_before_the_break_is_read_however_late(end):
    """aiohttp 3.14 forgets it: a whole answer, of which the last chunk alone is missing, to a client that reads slowly."""
    go = asyncio.Event()
    said = speech("openai-chat")
    first, *rest = [Send(chunk(data)) for data in said]
    script = Script((Send(head(headers=CHUNKED)), first, Until(go), *rest, Delay(0.05), end))
    async with answered(script) as (source, upstream, _):
        got = [await anext(source)]
        go.set()
        request = await upstream.request()
        await asyncio.sleep(0.2)
        with pytest.raises(SourceFailed):
            async for data in source:
                got.append(data)
        await source.aclose()
        assert request.played_at is not None
    assert b"".join(got) == b"".join(said)


@pytest.mark.parametrize("which", ["sock_read", "total"])
async def test_aiohttps_own_time_out_is_our_error_too(which):
    options = {"timeout": aiohttp.ClientTimeout(**{which: 0.1})}
    async with answered(silence_midstream("ollama"), session_options=options) as (source, _, _):
        with pytest.raises(SourceFailed) as caught:
            _ = [data async for data in source]
        await source.aclose()
        assert isinstance(caught.value.__cause__, TimeoutError)


# -- what a recording is told ------------------------------------------------------------------------------------------


class Told:
    """What stands in for a recording: reads, and the first end."""

    def __init__(self) -> None:
        self.reads: list[bytes] = []
        self.ending = ""

    def read(self, data: bytes) -> None:
        self.reads.append(data)

    def end(self, kind: str) -> None:
        self.ending = self.ending or kind


async def ended(source: TimedSource, *, reads: int | None = None) -> Told:
    """Read so many times, or to the end, and close."""
    told = source.recording = Told()
    with contextlib.suppress(SourceFailed):
        async for _ in source:
            if len(told.reads) == reads:
                break
    await source.aclose()
    return told


@virtual
async def test_a_recording_is_told_of_the_reads_and_of_how_they_ended():
    silent = Timeouts(first_byte_s=5, idle_s=5, total_s=None)
    whole = await ended(TimedSource(Paced((1, b"a"), (1, b"b")), silent))
    assert (whole.reads, whole.ending) == ([b"a", b"b"], "whole")
    assert (await ended(TimedSource(Paced((1, b"a"), (1, b"b")), silent), reads=1)).ending == "client_left"
    assert (await ended(TimedSource(Paced(silent=True), silent))).ending == "timeout:first_byte"
    assert (await ended(TimedSource(Paced((1, b"a"), silent=True), silent))).ending == "timeout:idle"
    total = Timeouts(first_byte_s=5, idle_s=5, total_s=6)
    assert (await ended(TimedSource(Paced((1, b"a"), (4, b"b"), silent=True), total))).ending == "timeout:total"


@virtual
async def test_a_recording_is_told_why_a_source_failed_though_nobody_read_it():
    source = TimedSource(Paced((1, b"a"), silent=True), Timeouts())
    told = source.recording = Told()
    assert await anext(source) == b"a"
    source.fail(Interrupted("stop"))
    await source.aclose()
    assert told.ending == "shut_down"


@virtual
@pytest.mark.parametrize("pause_s", [0, 2])
async def test_a_recording_tells_a_body_that_stays_open_behind_its_terminator(pause_s):
    source = TimedSource(Paced((1, b"data: [DONE]\n\n"), silent=True), Timeouts())
    told = source.recording = Told()
    assert await anext(source)
    source.expect_end(soon=True)
    await asyncio.sleep(pause_s)  # the second runs out while it is waited for, or before
    with pytest.raises(StopAsyncIteration):
        await anext(source)
    await source.aclose()
    assert told.ending == "timeout:drain"
