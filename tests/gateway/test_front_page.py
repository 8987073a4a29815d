"""The page at ``/``: for whoever asks, and with nothing of the configuration."""

import pytest

from streamkit.web.upstream import Secret
from tests.gateway.running import config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import as_asked
from tests.web.raw_client import ask

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
async def running():
    async with (
        EvilUpstream(as_asked("openai-chat")) as evil,
        gateway(
            config_of(
                [upstream_at(evil, "openai-chat", name="hidden-upstream", auth="bearer", key=Secret("canary-up-7e2f"))],
                models=("hidden-model",),
                server={"keys": (Secret("canary-in-7e2f"),)},
            )
        ) as running,
    ):
        yield running


@pytest.mark.parametrize("accept", ["text/html,application/xhtml+xml;q=0.9", "*/*", ""])
async def test_it_says_what_this_is_without_a_key_and_nothing_of_the_configuration(accept, running):
    answer = await ask(running.url, "/", method="GET", headers={"accept": accept} if accept else {})
    text = bytes(answer.body).decode()
    assert answer.status == 200
    assert "streamkit gateway" in text
    assert all(path in text for path in ("/v1/messages", "/v1/responses", "/v1/chat/completions", "/api/chat"))
    for secret in ("hidden", "canary", running.url.rpartition(":")[2]):
        assert secret not in text
        assert secret not in str(answer.headers)
    media = "text/html" if "html" in accept else "text/plain"
    assert answer.headers["content-type"].startswith(media)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in text
    assert "<style" not in text


async def test_a_head_is_answered_too(running):
    answer = await ask(running.url, "/", method="HEAD")
    assert (answer.status, bytes(answer.body)) == (200, b"")


async def test_nothing_else_is_open(running):
    for path in ("/v1/models", "//", "/index.html", "/api/tags"):
        assert (await ask(running.url, path, method="GET")).status == 401


LISTING = [("GET", "/api/tags"), ("GET", "/api/version"), ("GET", "/api/ps"), ("POST", "/api/show")]


@pytest.mark.parametrize("keyless", [True, False])
async def test_ollamas_clients_list_models_without_a_key_where_that_is_wanted(keyless):
    server = {"keys": (Secret("canary-in-7e2f"),), "keyless_listing": keyless}
    async with (
        EvilUpstream(as_asked("openai-chat")) as evil,
        gateway(config_of([upstream_at(evil, "openai-chat")], server=server)) as running,
    ):
        for method, path in LISTING:
            body = b'{"model":"m"}' if method == "POST" else b""
            answer = await ask(running.url, path, method=method, body=body)
            assert answer.status == (200 if keyless else 401), path
            page = {"origin": "https://elsewhere.example"}
            assert (await ask(running.url, path, method=method, body=body, headers=page)).status != 200
        assert (await ask(running.url, "/api/chat", body=b'{"model":"m","messages":[]}')).status == 401
        assert (await ask(running.url, "/v1/models", method="GET")).status == 401


async def test_no_model_is_loaded_here():
    async with (
        EvilUpstream(as_asked("openai-chat")) as evil,
        gateway(config_of([upstream_at(evil, "openai-chat")])) as running,
    ):
        answer = await ask(running.url, "/api/ps", method="GET")
        assert (answer.status, answer.json()) == (200, {"models": []})
