"""Patterns that read what anybody may send before a key is checked, or what an upstream says: their work grows with the text."""

from __future__ import annotations

import re

import pytest

from streamkit import http_errors
from streamkit.text import quoting as redact
from streamkit.web import client_dialect
from streamkit.web.surfaces import surfaces
from tests.regex_steps import Matcher, slow_texts, work

SEARCHED = {
    "keys": redact._KEY,
    "members of a body": redact._MEMBER,
    "a page without its markup": http_errors._UNSEEN,
    "a title": http_errors._TITLE,
    "paths of ours": client_dialect._OURS,
    "paths of a model": client_dialect._OF_A_MODEL,
    "paths of models": client_dialect._MODELS,
    **{
        f"{name}: {pattern.pattern}": pattern
        for name, surface in surfaces().items()
        for pattern in (surface.path, surface.kept)
        if pattern is not None
    },
}


@pytest.mark.parametrize("name", SEARCHED)
def test_no_text_takes_more_than_its_length(name):
    assert list(slow_texts(SEARCHED[name], searched=True, times=20)) == []


def test_a_name_of_a_member_takes_no_more_than_its_length():
    assert list(slow_texts(redact._SECRET_NAME, searched=False, times=20)) == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"eyJ[\w-]{8,}\.[\w-]{8,}",
        r'"[\w.-]*(?:api[_-]?key|secret)[\w.-]*"',
        r"/v1/models/.+:generateContent$",
        r"<title[^>]*>(.*?)</title",
    ],
)
def test_the_counter_sees_patterns_that_begin_again(pattern):
    assert next(slow_texts(re.compile(pattern), searched=True, times=20), None) is not None


@pytest.mark.parametrize("pattern", [r"a+b", r"(?:ab|c)*d", r"(?>a*)b", r"(\w)\1", r"\bx(?!y)", r"x{2,3}?", r"(?<=a)b"])
@pytest.mark.parametrize("text", ["aaab", "ababcd", "aa xy x", "xxxx", "", "ab" * 9])
def test_the_counter_matches_as_re_does(pattern, text):
    found = re.compile(pattern).match(text)
    assert Matcher(re.compile(pattern), text, 10**6).match(0) == (None if found is None else found.end())
    assert work(re.compile(pattern), text, searched=True) >= 0
