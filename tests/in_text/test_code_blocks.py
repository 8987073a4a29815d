"""What of a growing text is code, and where a line begins."""

from __future__ import annotations

import pytest

from streamkit.in_text.code_blocks import LINE_CHARS, CodeTracker

CASES = [
    ("", False, True),
    ("a", False, False),
    ("a\n", False, True),
    ("   ", False, True),
    ("    ", True, True),
    ("\t", True, False),
    ("    a b", True, False),
    ("  \ta", True, False),
    ("    `a` b", True, False),
    ("    a\nb", False, False),
    ("   a", False, False),
    ("```", True, False),
    ("```py\n", True, True),
    ("```py\nx\n```\n", False, True),
    ("```py\nx\n```` \n", False, True),
    ("```py\nx\n```a\n", True, True),
    ("```py\nx\n``\n", True, True),
    ("```py\nx ```\n", True, True),
    ("~~~\n```\n", True, True),
    ("~~~\n```\n~~~\n", False, True),
    ("````\n```\n", True, True),
    ("- ```\n", True, True),
    ("1. > ```x\n", True, True),
    ("12) ```x\n", True, True),
    ("12 ```x\n", True, True),  # a span that goes on
    ("> ```\nx\n> ```\n", False, True),
    ("`", True, False),
    ("`a` ", False, False),
    ("``a` ", True, False),
    ("``a`` ", False, False),
    ("`a\n", True, True),
    ("`a\n\n", False, True),
    ("`a\n \n", False, True),
    ("```a``` ", False, False),
    ("x `y` z\n", False, True),
    ("x ~~y~~ z\n", False, True),
    (" " * 200, True, True),
    ("> " * LINE_CHARS + "```\n", True, True),  # too much in front for a fence: a span
]


@pytest.mark.parametrize(("text", "in_code", "begins_line"), CASES, ids=lambda value: repr(value)[:30])
def test_code_is_told_wherever_the_text_was_cut(text, in_code, begins_line):
    for pieces in ((text,), tuple(text), *((text[:at], text[at:]) for at in range(1, len(text)))):
        tracker = CodeTracker()
        for piece in pieces:
            tracker.feed(piece)
        assert (tracker.in_code, tracker.begins_line) == (in_code, begins_line or (in_code and text.endswith("\n"))), (
            pieces
        )
        assert (tracker.in_code, tracker.begins_line) == (in_code, begins_line)


def test_asking_in_between_changes_nothing():
    text = "a `b` c\n```py\nx `y`\n```\n- ~~~\nz\n~~~\nend `"
    asked, unasked = CodeTracker(), CodeTracker()
    for line in text.splitlines(keepends=True):
        asked.feed(line)
        unasked.feed(line)
        assert asked.in_code in {True, False}
    assert (asked.in_code, asked.begins_line) == (unasked.in_code, unasked.begins_line)


def test_what_is_kept_of_a_line_is_bounded():
    tracker = CodeTracker()
    for _ in range(10_000):
        tracker.feed(" ")
    assert len(tracker._start) <= LINE_CHARS
