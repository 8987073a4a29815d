"""The input of a call is nothing or one JSON object; of one that is longer than is kept nothing is claimed."""

from __future__ import annotations

import pytest

from streamkit.dialects.linting import INPUT_CHARS, CallInput


@pytest.mark.parametrize(
    ("fragments", "found"),
    [([], None), (["", ""], None), (['{"a":', "1}"], None), (['{"a":'], '{"a":'), (["[1]"], "[1]"), ([" "], " ")],
)
def test_an_input_is_nothing_or_one_object(fragments, found):
    text = CallInput()
    for fragment in fragments:
        text.append(fragment)
    assert text.unparsable() == found


def test_an_input_that_is_too_long_is_not_judged():
    text = CallInput()
    for _ in range(3):
        text.append("x" * INPUT_CHARS)
    assert len(text.fragments) == 1
    assert text.unparsable() is None


def test_an_input_is_judged_once_however_often_its_call_ends():
    text = CallInput()
    text.append('{"x":')
    assert text.unparsable() is text.unparsable()
    text.append("1}")
    assert text.unparsable() is None
