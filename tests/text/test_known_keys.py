"""Known keys are found however they are written, whole or begun, and nothing else is."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from streamkit.text.known_keys import WINDOW_BYTES, KnownKeys

KEY = "sk-a/b+cd_0123456789=="
KEYS = KnownKeys([KEY, "short"])


@pytest.mark.parametrize(
    "written", [KEY, quote(KEY, safe=""), KEY.replace("/", "\\/"), KEY.replace("+", "\\u002B"), json.dumps(KEY)]
)
def test_a_key_is_found_and_cut_as_it_may_be_written(written):
    data = b'{"a":"' + written.encode() + b'"}'
    assert KEYS.are_in(data)
    assert b"0123456789" not in KEYS.cut(data)


def test_what_is_no_key_stays():
    data = b"sk-a/b+cd_012345678 0123456789 short"
    assert not KEYS.are_in(data)
    assert KEYS.cut(data) == data


@pytest.mark.parametrize("before", [0, WINDOW_BYTES - 12, WINDOW_BYTES, 3 * WINDOW_BYTES - 1])
def test_a_key_is_found_where_one_search_ends_and_the_next_begins(before):
    assert KEYS.are_in(b"x" * before + KEY.encode() + b"y")


def test_the_beginning_of_a_key_is_found_at_the_end_alone():
    for cut in range(len(KEY)):
        data = b"text " + KEY[:cut].encode()
        assert KEYS.begins_at(data) == (5 if cut >= 4 else len(data)), cut
    assert KEYS.begins_at(KEY[:8].encode() + b" text") == 13


def test_no_keys_are_nowhere():
    none = KnownKeys()
    assert (none.are_in(b"abc"), none.cut(b"abc"), none.begins_at(b"abc")) == (False, b"abc", 3)
    assert none.with_more(["12345678"]).are_in(b"a12345678")
