"""``redact`` replaces what a search of the whole text finds, wherever the text is cut, and lets only possible matches wait."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit import UsageError, redact
from streamkit.events import TextDelta
from streamkit.report import StreamReport
from streamkit.rewrite.redaction import RedactionWindow, _Pattern

EMAIL = r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}"
#: Parts of regular expressions: characters, classes, groups, assertions, and what only newer versions of Python have.
ATOMS = (
    *("a", "b", "[ab]", "[^a]", ".", r"\w", r"\s", "\n", "(?:ab|a)", "(a|b)", "(?>a{1,2})", "(?i:A)"),
    *(r"\b", r"\B", "^", "$", r"\Z", "(?=b)", "(?!b)", "(?<=a)", "(?<!a)", "(?=a$)", "(?!ab)", "(?<=a|b)"),
)
REPEATS = ("", "", "{0,2}", "{1,3}", "?", "{1,2}?", "{1,2}+", "{2}")


def repeated(atoms):
    return st.tuples(atoms, st.sampled_from(REPEATS)).map(lambda pair: f"(?:{pair[0]}){pair[1]}")


def sequences(atoms):
    return st.lists(repeated(atoms), min_size=1, max_size=3).map("".join)


SIMPLE = st.sampled_from(ATOMS)
PATTERNS = st.lists(sequences(SIMPLE | sequences(SIMPLE)), min_size=1, max_size=2).map("|".join)
REFERRING = PATTERNS.map(lambda pattern: rf"(a|b)({pattern})\1")


def searched(patterns, text):
    """Return the text with ``#`` in place of the matches that a search of the whole text finds."""
    out, place = "", 0
    while place < len(text):
        found = [match for each in patterns if (match := each.search(text, place)) and match.start() < len(text)]
        if not found:
            break
        first = min(found, key=re.Match.start)
        out, place = f"{out}{text[place : first.start()]}#", first.end()
    return out + text[place:]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PATTERNS | PATTERNS | REFERRING, min_size=1, max_size=2),
    st.sampled_from([0, re.MULTILINE, re.DOTALL, re.MULTILINE | re.DOTALL | re.IGNORECASE]),
    st.text("abA \n", max_size=12),
    st.lists(st.integers(0, 12), max_size=5).map(sorted),
)
def test_matches_are_those_of_the_whole_text_wherever_it_is_cut(patterns, flags, text, cuts):
    compiled = [re.compile(each, flags) for each in patterns]
    try:
        machine = redact(*compiled, replacement="#").make(StreamReport())
    except UsageError as error:
        assert "can match an empty text" in str(error)  # noqa: PT017 - some of the drawn patterns
        return
    out = [event for start, end in pairwise([0, *cuts, 12]) for event in machine.feed([TextDelta(text[start:end])])]
    assert "".join(event.text for event in [*out, *machine.finish()]) == searched(compiled, text)


@pytest.mark.parametrize(
    ("pattern", "text", "waiting"),
    [
        ("abc", "xab", "ab"),
        ("abc", "xabc", ""),
        ("a{2,5}|b", "xaa", "aa"),
        (r"\bword\b", "a word", "word"),
        (r"\bword\b", "a words", ""),
        ("(?<=ab)c(?=def)", "abcd", "cd"),
        ("(?<=ab)c(?=def)", "xbcd", ""),
        ("(a(b{3}$)?)x", "-abbb", "abbb"),
        ("ab$", "ab", "ab"),
        ("^ab", "\nab", ""),
        ("é", "é", ""),
        (r"(a|b)-\1", "a-", "a-"),
        (r"(a)(?<=\1)b", "xa", "a"),
        (r"a(?<!a\b)", "xa", "a"),
        ("a(?<!a(?=bc))", "xab", "ab"),
        ("a(?>(?=bc))", "xab", "ab"),
        ("a" * 2000, "x" + "a" * 1999, "a" * 1999),
        (EMAIL, "Write to joe@exam", "joe@exam"),
        (EMAIL, "Write to joe@example. Then ", ""),
    ],
)
def test_only_what_may_be_the_beginning_of_a_match_waits(pattern, text, waiting):
    machine = redact(re.compile(pattern), replacement="#").make(StreamReport())
    sent = "".join(event.text for event in machine.feed([TextDelta(text)]))
    assert sent + "".join(event.text for event in machine.finish()) == searched([re.compile(pattern)], text)
    assert sent == searched([re.compile(pattern)], text.removesuffix(waiting))


def test_of_two_matches_the_first_is_replaced_then_the_one_of_the_earlier_pattern():
    machine = redact(re.compile("bc|x"), "ab", "abcd", replacement="#").make(StreamReport())
    events = machine.feed([TextDelta("abc "), TextDelta("abcd "), TextDelta("bc x")]) + machine.finish()
    assert "".join(event.text for event in events) == "#c # # #"


class Searches:
    """A pattern that counts the characters that its searches look at."""

    def __init__(self, pattern):
        self._pattern = re.compile(pattern)
        self.characters = 0

    def search(self, text, place):
        found = self._pattern.search(text, place)
        self.characters += (len(text) if found is None else found.end()) - place
        return found


def test_each_pattern_looks_at_a_text_with_many_matches_once():
    patterns = [_Pattern(Searches(whole), Searches(rf"{whole[0]}?\Z"), 1) for whole in ("a", "b")]
    window = RedactionWindow(patterns, "#")
    assert "".join([*window.feed("ax" * 1000), *window.end()]) == "#x" * 1000
    assert max(each.whole.characters + each.begun.characters for each in patterns) <= 3 * 2000
