"""A dialect of another package is asked, served, counted and listed by the value ``http`` that it brings, as built-in ones are."""

from __future__ import annotations

import re

import pytest
from aiohttp import web
from attrs import evolve

from streamkit import UsageError
from streamkit.dialects import DIALECTS, dialect_named, key_headers
from streamkit.dialects.http import HTTP, Endpoint, Models, Surface, TokenCount
from streamkit.web import ModelCard, Secret, Upstream, add_inventory, setup
from streamkit.web.surfaces import surfaces
from streamkit.web.upstream.requests import _passed
from streamkit.web.upstream.value import _public

ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}
ENDPOINT = Endpoint(
    url=lambda base, model, stream: f"{base}/ask/{model}/{'live' if stream else 'whole'}",
    auth="other-token",
    keys={"other-token": ("x-other-token", "Other ")},
    headers=lambda _provider: {"x-other-version": "7"},
    features={"x-other-feature": True},
    passed=("x-other-limit-",),
    count=TokenCount(url=lambda base, model: f"{base}/count/{model}", takes=frozenset({"messages"}), member="n"),
)
SURFACE = Surface(
    generate=("/other/ask",),
    count=("/other/count",),
    path=re.compile(r"/other/.+\Z"),
    count_answer=lambda tokens: {"n": tokens},
    models=Models(
        path="/other/models",
        list=lambda cards, _query: {"all": [card.id for card in cards]},
        detail=lambda card: {"one": card.id},
    ),
)


@pytest.fixture(autouse=True)
def other(monkeypatch: pytest.MonkeyPatch):
    """A dialect that joined after the start, so that what was computed of the others is forgotten before and behind."""
    dialect = evolve(
        dialect_named("openai-chat"), name="other", http=HTTP(endpoint=ENDPOINT, surface=SURFACE), clients=()
    )
    caches = (surfaces, key_headers, _passed, _public)
    monkeypatch.setattr(DIALECTS, "built_in", {**DIALECTS.built_in, "other": dialect})
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
async def client(aiohttp_server, aiohttp_client):
    """A client of an application that serves it, and what its upstream was asked."""
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.path, dict(request.headers), await request.json()))
        body = {"n": 42} if request.path.startswith("/base/count") else ANSWER
        return web.json_response(body, headers={"x-other-limit-left": "3", "x-else": "no"})

    upstream = web.Application()
    upstream.router.add_post("/{path:.*}", answer)
    server = await aiohttp_server(upstream)
    app = web.Application()
    setup(
        app,
        Upstream(
            name="u",
            dialect="other",
            base_url=str(server.make_url("/base")),
            auth="other-token",
            key=Secret("k-1"),
            headers={"x-other-feature": "operators"},
        ),
        clients=["other"],
    )
    add_inventory(app.router, [ModelCard(id="m")])
    served = await aiohttp_client(app)
    served.asked = asked
    return served


BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


async def test_its_clients_are_served_and_its_servers_asked_at_its_own_paths(client):
    async with client.post("/other/ask", json=BODY, headers={"X-Other-Feature": "clients"}) as answer:
        assert (answer.status, answer.headers["x-other-limit-left"]) == (200, "3")
        assert "x-else" not in answer.headers
        assert (await answer.json())["choices"][0]["message"]["content"] == "Hi"
    [(path, headers, _)] = client.asked
    assert path == "/base/ask/m/whole"
    sent = {name.lower(): value for name, value in headers.items()}
    assert (sent["x-other-token"], sent["x-other-version"]) == ("Other k-1", "7")
    assert sent["x-other-feature"] == "clients,operators"


async def test_tokens_are_counted(client):
    async with client.post("/other/count", json={**BODY, "temperature": 1}) as answer:
        assert await answer.json() == {"n": 42}
    [(path, _, body)] = client.asked
    assert (path, set(body)) == ("/base/count/m", {"messages"})


async def test_models_are_listed_and_errors_said_in_the_dialect(client):
    async with client.get("/other/models") as answer:
        assert await answer.json() == {"all": ["m"]}
    async with client.get("/other/models/m") as answer:
        assert await answer.json() == {"one": "m"}
    async with client.post("/other/ask", json={"messages": 1}) as answer:
        assert (answer.status, "error" in await answer.json()) == (400, True)


def test_a_key_is_shown_in_its_way_or_not_at_all():
    with pytest.raises(UsageError, match='key: auth = "other-token" needs a key'):
        Upstream(name="u", dialect="other", base_url="https://h", auth="other-token")
    with pytest.raises(UsageError, match=r"auth: write one of none, bearer, .*, other-token"):
        Upstream(name="u", dialect="other", base_url="https://h", auth="anything")
