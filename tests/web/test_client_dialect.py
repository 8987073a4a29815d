"""Who asks, and what a client gets at a path that nobody serves: an error that its own library reads."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from streamkit.events import ProviderFailed
from streamkit.web.client_dialect import client_dialect, in_dialect, refuse_in_dialect
from streamkit.web.refusals import Refused
from streamkit.web.surfaces import surfaces
from tests.web.asking import asking_app, error_in, message_of

GOOGLE, ANTHROPIC = {"x-goog-api-key": "k"}, {"anthropic-version": "2026-10-21"}
NOBODY: dict[str, str] = {}


@pytest.mark.parametrize(
    ("path", "headers", "dialect"),
    [
        ("/v1/models", NOBODY, "openai-chat"),
        ("/v1/models", {"Authorization": "Bearer k"}, "openai-chat"),
        ("/v1/models", ANTHROPIC, "anthropic"),
        ("/v1/models", GOOGLE, "gemini"),
        ("/v1/models/m", ANTHROPIC, "anthropic"),
        ("/v1/models/llama3:8b", NOBODY, "openai-chat"),
        ("/v1/models/acme/api/chat", NOBODY, "openai-chat"),  # a model's name
        ("/v1/models/m:generateContent", ANTHROPIC, "gemini"),
        ("/v1/models/m:embedContent", GOOGLE, "gemini"),
        ("/v1/tunedModels/t", NOBODY, "gemini"),
        ("/v1beta/models", NOBODY, "gemini"),
        ("/v1beta", NOBODY, "gemini"),
        ("/v1beta/files", ANTHROPIC, "gemini"),
        ("/v1/messages", GOOGLE, "anthropic"),
        ("/v1/messages/batches", NOBODY, "anthropic"),
        ("/v1/responses/resp_1/cancel", ANTHROPIC, "openai-responses"),
        ("/v1/chat/completions", ANTHROPIC, "openai-chat"),
        ("/v1/embeddings", NOBODY, "openai-chat"),
        ("/v1/files", ANTHROPIC, "anthropic"),
        ("/api/tags", GOOGLE, "ollama"),
        ("/api/generate", NOBODY, "ollama"),
        ("/api/llm/v1/chat/completions", NOBODY, "openai-chat"),  # under a prefix of somebody's own
        ("/api/llm/v1/files", ANTHROPIC, "anthropic"),
        ("/llm/api/chat", NOBODY, "ollama"),
    ],
)
def test_the_path_tells_before_the_headers(path, headers, dialect):
    assert client_dialect(make_mocked_request("GET", path, headers=headers)) == dialect


def test_a_key_in_the_url_tells_nothing():
    """google-genai sends it as a header only."""
    assert client_dialect(make_mocked_request("GET", "/v1/models?key=AIza0000")) == "openai-chat"


@pytest.fixture
async def client(aiohttp_client) -> Any:
    return await aiohttp_client(asking_app([]))


@pytest.mark.parametrize("dialect", surfaces())
async def test_the_wrong_method_is_405_in_the_dialect(client, dialect):
    for path in (re.sub(r"\{.*\}", "models/m", pattern) for pattern in surfaces()[dialect].paths):
        for method in "GET", "PUT", "DELETE", "OPTIONS":
            async with client.request(method, path) as response:
                told = error_in(await response.read())
            assert response.status == 405
            assert response.headers["Allow"] == "POST"
            assert message_of(told) == f"{method} '{path}' is not supported; use POST"
            if dialect == "ai-sdk":  # a sentence
                continue
            error = told.get("error", told)  # AG-UI's event is no envelope
            assert (error is told, isinstance(error, str)) == (dialect == "ag-ui", dialect == "ollama")
            assert (told.get("type") == "error") is (dialect == "anthropic")
            assert (dialect == "gemini") is ("status" in error)


@pytest.mark.parametrize(
    ("path", "headers", "envelope"),
    [
        ("/v1/embeddings", NOBODY, {"error"}),
        ("/v1/files", ANTHROPIC, {"type", "error"}),
        ("/v1beta/models/m:embedContent", NOBODY, {"error"}),
        ("/api/generate", NOBODY, {"error"}),
    ],
)
async def test_a_path_that_is_not_served_is_404_with_those_that_are(client, path, headers, envelope):
    async with client.post(path + "?key=s3cret", data=b"{}", headers=headers) as response:
        text = await response.text()
        told = error_in(await response.read())
    assert response.status == 404
    assert set(told) == envelope
    assert f"POST '{path}' does not exist" in message_of(told)
    assert all(known in message_of(told) for known in ("/v1/chat/completions", "/v1/messages", "/api/chat"))
    assert "s3cret" not in text


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/responses/resp_1/input_items"])
async def test_whoever_looks_for_an_earlier_response_is_told_that_there_are_none(client, path):
    async with client.get(path) as response:
        told = error_in(await response.read())
    assert response.status == 404
    assert "no response with this id is kept here" in message_of(told)


@pytest.mark.parametrize("path", ["/", "/elsewhere", "/v2/chat", "/apis/x"])
async def test_other_paths_are_none_of_ours(client, path):
    async with client.get(path) as response:
        assert (response.status, await response.text()) == (404, "404: Not Found")


async def test_a_handlers_own_answers_are_its_own(aiohttp_client):
    async def gone(_request: web.Request) -> web.Response:
        raise web.HTTPNotFound(text="mine")

    app = web.Application(middlewares=[refuse_in_dialect])
    app.router.add_get("/api/mine", gone)
    client = await aiohttp_client(app)
    async with client.get("/api/mine") as response:
        assert (response.status, await response.text()) == (404, "mine")


async def test_a_handler_alone_may_refuse_in_the_dialect(aiohttp_client):
    async def busy(_request: web.Request) -> web.Response:
        raise Refused(ProviderFailed("unavailable", "busy", retry_after_s=3.0))

    app = web.Application()
    app.router.add_get("/v1/{rest}", in_dialect(busy))
    client = await aiohttp_client(app)
    for headers, status in (ANTHROPIC, 529), (GOOGLE, 503), (NOBODY, 503):
        async with client.get("/v1/x", headers=headers) as response:
            assert (response.status, response.headers["Retry-After"]) == (status, "3")
            assert message_of(error_in(await response.read())) == "busy"
