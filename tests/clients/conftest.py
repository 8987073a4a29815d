"""The server and the official clients, started once; recordings and what the recipes make of them, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
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


def cohere_client(cohere: Any, url: str) -> Any:
    from httpx import Client  # noqa: PLC0415 - it comes with the client

    return cohere.ClientV2(base_url=url, api_key="none", httpx_client=Client(trust_env=False))


@contextmanager
def mistral_client(mistral: Any, url: str) -> Iterator[Any]:
    """It does not close a transport that it was given."""
    from httpx2 import Client  # noqa: PLC0415 - it comes with the client

    with Client(trust_env=False) as transport:
        yield mistral.Mistral(server_url=f"{url}/mistral", api_key="none", client=transport)


def bedrock_client(boto3: Any, url: str) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - it comes with the client

    config = Config(proxies={}, retries={"max_attempts": 0})
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    return closing(boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, config=config, **keys))


def gemini_client(genai: Any, url: str) -> Any:
    options = genai.types.HttpOptions(base_url=url, client_args={"trust_env": False})
    return closing(genai.Client(api_key="none", http_options=options))


def interactions_client(_interactions: Any, url: str) -> Any:
    from google import genai  # noqa: PLC0415 - it may be missing

    once = genai.types.HttpRetryOptions(attempts=1)
    options = genai.types.HttpOptions(base_url=url, client_args={"trust_env": False}, retry_options=once)
    return closing(genai.Client(api_key="none", http_options=options))


CLIENTS: dict[str, Callable[[Any, str], Any]] = {
    "openai": openai_client,
    "anthropic": anthropic_client,
    "ollama": ollama_client,
    "cohere": cohere_client,
    "mistralai.client": mistral_client,
    "boto3": bedrock_client,
    "google.genai": gemini_client,
    "google.genai.interactions": interactions_client,
}
