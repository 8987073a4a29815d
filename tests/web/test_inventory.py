"""The paths at which models are looked up, judged by the official clients over loopback; which path each asks is part of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from streamkit.dialects.ollama.http import VERSION
from streamkit.web.client_dialect import refuse_in_dialect
from streamkit.web.inventory import ModelCard, add_inventory
from streamkit.web.token_counts import count_response
from tests.web import official
from tests.web.asking import message_of

CREATED = 1_750_000_000
SLASHED = "acme/llama3:8b"
CARDS = [
    ModelCard(id="m", created=CREATED, owner="acme"),
    ModelCard(id=SLASHED, tools=False, counts=True),
    *(ModelCard(id=f"m{number}") for number in range(28)),
]
IDS = [card.id for card in CARDS]


class Served:
    """The application, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.url = ""
        self.app = web.Application(middlewares=[self.note, refuse_in_dialect])
        add_inventory(self.app.router, CARDS)
        self.app.router.add_post("/v1/messages/count_tokens", self.count)
        self.app.router.add_post("/{version:v1|v1beta}/{name:.+}:countTokens", self.count)

    @web.middleware
    async def note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.raw_path))
        return await handler(request)

    async def count(self, request: web.Request) -> web.Response:
        dialect = "gemini" if "name" in request.match_info else "anthropic"
        return count_response(dialect, 7)


@pytest.fixture
async def served(aiohttp_server) -> Served:
    served = Served()
    server = await aiohttp_server(served.app)
    served.url = str(server.make_url("/")).rstrip("/")
    return served


async def asking(connected: Any, ask: Callable[[Any], Any]) -> Any:
    """``ask`` the synchronous client, in a thread."""

    def run() -> Any:
        with connected as client:
            return ask(client)

    return await asyncio.to_thread(run)


def strictly(model: Any) -> Any:
    """A model of the client's, which it builds without a look, held to its own types."""
    return type(model).model_validate(model.to_dict(mode="json"))


# -- openai ------------------------------------------------------------------------------------------------------------


async def test_openai_lists_and_retrieves(served):
    listed, found = await asking(
        official.openai(served.url), lambda client: (list(client.models.list()), client.models.retrieve(SLASHED))
    )
    assert [strictly(model).id for model in listed] == IDS
    assert (listed[0].created, listed[0].owned_by, listed[0].object) == (CREATED, "acme", "model")
    assert strictly(found).id == SLASHED
    assert served.asked == [("GET", "/v1/models"), ("GET", "/v1/models/acme%2Fllama3:8b")]


async def test_openai_is_told_that_a_model_is_not_there(served):
    with pytest.raises(Exception, match="the model 'none' does not exist") as caught:
        await asking(official.openai(served.url), lambda client: client.models.retrieve("none"))
    assert (type(caught.value).__name__, caught.value.code) == ("NotFoundError", "model_not_found")


# -- anthropic ---------------------------------------------------------------------------------------------------------


async def test_anthropic_lists_page_by_page_and_retrieves(served):
    listed, found = await asking(
        official.anthropic(served.url), lambda client: (list(client.models.list()), client.models.retrieve(SLASHED))
    )
    assert [strictly(model).id for model in listed] == IDS
    assert (listed[0].display_name, listed[0].lifecycle, listed[0].created_at.timestamp()) == ("m", "active", CREATED)
    assert strictly(found).id == SLASHED
    assert served.asked == [
        ("GET", "/v1/models"), ("GET", "/v1/models?after_id=m17"), ("GET", "/v1/models/acme%2Fllama3:8b"),
    ]  # fmt: skip


async def test_anthropic_goes_back_page_by_page(served):
    def back(client: Any) -> list[list[str]]:
        pages = client.models.list(limit=3, before_id="m4").iter_pages()
        return [[model.id for model in page.data] for page in pages]

    assert await asking(official.anthropic(served.url), back) == [["m1", "m2", "m3"], ["m", SLASHED, "m0"]]


async def test_anthropic_may_ask_for_models_of_a_stage(served):
    def numbers(client: Any) -> list[int]:
        stages = ["active"], ["retired"], ["retired", "active"]
        return [len(list(client.models.list(lifecycle=each))) for each in stages]

    assert await asking(official.anthropic(served.url), numbers) == [30, 0, 30]


async def test_anthropic_is_told_what_is_wrong_with_a_page(served):
    with pytest.raises(Exception, match="limit: must be an integer from 1 to 1,000") as caught:
        await asking(official.anthropic(served.url), lambda client: client.models.list(limit=1001))
    assert type(caught.value).__name__ == "BadRequestError"


async def test_anthropic_reads_a_count(served):
    said = [{"role": "user", "content": "?"}]
    counted = await asking(
        official.anthropic(served.url), lambda client: client.messages.count_tokens(model="m", messages=said)
    )
    assert strictly(counted).input_tokens == 7
    assert served.asked == [("POST", "/v1/messages/count_tokens")]


# -- google-genai ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "asked"), [(None, "v1"), ("v1beta", "v1beta")])
async def test_google_genai_lists_page_by_page_and_gets(served, version, asked):
    listed, found = await asking(
        official.gemini(served.url, version=version),
        lambda client: (list(client.models.list(config={"page_size": 16})), client.models.get(model=SLASHED)),
    )
    assert [model.name for model in listed] == [f"models/{name}" for name in IDS]
    assert listed[0].supported_actions == ["generateContent", "streamGenerateContent"]
    assert (found.name, found.supported_actions[-1]) == (f"models/{SLASHED}", "countTokens")
    assert served.asked == [
        ("GET", f"/{asked}/models?pageSize=16"),
        ("GET", f"/{asked}/models?pageSize=16&pageToken=m13"),
        ("GET", f"/{asked}/models/acme/llama3:8b"),
    ]


