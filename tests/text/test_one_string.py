"""Blocks in one string: a blank line between two of them, however their texts are cut."""

from __future__ import annotations

import pytest

from streamkit.text.one_string import OneString, one_string


@pytest.mark.parametrize(
    ("blocks", "joined"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a\n\nb\n\nc"),
        (["a", "", "b"], "a\n\nb"),
        (["a\n", "b"], "a\n\nb"),
        (["a\n\n\n", "b"], "a\n\n\nb"),
        (["a", "\nb"], "a\n\nb"),
        (["a\n", "\nb"], "a\n\nb"),
        (["a", "\n\n\nb"], "a\n\n\nb"),
        (["\n", "a"], "\na"),
        (["a", "\n", "b"], "a\n\nb"),
    ],
)
def test_a_blank_line_parts_two_blocks_that_have_none(blocks, joined):
    assert one_string(blocks) == joined
    by_character, pieces = OneString(), []
    for block in filter(None, blocks):
        by_character.begin()
        pieces += [by_character.before(character) + character for character in block]
    assert "".join(pieces) == joined
