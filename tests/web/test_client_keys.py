"""Client keys: where they are looked for, how they are compared, and that none is shown."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from streamkit.errors import UsageError
from streamkit.web.client_dialect import client_dialect
from streamkit.web.hosts import SENT, KeyRing, admit, client_keys
from streamkit.web.refusals import Refused
from tests.web import official
from tests.web.asking import ASKS, DIALECTS, error_in, message_of

KEY = "sk-canary-7f3a"


def keys_of(path: str = "/v1/models", **headers: str) -> list[str]:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return client_keys(make_mocked_request("GET", path, headers=headers))


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({"Authorization": f"Bearer {KEY}"}, [KEY]),
        ({"authorization": f"bearer  {KEY} "}, [KEY]),
        ({"x_api_key": KEY}, [KEY]),
        ({"x_goog_api_key": KEY}, [KEY]),
        ({"api_key": KEY}, [KEY]),
        ({"Authorization": f"Basic {KEY}"}, []),
        ({"Authorization": f"Basic {KEY}", "x_api_key": "other"}, ["other"]),
        ({"Authorization": "Bearer ", "x_api_key": "other"}, ["other"]),
        ({"Authorization": f"Bearer {KEY}", "api_key": "third", "x_api_key": "other"}, [KEY, "other", "third"]),
        ({"path": f"/v1beta/models?alt=sse&key={KEY}", "x_goog_api_key": "other"}, ["other", KEY]),
        ({"path": "/v1beta/models?" + f"key={KEY}&" * 100}, [KEY] * SENT),
        ({"path": "/v1beta/models?key=&key=%20"}, []),
        ({"Authorization": KEY}, []),
        ({"Cookie": f"key={KEY}"}, []),
        ({}, []),
    ],
)
def test_keys_are_looked_for_where_clients_send_them(headers, keys):
    assert keys_of(**headers) == keys


@pytest.mark.parametrize("other", ["Authorization", "x-api-key", "x-goog-api-key", "api-key"])
@pytest.mark.parametrize("known", ["Authorization", "x-api-key", "x-goog-api-key", "api-key", "?key="])
def test_a_client_is_let_in_by_whichever_of_its_keys_is_known(known, other):
    headers = {name: "Bearer sk-of-a-vendor" if name == "Authorization" else "sk-of-a-vendor" for name in [other]}
    if known != "?key=" and known != other:
        headers[known] = f"Bearer {KEY}" if known == "Authorization" else KEY
    path = f"/v1/models?key={KEY}" if known == "?key=" else "/v1/models"
    if known == other:
        path += f"?key={KEY}"
    request = make_mocked_request("GET", path, headers=headers)
    admit(request, KeyRing(["another", KEY]))
    assert KeyRing([KEY]).accepted(request) == KEY
    with pytest.raises(Refused, match="this API key is not valid"):
        admit(request, KeyRing(["another"]))


def test_a_ring_allows_its_keys_and_no_others():
    ring = KeyRing([KEY, " second\n"])
    assert ring.allows(KEY)
    assert ring.allows("second")
    assert not any(map(ring.allows, [None, "", KEY[:-1], KEY + "x", KEY.upper(), "second\n", "\udcff", "ü"]))


def test_a_key_that_is_no_ascii_is_compared_by_its_bytes():
    """aiohttp decodes a header with surrogates for what is not UTF-8."""
    assert KeyRing(["schlüssel"]).allows("schlüssel")
    assert KeyRing(["k\udcfc"]).allows(b"k\xfc".decode("utf-8", "surrogateescape"))


def test_every_key_is_compared_whichever_matches(monkeypatch):
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    ring = KeyRing(["first", "second", "third"])
    for key in "first", "third", "none", "":
        compared.clear()
        assert ring.allows(key) is (key in {"first", "third"})
        assert len(compared) == 3
        assert {len(side) for pair in compared for side in pair} == {32}


@pytest.mark.parametrize("keys", [[], [""], [KEY, " "]])
def test_a_ring_that_would_let_in_everybody_or_nobody_is_a_mistake(keys):
    with pytest.raises(UsageError, match="key ring") as caught:
        KeyRing(keys)
    assert KEY not in str(caught.value)


def test_a_ring_shows_no_key():
    ring = KeyRing([KEY])
    assert repr(ring) == "<ring of 1 client keys>"
    assert KEY not in str(vars(ring))
    assert KeyRing([KEY])._digests != ring._digests  # nor a hash that could be looked up


# -- over loopback -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def server(aiohttp_server) -> Any:
    ring = KeyRing([KEY])

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            admit(request, ring)
        except Refused as refused:
            return refused.response(client_dialect(request))
        return await handler(request)

    async def models(_request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [], "models": [], "has_more": False})

    app = web.Application(middlewares=[guard])
    for path in "/v1/models", "/api/tags":
        app.router.add_get(path, models)
    return await aiohttp_server(app)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("headers", "told"), [({}, "has no API key"), ({"x-api-key": "wrong-key"}, "not valid here")])
async def test_who_is_not_let_in_is_told_in_the_dialect(server, aiohttp_client, dialect, headers, told):
    client = await aiohttp_client(server)
    async with client.post(ASKS[dialect][0], headers=headers) as response:
        text = await response.text()
        assert told in message_of(error_in(await response.read()))
    assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "wrong-key" not in text
    assert KEY not in text


def test_without_a_ring_everybody_is_let_in():
    admit(make_mocked_request("GET", "/"), None)


@pytest.mark.parametrize(
    ("connected", "raised"),
    [
        (official.openai, "AuthenticationError"),
        (official.anthropic, "AuthenticationError"),
        (official.gemini, "ClientError"),
        (official.ollama, "ResponseError"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_the_official_clients_keys_are_found(server, connected, raised):
    url = str(server.make_url("/")).rstrip("/")

    def ask(key: str) -> None:
        with connected(url, key) as client:
            client.list() if connected is official.ollama else list(client.models.list())

    await asyncio.to_thread(ask, KEY)
    with pytest.raises(Exception, match="not valid here") as caught:
        await asyncio.to_thread(ask, "wrong-key")
    assert type(caught.value).__name__ == raised


# -- without keys ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://evil.example:8080",
        "http://10.0.0.5",
        "http://localhost.evil.example",
        "null",
        "http://[x",
    ],
)
def test_pages_of_other_sites_are_not_let_in_without_a_key(origin):
    asked = make_mocked_request("POST", "/v1/messages", headers={"Origin": origin, "Content-Type": "text/plain"})
    with pytest.raises(Refused) as caught:
        admit(asked, None)
    assert caught.value.failed.type == "permission"


@pytest.mark.parametrize(
    "origin",
    [None, "http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", "vscode-webview://abc", "app://obsidian.md", "tauri://localhost"],
)  # fmt: skip
def test_programs_and_pages_of_this_machine_are(origin):
    admit(make_mocked_request("POST", "/v1/messages", headers={} if origin is None else {"Origin": origin}), None)


def test_a_page_with_a_key_is_let_in():
    headers = {"Origin": "https://chat.example", "Authorization": f"Bearer {KEY}"}
    admit(make_mocked_request("POST", "/v1/messages", headers=headers), KeyRing([KEY]))