async def test_google_genai_is_told_that_a_model_is_not_there(served):
    with pytest.raises(Exception, match="the model 'none' does not exist") as caught:
        await asking(official.gemini(served.url), lambda client: client.models.get(model="none"))
    assert (type(caught.value).__name__, caught.value.code, caught.value.status) == ("ClientError", 404, "NOT_FOUND")


async def test_google_genai_reads_a_count(served):
    counted = await asking(
        official.gemini(served.url), lambda client: client.models.count_tokens(model="m", contents="?")
    )
    assert counted.total_tokens == 7
    assert served.asked == [("POST", "/v1/models/m:countTokens")]


# -- ollama ------------------------------------------------------------------------------------------------------------


async def test_ollama_lists_and_shows(served):
    listed, shown, bare = await asking(
        official.ollama(served.url), lambda client: (client.list(), client.show("m"), client.show(SLASHED))
    )
    assert [model.model for model in listed.models] == IDS
    assert (listed.models[0].modified_at.timestamp(), listed.models[0].details.family) == (CREATED, "acme")
    assert shown.capabilities == ["completion", "tools"]
    assert bare.capabilities == ["completion"]
    assert shown.modelinfo == {"general.architecture": "acme", "general.basename": "m"}
    assert served.asked == [("GET", "/api/tags"), ("POST", "/api/show"), ("POST", "/api/show")]


async def test_ollama_is_told_that_a_model_is_not_there(served):
    with pytest.raises(Exception, match="the model 'none' does not exist") as caught:
        await asking(official.ollama(served.url), lambda client: client.show("none"))
    assert (type(caught.value).__name__, caught.value.status_code) == ("ResponseError", 404)


# -- sizes -------------------------------------------------------------------------------------------------------------

#: By client, how it looks a model up, and where its own types have the context window and the longest response.
SIZES = {
    "openai": (lambda client: client.models.retrieve("m1"), ("context_length", "max_completion_tokens")),
    "anthropic": (lambda client: client.models.retrieve("m1"), ("max_input_tokens", "max_tokens")),
    "gemini": (lambda client: client.models.get(model="m1"), ("input_token_limit", "output_token_limit")),
}


@pytest.mark.parametrize("package", SIZES)
async def test_a_client_reads_the_sizes_of_a_model(package, aiohttp_server):
    app = web.Application()
    card = ModelCard(id="m1", context=200_000, output=64_000, inputs=("text", "image", "pdf"), thinks=True)
    add_inventory(app.router, [card])
    server = await aiohttp_server(app)
    look_up, names = SIZES[package]
    found = await asking(getattr(official, package)(str(server.make_url("/")).rstrip("/")), look_up)
    assert [getattr(found, name) for name in names] == [200_000, 64_000]
    if package == "openai":
        assert strictly(found).architecture == {"input_modalities": ["text", "image", "file"]}
    if package == "gemini":
        assert found.thinking is True


# -- without a client --------------------------------------------------------------------------------------------------


@pytest.fixture
async def client(aiohttp_client) -> Any:
    return await aiohttp_client(Served().app)


async def test_ollamas_version_is_one_that_clients_take(client):
    async with client.get("/api/version") as response:
        told = await response.json()
    assert told == {"version": VERSION}
    numbers = [int(number) for number in VERSION.split(".")]
    assert len(numbers) == 3
    assert numbers >= [0, 14, 2]  # GitHub Copilot demands 0.6.4; the most that was seen of others is this


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'{"model":"m"}', "m"),
        (b'{"name":"m","verbose":true}', "m"),  # as clients wrote it before 2024
        (b'{"model":"m:latest"}', "m"),
        (b'{"model":"acme/llama3:8b"}', SLASHED),
    ],
)
async def test_a_model_is_shown_by_its_name(client, body, model):
    async with client.post("/api/show", data=body) as response:
        assert (await response.json())["model_info"]["general.basename"] == model


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is not JSON"),
        (b"{}", 400, "name: is missing; must be a string"),
        (b'{"model":7}', 400, "model: must be a string"),
        (b'{"model":"m:8b"}', 404, "the model 'm:8b' does not exist"),
        (b'{"model":":latest"}', 404, "the model ':latest' does not exist"),
    ],
)
async def test_what_cant_be_shown_is_refused_in_ollamas_words(client, body, status, message):
    async with client.post("/api/show", data=body) as response:
        told = await response.json()
    assert response.status == status
    assert told["error"].startswith(message)


async def test_a_tag_is_no_part_of_a_name_elsewhere(client):
    for headers in {}, {"anthropic-version": "x"}, {"x-goog-api-key": "x"}:
        async with client.get("/v1/models/m:latest", headers=headers) as response:
            assert response.status == 404
            assert "the model 'm:latest' does not exist" in message_of(await response.json())


async def test_without_the_middleware_refusals_are_told_too(aiohttp_client):
    app = web.Application()
    add_inventory(app.router, CARDS)
    client = await aiohttp_client(app)
    async with client.get("/v1beta/models/none") as response:
        assert (response.status, (await response.json())["error"]["status"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/v1/models", "/api/tags", "/api/version", "/v1/models/m"])
async def test_a_head_is_answered_as_a_get(client, path):
    async with client.head(path) as response:
        assert response.status == 200
