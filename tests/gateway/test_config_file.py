"""A configuration file is read: what it says, where its keys come from; and any text is a configuration or faults."""

from __future__ import annotations

import re
import stat
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.gateway.config import Server, describe
from streamkit.gateway.config_file import ConfigFile
from streamkit.toml.findings import ConfigError
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.configuring import CANARY, ENV, GOOD, SAMPLE, faults, parse
from tests.toml.documents import SEEDS, VALUES, Writer, at, paths
from tests.web.upstream.certificates import Certificates


def test_the_least_configuration_is_all_defaults():
    config = parse(GOOD)
    assert config.server == Server()
    assert config.warnings == ()
    upstream = config.upstreams["a"]
    assert (upstream.name, upstream.auth, upstream.key) == ("a", "bearer", Secret(ENV["KEY"]))
    assert upstream.timeouts == Timeouts()
    (route,) = config.routes
    assert (route.models, route.targets[0].upstream, route.targets[0].model) == (("m",), upstream, None)
    assert (route.retries, route.backoff_s, route.backoff_max_s, route.retry_after_max_s) == (2, 0.5, 8.0, 120.0)


def test_everything_can_be_set():
    config = parse(
        """\
        server = { host = "::1", port = 9, private = "off", workers = 3, grace_s = 0, body_bytes = 1_000, max_streams = 7,
            log_level = "debug", log_format = "text", keys = [{ env = "KEY" }, { file = "key" }], keep_alive_s = 5,
            keep_alive = "event", whole_keep_alive = true, unsent_bytes = 10, stall_s = 2.5, policy = "strict",
            timings = true, check_schemas = true }
        [upstreams."a.b"]
        dialect = "azure"
        base_url = "https://a.example"
        api_version = "2024-10-21"
        key.file = "key"
        tools = false
        emulate = false
        think_tags = "opened"
        text_calls = ["hermes", "qwen"]
        max_tokens = 9
        cache = "auto"
        learn = false
        drop = ["user", "tools.*.strict"]
        set = { "a.b" = [1], c.d = { e = true } }
        headers = { "X-One" = "1", cf-aig-authorization = { env = "KEY" } }
        timeouts = { connect_s = 1, first_byte_s = 2, idle_s = 3, total_s = 4 }
        [upstreams.aws]
        dialect = "bedrock"
        base_url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
        region = "eu-west-1"
        [[routes]]
        models = ["m", "n-*"]
        to = ["a.b", { upstream = "aws", model = "renamed" }]
        next_on = ["default", "tool_choice_ignored"]
        hedge_after_s = 3
        retries = 0
        backoff_s = 1
        backoff_max_s = 2
        retry_after_max_s = 0
        """.replace("\n            ", " ")
    )
    assert config.server == Server(
        host="::1", port=9, private="off", workers=3, grace_s=0, body_bytes=1000, max_streams=7, log_level="debug",
        log_format="text", keys=(Secret(f"env-{CANARY}"), Secret(f"file-{CANARY}")), keep_alive_s=5, keep_alive="event",
        whole_keep_alive=True, unsent_bytes=10, stall_s=2.5, policy="strict", timings=True,
        check_schemas=True,
    )  # fmt: skip
    azure, aws = config.upstreams.values()
    assert (azure.name, azure.auth, azure.key, azure.tools, azure.emulate) == (
        "a.b", "azure", Secret(f"file-{CANARY}"), False, False,
    )  # fmt: skip
    assert (azure.think_tags, azure.text_calls) == ("opened", ("hermes", "qwen"))
    assert (aws.think_tags, aws.text_calls) == ("auto", ())
    assert (azure.cache, azure.learn, azure.drop) == ("auto", False, ("user", "tools.*.strict"))
    assert azure.set == {"a.b": [1], "c": {"d": {"e": True}}}
    assert (aws.cache, aws.learn, aws.drop, aws.set) == ("off", True, (), {})
    assert azure.headers == {"x-one": "1", "cf-aig-authorization": f"env-{CANARY}"}
    assert azure.timeouts == Timeouts(connect_s=1, first_byte_s=2, idle_s=3, total_s=4)
    assert (aws.auth, aws.region, aws.key) == ("sigv4", "eu-west-1", None)
    (route,) = config.routes
    assert [(target.upstream.name, target.model) for target in route.targets] == [("a.b", None), ("aws", "renamed")]
    assert (route.next_on, route.hedge_after_s) == (("default", "tool_choice_ignored"), 3.0)
    assert (route.retries, route.retry_after_max_s) == (0, 0)
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
    assert [warning.file for warning in config.warnings] == ["--host"]
    with pytest.raises(ConfigError, match=r"--port: must be <= 65535: 70000"):
        parse(f"[server]\n{GOOD}", port=70_000)


