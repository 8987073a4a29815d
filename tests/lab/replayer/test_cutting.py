"""The same bytes in other reads, each at the time when its last byte came."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.lab.recording import Read
from streamkit.lab.replayer.loading import Cut, cut_in, cut_reads
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from tests.lab.replayer.recordings import EVENTS, recording
from tests.web import faults

CUTS = ["reads", "events", "bytes=1", "bytes=7", "bytes=100000", "random=1"]


@pytest.mark.parametrize("text", CUTS)
def test_no_byte_is_lost_and_none_comes_early(text):
    body = b"".join(EVENTS)
    made = recording([body[:100], body[100:101], b"", body[101:300], body[300:]])
    came = [(read.t, byte) for read in made.reads for byte in read.data]
    pieces = cut_reads(made, cut_in(text))
    assert b"".join(piece.data for piece in pieces) == body
    assert all(piece.data for piece in pieces)
    at = 0
    for piece in pieces:
        at += len(piece.data)
        assert piece.t == came[at - 1][0]


def test_reads_stay_as_they_are():
    made = recording([b"a", b"bc"])
    assert cut_reads(made, Cut()) == made.reads


def test_pieces_have_the_size_that_was_asked_for():
    sizes = [len(read.data) for read in cut_reads(recording(), cut_in("bytes=7"))]
    assert set(sizes[:-1]) == {7}
    assert 0 < sizes[-1] <= 7


def test_a_seed_gives_the_same_cut_and_another_gives_another():
    one, again, other = (cut_reads(recording(), cut_in(f"random={seed}")) for seed in (1, 1, 2))
    assert one == again != other


def test_events_are_apart_and_a_comment_is_one_by_itself():
    alive, late = b": keep-alive\r\n\r\n", b"data: {"
    body = [EVENTS[0], alive, *EVENTS[1:3], late]
    joined = b"".join(body)
    made = recording([joined[:70], joined[70:]])
    assert [piece.data for piece in cut_reads(made, cut_in("events"))] == body


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_every_dialect_has_its_events_apart(dialect):
    speech = [chunk for chunk in faults.speech(dialect) if chunk]
    pieces = cut_reads(recording([b"".join(speech)], dialect=dialect), cut_in("events"))
    assert len(pieces) > 3
    reader = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    assert {len(reader.feed(piece.data)) for piece in pieces} <= {0, 1}


def test_items_of_an_array_on_one_line_are_apart():
    array = b'[{"candidates":[{"index":0}]},{"candidates":[{"index":1}]}]'
    pieces = [read.data for read in cut_reads(recording([array], dialect="gemini"), cut_in("events"))]
    assert len(pieces) >= 2
    assert all(piece.count(b"candidates") <= 1 for piece in pieces)


def test_the_dialect_is_found_out_where_the_recording_does_not_say_it():
    assert [piece.data for piece in cut_reads(recording([b"".join(EVENTS)], dialect=""), cut_in("events"))] == EVENTS
    listed = recording([b'{"object":', b'"list"}'], dialect="")
    assert cut_reads(listed, cut_in("events")) == listed.reads


def test_an_answer_without_bytes_has_no_reads():
    assert cut_reads(recording([]), cut_in("bytes=3")) == []
    assert cut_reads(recording([b""]), Cut()) == []


@pytest.mark.parametrize("text", ["", "lines", "bytes", "bytes=0", "bytes=-1", "random=", "random=x", "reads=1"])
def test_what_is_no_cut_is_refused(text):
    with pytest.raises(UsageError, match="must be reads, events"):
        cut_in(text)


def test_a_cut_is_read_from_its_words():
    assert cut_in("bytes=12") == Cut("bytes", 12)
    assert cut_in("random=0") == Cut("random", 0)
    assert cut_reads(recording([b"ab"], gap_s=1.0), cut_in("bytes=1")) == [Read(2.0, b"a"), Read(2.0, b"b")]
