"""The fast question agrees with the scanner that walks, whatever the text and wherever it is cut."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS
from streamkit.testing import cuts
from streamkit.tool_calls import object_scanner
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.object_scanner import ObjectScanner
from tests.corpora import recordings
from tests.laws.running import read
from tests.sampling import part_of, parts

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)
#: Pieces of JSON that join to nearly everything, right and wrong.
TOKENS = st.lists(
    st.sampled_from([
        "{", "}", "[", "]", ",", ":", '"', '"a"', '"b\\"c"', "\\", "\\u00e9", "\\u12", "0", "1", "-", "12", ".5", "e9", "E+", "01",
        "true", "tru", "e", "false", "null", "nul", " ", "\n", "\t", "\x01", "\x02", "\x00", "x", "s", "v", "é", "\ud800", "\x7f",
        "{}", "[]", '{"a":1}', '{"a":[{"b":null}]}', '"a":', ",,", "\u2028", "\v", "\u00a0",
    ]),
    max_size=14,
).map("".join)  # fmt: skip


def check(fragments, depth=128):
    """At each cut both say the same of the text so far."""
    slow, fast = JSONScanner(depth=depth), ObjectScanner(depth=depth)
    for fragment in fragments:
        slow.feed(fragment)
        fast.feed(fragment)
        assert fast.complete_object == (slow.state == "complete" and slow.root == "object"), fragments
        assert not fast.malformed or slow.state == "malformed", fragments


def pieces(data, text):
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(st.data(), VALUES, st.sampled_from([None, 1]), st.booleans())
def test_of_json_they_say_the_same(data, value, indent, ascii_only):
    text = json.dumps({"a": value}, indent=indent, ensure_ascii=ascii_only)
    check(pieces(data, text))
    check(text)


@given(st.data(), TOKENS, st.integers(1, 4))
def test_of_what_is_hardly_json_they_say_the_same(data, text, depth):
    check(pieces(data, text), depth)
    check(pieces(data, "{" + text + "}"), depth)
    check(text)


@given(st.data(), VALUES)
def test_of_a_text_with_one_wrong_character_they_say_the_same(data, value):
    text = json.dumps({"k": value, "l": 1})
    place = data.draw(st.integers(0, len(text) - 1))
    check(pieces(data, text[:place] + data.draw(st.sampled_from('{}[],:"\\0e-x \n\x01')) + text[place + 1 :]))
    check(pieces(data, text[:place] + text[place + 1 :]))


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize(
    "make", ["[" * 9 + "]" * 9, '{"a":' * 6 + "1" + "}" * 6, '{"a":[[1],[2,[3,[4]]]]}', '{"a":{},"b":[{}]}']
)
def test_nesting_is_capped_at_the_same_level(make, depth):
    for way in ([make], list(make), [make[:5], make[5:]], ["{}"[:1] + make]):
        check(way, depth)


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_every_recorded_call_they_say_the_same(dialect, part):
    for stream in part_of(recordings(dialect), part):
        for call in read(dialect, [stream.body]).calls:
            for size in (1, 14, 100_000):
                check([call.arguments[at : at + size] for at in range(0, min(len(call.arguments), 5_000), size)])


def test_a_long_fragment_is_folded_in_pieces(monkeypatch):
    monkeypatch.setattr(object_scanner, "PIECE", 3)
    for text in (
        '{"a": [1, 23, true, "x\\u00e9\\"y"], "b": {"c": null}}',
        '{"a": tru}',
        '{"a": "\\u00"}',
        '{"é": 1.5e+10} ',
    ):
        check([text])
        for way in cuts(text.encode(), sample=5):
            check([one.decode("utf-8", "replace") for one in way])


def test_what_is_left_of_a_long_text_stays_short():
    rng = random.Random(3)
    scanner, longest = ObjectScanner(), 0
    hostile = ["[1,", '{"a":1,', "1" * 50, ',"k":' + "[" * 3, "]" * 3, "1.5e", '"' * 2]
    for fragment in ['{"a":[', *["1," for _ in range(5_000)], "[", "7" * 5_000, *["7" * 9] * 5_000]:
        scanner.feed(fragment)
        longest = max(longest, len(scanner._folded) + len(scanner._kept))
    assert longest < 40
    for _ in range(200):
        scanner = ObjectScanner()
        for _ in range(60):
            scanner.feed(rng.choice(hostile))
            if not scanner.malformed:
                assert len(scanner._folded) + len(scanner._kept) < 6 * 128
