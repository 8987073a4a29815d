"""Changes of frames: what they touch, what they leave as it is, and the bytes that they write."""

from __future__ import annotations

import pytest

from streamkit.dialects.quirks import (
    BYTE_FF,
    Changes,
    EventForm,
    LineForm,
    MessageForm,
    both,
    cut,
    every,
    first,
    insert,
    last,
    put,
    rename,
    reword,
    rewrite,
    turn,
    value_at,
)
from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream

LINES = Changes(LineForm())
EVENTS = Changes(EventForm())
ABC = (b'{"t":"a"}\n', b'{"t":"b"}\n', b'{"t":"c"}\n')


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (LINES.edit(every("t"), put("t", 1)), b'{"t":1}\n{"t":1}\n{"t":1}\n'),
        (LINES.edit(first("t"), put("u", 1)), b'{"t":"a","u":1}\n{"t":"b"}\n{"t":"c"}\n'),
        (LINES.edit(first("t", at=1), cut("t")), b'{"t":"a"}\n{}\n{"t":"c"}\n'),
        (LINES.edit(last("t"), rename("t", "u")), b'{"t":"a"}\n{"t":"b"}\n{"u":"c"}\n'),
        (LINES.edit(every("t", "b", "c"), turn("t", str.upper)), b'{"t":"a"}\n{"t":"B"}\n{"t":"C"}\n'),
        (LINES.edit(every("t"), reword("t", {"a": "z"})), b'{"t":"z"}\n{"t":"b"}\n{"t":"c"}\n'),
        (LINES.add(first("t"), put("t", "x")), b'{"t":"a"}\n{"t":"x"}\n{"t":"b"}\n{"t":"c"}\n'),
        (LINES.add(first("t"), put("t", "x"), behind=False), b'{"t":"x"}\n{"t":"a"}\n{"t":"b"}\n{"t":"c"}\n'),
        (LINES.drop(first("t", "b")), b'{"t":"a"}\n{"t":"c"}\n'),
        (LINES.share(first("t"), "t", last("t"), "u"), b'{"t":"a"}\n{"t":"b"}\n{"t":"c","u":"a"}\n'),
        (
            LINES.move(first("t"), put("t", "x"), behind=first("t", "b")),
            b'{"t":"a"}\n{"t":"b"}\n{"t":"x"}\n{"t":"c"}\n',
        ),
        (LINES.move(last("t")), b'{"t":"a"}\n{"t":"b"}\n{"t":"c"}\n{"t":"c"}\n'),
        (LINES.when(every("t", "a"), insert(1, b"null\n")), b'{"t":"a"}\nnull\n{"t":"b"}\n{"t":"c"}\n'),
        (LINES.unless(every("u"), insert(-1, b"null\n")), b'{"t":"a"}\n{"t":"b"}\n{"t":"c"}\nnull\n'),
        (rewrite(b"b", b"B"), b'{"t":"a"}\n{"t":"B"}\n{"t":"c"}\n'),
    ],
)
def test_a_change_writes(change, written):
    assert b"".join(change(ABC)) == written


@pytest.mark.parametrize(
    "change",
    [
        LINES.edit(every("u"), put("u", 1)),
        LINES.when(every("u"), insert(1, b"null\n")),
        LINES.unless(every("t"), insert(1, b"null\n")),
        LINES.share(first("u"), "u", every("t"), "t"),
        LINES.move(first("t"), behind=first("u")),
        both(rewrite(b"b", b"B"), LINES.drop(every("u"))),
    ],
)
def test_a_stream_that_lacks_what_is_changed_stays(change):
    assert change(ABC) == ABC


def test_frames_of_another_form_and_values_that_stay_keep_their_bytes():
    frames = (b": comment\n\n", b'data: { "t" : 1.0 }\n\n', b"data: {oops\n\n", b"data: [DONE]\n\n")
    assert EVENTS.edit(every(""), cut("u"))(frames) == frames
    assert EVENTS.edit(every("t"), put("u", 1))(frames)[1] == b'data: {"t":1.0,"u":1}\n\n'


def test_an_event_keeps_its_name_and_its_line_ends():
    assert EVENTS.edit(every("t"), put("t", 2))((b'event: e\r\ndata: {"t":1}\r\n\r\n',)) == (
        b'event: e\r\ndata: {"t":2}\r\n\r\n',
    )


def test_a_binary_message_keeps_its_headers_and_gets_its_checksum():
    frame = serialize_eventstream({":event-type": "e"}, b'{"t":1}')
    [changed] = Changes(MessageForm()).edit(every("t"), put("t", 2))((frame,))
    [message] = EventStreamParser().feed(changed)
    assert (message.data, message.headers) == (b'{"t":2}', {":event-type": "e"})


def test_what_is_no_text_is_written_as_providers_write_it():
    change = LINES.edit(first("t"), put("t", f"\N{GRINNING FACE}\ud83d{BYTE_FF}"), put("n", 10**30))
    assert change(ABC)[0] == b'{"t":"\xf0\x9f\x98\x80\\ud83d\xff","n":1000000000000000000000000000000}\n'


def test_halves_are_the_whole():
    change = LINES.halve(first("t"), "t", then=[put("u", 1)])
    assert change((b'{"t":"abc"}\n',)) == (b'{"t":"ab"}\n', b'{"t":"c","u":1}\n')


def test_a_path_leads_through_lists():
    assert value_at({"a": [{"b": 1}]}, "a.0.b") == 1
    assert not every("a.1.b").has({"a": [{"b": 1}]})
    assert not every("a.b").has({"a": [{"b": 1}]})
