"""Responses in the background whose process died, in a store of several nodes, judged by openai-python.

Source: resume.md R6, R27.
"""

from __future__ import annotations

import pytest

from streamkit.resume import LogLimits, Meta, owner_of
from streamkit.resume.memory import new_boot
from streamkit.resume.redis_client import Append, creation
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.web.faults import good, speech
from tests.web.resume.test_background import OWN, fails_above, served

LEASE_S = 0.4


@pytest.mark.parametrize(
    "count", [1, pytest.param(0, marks=pytest.mark.exhaustive), pytest.param(7, marks=pytest.mark.exhaustive)]
)
async def test_a_response_whose_process_died_fails_above_every_cursor(server, count):
    store = RedisStore(server.url, LogLimits(), RedisSettings(lease_s=LEASE_S))
    async with served(good(OWN), store=store) as (client, _, _evil):
        await store.start()
        response_id, dead = store.new_id("resp_"), new_boot()
        key = store._keys.log(response_id)
        meta = Meta(dialect=OWN, owner=owner_of("Bearer k", response_id), background=True)
        await store.calls.call(*creation(key, meta, dead))
        if said := b"".join(speech(OWN)[:count]).replace(b'"evil-7"', f'"{response_id}"'.encode()):
            await store.calls.call(*Append(begin=0, data=said).command(key))
        for after in {0, max(count - 1, 0)}:  # the first one finds out, and ends it for the next
            await fails_above(client, response_id, after)
        assert (await client.responses.retrieve(response_id)).status == "failed"
