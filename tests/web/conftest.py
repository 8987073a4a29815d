"""What tests of the web layer share: virtual time by a marker, a check for leaks, nginx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from tests.web.leaks import in_use
from tests.web.nginx import find_nginx
from tests.web.virtual_time import VirtualLoop


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: the loop's clock jumps to the next timer")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("virtual_time") is not None:
        return {"virtual": VirtualLoop}
    return {"real": asyncio.new_event_loop}


@pytest.fixture
async def no_leaks() -> AsyncIterator[None]:
    """After the test nothing is in use that was not before. For ``usefixtures``."""
    before = await in_use()
    yield
    left = await in_use() - before
    assert not left, f"the test left {sorted(left)}"


@pytest.fixture(scope="session")
def nginx_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return find_nginx(tmp_path_factory.mktemp("nginx"))
