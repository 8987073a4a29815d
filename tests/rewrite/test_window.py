"""A text that arrives in pieces is changed as if it were whole, and no more of it waits than was said."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import UsageError
from streamkit.rewrite.window import CONTEXT, Window

HOLD = 8
#: Matches of at most ``HOLD`` characters, with what stands before and behind them.
PATTERNS = {
    "literal": re.compile("secret"),
    "class": re.compile(r"s[0-9]cret"),
    "word": re.compile(r"\bword\b"),
    "greedy": re.compile("ab{1,5}c?"),
    "behind": re.compile(r"(?<=b)c"),
    "one": re.compile("é"),
}
CHANGES = {
    "shorter": lambda pattern: lambda text: pattern.sub("*", text),
    "longer": lambda pattern: lambda text: pattern.sub("<the match>", text),
    "gone": lambda pattern: lambda text: pattern.sub("", text),
    "begins alike": lambda pattern: lambda text: pattern.sub(lambda found: found[0][0] + "***", text),
}
PIECES = st.lists(
    st.sampled_from(["secret", "s1cret", "sec", "ret", " ", "word", "s", "ab", "b", "c", "é", "a", "abbb"])
)


def cut(text, places):
    ends = [0, *sorted(place for place in places if place < len(text)), len(text)]
    return [text[a:b] for a, b in pairwise(ends)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pattern", PATTERNS)
@given(PIECES, st.lists(st.integers(0, 60)))
def test_pieces_are_changed_like_the_whole(pattern, change, pieces, places):
    changed = CHANGES[change](PATTERNS[pattern])
    text = "".join(pieces)
    window, sent = Window(changed, HOLD), ""
    for piece in cut(text, places):
        sent += "".join(window.feed(piece))
    sent += "".join(window.end())
    assert sent == changed(text)
    assert window.changed == (sent != text)


def test_at_most_as_many_characters_wait_as_are_held():
    window, sent = Window(str, HOLD), ""
    for number in range(1000):
        sent += "".join(window.feed("abc"))
        assert len(sent) == max(3 * (number + 1) - HOLD, 0)


@pytest.mark.parametrize("change", [str, lambda text: re.sub("[abc]+", "a", text)], ids=["none", "of any length"])
def test_of_a_long_text_only_its_end_is_kept(change):
    seen = []
    window = Window(lambda text: (seen.append(len(text)), change(text))[1], HOLD)
    sent = "".join("".join(window.feed("abc")) for _ in range(300))
    assert max(seen) <= (CONTEXT + 2) * HOLD
    assert sent + "".join(window.end()) == change("abc" * 300)


def test_an_item_keeps_its_place_in_the_text():
    window = Window(lambda text: text.replace("secret", "***"), HOLD)
    given = ["one ", 1, "sec", 2, "ret two", 3, " three"]
    out = []
    for item in given:
        if isinstance(item, str):
            out += window.feed(item)
        elif not window.mark(item):
            out.append(item)
    out += window.end()
    texts = "".join(str(each) for each in out)
    assert texts == "one 1***2 two3 three"


def test_an_item_without_a_text_that_waits_is_not_kept():
    assert not Window(str, HOLD).mark(1)


def test_a_function_that_returns_no_text_is_an_error():
    with pytest.raises(UsageError, match="returned NoneType; a function that changes text must return a str"):
        list(Window(lambda text: None, 0).feed("a"))
