"""Models and counts through each official client, and what a client is told that asks for what there is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

import orjson
import pytest

from streamkit.translation.bodies import decode_request
from tests.gateway.clients.in_thread import NO_TOOLS, UPSTREAMS, GatewayThread, listed
from tests.gateway.clients.judging import Clients
from tests.web.faults import answer

NAMES: Final = [listed(name) for name in (*UPSTREAMS, NO_TOOLS)]
TOKENS: Final = 42
#: Of the upstreams that count: the member of their answer, and the members that lead to the request in what they are asked.
COUNTING: Final = {
    "openai-responses": ("input_tokens", ()),
    "anthropic": ("input_tokens", ()),
    "bedrock": ("inputTokens", ("input", "converse")),
    "gemini": ("totalTokens", ("generateContentRequest",)),
}
#: By package: the names of a list, and the name of one.
LISTS: Final[dict[str, Callable[[Any], list[str]]]] = {
    "openai": lambda client: [model.id for model in client.models.list()],
    "anthropic": lambda client: [model.id for model in client.models.list()],
    "google.genai": lambda client: [model.name.removeprefix("models/") for model in client.models.list()],
    "ollama": lambda client: [model.model for model in client.list().models],
}
ONE: Final[dict[str, Callable[[Any, str], str]]] = {
    "openai": lambda client, name: client.models.retrieve(name).id,
    "anthropic": lambda client, name: client.models.retrieve(name).id,
    "google.genai": lambda client, name: client.models.get(model=name).name.removeprefix("models/"),
}


@pytest.mark.parametrize("package", LISTS)
def test_models_are_listed(package: str, client: Clients):
    assert LISTS[package](client(package)) == NAMES


@pytest.mark.parametrize("package", ONE)
def test_a_model_is_looked_up(package: str, client: Clients):
    assert [ONE[package](client(package), name) for name in NAMES] == NAMES


def test_ollama_shows_which_models_take_tools(client: Clients):
    found = {name: client("ollama").show(name).capabilities for name in NAMES}
    assert [name for name, able in found.items() if "tools" not in able] == [listed(NO_TOOLS)]


# -- counts ------------------------------------------------------------------------------------------------------------


def by_anthropic(client: Any, model: str) -> int:
    messages = [{"role": "user", "content": "How many?"}]
    return client.messages.count_tokens(model=model, messages=messages, system="Count.").input_tokens


def by_gemini(client: Any, model: str) -> int:
    return client.models.count_tokens(model=model, contents="How many?").total_tokens


COUNTS: Final = {"anthropic": by_anthropic, "google.genai": by_gemini}


@pytest.mark.parametrize("package", COUNTS)
@pytest.mark.parametrize("upstream", COUNTING)
def test_tokens_are_counted_by_the_upstream(upstream: str, package: str, served: GatewayThread, client: Clients):
    member, path = COUNTING[upstream]
    model = served.register(upstream, answer(200, orjson.dumps({member: TOKENS})))
    assert COUNTS[package](client(package), model) == TOKENS
    (asked,) = served.asked(model)
    request = reduce(lambda value, name: value[name], path, orjson.loads(asked.body))
    turns = decode_request(orjson.dumps(request), upstream).turns
    assert [part.text for turn in turns if turn.role == "user" for part in turn.parts] == ["How many?"]


@pytest.mark.parametrize("upstream", [name for name in UPSTREAMS if name not in COUNTING])
def test_what_nobody_counts_is_estimated(upstream: str, served: GatewayThread, client: Clients):
    for package, count in COUNTS.items():
        tokens = count(client(package), listed(upstream))
        assert tokens != TOKENS
        assert 0 < tokens < 50


def test_openais_own_count_is_served(served: GatewayThread, client: Clients):
    counted = client("openai").responses.input_tokens.count(model=listed("openai-chat"), input="How many?")
    assert counted.object == "response.input_tokens"
    assert 0 < counted.input_tokens < 50
