"""The page of the gateway's configuration has every key, and the defaults that it names are the defaults."""

from __future__ import annotations

import re

import attrs
import pytest

from streamkit.gateway.config import Server
from streamkit.gateway.config_file import parse_config, usual_auth
from streamkit.gateway.keys import KeyFile
from streamkit.gateway.routing import Route
from streamkit.toml.tables import keys_of
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret, Upstream
from tests.docs.pages import ROOT
from tools.gateway_config import TABLES

TEXT = (ROOT / "docs" / "reference" / "gateway-config.md").read_text("utf-8")
UPSTREAM = '[upstreams.a]\ndialect = "ollama"\nbase_url = "http://127.0.0.1"\n'
ROUTE = '[[routes]]\nmodels = ["m"]\nto = ["a"]\n'


def rows(head):
    """Key, type, unit, default and meaning of each row of a section's first table."""
    section = TEXT.partition(f"## {head}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in section.splitlines() if line.startswith("| `")]
    return {key.strip("`"): rest for key, *rest in cells}


def parse(text):
    return parse_config(text, name="g.toml", env={"K": "k"}, read_file=lambda _: KeyFile(b"k", 0o600))


def test_every_key_has_a_row_and_every_row_a_meaning():
    for head, (kind, _) in TABLES.items():
        found = rows(head if head[0] != "[" else f"`{head}`")
        assert list(found) == keys_of(kind), head
        assert [key for key, cells in found.items() if len(cells) != 4 or not cells[-1].rstrip(".")] == [], head


def test_every_key_in_seconds_or_bytes_says_so():
    for head in ("`[server]`", "`[upstreams.NAME.timeouts]`", "`[[routes]]`"):
        for key, (kind, unit, _, _) in rows(head).items():
            if kind in {"number", "integer"}:
                assert unit == {"s": "seconds", "bytes": "bytes"}.get(key.rpartition("_")[2], ""), key


@pytest.mark.parametrize(
    ("head", "text", "default"),
    [
        ("`[server]`", "{}[server]\n{}={}\n", lambda config: config.server),
        ("`[upstreams.NAME]`", "{}[upstreams.a]\n{}={}\n", lambda config: config.upstreams["a"]),
        ("`[upstreams.NAME.timeouts]`", "{}[upstreams.a.timeouts]\n{}={}\n", lambda config: config.upstreams["a"].timeouts),
        ("`[[routes]]`", "{}{}={}\n", lambda config: config.routes[0]),
    ],
)  # fmt: skip
def test_a_default_of_the_page_is_what_a_file_without_the_key_means(head, text, default):
    bare = UPSTREAM + ROUTE
    least = default(parse(bare))
    named = [(key, cells[2].strip("`")) for key, cells in rows(head).items() if cells[2].startswith("`")]
    assert len(named) > 2
    for key, value in named:
        base = bare if head != "`[upstreams.NAME]`" else ROUTE
        changed = text.format(base, key, value)
        if head == "`[upstreams.NAME]`":
            changed += 'dialect = "ollama"\nbase_url = "http://127.0.0.1"\n'
        assert default(parse(changed)) == least, key
        assert getattr(least, key) == getattr(default(parse(changed)), key)


def test_what_the_page_calls_required_is_required():
    for head, kind in {
        "`[server]`": Server,
        "`[upstreams.NAME]`": Upstream,
        "`[upstreams.NAME.timeouts]`": Timeouts,
        "`[[routes]]`": Route,
    }.items():
        required = [key for key, cells in rows(head).items() if cells[2] == "required"]
        fields = [field for field in attrs.fields(kind) if field.default is attrs.NOTHING]
        assert len(required) == len([field for field in fields if field.name != "name"]), head


@pytest.mark.parametrize(
    "dialect", ["anthropic", "azure", "bedrock", "cohere", "gemini", "ollama", "vertex-anthropic", "vertex-gemini"]
)
def test_the_auth_by_dialect_is_that_of_the_page(dialect):
    auth = usual_auth(dialect)
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{auth}` |")]
    assert f"`{dialect}`" in row or row.endswith("| all other dialects |")
    more = {
        "sigv4": 'region = "eu-west-1"',
        "none": "",
        "google": "",
        "azure": 'key = {env = "K"}\napi_version = "2024-10-21"',
    }
    upstream = (
        UPSTREAM.replace("ollama", dialect).replace("http:", "https:") + more.get(auth, 'key = {env = "K"}') + "\n"
    )
    found = parse(upstream + ROUTE).upstreams["a"]
    assert found.auth == auth
    assert found.key in {None, Secret("k")}
