"""One gateway and one upstream for the tests of a module, and the official clients, which know the gateway's key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from tests.gateway.clients.in_thread import CLIENT_KEY, GatewayThread, running
from tests.web import official

#: By the package of a reader, what enters its client.
ENTER: Final = {
    "openai": official.openai,
    "anthropic": official.anthropic,
    "ollama": official.ollama,
    "google.genai": official.gemini,
    "google.genai.interactions": official.interactions,
}


@pytest.fixture(scope="module")
def served() -> Iterator[GatewayThread]:
    with running() as thread:
        yield thread


@pytest.fixture(scope="module")
def client(served: GatewayThread) -> Iterator[Callable[[str], Any]]:
    """``client(package)``: that package's client of the gateway, without proxies and without retries."""
    made: dict[str, Any] = {}
    with ExitStack() as stack:

        def get(package: str) -> Any:
            if package not in made:
                made[package] = stack.enter_context(ENTER[package](served.url, CLIENT_KEY))
            return made[package]

        yield get
