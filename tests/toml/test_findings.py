"""What a message shows of a file: places and misspelt words; nothing that moves a terminal, and nothing that may be a key."""

from __future__ import annotations

import pytest

from streamkit.toml.findings import ConfigError, Finding, dotted, meant, quoted


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("server", "port"), "server.port"),
        (("routes", 0, "models", 1), "routes[0].models[1]"),
        (("upstreams", "my own.one", "key"), 'upstreams."my own.one".key'),
        (("upstreams", ""), 'upstreams.""'),
        (("upstreams", "sk-proj-abcdefgh1234"), "upstreams.(what looks like a key)"),
        (("a" * 31,), "(a long word)"),
        (("a" * 30,), "a" * 30),
    ],
)
def test_a_path_is_written_as_toml_writes_keys(path, text):
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("word", '"word"'),
        ("é", '"é"'),
        ('"', r'"\""'),
        ("\x1b[31m", r'"\u001b[31m"'),
        ("a\nb", r'"a\nb"'),
        ("\u202e", r'"\u202e"'),
        ("Bearer abcdef", "(what looks like a key)"),
        ("x" * 31, "(a long word)"),
    ],
)  # fmt: skip
def test_a_word_is_shown_as_one_line_of_text(text, shown):
    assert quoted(text) == shown


def test_a_misspelt_word_gets_the_one_that_was_meant_or_all_there_are():
    assert meant("prot", ["port", "host"]) == '; did you mean "port"?'
    assert meant("x", ["port", "host"]) == '; known: "port", "host"'
    assert meant("x", []) == ""


def test_a_finding_is_a_line_that_editors_can_follow():
    assert str(Finding(file="g.toml", line=3, column=7, path="a.b", reason="is needed")) == "g.toml:3:7: a.b: is needed"
    assert str(Finding(file="g.toml", line=3, reason="not UTF-8")) == "g.toml:3: not UTF-8"
    assert str(Finding(file="g.toml", reason="can't be read")) == "g.toml: can't be read"
    assert str(ConfigError([Finding(file="g", reason="x"), Finding(file="g", reason="y")])) == "g: x\ng: y"
