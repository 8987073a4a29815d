"""Pages of other sites: the question that a browser asks beforehand, and whose pages may read an answer."""

from __future__ import annotations

import orjson
import pytest

from streamkit.gateway.checks import warnings
from streamkit.gateway.config import Config, Server, describe
from streamkit.toml.findings import Refusal
from streamkit.web.hosts import is_origin
from streamkit.web.upstream import Secret
from tests.gateway.running import asking, behind
from tests.web.faults import as_asked, status

PAGE, OTHER = "https://chat.example.org", "https://evil.example.net"
KEY = "sk-canary-7f3a"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


async def options(running, path, origin, **more):
    headers = {"Origin": origin, **PREFLIGHT, **more}
    return await running.ask(path, method="OPTIONS", body=b"", headers=headers)


@pytest.mark.parametrize("keys", [(), (Secret(KEY),)], ids=["without keys", "with keys"])
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"])
async def test_a_page_that_is_named_may_ask_and_read_the_answer(client, keys):
    async with behind(as_asked("openai-chat"), server={"cors": (PAGE,), "keys": keys}) as running:
        path, body = asking(client)
        before = await options(running, path.partition("?")[0], PAGE)
        assert (before.status, before.headers["access-control-allow-origin"]) == (204, PAGE)
        assert before.headers["access-control-allow-methods"] == "GET, POST"
        assert before.headers["access-control-allow-headers"] == "authorization,content-type"
        assert "origin" in before.headers["vary"].lower()
        headers = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
        answer = await running.ask(path, body=orjson.dumps(body), headers=headers)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        assert answer.headers["access-control-expose-headers"] == "*"


@pytest.mark.parametrize("cors", [(), (PAGE,)], ids=["off", "another"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/api/tags"])
async def test_any_other_page_is_told_that_nothing_is_served(path, cors):
    async with behind(as_asked("openai-chat"), server={"cors": cors}) as running:
        before = await options(running, path, OTHER)
        assert before.status == 405
        assert not [name for name in before.headers if name.lower().startswith("access-control")]
        path, body = asking("openai-chat")
        answer = await running.ask(path, body=orjson.dumps(body), headers={"Origin": OTHER})
        assert answer.status == 403
        assert ("vary" in answer.headers) == bool(cors)
        assert not running.evil.requests


async def test_an_error_can_be_read_by_the_page_too():
    async with behind(status(500), server={"cors": ("*",), "keys": (Secret(KEY),)}) as running:
        for key, code in ((KEY, 500), ("wrong", 401)):
            headers = {"Origin": OTHER, "Authorization": f"Bearer {key}"}
            answer = await running.asked(headers=headers)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (code, "*")


@pytest.mark.parametrize("wanted", ["a\x01b", "a" * 2000, "x,,y", "x y"])
async def test_headers_that_are_no_list_of_names_are_not_repeated(wanted):
    async with behind(as_asked("openai-chat"), server={"cors": (PAGE,)}) as running:
        path, _ = asking("openai-chat")
        before = await options(running, path, PAGE, **{"Access-Control-Request-Headers": wanted})
        assert before.status in {204, 400}
        assert "access-control-allow-headers" not in before.headers


@pytest.mark.parametrize(
    "origin", ["chat.example.org", "https://chat.example.org/", "https://a b", "", "null", "https://*.example.org"]
)
def test_what_no_browser_says_of_a_page_is_refused_in_the_configuration(origin):
    assert not is_origin(origin)
    with pytest.raises(Refusal, match="must be an origin"):
        Server(cors=(origin,))


def test_any_page_without_keys_is_warned_of():
    config = Config(server=Server(cors=(PAGE, "*")), upstreams={}, routes=())
    assert [path for path, _ in warnings(config, {}, {})][:1] == [("server", "cors", 1)]
    assert f"pages of {PAGE}, * may send requests" in describe(config)
    assert not list(warnings(Config(server=Server(cors=(PAGE,)), upstreams={}, routes=()), {}, {}))
