"""The server and the official clients, started once; recordings and what the recipes make of them, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clients.replay import ReplayServer

WHY = "the official clients judge the output: install streamkit-llm[clients]"


@pytest.fixture(scope="session")
def replay() -> Iterator[ReplayServer]:
    with ReplayServer() as server:
        yield server


@pytest.fixture(scope="session")
def client(replay: ReplayServer) -> Iterator[Callable[[str], Any]]:
    """``client(package)``: that package's synchronous client, without proxies and without retries."""
    made: dict[str, Any] = {}

    with ExitStack() as stack:

        def get(package: str) -> Any:
            module = pytest.importorskip(package, reason=WHY)
            if package not in made:
                made[package] = stack.enter_context(CLIENTS[package](module, replay.url))
            return made[package]

        yield get


def openai_client(openai: Any, url: str) -> Any:
    transport = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=transport)


def anthropic_client(anthropic: Any, url: str) -> Any:
    transport = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, http_client=transport)


def ollama_client(ollama: Any, url: str) -> Any:
    return ollama.Client(host=url, trust_env=False)


CLIENTS: dict[str, Callable[[Any, str], Any]] = {
    "openai": openai_client,
    "anthropic": anthropic_client,
    "ollama": ollama_client,
}
