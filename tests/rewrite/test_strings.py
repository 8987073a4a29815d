"""Strings within arguments are changed, however the fragments cut them, and everything else stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.rewrite.strings import JSONStrings
from streamkit.rewrite.window import Window
from tests.rewrite.test_window import cut

SECRET = 'se"é\U0001f600t'
HOLD = 12
STRINGS = st.lists(
    st.sampled_from([SECRET, "se", "t", '"', "\\", "\n", "é", "\U0001f600", "\ud800", "/", " "]), max_size=5
)
TEXTS = STRINGS.map("".join)
VALUES = st.recursive(
    TEXTS | st.sampled_from([1, -2.5e10, True, None, 0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


def change(text):
    return text.replace(SECRET, "***")


def changed(value):
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: changed(member) for name, member in value.items()}
    return [changed(each) for each in value] if isinstance(value, list) else value


def run(text, places=(), *, plain=False):
    strings = JSONStrings(lambda: Window(change, HOLD), plain=plain)
    out = "".join(map(strings.feed, cut(text, places))) + strings.end()
    assert "".join(strings.sent) == out
    return out, strings.changed


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(0, 200)))
def test_values_are_changed_and_the_rest_stays(value, escaped, indent, places):
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    whole, is_changed = run(text)
    assert run(text, places) == run(text, range(len(text))) == (whole, is_changed)
    assert json.loads(whole) == changed(value)
    assert is_changed == (changed(value) != value)


@given(VALUES, st.sampled_from(["", "x", "\\", SECRET, '"', "\n"]), st.integers(0, 60), st.lists(st.integers(0, 200)))
def test_what_is_no_json_does_not_become_json(value, spoilt, place, places):
    text = json.dumps(value)
    text = text[:place] + spoilt
    try:
        json.loads(text)
    except ValueError:
        whole, _ = run(text)
        assert run(text, places)[0] == run(text, range(len(text)))[0] == whole
        with pytest.raises(ValueError):
            json.loads(whole)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"\\u0041": "\\u0041\\/"}', '{"\\u0041": "A/"}'),
        (' {"a" : [ 1 , true ] } ', ' {"a" : [ 1 , true ] } '),
        ('{"a":"\\ud800"}', '{"a":"\\ud800"}'),
        ('{"a": NaN, "b": -Infinity}', '{"a": NaN, "b": -Infinity}'),
        ("[1.5e-7,12]", "[1.5e-7,12]"),
        ("", ""),
    ],
)
def test_how_things_are_written(text, wanted):
    assert run(text)[0] == run(text, range(len(text)))[0] == wanted


def test_free_text_is_changed_as_it_stands():
    assert run(f'{{"{SECRET}": "\\u0041"', range(99), plain=True) == ('{"***": "\\u0041"', True)


def test_after_a_fault_the_text_is_changed_as_it_stands():
    plain = JSONStrings(lambda: Window(lambda text: text.replace("secret", "***"), 6))
    assert plain.feed('{"a": "secret" oops "secret') + plain.end() == '{"a": "***" oops "***'
