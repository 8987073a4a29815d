"""The place of a key is where the key stands: found by what happens to the document when the text there is changed."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given

from streamkit.toml.document import Position, TOMLLines
from tests.toml.documents import DOCUMENTS, SEEDS, Writer, at, paths

TEXT = """\
# a comment with [brackets] and = signs
top = 1
"quoted key" . inner = "a # no comment"   # a comment

[ server ]  # comment
port = 80
keys = [
  { env = "A" },  # ] } ,
  { env = 'B', "f.g" = [1, 2] },
]
text = \"\"\"
[not.a.header]
x = 1 \\\"\"\"\"\"\"
times = [1979-05-27 07:32:00, 07:32:00]

[up.a]
x.y.z = { q.r = 1 }

[[routes]]
to = ["a"]
[[routes]]
[routes.sub]
a = 1
[[routes.targets]]
[[routes.targets]]
b = 2
[up]
late = true
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 1, 1),
        (("top",), 2, 1),
        (("quoted key",), 3, 1),
        (("quoted key", "inner"), 3, 16),
        (("server",), 5, 3),
        (("server", "port"), 6, 1),
        (("server", "keys", 0), 8, 3),
        (("server", "keys", 1, "env"), 9, 5),
        (("server", "keys", 1, "f.g", 1), 9, 28),
        (("server", "text"), 11, 1),
        (("server", "times", 1), 14, 31),
        (("up", "a"), 16, 5),
        (("up", "a", "x", "y", "z", "q", "r"), 17, 13),
        (("routes",), 19, 3),
        (("routes", 0), 19, 3),
        (("routes", 0, "to", 0), 20, 7),
        (("routes", 1), 21, 3),
        (("routes", 1, "sub", "a"), 23, 1),
        (("routes", 1, "targets", 0), 24, 10),
        (("routes", 1, "targets", 1, "b"), 26, 1),
        (("up",), 27, 2),  # its own header, though [up.a] stood first
        (("up", "late"), 28, 1),
    ],
)
def test_a_key_is_found_at_its_line_and_column(path, line, column):
    tomllib.loads(TEXT)
    assert TOMLLines(TEXT).position(path) == Position(line, column)


def test_a_key_that_is_missing_is_placed_where_its_table_begins():
    assert TOMLLines(TEXT).position(("server", "host")) == Position(5, 3)
    assert TOMLLines(TEXT).position(("routes", 1, "models", 3)) == Position(21, 3)
    assert TOMLLines(TEXT).position(("nothing", "here")) == Position(1, 1)


# -- any document ------------------------------------------------------------------------------------------------------


def offset_of(text, place):
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1


KEY = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\'')


@given(DOCUMENTS, SEEDS)
def test_whatever_tomllib_reads_is_found_where_it_stands(table, seed):
    writer = Writer(seed)
    text = writer.document(table)
    assert tomllib.loads(text) == table, "the writer is wrong"
    lines = TOMLLines(text)
    for path in paths(table):
        offset = offset_of(text, lines.position(path))
        if isinstance(path[-1], str) or path in writer.headed:
            token = KEY.match(text, offset)
            assert list(tomllib.loads(f"{token[0]} = 0")) == [key for key in path if isinstance(key, str)][-1:]
            stands_once = isinstance(path[-1], str) and not isinstance(at(table, path), dict | list)
            if stands_once:
                renamed = tomllib.loads(f"{text[:offset]}renamed{text[token.end() :]}")
                assert path[-1] not in at(renamed, path[:-1])
                assert at(renamed, (*path[:-1], "renamed")) == at(table, path)
        else:
            longer = at(tomllib.loads(f"{text[:offset]}'new', {text[offset:]}"), path[:-1])
            assert longer[path[-1]] == "new"
            assert longer[path[-1] + 1] == at(table, path)


@given(DOCUMENTS, SEEDS)
def test_line_ends_of_windows_change_no_place(table, seed):
    text = Writer(seed).document(table)
    lines, windows = TOMLLines(text), TOMLLines(text.replace("\n", "\r\n"))
    assert all(lines.position(path) == windows.position(path) for path in paths(table))
