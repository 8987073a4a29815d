"""A configuration file is read, or every fault in it is told: where, what, and what to do; and never a key."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import UsageError
from streamkit.gateway.config import Server, describe
from streamkit.gateway.config_file import load_config, parse_config
from streamkit.gateway.faults import ConfigError
from streamkit.gateway.keys import KEY_BYTES, KeyFile
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.toml_documents import SEEDS, VALUES, Writer, at, paths

SAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "gateway.toml"
CANARY = "canary-7e2f41c09"
ENV = {
    "KEY": f"env-{CANARY}",
    "EMPTY": " ",
    "LINES": f"{CANARY}\n{CANARY}",
    **dict.fromkeys(["GATEWAY_KEY_EDITORS", "OPENAI_API_KEY", "OPENROUTER_API_KEY"], CANARY),
}
FILES = {
    "key": KeyFile(f"file-{CANARY}\n".encode(), 0o600),
    "open": KeyFile(CANARY.encode(), 0o644),
    "empty": KeyFile(b"\n", 0o600),
    "binary": KeyFile(b"\xff\xfe" + CANARY.encode(), 0o600),
    "long": KeyFile(b"x" * (KEY_BYTES + 1), 0o600),
    **dict.fromkeys(["keys/batch-jobs", "keys/anthropic"], KeyFile(CANARY.encode(), 0o400)),
}
GOOD = """\
[upstreams.a]
dialect = "openai-chat"
base_url = "https://a.example/v1"
key = { env = "KEY" }

