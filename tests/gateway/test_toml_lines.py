"""The place of a key is where the key stands: found by what happens to the document when the text there is changed."""

from __future__ import annotations

import json
import random
import re
import tomllib
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.gateway.toml_lines import Position, TOMLLines

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
[[routes.legs]]
[[routes.legs]]
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
        (("routes", 1, "legs", 0), 24, 10),
        (("routes", 1, "legs", 1, "b"), 26, 1),
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

NAMES = st.sampled_from(["a", "b", "-", "1", "a b", "", 'q"', "l'", "d.t", "h#", "é", "[x]", "\\", "t\t"])
SAID = st.lists(st.sampled_from(list("ab \"'\\#[]{}=,.\né")), max_size=6).map("".join)
LEAVES = st.one_of(
    st.integers(-9, 99),
    st.booleans(),
    st.just(1.5),
    st.just(datetime(1979, 5, 27, 7, 32)),  # noqa: DTZ001 - a local time of TOML
    SAID,
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
SEEDS = st.integers(0, 2**32)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


class Writer:
    """Writes a document in one of the many ways that TOML has for it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.headers = set()  # the paths, without positions, that are arrays of tables

    def pick(self, *choices):
        return self.random.choice(choices)

    def document(self, table):
        return "".join(
            f"{self.pick('', ' ', chr(10), '# [c] = {' + chr(10))}{line}\n" for line in self.table(table, ())
        )

    def table(self, table, above):
        pairs, later = [], []
        for name, value in table.items():
            path = (*above, name)
            tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
            if isinstance(value, dict) and (style := self.pick("inline", "header", "dotted")) != "inline":
                if style == "dotted" and value:
                    pairs += [self.pair([name, key], inner) for key, inner in value.items()]
                else:
                    lines = self.table(value, path)
                    bare = lines and lines[0].startswith("[") and self.pick(True, False)  # named by what is below it
                    later += lines if bare else [f"[{self.dotted(path)}]", *lines]
            elif tables and self.pick(True, False):
                self.headers.add(path)
                for item in value:
                    later += [f"[[{self.dotted(path)}]]", *self.table(item, path)]
            else:
                pairs.append(self.pair([name], value))
        return [f"{pair}{self.pick('', ' # c', '  ')}" for pair in pairs] + later

    def pair(self, names, value):
        return f"{self.dotted(names)}={self.pick('', ' ', chr(9))}{self.value(value)}"

    def dotted(self, names):
        return self.pick("", " ") + self.pick(".", " . ").join(map(self.key, names)) + self.pick("", " ")

    def key(self, name):
        if re.fullmatch(r"[A-Za-z0-9_-]+", name) and self.pick(True, False):
            return name
        return f"'{name}'" if "'" not in name and self.pick(True, False) else self.basic(name)

    def basic(self, text):
        return json.dumps(text, ensure_ascii=self.pick(True, False))

    def value(self, value):
        if isinstance(value, dict):
            return "{" + ",".join(self.pair([name], inner) for name, inner in value.items()) + "}"
        if isinstance(value, list):
            blank = self.pick("", " ", "\n", "\n# ] , \n ")
            end = self.pick("", ",") if value else ""
            return "[" + ",".join(f"{blank}{self.value(item)}{blank}" for item in value) + end + blank + "]"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, datetime):
            return value.isoformat(self.pick("T", " "))
        return json.dumps(value)

    def text(self, text):
        line = "\n" if text.startswith("\n") else self.pick("", "\n")  # behind the quotes it is no part of the text
        ways = [self.basic(text), '"""' + line + text.replace("\\", "\\\\").replace('"', '\\"') + '"""']
        if "\\" not in text and '"""' not in text:
            ways.append(f'"""{line}{text}"""')
        if "'" not in text:
            ways += [f"'''{line}{text}'''"] + ([f"'{text}'"] if "\n" not in text else [])
        return self.pick(*ways)


def paths(value, path=()):
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


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
        names = tuple(key for key in path if isinstance(key, str))
        if isinstance(path[-1], str) or names in writer.headers:
            token = KEY.match(text, offset)
            assert list(tomllib.loads(f"{token[0]} = 0")) == [names[-1]]
            if isinstance(path[-1], str) and not isinstance(
                at(table, path), dict | list
            ):  # it stands in one place only
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
