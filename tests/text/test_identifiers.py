"""Ids and names that are made again: always the same, always fitting, and only where they must be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS
from streamkit.text.identifiers import (
    NINE,
    PORTABLE_IDS,
    PORTABLE_NAMES,
    nine_characters,
    portable_id,
    portable_name,
    random_id,
)

ANY_TEXT = st.text(st.characters(), max_size=100)  # half surrogate pairs as well


def test_a_random_id_is_nobody_else_s():
    assert re.fullmatch(r"call_[0-9A-Za-z]{22}", random_id("call_"))
    assert random_id("call_") != random_id("call_")


@pytest.mark.parametrize("kept", ["call_1", "toolu_01-A", "x" * 64])
def test_an_id_that_fits_is_kept(kept):
    assert portable_id(kept) == kept


@pytest.mark.parametrize("name", ["get_weather", "_x", "a-b", "x" * 64])
def test_a_name_that_fits_is_kept(name):
    assert portable_name(name) == name


def test_what_is_made_is_the_same_for_ever():
    """These values stand in conversations: a new one would cost every provider's cache of the prompt."""
    assert portable_id("functions.search:0") == "call_WJWoxGb2XSzK01KTv84q44"
    assert nine_characters("call_abc") == portable_id("call_abc", NINE)
    assert portable_id("call_abc", NINE) == "vUSYDswyj"
    assert portable_name("files.read") == "files_read_t7NC7LbB"


@pytest.mark.parametrize(
    ("name", "begins"),
    [("2fast", "_2fast_"), ("", "__"), ("mcp:files/read it", "mcp_files_read_it_"), ("größe", "gr__e_"), ("é", "___")],
)
def test_of_a_name_that_does_not_fit_what_can_be_kept_is_kept(name, begins):
    assert portable_name(name).startswith(begins)


@given(ANY_TEXT)
def test_what_is_made_fits_and_a_second_pass_changes_nothing(text):
    for made, fits in (
        (portable_id(text), PORTABLE_IDS), (portable_id(text, NINE), NINE), (portable_name(text), PORTABLE_NAMES),
    ):  # fmt: skip
        assert fits.fullmatch(made)
        again = portable_name(made) if fits is PORTABLE_NAMES else portable_id(made, fits)
        assert again == made


@given(ANY_TEXT, ANY_TEXT)
def test_two_stay_two(a, b):
    assert (portable_id(a) == portable_id(b)) == (a == b)
    assert (portable_name(a) == portable_name(b)) == (a == b)


@given(ANY_TEXT)
def test_a_portable_name_is_taken_by_every_dialect(text):
    assert [d.name for d in DIALECTS.values() if not d.tools.names.fullmatch(portable_name(text, d.tools.names))] == []
    assert [d.name for d in DIALECTS.values() if not d.tools.names.fullmatch(portable_name(text))] == []