[[routes]]
models = ["m"]
to = ["a"]
"""


def read_file(name):
    if name not in FILES:
        raise FileNotFoundError(2, "No such file or directory", name)
    return FILES[name]


def parse(text, **server):
    return parse_config(text, name="gateway.toml", env=ENV, read_file=read_file, server=server)


def faults(text):
    with pytest.raises(ConfigError) as raised:
        parse(text)
    assert isinstance(raised.value, UsageError)
    assert str(raised.value) == "\n".join(map(str, raised.value.findings))
    assert CANARY not in str(raised.value)
    return str(raised.value).splitlines()


def with_upstream(lines):
    """The faults of an upstream with these lines."""
    return faults(f'[upstreams.x]\n{lines}\n[[routes]]\nmodels = ["x"]\nto = ["x"]\n{GOOD}')


def warnings(text):
    return list(map(str, parse(text).warnings))


# -- what is read ------------------------------------------------------------------------------------------------------


def test_the_least_configuration_is_all_defaults():
    config = parse(GOOD)
    assert config.server == Server()
    assert config.warnings == ()
    upstream = config.upstreams["a"]
    assert (upstream.name, upstream.auth, upstream.key) == ("a", "bearer", Secret(ENV["KEY"]))
    assert upstream.timeouts == Timeouts()
    (route,) = config.routes
    assert (route.models, route.legs[0].upstream, route.legs[0].model) == (("m",), upstream, None)
    assert (route.retries, route.backoff_s, route.backoff_max_s, route.retry_after_max_s) == (2, 0.5, 8.0, 120.0)


def test_everything_can_be_set():
    config = parse(
        """\
        server = { host = "::1", port = 9, private = "off", workers = 3, grace_s = 0, body_bytes = 1_000, max_streams = 7,
            log_level = "debug", log_format = "text", keys = [{ env = "KEY" }, { file = "key" }], keep_alive_s = 5,
            keep_alive = "event", whole_keep_alive = true, unsent_bytes = 10, stall_s = 2.5, policy = "strict" }
        [upstreams."a.b"]
        dialect = "azure"
        base_url = "https://a.example"
        api_version = "2024-10-21"
        key.file = "key"
        tools = false
        emulate = false
        max_tokens = 9
        headers = { "X-One" = "1", cf-aig-authorization = { env = "KEY" } }
        timeouts = { connect_s = 1, first_byte_s = 2, idle_s = 3, total_s = 4 }
        [upstreams.aws]
        dialect = "bedrock"
        base_url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
        region = "eu-west-1"
        [[routes]]
        models = ["m", "n-*"]
        to = ["a.b", { upstream = "aws", model = "renamed" }]
        on_tool_choice_ignored = "next"
        retries = 0
        backoff_s = 1
        backoff_max_s = 2
        retry_after_max_s = 0
        """.replace("\n            ", " ")
    )
    assert config.server == Server(
        host="::1", port=9, private="off", workers=3, grace_s=0, body_bytes=1000, max_streams=7, log_level="debug",
        log_format="text", keys=(Secret(f"env-{CANARY}"), Secret(f"file-{CANARY}")), keep_alive_s=5, keep_alive="event",
        whole_keep_alive=True, unsent_bytes=10, stall_s=2.5, policy="strict",
    )  # fmt: skip
    azure, aws = config.upstreams.values()
    assert (azure.name, azure.auth, azure.key, azure.tools, azure.emulate) == (
        "a.b", "azure", Secret(f"file-{CANARY}"), False, False,
    )  # fmt: skip
    assert azure.headers == {"x-one": "1", "cf-aig-authorization": f"env-{CANARY}"}
    assert azure.timeouts == Timeouts(connect_s=1, first_byte_s=2, idle_s=3, total_s=4)
    assert (aws.auth, aws.region, aws.key) == ("sigv4", "eu-west-1", None)
    (route,) = config.routes
    assert [(leg.upstream.name, leg.model) for leg in route.legs] == [("a.b", None), ("aws", "renamed")]
    assert (route.on_tool_choice_ignored, route.retries, route.retry_after_max_s) == ("next", 0, 0)
    assert CANARY not in repr(config) + describe(config)


@pytest.mark.parametrize(
    ("dialect", "auth"),
    [("openai-chat", "bearer"), ("deepseek", "bearer"), ("anthropic", "x-api-key"), ("gemini", "x-goog-api-key")],
)
def test_without_auth_a_key_is_shown_as_the_dialects_provider_wants_it(dialect, auth):
    assert parse(GOOD.replace("openai-chat", dialect)).upstreams["a"].auth == auth
    said = GOOD.replace("openai-chat", dialect).replace("key =", 'auth = "bearer"\nkey =')
    assert parse(said).upstreams["a"].auth == "bearer"


def test_ollama_needs_no_key():
    text = GOOD.replace("openai-chat", "ollama").replace('key = { env = "KEY" }', "")
    assert parse(text).upstreams["a"].auth == "none"


def test_what_is_said_elsewhere_wins_over_the_file():
    config = parse(f"[server]\nport = 1\nworkers = 2\n{GOOD}", port=9, host="0.0.0.0")
    assert (config.server.port, config.server.workers, config.server.host) == (9, 2, "0.0.0.0")
    assert [warning.path for warning in config.warnings] == ["server.host"]
    with pytest.raises(ConfigError, match=r"gateway\.toml:1:2: server\.port: must be <= 65535: 70000"):
        parse(f"[server]\n{GOOD}", port=70_000)


def test_the_sample_is_a_good_configuration():
    config = parse(SAMPLE.read_text("utf-8"))
    assert config.warnings == ()
    assert len(config.upstreams) == len(config.routes) == 4
    assert CANARY not in describe(config)


# -- faults ------------------------------------------------------------------------------------------------------------


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
        "gateway.toml:3:1: server.port: a whole number is needed, not a string",
        "gateway.toml:4:12: upstreams.a.base_url: is needed",
        'gateway.toml:5:1: upstreams.a.dialect: no dialect is called "opnai-chat"; did you mean "openai-chat"?',
        "gateway.toml:6:9: upstreams.a.key.env: the environment variable NOPE is not set",
        "gateway.toml:7:14: upstreams.a.timeouts.connect_s: must be > 0: -1.0",
        'gateway.toml:7:30: upstreams.a.timeouts.totl_s: unknown key; did you mean "total_s"?',
        "gateway.toml:12:16: routes[0].models[1]: a string is needed, not a whole number",
        'gateway.toml:13:30: routes[0].to[1].modle: unknown key; did you mean "model"?',
        'gateway.toml:13:45: routes[0].to[2]: no upstream is called "bb"; did you mean "b"?',
        "gateway.toml:14:1: routes[0].retries: a whole number is needed, not a fraction",
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
        f"gateway.toml:1:15: upstreams.a: a table is needed, not {kind_of(shape)}"
    ]


def kind_of(shape):
    return {'"x"': "a string", "[1]": "an array", "3": "a whole number", "1979-05-27": "a date or time"}[shape]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("port = true", "port: a whole number is needed, not a boolean"),
        ("port = 80.0", "port: a whole number is needed, not a fraction"),
        ("port = -1", "port: must be >= 0: -1"),
        ("host = 1", "host: a string is needed, not a whole number"),
        ("whole_keep_alive = 1", "whole_keep_alive: true or false is needed, not a whole number"),
        ("keep_alive_s = '15'", "keep_alive_s: a number is needed, not a string"),
        ("keep_alive_s = nan", "keep_alive_s: a number of seconds is needed; leave the key out for its default"),
        ("stall_s = inf", "stall_s: a number of seconds is needed; leave the key out for its default"),
        (f"stall_s = {10**400}", "stall_s: a number of seconds is needed; leave the key out for its default"),
        ("log_level = 'inf'", 'log_level: "inf" is none of its words; did you mean "info"?'),
        ("log_format = 'xml'", 'log_format: "xml" is none of its words; there are "json", "text"'),
        ("policy = false", "policy: one of strict, tolerant, lenient is needed, not a boolean"),
        ("keys = 'a'", "keys: an array is needed, not a string"),
        ("private = 'x'", 'private: "host:port" is needed, or "auto", or "off"'),
        ("private = '127.0.0.1:8080'", "private: the same port as clients have; choose another, or another interface"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_what_is_needed(line, fault):
    assert faults(f"[server]\n{line}\n{GOOD}") == [f"gateway.toml:2:1: server.{fault}"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('dialect = "gemini"\nbase_url = "https://x"', 'x.key: auth = "x-goog-api-key" needs one'),
        ('dialect = "ollama"\nbase_url = "x"', "x.base_url: write a whole address"),
        (f'dialect = "ollama"\nbase_url = "http://u:{CANARY}@h"', "x.base_url: leave user and password out"),
        ('dialect = "bedrock"\nbase_url = "https://x"', 'x.region: auth = "sigv4" needs one'),
        ('dialect = "ollama"\nbase_url = "http://x"\nname = "y"', "x.name: unknown key"),
        ('dialect = "ollama"\nbase_url = "http://x"\nauth = "beer"', 'x.auth: "beer" is none of its words; did you mean "bearer"?'),
        ('dialect = "ollama"\nbase_url = "http://x"\ntimeouts.total_s = 9', "x.timeouts.total_s: less than first_byte_s (120)"),
        ('dialect = "ollama"\nbase_url = "http://x"\ntimeouts = 9', "x.timeouts: a table is needed, not a whole number"),
        ('dialect = "ollama"\nbase_url = "http://x"\nheaders = { a = 1 }', "x.headers.a: a string is needed"),
    ],
)  # fmt: skip
def test_an_upstream_that_can_t_work_is_a_fault(lines, fault):
    (told,) = with_upstream(lines)
    assert f": upstreams.{fault}" in told


def test_an_upstreams_name_that_no_metric_can_have_is_a_fault_of_its_header():
    (told,) = faults(GOOD.replace("upstreams.a", "upstreams.'a b'").replace('["a"]', '["a b"]'))
    assert told.startswith('gateway.toml:1:12: upstreams."a b": write letters, digits')


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        ("models = []\nto = []", ["9:1: routes[1].models: at least one is needed", "10:1: routes[1].to: at least one is needed"]),
        ("models = ['y']", ["8:3: routes[1].to: is needed"]),
        ("models = ['y']\nto = 'a'", ["10:1: routes[1].to: an array is needed, not a string"]),
        ("models = ['y']\nto = [1]", ["10:7: routes[1].to[0]: a table is needed, not a whole number"]),
        ("models = ['y']\nto = [{ model = 'z' }]", ["10:7: routes[1].to[0].upstream: is needed"]),
        ("models = ['y']\nto = [{ upstream = 'a', model = '*' }]", ["10:7: routes[1].to[0]: what its * stands for is clear only"]),
        ("models = ['m']\nto = ['a']", ["9:11: routes[1].models[0]: stands at routes[0].models[0] already"]),
        ("models = ['y', 'y']\nto = ['a']", ["9:16: routes[1].models[1]: stands at routes[1].models[0] already"]),
        ("models = ['y*', 'y-*']\nto = ['a']", ["9:17: routes[1].models[1]: never chosen: routes[1].models[0] comes earlier"]),
        ("models = ['y']\nto = ['a']\nbackoff_s = 10", ["8:3: routes[1].backoff_max_s: less than backoff_s"]),
    ],
)  # fmt: skip
def test_a_route_that_can_t_work_is_a_fault(routes, told):
    found = faults(f"{GOOD[:-1]}\n[[routes]]\n{routes}\n".replace("\n\n[[", "\n[["))
    assert [line.startswith(f"gateway.toml:{start}") for line, start in zip(found, told, strict=True)] == [True] * len(
        told
    )


def test_a_route_to_an_upstream_with_faults_has_none_of_its_own():
    (told,) = faults(GOOD.replace("openai-chat", "opnai"))
    assert "upstreams.a.dialect" in told


def test_a_name_behind_a_pattern_is_no_fault_since_names_win():
    assert parse(GOOD.replace('["m"]', '["*", "m"]')).warnings == ()


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["key", "keys"])
@pytest.mark.parametrize("text", [f'"{CANARY}"', f'"sk-proj-{CANARY}"'])
def test_a_key_in_the_file_is_refused_and_not_repeated(place, text):
    changed = GOOD.replace('{ env = "KEY" }', text) if place == "key" else f"server.keys = [{text}]\n{GOOD}"
    (told,) = faults(changed)
    assert told.endswith(
        'a key may not stand in this file; a key is written as { env = "NAME" } or as { file = "path" }'
    )


@pytest.mark.parametrize("header", [f'x-api-key = "{CANARY}"', f'x = "Bearer {CANARY}"', f'x = "sk-proj-{CANARY}"'])
def test_a_key_in_a_header_is_refused_and_not_repeated(header):
    (told,) = faults(GOOD.replace("key =", f"headers = {{ {header} }}\nkey ="))
    assert "what looks like a key may not stand in this file" in told
    assert told.startswith("gateway.toml:4:13: upstreams.a.headers.x")


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('{ env = "NOT_THERE" }', "key.env: the environment variable NOT_THERE is not set"),
        ('{ env = "EMPTY" }', "key.env: the environment variable EMPTY is empty"),
        ('{ env = "LINES" }', "key.env: the environment variable LINES is not one line of visible ASCII characters"),
        (f'{{ env = "{CANARY}" }}', "key.env: the environment variable named here is not set; write the name"),
        ('{ env = "AKIACANARY7E2F41C09" }', "key.env: the environment variable named here is not set; write the name"),
        ('{ file = "nope" }', "key.file: the key file can't be read: No such file or directory; a relative path"),
        (f'{{ file = "{CANARY}" }}', "key.file: the key file can't be read: No such file or directory; a relative path"),
        ('{ file = "empty" }', "key.file: the key file is empty"),
        ('{ file = "binary" }', "key.file: the key file is not one line of visible ASCII characters"),
        ('{ file = "long" }', "key.file: the key file is longer than 16,384 bytes"),
        ("{}", 'key: a key is written as { env = "NAME" } or as { file = "path" }'),
        ('{ env = "KEY", file = "key" }', 'key: a key is written as { env = "NAME" } or as { file = "path" }'),
        ('{ evn = "KEY" }', 'key.evn: unknown key; did you mean "env"?'),
        ("{ env = 3 }", "key.env: a string is needed, not a whole number"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_there_is_a_fault(source, fault):
    (told,) = faults(GOOD.replace('{ env = "KEY" }', source))
    assert f": upstreams.a.{fault}" in told
    assert "AKIA" not in told


@pytest.mark.parametrize(
    "line", ['dialect = "{}"', 'base_url = "{}"', 'auth = "{}"', 'region = "{}"', '"{}" = 1', "[server]\nlog_level = '{}'"]
)  # fmt: skip
@pytest.mark.parametrize("key", ["sk-proj-abcdefgh12345678", "AKIAABCDEFGHIJKLMNOP", "k" * 32])
def test_a_key_in_the_place_of_a_word_is_not_repeated(line, key):
    assert key not in "\n".join(with_upstream(line.format(key)))


# -- warnings ----------------------------------------------------------------------------------------------------------


def test_an_upstream_that_no_route_leads_to_is_a_warning():
    text = f'{GOOD}[upstreams.b]\ndialect = "ollama"\nbase_url = "http://127.0.0.1"\n'
    assert warnings(text) == ["gateway.toml:9:12: upstreams.b: no route leads to it"]


def test_a_key_in_clear_text_is_a_warning_but_not_on_this_machine():
    (told,) = warnings(GOOD.replace("https://", "http://"))
    assert told == "gateway.toml:3:1: upstreams.a.base_url: the key goes over the network in clear text; use https"
    assert warnings(GOOD.replace("https://a.example", "http://localhost:1")) == []


def test_key_files_that_everybody_may_read_are_warnings_wherever_they_stand():
    text = GOOD.replace('{ env = "KEY" }', '{ file = "open" }').replace("key =", 'headers.h = { file = "open" }\nkey =')
    told = warnings(f'server.keys = [{{ file = "key" }}, {{ file = "open" }}]\n{text}')
    assert [re.sub(": every user .*", "", line) for line in told] == [
        "gateway.toml:1:36: server.keys[1].file",
        "gateway.toml:5:15: upstreams.a.headers.h.file",
        "gateway.toml:6:9: upstreams.a.key.file",
    ]


def test_listening_to_the_world_is_a_warning_unless_clients_need_keys():
    opened = f"server.host = '0.0.0.0'\n{GOOD}"
    assert [line.partition("; ")[2] for line in warnings(opened)] == ["set server.keys, or listen on loopback"]
    assert warnings(f"server.keys = [{{ env = 'KEY' }}]\n{opened}") == []
    (told,) = warnings(f"server.private = '0.0.0.0:9'\n{GOOD}")
    assert "/metrics" in told


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    (tmp_path / "gateway.toml").write_text(GOOD.replace('{ env = "KEY" }', '{ file = "keys/a" }'), "utf-8")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "a").write_text(f"{CANARY}\n", "utf-8")
    (tmp_path / "keys" / "a").chmod(0o600)
    return tmp_path


def test_a_relative_key_file_begins_at_the_configurations_folder(folder, monkeypatch):
    monkeypatch.chdir("/")
    config = load_config(folder / "gateway.toml")
    assert config.upstreams["a"].key == Secret(CANARY)
    assert config.warnings == ()
    (folder / "keys" / "a").chmod(0o600 | stat.S_IROTH)
    (warning,) = load_config(folder / "gateway.toml").warnings
    assert str(warning).startswith(f"{folder}/gateway.toml:4:9: upstreams.a.key.file: every user")


def test_keys_come_from_the_environment_of_the_process(folder):
    (folder / "gateway.toml").write_text(GOOD, "utf-8")
    assert load_config(str(folder / "gateway.toml"), server={"port": 0}).server.port == 0


def test_a_byte_order_mark_is_passed_over(folder):
    (folder / "gateway.toml").write_text(GOOD, "utf-8-sig")
    assert load_config(folder / "gateway.toml").upstreams


def test_a_file_that_can_t_be_read_is_told(folder):
    with pytest.raises(ConfigError, match=r"nope\.toml: can't be read: No such file or directory"):
        load_config(folder / "nope.toml")
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load_config(folder)
    (folder / "gateway.toml").write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(ConfigError, match=r"gateway\.toml:2: not UTF-8"):
        load_config(folder / "gateway.toml")


# -- anything ----------------------------------------------------------------------------------------------------------

TEXT = re.sub("#.*", "", SAMPLE.read_text("utf-8"))
PARTS = re.findall(r"\w+|[^\w\s]+|\s+", TEXT)
WORDS = st.sampled_from(sorted({part for part in PARTS if part.isidentifier()}))


def is_told_well(text):
    """A configuration, or faults with their places; no key in either."""
    try:
        config = parse(text)
    except ConfigError as error:
        told = [str(finding) for finding in error.findings]
    else:
        told = list(map(str, config.warnings))
        assert CANARY not in repr(config) + describe(config)
    assert all(re.match(r"gateway\.toml:\d+:\d+: ", line) for line in told)
    assert CANARY not in "".join(told)


@given(
    st.lists(st.tuples(st.integers(0, len(PARTS) - 1), st.sampled_from(sorted({"", *PARTS}))), min_size=1, max_size=3)
)
def test_a_spoilt_text_is_a_configuration_or_a_list_of_faults(changes):
    is_told_well("".join(dict([*enumerate(PARTS), *changes]).values()))


@given(st.integers(0, 10**6), st.one_of(VALUES, WORDS, st.lists(WORDS), st.dictionaries(WORDS, WORDS)), WORDS, SEEDS)
def test_a_spoilt_value_or_key_is_a_configuration_or_a_list_of_faults(number, value, name, seed):
    document = tomllib.loads(TEXT)
    places = list(paths(document))
    *above, last = places[number % len(places)]
    table = at(document, above)
    if isinstance(last, str) and number % 2:
        table[name] = table.pop(last)
    else:
        table[last] = value
    is_told_well(Writer(seed).document(document))
