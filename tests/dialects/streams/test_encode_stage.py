"""Built-in stages that follow one another share one driver: the same as if each had its own.

But where a machine fails, a parser with a driver of its own has read on to the end of the read.
"""

from __future__ import annotations

import random

import pytest
from attrs import asdict

from streamkit.dialects import encode
from streamkit.dialects.anthropic.encode import AnthropicEncoder
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import BrokenFrame, SourceFailed
from streamkit.events import TextDelta
from streamkit.pipeline import Pipe, Stage, pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import events_of, transcode
from streamkit.report import StreamReport
from streamkit.testing import FaultySource, cut_at, joined, open_sources, source_of
from tests.laws.running import CLOCK, every_stream, maker
from tests.sampling import few, name_of
from tests.vectors import VECTORS

TARGETS = ["anthropic", "openai-chat", "ollama"]


def staged(made: Pipe) -> Pipe:
    """The same pipe with a driver for each stage: to the pipe, each is a function of somebody's own."""
    stages = [lambda source, stage=stage: stage(source, made.report) for stage in made._stages]
    return Pipe(made._source, tuple(stages), made.report)


#: What is reported of a stream that failed, however far its last read went.
UP_TO_A_FAULT = ("error", "clean", "started", "broken_frame", "provider_error", "failure", "verdicts", "losses", "lost")


async def told(made: Pipe):
    """All that a pipe gives: what it yields, what it raises, what it reports."""
    found, raised = [], None
    try:
        async with made as stream:
            async for output in stream:
                found.append(output)
    except Exception as error:  # noqa: BLE001
        raised = error
    assert open_sources() == 0
    report = asdict(made.report) | {"error": str(made.report.error)}
    if raised is not None or made.report.error is not None:
        report = {name: report[name] for name in UP_TO_A_FAULT}
    whole = b"".join(found) if found and type(found[0]) is bytes else joined([e for batch in found for e in batch])
    return whole, (type(raised), str(raised)), report


async def check(make):
    """``make`` a pipe twice, over sources of its own: fused and staged it must give the same."""
    assert await told(make()) == await told(staged(make()))


def reads_of(stream):
    rng = random.Random(len(stream.body))
    return cut_at(stream.body, sorted(rng.choices(range(len(stream.body) + 1), k=5)))


@pytest.mark.parametrize("stream", every_stream("one driver", ours=24))
async def test_one_driver_gives_what_a_driver_for_each_stage_gives(stream):
    reads = reads_of(stream)
    to = TARGETS[len(stream.body) % len(TARGETS)]
    await check(
        lambda: transcode(
            FaultySource(reads), stream.dialect, to, ReadOptions(make_id=maker()), reencode=True, clock=CLOCK
        )
    )
    await check(lambda: events_of(FaultySource(reads), stream.dialect, ReadOptions(make_id=maker())))


@pytest.mark.parametrize("error", [SourceFailed("reset"), OSError("a transport that nobody adapted")])
@pytest.mark.parametrize("vector", few(VECTORS, 6, "a failing source", name=name_of))
async def test_so_it_does_when_the_source_fails_anywhere(vector, error):
    reads = [vector.body[: len(vector.body) // 2], vector.body[len(vector.body) // 2 :]]
    for count in range(3):

        def source(count=count):
            return FaultySource(reads, fail_after=count, error=error)

        for to in TARGETS:
            await check(
                lambda to=to: transcode(
                    source(), vector.dialect, to, ReadOptions(make_id=maker()), reencode=True, clock=CLOCK
                )
            )
        await check(lambda: events_of(source(), vector.dialect, ReadOptions(make_id=maker())))


class Broken:
    """A machine with somebody's bug: it holds one batch back, and raises in the method that it is told to."""

    def __init__(self, report, where, error):
        self.fault = None
        self.where, self.error, self.held = where, error, []

    def feed(self, batch):
        if self.where == "feed" and any(type(event) is TextDelta for event in batch):
            raise self.error
        if self.where == "fault" and any(type(event) is TextDelta for event in batch):
            self.fault = self.error
            return []
        out, self.held = self.held, list(batch)
        return out

    def finish(self):
        if self.where == "finish":
            raise self.error
        return self.held

    def abandon(self):
        out, self.held = self.held, []
        return out


@pytest.mark.parametrize("where", ["feed", "fault", "finish", "nowhere"])
@pytest.mark.parametrize("error", [ValueError("a bug"), BrokenFrame("a fault", b"")])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_so_it_does_when_a_machine_in_the_middle_fails(where, error, place):
    vector = next(v for v in VECTORS if v.dialect == "openai-chat" and v.text and v.clean)

    def make():
        made = events_of(
            source_of(cut_at(vector.body, [100, 300])),
            "openai-chat",
            ReadOptions(make_id=maker()),
            report=StreamReport(),
        )
        stages = list(made._stages)
        stages.insert(2 + place, Stage("broken", lambda report: Broken(report, where, error)))
        stages.append(encode("anthropic", make_id=maker(), clock=CLOCK))
        return pipe(made._source, *stages, report=made.report)

    await check(make)


class Stubborn(AnthropicEncoder):
    """An encoder with a bug."""

    def text(self, event):
        raise ValueError("a bug")


async def test_so_it_does_when_the_encoder_fails():
    def make():
        made = events_of(source_of([vector.body]), "openai-chat", ReadOptions(make_id=maker()), report=StreamReport())
        last = EncodeStage("stubborn", lambda report: Stubborn(Encoding(make_id=maker(), clock=CLOCK), report))
        return pipe(made._source, *made._stages, last, report=made.report)

    vector = next(v for v in VECTORS if v.dialect == "openai-chat" and v.text)
    await check(make)


async def test_a_stage_of_a_users_own_keeps_its_place_between_the_built_in_ones():
    vector = next(v for v in VECTORS if v.dialect == "openai-chat" and v.text)
    seen = []

    async def watch(batches):
        async for batch in batches:
            seen.extend(batch)
            yield batch

    made = events_of(source_of([vector.body]), "openai-chat", ReadOptions(make_id=maker()))
    stages = [*made._stages, watch, encode("anthropic", make_id=maker(), clock=CLOCK)]
    async with pipe(made._source, *stages, report=made.report) as stream:
        output = b"".join([piece async for piece in stream])
        assert len(stream._iterators) == 4  # the source, what parses to checks, the user's, the encoder
    assert "".join(e.text for e in seen if type(e) is TextDelta) == vector.text
    assert output
