"""Ids in events: the same ones however the bytes are cut, and nothing else changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.resume import EventIDs, cursor_in
from streamkit.resume.event_ids import ends_an_event, without_blank_line
from streamkit.testing import cut_at
from tests.resume.reading import without_ids
from tests.working import work

LOG = "st_" + "a" * 22
LINES = st.sampled_from(
    [b"data: {}", b"data", b"data: id: st_x.1", b"event: e", b"id: 7", b"retry: 1", b": comment", b"database: 1"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@st.composite
def streams(draw):
    """Events in the line ends of one stream, or of any; the last one may be unfinished."""
    ends = draw(st.sampled_from([st.just(b"\n"), st.just(b"\r\n"), st.just(b"\r"), ENDS]))
    lines = draw(st.lists(st.one_of(LINES, st.just(b"")), max_size=12))
    body = b"".join(line + draw(ends) for line in lines)
    return body[: draw(st.integers(max(0, len(body) - 3), len(body)))]


def written(pieces, **where):
    ids = EventIDs(LOG, **where)
    return b"".join([*map(ids.feed, pieces), ids.finish()])


@given(streams(), st.data())
def test_the_cuts_decide_nothing_and_without_ids_it_is_the_input(body, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)))))
    whole = written([body])
    assert written(cut_at(body, cuts)) == whole
    assert written([body[at : at + 1] for at in range(len(body))]) == whole
    assert without_ids(whole) == body


@given(streams())
def test_each_event_with_data_has_the_cursor_behind_it(body):
    """What follows the cursor is what follows the event."""
    offset = 0
    for found in re.findall(rb"(?:\n|\r)id: (st_a{22}\.[0-9]+)", written([body])):
        cursor = cursor_in(found.decode())
        assert cursor.log_id == LOG
        assert offset < cursor.offset <= len(body)
        assert ends_an_event(body[: cursor.offset])
        assert re.search(rb"(?:\A|[\r\n])data", body[offset : cursor.offset])
        offset = cursor.offset


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_the_id_is_the_last_line_of_its_event(end):
    event = b"event: e" + end + b"data: 1" + end + b"data: 2" + end + end
    name = f"id: {LOG}.{len(event)}".encode()
    assert written([event, b"x"]) == event[: -len(end)] + name + end + end + b"x"


@pytest.mark.parametrize("event", [b": comment\n\n", b"event: e\n\n", b"id: 1\n\n", b"\n\n", b"database: 1\n\n"])
def test_an_event_without_data_gets_none(event):
    assert written([event, b"data: 1\n\n"]) == event + b"data: 1\nid: %b.%d\n\n" % (LOG.encode(), len(event) + 9)


def test_what_begins_within_an_event_gets_none_there():
    assert written([b"lo\n\ndata: 2\n\n"], offset=8, inside=True) == b"lo\n\ndata: 2\nid: %b.21\n\n" % LOG.encode()


@pytest.mark.parametrize(
    ("before", "is_end"),
    [
        (b"", True),
        (b"a\n\n", True),
        (b"\r\n\r\n", True),
        (b"a\r\r", True),
        (b"a\n", False),
        (b"a\r\n", False),
        (b"ab", False),
    ],
)
def test_where_an_event_ends(before, is_end):
    assert ends_an_event(before) is is_end


def test_an_event_in_many_pieces_takes_linear_time():
    def feeding(count):
        ids = EventIDs(LOG)
        return lambda: [ids.feed(b"x\r") for _ in range(count)]

    assert work(feeding(4000)) < 2.2 * work(feeding(2000))


def test_only_a_comment_loses_its_blank_line():
    assert without_blank_line(b": keep-alive\r\n\r\n") == b": keep-alive\n"
    assert without_blank_line(b"event: ping\ndata: {}\n\n") == b"event: ping\ndata: {}\n\n"
