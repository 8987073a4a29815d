"""Every fault of a configuration is told: where, what, and what to do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS, Registry
from streamkit.gateway.keys import KeyReader
from tests.gateway.configuring import CANARY, GOOD, faults, parse, with_upstream


def test_every_fault_is_found_in_one_go():
    text = """\
[server]
prot = 80
port = "8080"
[upstreams.a]
dialect = "opnai-chat"
key = { env = "NOPE" }
timeouts = { connect_s = -1, totl_s = 3 }
[upstreams.b]
dialect = "ollama"
base_url = "http://127.0.0.1"
[[routes]]
models = ["x", 3]
to = ["a", { upstream = "b", modle = "x" }, "bb"]
retries = 1.5
[route]
"""
    assert faults(text) == [
        'gateway.toml:2:1: server.prot: unknown key; did you mean "port"?',
        "gateway.toml:3:1: server.port: must be an integer, not a string",
        "gateway.toml:4:12: upstreams.a.base_url: is required",
        'gateway.toml:5:1: upstreams.a.dialect: unknown dialect "opnai-chat"; did you mean "openai-chat"?',
        "gateway.toml:6:9: upstreams.a.key.env: the environment variable NOPE is not set",
        "gateway.toml:7:14: upstreams.a.timeouts.connect_s: must be > 0: -1.0",
        'gateway.toml:7:30: upstreams.a.timeouts.totl_s: unknown key; did you mean "total_s"?',
        "gateway.toml:12:16: routes[0].models[1]: must be a string, not an integer",
        'gateway.toml:13:30: routes[0].to[1].modle: unknown key; did you mean "model"?',
        'gateway.toml:13:45: routes[0].to[2]: unknown upstream "bb"; did you mean "b"?',
        "gateway.toml:14:1: routes[0].retries: must be an integer, not a float",
        'gateway.toml:15:2: route: unknown key; did you mean "routes"?',
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a = [1\nb = 2", "2:1: Unclosed array"),
        ("a 1", "1:3: Expected '=' after a key in a key/value pair"),
        ("[a]\n[a]", "2:3: Cannot declare ('a',) twice"),
        ('[a]\nb = "', "2:6: Unterminated string, but the file ends"),
        ("a = " + "9" * 5000, " Exceeds the limit"),
        ("a = " + "[" * 5000, " its arrays or tables are nested too deeply"),
    ],
)
def test_what_is_no_toml_is_told_with_its_place(text, fault):
    (told,) = faults(text)
    assert told.startswith(f"gateway.toml:{fault}")


def test_an_empty_file_says_what_is_to_be_written():
    assert faults("") == [
        "gateway.toml:1:1: upstreams: write at least one, as [upstreams.NAME] with dialect and base_url",
        "gateway.toml:1:1: routes: write at least one, as [[routes]] with models and to",
    ]


@pytest.mark.parametrize("shape", ['"x"', "[1]", "3", "1979-05-27"])
def test_tables_of_another_shape_are_faults(shape):
    assert len(faults(f"server = {shape}\nupstreams = {shape}\nroutes = {shape}")) == 3
    assert faults(f"upstreams = {{ a = {shape} }}\n{GOOD.partition('[[')[1]}routes]]\nmodels = ['m']\nto = ['a']") == [
        f"gateway.toml:1:15: upstreams.a: must be a table, not {kind_of(shape)}"
    ]


def kind_of(shape):
    return {'"x"': "a string", "[1]": "an array", "3": "an integer", "1979-05-27": "a date or time"}[shape]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("port = true", "port: must be an integer, not a boolean"),
        ("port = 80.0", "port: must be an integer, not a float"),
        ("port = -1", "port: must be >= 0: -1"),
        ("host = 1", "host: must be a string, not an integer"),
        ("whole_keep_alive = 1", "whole_keep_alive: must be true or false, not an integer"),
        ("keep_alive_s = '15'", "keep_alive_s: must be a number, not a string"),
        ("keep_alive_s = nan", "keep_alive_s: must be a number below 3,200,000,000; leave the key out for its default"),
        ("stall_s = inf", "stall_s: must be a number below 3,200,000,000; leave the key out for its default"),
        (f"stall_s = {10**400}", "stall_s: must be a number below 3,200,000,000; leave the key out for its default"),
        ("log_level = 'inf'", 'log_level: must be one of debug, info, warning, error, not "inf"'),
        ("log_format = 'xml'", 'log_format: must be one of auto, json, text, not "xml"'),
        ("policy = false", "policy: must be one of strict, tolerant, lenient, not a boolean"),
        ("keys = 'a'", "keys: must be an array, not a string"),
        ("private = 'x'", 'private: must be "host:port", "auto" or "off"'),
        ("private = '127.0.0.1:8080'", "private: must not be the clients' port; choose another port or interface"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_what_is_needed(line, fault):
    assert faults(f"[server]\n{line}\n{GOOD}") == [f"gateway.toml:2:1: server.{fault}"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('dialect = "gemini"\nbase_url = "https://x"', 'x.key: auth = "x-goog-api-key" needs a key'),
        ('dialect = "ollama"\nbase_url = "x"', "x.base_url: write a full URL"),
        (f'dialect = "ollama"\nbase_url = "http://u:{CANARY}@h"', "x.base_url: leave out user and password"),
        ('dialect = "bedrock"\nbase_url = "https://x"', 'x.region: auth = "sigv4" needs a region'),
        ('dialect = "ollama"\nbase_url = "http://x"\nname = "y"', "x.name: unknown key"),
        ('dialect = "ollama"\nbase_url = "http://x"\nauth = "beer"', "x.auth: write one of none, bearer, x-api-key"),
        ('dialect = "ollama"\nbase_url = "http://x"\ntimeouts.total_s = 119', "x.timeouts.total_s: must not be less than first_byte_s (120)"),
        ('dialect = "ollama"\nbase_url = "http://x"\ntimeouts = 9', "x.timeouts: must be a table, not an integer"),
        ('dialect = "ollama"\nbase_url = "http://x"\nheaders = { a = 1 }', "x.headers.a: must be a string"),
        ('dialect = "ollama"\nbase_url = "https://x"\nca_file = "no.pem"', "x.ca_file: 'no.pem' can't be used: No such file"),
        ('dialect = "ollama"\nbase_url = "https://x"\nca_file = 1', "x.ca_file: must be a string, not an integer"),
        ('dialect = "ollama"\nbase_url = "http://x"\nclient_key = "k"', "x.client_key: leave it out, or let base_url"),
        ('dialect = "ollama"\nbase_url = "http://x"\nproxy = 1', "x.proxy: must be a string, not an integer"),
        ('dialect = "ollama"\nbase_url = "http://x"\nproxy = "proxy:1"', "x.proxy: write the URL of an HTTP proxy"),
        ('dialect = "ollama"\nbase_url = "http://x"\nproxy = { env = "KEY" }', "x.proxy: write the URL of an HTTP proxy"),
        (f'dialect = "ollama"\nbase_url = "http://x"\nproxy = "http://u:{CANARY}@h"', "x.proxy: must not contain a user"),
    ],
)  # fmt: skip
def test_an_upstream_that_can_t_work_is_a_fault(lines, fault):
    (told,) = with_upstream(lines)
    assert f": upstreams.{fault}" in told


def test_a_total_that_leaves_time_for_a_first_byte_is_fine():
    config = parse(GOOD.replace("key =", "timeouts = { total_s = 120 }\nkey ="))
    assert config.upstreams["a"].timeouts.total_s == 120


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (lambda: 1 / 0, "the dialect 'mute' of an unknown distribution  (entry point mute = m:D) cannot be used: "),
        (lambda: evolve(DIALECTS["ollama"], name="mute", bodies=None), '"mute" has no requests'),
    ],
)
def test_a_dialect_of_another_package_that_is_of_no_use_is_a_fault(load, fault, monkeypatch):
    point = SimpleNamespace(name="mute", value="m:D", dist=None, load=load)
    registry = Registry(DIALECTS.built_in, lambda: [point])
    monkeypatch.setattr("streamkit.dialects.DIALECTS", registry)
    monkeypatch.setattr("streamkit.gateway.config_file.DIALECTS", registry)
    (told,) = faults(GOOD.replace("openai-chat", "mute"))
    assert told.startswith(f"gateway.toml:2:1: upstreams.a.dialect: {fault}")


def test_a_bug_of_ours_is_raised_as_it_is(monkeypatch):
    monkeypatch.setattr(KeyReader, "read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        parse(GOOD)


def test_an_upstreams_name_that_no_metric_can_have_is_a_fault_of_its_header():
    (told,) = faults(GOOD.replace("upstreams.a", "upstreams.'a b'").replace('["a"]', '["a b"]'))
    assert told.startswith('gateway.toml:1:12: upstreams."a b": write letters, digits')


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        ("models = []\nto = []", ["9:1: routes[1].models: must not be empty", "10:1: routes[1].to: must not be empty"]),
        ("models = ['y']", ["8:3: routes[1].to: is required"]),
        ("models = ['y']\nto = 'a'", ["10:1: routes[1].to: must be an array, not a string"]),
        ("models = ['y']\nto = [1]", ["10:7: routes[1].to[0]: must be a table, not an integer"]),
        ("models = ['y']\nto = [{ model = 'z' }]", ["10:7: routes[1].to[0].upstream: is required"]),
        ("models = ['y']\nto = [{ upstream = 'a', model = '*' }]", ["10:7: routes[1].to[0]: may have a * only if"]),
        ("models = ['m']\nto = ['a']", ["9:11: routes[1].models[0]: is already at routes[0].models[0]"]),
        ("models = ['y', 'y']\nto = ['a']", ["9:16: routes[1].models[1]: is already at routes[1].models[0]"]),
        ("models = ['y*', 'y-*']\nto = ['a']", ["9:17: routes[1].models[1]: is never used: the earlier routes[1].models[0]"]),
        ("models = ['y']\nto = ['a']\nstages = 'a:b'", ["11:1: routes[1].stages: must be an array, not a string"]),
        ("models = ['y']\nto = ['a']\nstages = [1]", ['11:11: routes[1].stages[0]: must be "package.module:name", or a table']),
        ("models = ['y']\nto = ['a']\nstages = ['x']", ['11:11: routes[1].stages[0]: must be "package.module:name", or a table']),
        ("models = ['y']\nto = ['a']\nstages = [{ hold = 3 }]", ["11:11: routes[1].stages[0]: must be"]),
        ("models = ['y']\nto = ['a']\nstages = ['no_such:x']", ["11:11: routes[1].stages[0]: no_such can't be imported: ModuleNotFoundError: No module named 'no_such'; modules are found if they are installed, in the working directory, or next to"]),
        ("models = ['y']\nto = ['a']\nstages = ['json:x']", ["11:11: routes[1].stages[0]: json has no x"]),
        ("models = ['y']\nto = ['a']\nstages = ['json:dumps']", ["11:11: routes[1].stages[0]: json:dumps: dumps is not a stage; give an async generator function that takes batches of events and yields them, or what redact, map_text or guard returns; called without arguments, it raised TypeError: "]),
        ("models = ['y']\nto = ['a']\nstages = ['tests.web.test_stages:no_generator']", ["11:11: routes[1].stages[0]: tests.web.test_stages:no_generator: no_generator is not a stage; give an async generator function that takes batches"]),
        ("models = ['y']\nto = ['a']\nstages = [{ use = 'json:dumps', args = ['x'] }]", ["11:11: routes[1].stages[0]: json:dumps: str is not a stage; give"]),
        ("models = ['y']\nto = ['a']\nstages = [{ use = 'streamkit:redact', args = ['x'], holt = 3 }]", ["11:11: routes[1].stages[0]: streamkit:redact can't be called with these arguments: TypeError: redact() got an unexpected keyword argument 'holt'"]),
        ("models = ['y']\nto = ['a']\nstages = [{ use = 'streamkit:redact', args = [{ regex = '[' }] }]", ["11:11: routes[1].stages[0]: '[' is not a regular expression: "]),
        ("models = ['y']\nto = ['a']\nstages = ['streamkit:parse_sse']", ["11:11: routes[1].stages[0]: streamkit:parse_sse: the stage parse_sse takes bytes and yields frames, not events"]),
        ("models = ['y']\nto = ['a']\nbackoff_s = 10", ["8:3: routes[1].backoff_max_s: must not be less than backoff_s"]),
    ],
)  # fmt: skip
def test_a_route_that_can_t_work_is_a_fault(routes, told):
    found = faults(f"{GOOD[:-1]}\n[[routes]]\n{routes}\n".replace("\n\n[[", "\n[["))
    assert [line.startswith(f"gateway.toml:{start}") for line, start in zip(found, told, strict=True)] == [True] * len(
        told
    )


def test_a_route_to_an_upstream_with_faults_has_none_of_its_own():
    (told,) = faults(GOOD.replace("openai-chat", "claude"))
    assert told.endswith('upstreams.a.dialect: unknown dialect "claude"; did you mean "anthropic"?')


def test_a_name_behind_a_pattern_is_no_fault_since_names_win():
    assert parse(GOOD.replace('["m"]', '["*", "m"]')).warnings == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('drop = [\n"a",\n"model"]', "7:1: upstreams.x.drop[1]: leave model out; streamkit writes this member itself"),
        ('drop = ["a..b"]', "5:9: upstreams.x.drop[0]: write names with dots between them"),
        ('drop = "a"', "5:1: upstreams.x.drop: must be an array, not a string"),
        ("drop = [1]", "5:9: upstreams.x.drop[0]: must be a string, not an integer"),
        ("set = { a = 1, stream = true }", "5:16: upstreams.x.set.stream: leave stream out"),
        ("[upstreams.x.set]\nmessages.a = 1", "6:1: upstreams.x.set.messages: leave messages out"),
        ("set = { a = { b = 2020-01-01 } }", "5:9: upstreams.x.set.a: write JSON values; a date is a string"),
        (
            f"set = {{ a = '{CANARY}', b = 'sk-0123456789abcdef0123' }}",
            "5:33: upstreams.x.set.b: must not contain what looks like a key",
        ),
        ("set = 1", "5:1: upstreams.x.set: must be a table, not an integer"),
        ('cache = "on"', '5:1: upstreams.x.cache: must be one of off, auto, not "on"'),
        ("learn = 1", "5:1: upstreams.x.learn: must be true or false, not an integer"),
    ],
)
def test_what_an_upstream_changes_in_requests_is_checked_where_it_stands(line, fault):
    (told,) = with_upstream(
        f'dialect = "openai-chat"\nbase_url = "https://x.example/v1"\nkey = {{ env = "KEY" }}\n{line}'
    )
    assert told.startswith(f"gateway.toml:{fault}")


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ('drop = ["a..b", "user", "c..d"]', ["drop[0]", "drop[2]"]),
        ("set = { stream = true, a = 1, messages = 2 }", ["set.stream", "set.messages"]),
        ("set = { a = 'sk-0123456789abcdef0123', b = 'sk-0123456789abcdef0124' }", ["set.a", "set.b"]),
        ("headers = { a = 'sk-0123456789abcdef0123', b = 'sk-0123456789abcdef0124' }", ["headers.a", "headers.b"]),
    ],
)
def test_each_of_several_faults_in_one_value_is_told(line, places):
    found = with_upstream(
        f'dialect = "openai-chat"\nbase_url = "https://x.example/v1"\nkey = {{ env = "KEY" }}\n{line}'
    )
    assert [told.split(": ")[1] for told in found] == [f"upstreams.x.{place}" for place in places]
