"""TOML documents, and the many ways in which one can be written."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime

from hypothesis import strategies as st

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
        self.headed = set()  # the paths of tables in arrays that have headers of their own

    def pick(self, *choices):
        return self.random.choice(choices)

    def document(self, table):
        return "".join(
            f"{self.pick('', ' ', chr(10), '# [c] = {' + chr(10))}{line}\n" for line in self.table(table, (), ())
        )

    def table(self, table, above, place):
        """The lines of a table: ``above`` is what its header says, ``place`` its path."""
        pairs, later = [], []
        for name, value in table.items():
            path = (*above, name)
            tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
            if isinstance(value, dict) and (style := self.pick("inline", "header", "dotted")) != "inline":
                if style == "dotted" and value:
                    pairs += [self.pair([name, key], inner) for key, inner in value.items()]
                else:
                    lines = self.table(value, path, (*place, name))
                    bare = lines and lines[0].startswith("[") and self.pick(True, False)  # named by what is below it
                    later += lines if bare else [f"[{self.dotted(path)}]", *lines]
            elif tables and self.pick(True, False):
                for index, item in enumerate(value):
                    self.headed.add((*place, name, index))
                    later += [f"[[{self.dotted(path)}]]", *self.table(item, path, (*place, name, index))]
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
