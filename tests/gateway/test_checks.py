"""What may be meant, and may not be, is a warning."""

from __future__ import annotations

import re

import pytest

from tests.gateway.configuring import GOOD, faults, warnings


def test_an_upstream_that_no_route_leads_to_is_a_warning():
    text = f'{GOOD}[upstreams.b]\ndialect = "ollama"\nbase_url = "http://127.0.0.1"\n'
    assert warnings(text) == ["gateway.toml:9:12: upstreams.b: no route uses it"]


def test_a_key_in_clear_text_is_a_warning_but_not_on_this_machine():
    (told,) = warnings(GOOD.replace("https://", "http://"))
    assert told == "gateway.toml:3:1: upstreams.a.base_url: the key is sent in clear text; use https"
    assert warnings(GOOD.replace("https://a.example", "http://localhost:1")) == []
    assert warnings(GOOD.replace("https:", "http:").replace('key = { env = "KEY" }', 'auth = "none"')) == [], "no key"


def test_a_hedge_without_a_next_upstream_is_a_warning():
    assert warnings(f"{GOOD}hedge_after_s = 1") == [
        "gateway.toml:9:1: routes[0].hedge_after_s: the route has no next upstream to ask"
    ]


def test_a_search_of_tools_where_there_are_none_is_a_warning():
    text = GOOD.replace("key =", 'tool_search = "emulate"\ntools = false\nkey =')
    assert [line.partition(": ")[2] for line in warnings(text)] == [
        "upstreams.a.tool_search: has no effect; the upstream gets no requests with tools"
    ]


@pytest.mark.parametrize(("tool_search", "on_cut", "warned"), [
    ("emulate", "continue", True), ("emulate", "report", False), ("off", "continue", False),
])  # fmt: skip
def test_a_search_of_tools_whose_responses_are_not_continued_is_a_warning(tool_search, on_cut, warned):
    text = GOOD.replace("openai-chat", "vllm").replace("key =", f'tool_search = "{tool_search}"\nkey =')
    text += f'on_cut = "{on_cut}"\n'
    told = [line.partition(": ")[2] for line in warnings(text)]
    assert (
        told
        == [
            'routes[0].on_cut: a sends requests with deferred tools as with on_cut = "report", since its tool_search is "emulate"'
        ]
        * warned
    )


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


def test_responses_that_are_leaned_on_need_a_place_where_they_are_kept():
    (told,) = faults(f'[responses]\nstate = true\n[resume]\nstore = "off"\n{GOOD}')
    assert told.startswith("gateway.toml:2:1: responses.state: needs resume.store")
    assert warnings(f"[responses]\nstate = true\n{GOOD}") == []
