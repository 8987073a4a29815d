"""The outputs of a stream are counted and timed as its events say, whichever way its reads go through the stages."""

from __future__ import annotations

import pytest

from streamkit import transcode
from streamkit.events import OUTPUT, Aside, ToolCallArguments
from streamkit.pipeline import Chain
from streamkit.report import StreamReport
from streamkit.testing import cut_at
from streamkit.tool_calls.accumulate import SPOKEN_ASIDES
from streamkit.web.pace import GAP_BOUNDS, Pace
from tests.laws.running import machines
from tests.vectors import VECTORS

DIALECTS = sorted({vector.dialect for vector in VECTORS})
CLIENTS = ("openai-chat", "anthropic")
OUTPUTS = OUTPUT | {ToolCallArguments}


def is_output(event):
    return type(event) in OUTPUTS or (type(event) is Aside and event.kind in SPOKEN_ASIDES)


def outputs_by_events(dialect, reads):
    """Numbers of the reads in which the model says something."""
    chain = Chain(*machines(dialect, StreamReport()))
    return [number for number, read in enumerate(reads) if any(map(is_output, chain.feed(read)))]


async def paced(dialect, client, reads):
    """The pace of a stream whose reads come a second apart."""
    report, pace = StreamReport(), Pace()

    async def source():
        for number, read in enumerate(reads):
            pace.read(report, float(number))
            yield read

    async with transcode(source(), dialect, client, report=report) as pieces:
        async for _ in pieces:
            pass
    pace.settle(report)
    return pace


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_each_read_in_which_the_model_says_something_is_an_output(dialect, client):
    for vector in (each for each in VECTORS if each.dialect == dialect and each.clean):
        for size in (len(vector.body), 97, 31):
            reads = cut_at(vector.body, list(range(size, len(vector.body), size)))
            wanted = outputs_by_events(dialect, reads)
            pace = await paced(dialect, client, reads)
            assert pace.outputs == len(wanted), vector.name
            if wanted:
                assert (pace.first_at, pace.last_at) == (wanted[0], wanted[-1]), vector.name
            assert sum(pace.gaps) == max(0, len(wanted) - 1)


def said(at, pace, report):
    report.frames += 1
    report.said = report.spoken = True
    pace.read(report, at)


def test_gaps_are_counted_by_bound_and_stalls_above_theirs():
    report, pace = StreamReport(), Pace(stall_s=5.0)
    pace.read(report, 1.0)
    for at in (1.0005, 1.5, 6.5, 11.6, 80.0):  # each output is read when the one before has gone through
        said(at, pace, report)
    assert pace.outputs == 5
    assert (pace.first_at, pace.last_at) == (1.0, 11.6)
    wanted = {0.001: 1, 0.5: 1, 5.0: 1, 10.0: 1}
    assert {bound: count for bound, count in zip(GAP_BOUNDS, pace.gaps, strict=False) if count} == wanted
    assert pace.gaps[-1] == 0
    assert pace.stalls == 1
    assert pace.greatest_gap_s == pytest.approx(5.1)
    assert pace.gap_total_s == pytest.approx(10.6)
    assert pace.median_gap_s == 0.5


def test_an_answer_of_one_output_has_no_gap():
    report, pace = StreamReport(), Pace()
    pace.read(report, 1.0)
    said(2.0, pace, report)
    assert (pace.outputs, pace.greatest_gap_s, pace.median_gap_s) == (1, 0.0, None)
