"""L1: however the bytes are cut, the events are the same in the normal form of ``streamkit.testing.joined``."""

from __future__ import annotations

import random

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import StreamError
from streamkit.events import ToolCallArguments, ToolCallStarted, UsageReported
from streamkit.recipes import events_of
from streamkit.testing import FaultySource, cut_at, cuts, joined, open_sources
from tests.corpora import recordings, require_corpora
from tests.laws.running import every_stream, maker, read, translate
from tests.vectors import VECTORS

#: Pairs of cuts of streams up to 600 bytes; recordings are longer.
PAIRS = 600


def check_cuts(stream, ways):
    whole = read(stream.dialect, [stream.body]).facts()
    for reads in ways:
        found = read(stream.dialect, reads).facts()
        assert found == whole, f"cut into {[len(one) for one in reads][:20]}"


@pytest.mark.parametrize("stream", every_stream())
def test_the_events_are_the_same_however_the_bytes_are_cut(stream):
    sample = 12 if len(stream.body) < 4096 else 3
    check_cuts(stream, cuts(stream.body, sample=sample, seed=len(stream.body)))


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stream", every_stream())
def test_the_events_are_the_same_at_every_cut(stream):
    check_cuts(stream, cuts(stream.body, exhaustive=True, pairs_up_to=PAIRS))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v.dialect}-{v.name}".replace(" ", "-"))
@pytest.mark.parametrize("target", DIALECTS)
def test_what_is_written_says_the_same_however_the_input_was_cut(vector, target):
    """The bytes may differ: an Anthropic start holds the usage that the first read brought."""

    def said(reads):
        output, report = translate(vector.dialect, target, reads, passing=False)
        again = read(target, [output])
        events = [event for event in again.events if type(event) is not UsageReported]
        return events, report.losses, report.repairs, report.withheld, report.clean

    whole = said([vector.body])
    for reads in cuts(vector.body, sample=4):
        assert said(reads) == whole, [len(one) for one in reads][:20]


@pytest.mark.parametrize("stream", every_stream())
async def test_the_staged_pipe_and_the_chain_of_machines_yield_the_same(stream):
    rng = random.Random(len(stream.body))
    reads = cut_at(stream.body, sorted(rng.choices(range(len(stream.body) + 1), k=7)))
    expected = read(stream.dialect, reads)
    found, fault = [], ""
    async with events_of(FaultySource(reads), stream.dialect, make_id=maker()) as events:
        try:
            async for batch in events:
                found += batch
        except StreamError as error:
            fault = f"{type(error).__name__}: {error}"
    assert open_sources() == 0
    assert (joined(found), fault) == (expected.events, expected.fault)


def test_the_normal_form_joins_fragments_of_interleaved_calls_and_nothing_across_a_start():
    one, two = ToolCallArguments(0, "a"), ToolCallArguments(1, "b")
    start = ToolCallStarted(1, "id", "name")
    assert joined([one, two, one]) == joined([one, one, two]) == [ToolCallArguments(0, "aa"), two]
    assert joined([one, start, two, one]) == [one, start, two, one]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_events_are_the_same_as_the_network_cut_them(dialect):
    """Some recordings kept the reads of their network."""
    for stream in recordings(dialect):
        if len(stream.chunks) > 1:
            assert read(dialect, list(stream.chunks)).facts() == read(dialect, [stream.body]).facts(), stream.name


def test_some_recordings_kept_the_reads():
    require_corpora()
    assert sum(len(stream.chunks) > 1 for dialect in DIALECTS for stream in recordings(dialect)) > 20
