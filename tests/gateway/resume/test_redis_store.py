"""The store in Redis keeps what every store keeps, between processes."""

from __future__ import annotations

import pytest

from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.resume.contract import *  # noqa: F403 - the tests are its
from tests.resume.contract import LIMITS, Stores

SETTINGS = RedisSettings(lease_s=0.8, retry_s=5.0)


@pytest.fixture
async def stores(server):
    writes, reads = (RedisStore(server.url, LIMITS, SETTINGS) for _ in range(2))
    await writes.start()
    await reads.start()
    yield Stores(writes, reads)
    await reads.close()
    await writes.close()
