"""The official clients, each entered as a context, without proxies and without retries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

WHY = "the official clients judge the answers: install streamkit-llm[clients]"


@contextmanager
def openai(url: str, key: str = "none") -> Iterator[Any]:
    module = pytest.importorskip("openai", reason=WHY)
    transport = module.DefaultHttpxClient(trust_env=False)
    with module.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=transport) as client:
        yield client


@contextmanager
def anthropic(url: str, key: str = "none") -> Iterator[Any]:
    module = pytest.importorskip("anthropic", reason=WHY)
    transport = module.DefaultHttpxClient(trust_env=False)
    with module.Anthropic(base_url=url, api_key=key, max_retries=0, http_client=transport) as client:
        yield client


@contextmanager
def gemini(url: str, key: str = "none", version: str | None = None) -> Iterator[Any]:
    module = pytest.importorskip("google.genai", reason=WHY)
    options = module.types.HttpOptions(base_url=url, api_version=version, client_args={"trust_env": False})
    with module.Client(api_key=key, http_options=options) as client:
        yield client


@contextmanager
def interactions(url: str, key: str = "none") -> Iterator[Any]:
    module = pytest.importorskip("google.genai", reason=WHY)
    once = module.types.HttpRetryOptions(attempts=1)
    options = module.types.HttpOptions(base_url=url, client_args={"trust_env": False}, retry_options=once)
    with module.Client(api_key=key, http_options=options) as client:
        yield client


@contextmanager
def ollama(url: str, key: str = "none") -> Iterator[Any]:
    module = pytest.importorskip("ollama", reason=WHY)
    with module.Client(host=url, trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:
        yield client