def test_an_old_name_is_read_with_a_warning():
    config = parse(f"[server]\nprofile = true\n{GOOD}")
    assert config.server.timings
    assert [str(warning).partition(": ")[2] for warning in config.warnings] == [
        "server.profile: is now timings; the next release drops the old name"
    ]
    with pytest.raises(ConfigError, match=r":\d+:\d+: server\.timings: must be true or false"):
        parse(f"[server]\nprofile = 3\n{GOOD}")


@pytest.mark.parametrize(("old", "new"), [("report", ("default",)), ("next", ("default", "tool_choice_ignored"))])
def test_the_old_choice_of_a_route_is_read_with_a_warning(old, new):
    config = parse(f'{GOOD}on_tool_choice_ignored = "{old}"\n')
    assert config.routes[0].next_on == new
    [warning] = config.warnings
    assert (warning.line, warning.path) == (9, "routes[0].on_tool_choice_ignored")
    assert warning.reason == 'is now "tool_choice_ignored" in next_on; the next release drops the old name'


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("on_tool_choice_ignored = 3", '{}: leave it out; write next_on = ["default", "tool_choice_ignored"]'),
        ('next_on = []\non_tool_choice_ignored = "next"', "{}: leave it out; next_on replaces it"),
    ],
)
def test_an_old_choice_that_says_nothing_is_a_fault(lines, fault):
    [found] = faults(GOOD + lines)
    assert found.partition(": ")[2] == fault.format("routes[0].on_tool_choice_ignored")


def test_the_sample_is_a_good_configuration():
    config = parse(SAMPLE.read_text("utf-8"))
    assert config.warnings == ()
    assert len(config.upstreams) == len(config.routes) == 4
    assert CANARY not in describe(config)


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
    config = ConfigFile(folder / "gateway.toml").load()
    assert config.upstreams["a"].key == Secret(CANARY)
    assert config.warnings == ()
    (folder / "keys" / "a").chmod(0o600 | stat.S_IROTH)
    (warning,) = ConfigFile(folder / "gateway.toml").load().warnings
    assert str(warning).startswith(f"{folder}/gateway.toml:4:9: upstreams.a.key.file: every user")


def test_certificates_are_found_beside_the_configuration_and_a_proxy_in_the_environment(folder, monkeypatch):
    made = Certificates(folder)
    (folder / "client.key").chmod(0o600 | stat.S_IROTH)
    lines = 'ca_file = "ca.pem"\nclient_cert = "client.pem"\nclient_key = "client.key"\nproxy = { env = "PROXY" }\n'
    text = (folder / "gateway.toml").read_text("utf-8").replace("\n\n[[routes]]", f"\n{lines}\n[[routes]]")
    (folder / "gateway.toml").write_text(text, "utf-8")
    monkeypatch.setenv("PROXY", f"http://me:{CANARY}@proxy.test:3128")
    monkeypatch.chdir("/")
    config = ConfigFile(folder / "gateway.toml").load()
    upstream = config.upstreams["a"]
    assert (upstream.ca_file, upstream.client_key) == (made.path("ca.pem"), made.path("client.key"))
    assert "bearer, through http://proxy.test:3128, with a client certificate\n" in describe(config)
    assert CANARY not in f"{describe(config)} {config!r}"
    (warning,) = config.warnings
    assert str(warning).startswith(f"{folder}/gateway.toml:7:1: upstreams.a.client_key: every user")
    (folder / "ca.pem").write_bytes(b"")
    with pytest.raises(
        ConfigError, match=rf"gateway\.toml:5:1: upstreams\.a\.ca_file: '{folder}/ca\.pem' has no certif"
    ):
        ConfigFile(folder / "gateway.toml").load()


def test_keys_come_from_the_environment_of_the_process(folder):
    (folder / "gateway.toml").write_text(GOOD, "utf-8")
    assert ConfigFile(str(folder / "gateway.toml"), {"port": 0}).load().server.port == 0


def test_a_byte_order_mark_is_passed_over(folder):
    (folder / "gateway.toml").write_text(GOOD, "utf-8-sig")
    assert ConfigFile(folder / "gateway.toml").load().upstreams


def test_a_file_that_can_t_be_read_is_told(folder):
    with pytest.raises(ConfigError, match=r"nope\.toml: can't be read: No such file or directory"):
        ConfigFile(folder / "nope.toml").load()
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        ConfigFile(folder).load()
    (folder / "gateway.toml").write_bytes(b"a = 1\nb = '\xff'")
    with pytest.raises(ConfigError, match=r"gateway\.toml:2: not UTF-8"):
        ConfigFile(folder / "gateway.toml").load()


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
