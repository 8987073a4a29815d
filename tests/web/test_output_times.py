"""The outputs of a stream are counted and timed as its events say, whichever way its reads go through the stages."""

from __future__ import annotations

import pytest

from streamkit import transcode
from streamkit.events import OUTPUT, Aside, ToolCallArguments, ToolCallDelta
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.testing import cut_at
from streamkit.tool_calls.accumulate import SPOKEN_ASIDES
from streamkit.web.observers import GAP_BOUNDS, OutputTimes
from tests.laws.running import machines
from tests.vectors import VECTORS

DIALECTS = sorted({vector.dialect for vector in VECTORS})
CLIENTS = ("openai-chat", "anthropic")
OUTPUTS = OUTPUT | {ToolCallArguments}


def is_output(event):
    return type(event) in OUTPUTS or (type(event) is Aside and event.kind in SPOKEN_ASIDES)


def outputs_by_events(dialect, reads):
    """Numbers of the reads in which the model says something: the last one also if its decoder closes a call at the end."""
    parser, decoder, *others = machines(dialect, StreamReport())
    chain = Chain(parser, decoder, *others)
    spoke = [any(map(is_output, chain.feed(read))) for read in reads]
    closing = [*decoder.feed(parser.finish()), *decoder.finish()]
    spoke[-1] = spoke[-1] or any(type(event) is ToolCallDelta for event in closing)
    return [number for number, said_so in enumerate(spoke) if said_so]


async def timed(dialect, client, reads):
    """The times of a stream whose reads come a second apart."""
    report, times = StreamReport(), OutputTimes()

    async def source():
        for number, read in enumerate(reads):
            times.read(report, float(number))
            yield read

    async with transcode(source(), dialect, client, report=report) as pieces:
        async for _ in pieces:
            pass
    times.settle(report)
    return times


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_each_read_in_which_the_model_says_something_is_an_output(dialect, client):
    for vector in (each for each in VECTORS if each.dialect == dialect and each.clean):
        for size in (len(vector.body), 97, 31):
            reads = cut_at(vector.body, list(range(size, len(vector.body), size)))
            wanted = outputs_by_events(dialect, reads)
            times = await timed(dialect, client, reads)
            assert times.outputs == len(wanted), vector.name
            if wanted:
                assert (times.first_at, times.last_at) == (wanted[0], wanted[-1]), vector.name
            assert sum(times.gaps) == max(0, len(wanted) - 1)


def said(at, times, report):
    report.frames += 1
    report.has_output = report.spoken = True
    times.read(report, at)


def test_gaps_are_counted_by_bound_and_stalls_above_theirs():
    report, times = StreamReport(), OutputTimes(stall_s=5.0)
    times.read(report, 1.0)
    for at in (1.0005, 1.5, 6.5, 11.6, 80.0):  # each output is read when the one before has gone through
        said(at, times, report)
    assert times.outputs == 5
    assert (times.first_at, times.last_at) == (1.0, 11.6)
    wanted = {0.001: 1, 0.5: 1, 5.0: 1, 10.0: 1}
    assert {bound: count for bound, count in zip(GAP_BOUNDS, times.gaps, strict=False) if count} == wanted
    assert times.gaps[-1] == 0
    assert times.stalls == 1
    assert times.greatest_gap_s == pytest.approx(5.1)
    assert times.gap_total_s == pytest.approx(10.6)
    assert times.median_gap_s == 0.5


def test_an_answer_of_one_output_has_no_gap():
    report, times = StreamReport(), OutputTimes()
    times.read(report, 1.0)
    said(2.0, times, report)
    assert (times.outputs, times.greatest_gap_s, times.median_gap_s) == (1, 0.0, None)
