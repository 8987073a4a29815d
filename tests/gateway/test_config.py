"""The configuration's values: addresses, what can't be, and what is shown of them."""

from __future__ import annotations

import pickle
import sys

import pytest

from streamkit.errors import UsageError
from streamkit.gateway.config import Config, Responses, Resume, Server, address_in, describe
from streamkit.gateway.routing import Route, Target
from streamkit.policy import LENIENT, TOLERANT
from streamkit.toml.findings import Finding, Refusal
from streamkit.web.hosts import is_loopback
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery
from streamkit.web.upstream import Secret, Upstream
from streamkit.web.upstream.value import Rest

CANARY = "canary-1f0d9c"


@pytest.fixture
def config():
    openai = Upstream(
        name="openai",
        dialect="openai-chat",
        base_url="https://api.example/v1",
        key=Secret(CANARY),
        headers={"x-own": CANARY},
        drop=("user",),
        rest=Rest(failures=2),
    )
    local = Upstream(name="local", dialect="ollama", base_url="http://127.0.0.1:11434", auth="none", tools=False)
    return Config(
        server=Server(keys=(Secret(CANARY),), workers=2),
        responses=Responses(state=True),
        upstreams={"openai": openai, "local": local},
        routes=(
            Route(
                models=("gpt-4o", "small"),
                targets=(Target(upstream=openai), Target(upstream=local, model="qwen3")),
                next_on=("default", "refusal"),
                hedge_after_s=3.0,
            ),
            Route(models=("local/*",), targets=(Target(upstream=local, model="*"),)),
        ),
        warnings=(Finding(file="g.toml", line=3, column=1, path="server.host", reason="is open"),),
    )


def test_the_description_says_everything_but_keys(config):
    assert describe(config) == (
        "listens on http://127.0.0.1:8080, 2 workers\n"
        "/metrics on http://127.0.0.1:8081\n"
        "1 client key\n"
        "responses are kept in memory, for clients that reconnect within 600 s\n"
        "conversations are kept for 3600 s, for requests that refer to earlier responses\n"
        "upstreams:\n"
        "  openai  openai-chat, https://api.example/v1, bearer\n"
        "    rest.failures = 2\n"
        '    headers = { "x-own" = … }\n'
        '    drop = ["user"]\n'
        "  local   ollama, http://127.0.0.1:11434, no key, no tools\n"
        "routes:\n"
        "  gpt-4o, small -> openai, then local as qwen3\n"
        '    next_on = ["default", "refusal"]\n'
        "    hedge_after_s = 3.0\n"
        "  local/* -> local as *\n"
        "warnings:\n"
        "  g.toml:3:1: server.host: is open"
    )


def test_a_description_of_little_says_what_is_not_there():
    server, resume = Server(host="::", private="off"), Resume(store="off")
    text = describe(Config(server=server, resume=resume, upstreams={}, routes=()))
    assert "\nno responses are kept for clients that reconnect\n" in text
    assert (
        "listens on http://[::]:8080, 1 worker\nno /metrics\nno client keys: anyone who reaches the gateway is served"
        in text
    )
    assert "warnings" not in text


def test_no_key_is_in_the_repr(config):
    assert CANARY not in repr(config)
    assert CANARY not in describe(config)


def test_a_worker_gets_the_same_configuration(config):
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("server", "address"),
    [
        (Server(), ("127.0.0.1", 8081)),
        (Server(host="0.0.0.0", port=9000), ("127.0.0.1", 9001)),
        (Server(port=0), ("127.0.0.1", 0)),
        (Server(private="off"), None),
        (Server(private="[::1]:9090"), ("::1", 9090)),
        (Server(port=65_535, private="off"), None),
    ],
)
def test_the_private_listener_is_the_port_behind_on_loopback_unless_said_otherwise(server, address):
    assert server.private_address == address


@pytest.mark.parametrize(
    "fields",
    [
        {"private": "127.0.0.1:8080"},
        {"host": "0.0.0.0", "private": "127.0.0.1:8080"},
        {"private": "0.0.0.0:8080"},
        {"private": "9090"},
        {"private": "on"},
        {"private": "user@h:1"},
        {"port": 65_535},
        {"host": ""},
        {"host": "127.0.0.1:80"},
        {"host": "a..b"},
        {"host": "a\x00b"},
        {"private": "a..b:80"},
        {"host": "http://localhost"},
        {"host": "[::1]"},
    ],
)
def test_addresses_that_can_t_be_are_refused(fields):
    with pytest.raises(Refusal):
        Server(**fields)


def test_the_same_port_on_another_interface_is_fine():
    assert Server(host="10.0.0.1", private="127.0.0.1:8080").private_address == ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    "field", ["workers", "body_bytes", "max_streams", "keep_alive_s", "unsent_bytes", "stall_s", "grace_s", "port"]
)
def test_a_number_below_its_least_is_refused(field):
    with pytest.raises(ValueError, match=field):
        Server(**{field: -1})
    if field not in {"grace_s", "port"}:
        with pytest.raises(ValueError, match=field):
            Server(**{field: 0})


def test_the_delivery_is_the_default_one_unless_said_otherwise():
    assert Server().delivery == DEFAULT_DELIVERY
    delivery = Server(policy="lenient", keep_alive="event", keep_alive_s=1, whole_keep_alive=True, stall_s=2).delivery
    assert (delivery.timings, Server(timings=True).delivery.timings) == (False, True)
    assert (delivery.check_schemas, Server(check_schemas=True).delivery.check_schemas) == (False, True)
    assert delivery.policy.two_objects == LENIENT.two_objects != TOLERANT.two_objects
    assert delivery.keep_alive == "event"
    assert (delivery.keep_alive_s, delivery.whole_keep_alive, delivery.stall_s) == (1, True, 2)


def test_schemas_are_not_checked_without_the_extra(monkeypatch):
    monkeypatch.setattr("streamkit.gateway.config.find_spec", lambda _name: None)
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(Refusal, match=r"streamkit-llm\[schema\]"):
        Server(check_schemas=True)
    with pytest.raises(UsageError, match=r"streamkit-llm\[schema\].*leave check_schemas out"):
        Delivery(check_schemas=True)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:1", ("::1", 1)),
        ("::1", None),
        ("h", None),
        ("h:", None),
        ("h:99999", None),
        ("h:1/x", None),
        (":80", None),
        ("[x", None),
    ],
)
def test_an_address_is_host_and_port(text, address):
    assert address_in(text) == address


def test_loopback_is_told_from_the_rest():
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "::1", "localhost", "a.localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"]))


@pytest.mark.parametrize(
    "name", ["http://llm.example.org", "llm.example.org:8080", "llm.example.org/v1", "", "*x", "a b"]
)
def test_a_name_that_no_host_header_has_is_refused(name):
    with pytest.raises(Refusal, match=r"must be a name without scheme, port and path") as raised:
        Server(hosts=("localhost", name))
    assert raised.value.at == (1,)
