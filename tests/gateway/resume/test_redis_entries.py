"""How a log stands in Redis; what somebody else wrote there is checked."""

from __future__ import annotations

import pytest

from streamkit.resume import LogGap, Meta
from streamkit.resume.redis_client import (
    END,
    FIRST,
    Append,
    Entry,
    behind,
    creation,
    entry_of,
    message,
    message_in,
    meta_in,
    newest_in,
    seal,
)

BOOT = "aaaabbbb_-cc"
META = Meta(
    dialect="gemini",
    media_type="application/json",
    is_array=True,
    owner="o",
    created=2.25,
    model="mödel",
    background=True,
)


def stored(command):
    """An entry as Redis answers with it."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    fields = words[words.index(b"NOMKSTREAM") + 1 :] if b"NOMKSTREAM" in words else words[2:]
    if fields[:3] and fields[0] == b"MAXLEN":
        fields = fields[3:]
    return [fields[0], fields[1:]]


def test_what_is_known_of_an_answer_is_read_again():
    assert meta_in([stored(creation(b"k", META, BOOT))]) == (META, BOOT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"dialect", b"klingon"), (b"dialect", b"\xff"), (b"node", b"../../etc"), (b"node", None), (b"created", b"x"),
        (b"owner", b"\xc3\xa4"), (b"background", None), (b"created", b"9" * 5000), (b"created", b"nan"), (b"created", b"-1"),
        (b"type", b"text/html\r\nx: y"),
    ],
)  # fmt: skip
def test_a_log_of_somebody_else_is_none(field, value):
    raw = stored(creation(b"k", META, BOOT))
    at = raw[1].index(field)
    raw[1][at : at + 2] = [] if value is None else [field, value]
    assert meta_in([raw]) is None
    assert meta_in([]) is None


def test_an_append_and_an_end_are_read_again():
    assert entry_of(stored(Append(begin=3, data=b"abc").command(b"k"))) == Entry(id=6, begin=3, data=b"abc")
    end = entry_of(stored(Append(begin=6, data=b"d", ended="cancelled").command(b"k")))
    assert (end.begin, end.end, end.ended, end.is_seal) == (6, 7, "cancelled", False)
    sealed = entry_of(stored(seal(b"k", 6, b"told")))
    assert (sealed.begin, sealed.data, sealed.ended, sealed.is_seal) == (6, b"told", "aborted", True)
    assert end.id == sealed.id > 2**53 - 2


@pytest.mark.parametrize(
    "raw",
    [
        [b"2-0", [b"d", b"abc"]],  # more bytes than fit before its end
        [b"3-1", [b"d", b"abc"]],
        [b"x-0", []],
        [END, [b"e", b"won", b"at", b"0"]],
        [END, [b"e", b"done", b"at", b"-1"]],
        [END, [b"e", b"done"]],
        [END, [b"e", b"done", b"at", b"9" * 5000]],
        [END, [b"e", b"done", b"at", "²".encode()]],
    ],
)
def test_an_entry_of_somebody_else_is_a_gap(raw):
    with pytest.raises(LogGap, match="invalid"):
        entry_of(raw)


def test_the_newest_entry_says_where_the_bytes_end():
    assert newest_in([[FIRST, []]]).end == 0
    assert newest_in([[b"9-0", [b"d", b"abc"]]]).end == 9


def test_a_reader_gets_what_it_has_not_got():
    entry = Entry(id=6, begin=3, data=b"abc")
    assert [behind(position, entry) for position in range(3, 9)] == [b"abc", b"bc", b"c", b"", b"", b""]
    with pytest.raises(LogGap, match="from 2 to 3"):
        behind(2, entry)


def test_a_reader_with_bytes_that_no_store_has_is_told_of_the_failure_whole():
    entry = Entry(id=9, begin=3, data=b"error", ended="aborted", is_seal=True)
    assert [behind(position, entry) for position in (3, 4, 8, 100)] == [b"error"] * 4
    with pytest.raises(LogGap):
        behind(2, entry)


def test_messages_are_read_again():
    assert message_in(stored(message(b"k", "stop", "st_x"))) == ("stop", "st_x")
    assert message_in([b"1-0", [b"other", b"\xff"]]) == ("", "")
