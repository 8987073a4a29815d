"""By which names a server may be called: a page of the web can turn its own name to this machine, and no other."""

import pytest

from streamkit.web.hosts import Hosts, is_host_name

OWN = [
    "localhost", "localhost:8080", "LOCALHOST:8080", "localhost.", "app.localhost:1", "127.0.0.1", "127.0.0.1:8080", "127.8.8.8",
    "[::1]", "[::1]:8080", "192.168.1.5:8080", "10.0.0.1", "[fe80::1]:8080", "0.0.0.0:8080", "host.docker.internal:8080",
    "host.containers.internal",
]  # fmt: skip
OTHERS = [
    "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost", "xlocalhost",
    "x.host.docker.internal", "docker.internal", "gateway", "2130706433", "0x7f.1", "127.1", "", ":8080", "localhost:8080:1",
    "localhost@evil.example", "evil.example@localhost", "evil.example/localhost", "localhost evil.example", "[evil.example]",
    "localhost:x", "localhost,evil.example", "[::1", "::1:x", "ev\u0131l.example", "localhost..",
]  # fmt: skip


@pytest.mark.parametrize("host", OWN)
def test_addresses_and_names_that_nobody_can_turn_are_served(host):
    assert Hosts().allows(host)
    assert Hosts(["llm.example.org"]).allows(host)


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_not(host):
    assert not Hosts().allows(host)
    assert not Hosts(["llm.example.org", "*.example.net"]).allows(host)
    assert Hosts(["*"]).allows(host)


def test_names_that_were_named_are_served_on_any_port():
    hosts = Hosts(["LLM.example.org", "*.example.net", "gateway"])
    served = [
        "llm.example.org",
        "LLM.EXAMPLE.ORG:443",
        "llm.example.org.",
        "a.example.net",
        "a.b.example.net:1",
        "gateway:8080",
    ]
    assert all(map(hosts.allows, served))
    assert not any(map(hosts.allows, ["a.llm.example.org", "example.net", "aexample.net", "example.org"]))


def test_what_can_be_named():
    assert all(map(is_host_name, ["llm.example.org", "*.example.org", "*", "gateway", "127.0.0.1", "::1", "my_host"]))
    refused = ["", "http://x", "x:80", "x/", "*x.org", "*.*", "a.*.b", "x y", "[::1]:80", ".x", "x."]
    assert not any(map(is_host_name, refused))
