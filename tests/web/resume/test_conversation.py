"""Which answer is the newest of a conversation, and who is led to it."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from streamkit.resume import LogLimits, MemoryStore, Meta, StoreDown, owner_of
from streamkit.web.chat_ui import Conversation
from streamkit.web.resume import Resuming


class DownStore(MemoryStore):
    """A store that can't be reached."""

    async def load(self, name: str, owner: str = "") -> bytes:
        raise StoreDown("no")


def named(resuming: Resuming, *, user: str = "ann", place: str = "/api/chat", name: str = "c") -> Conversation:
    return Conversation(make_mocked_request("GET", "/", headers={"x-user": user}), resuming, place, name)


def keeping(store: MemoryStore) -> Resuming:
    return Resuming(store=store, key=lambda request: request.headers["x-user"])


async def stoppable(store: MemoryStore, stopped: list[str], user: str = "ann") -> str:
    """The id of an answer that is under way."""
    log_id = store.new_id()
    meta = Meta(dialect="ai-sdk", owner=owner_of(user, log_id))
    await store.create(log_id, meta, lambda: stopped.append(log_id))
    return log_id


async def test_another_key_place_or_name_is_another_conversation():
    resuming = keeping(MemoryStore())
    async with named(resuming).answered_by("st_1"):
        pass
    assert await named(resuming).log_id() == "st_1"
    others: list[dict[str, Any]] = [{"user": "bob"}, {"place": "/api/chatc", "name": ""}, {"name": "d"}]
    assert [await named(resuming, **other).log_id() for other in others] == [None] * 3


async def test_a_new_answer_stops_the_one_before_and_a_stop_leaves_none():
    store, stopped = MemoryStore(), []
    resuming = keeping(store)
    first, second = [await stoppable(store, stopped) for _ in range(2)]
    async with named(resuming).answered_by(first), named(resuming).answered_by(second):
        await asyncio.sleep(0)
    assert stopped == [first]
    await named(resuming).stop()
    assert stopped == [first, second]
    assert await named(resuming).log_id() is None


async def test_an_answer_is_found_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_module("streamkit.web.chat_ui"), "REFRESH_S", 0.02)
    resuming = keeping(MemoryStore(LogLimits(ttl_s=0.1)))
    async with named(resuming).answered_by("st_1"):
        await asyncio.sleep(0.2)
        assert await named(resuming).log_id() == "st_1"
        await named(resuming).stop()
        await asyncio.sleep(0.05)
        assert await named(resuming).log_id() is None  # what was stopped is not brought back
    async with named(resuming).answered_by("st_2"):
        pass
    await asyncio.sleep(0.2)
    assert await named(resuming).log_id() is None  # long over


async def test_an_answer_is_given_where_the_store_is_down_and_that_is_counted():
    resuming = keeping(DownStore())
    async with named(resuming).answered_by("st_1"):
        pass
    assert resuming.counts.not_resumable == {"down": 1}
    with pytest.raises(StoreDown):
        await named(resuming).stop()
