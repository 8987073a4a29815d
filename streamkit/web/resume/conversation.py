"""The answer of a conversation, for clients that come back with the conversation's name and without a cursor.

A name is the client's own word, so it belongs to the key that ``Resuming.key`` reads from its request: the same name of
another key is another conversation. Which log is the newest of a conversation stands in the store, for any worker and node. A
new message supersedes the answer before: that one is stopped, and nobody is led to it any more. Nor is anybody to an answer
that a client got to its end: a page that shows it would show it twice.

Source: resume.md §2, §5; ui-protocols.md §1.8.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

from streamkit.resume import LogGone, Store, StoreDown, owner_of
from streamkit.web.resume.settings import Resuming

#: A value is kept as long as a log that ended; so often it is written again, for answers that take longer than that.
REFRESH_S: Final = 60.0
#: What stands in the place of an answer to which nobody is led any more.
_NONE: Final = b""


class Conversation:
    """The conversation that the client of ``request`` calls ``name``, among those of one ``place``."""

    def __init__(self, request: web.Request, resuming: Resuming, place: str, name: str) -> None:
        key = resuming.key(request)
        digest = hmac.new(key.encode(), f"{len(place)} {place}{name}".encode(), hashlib.sha256).hexdigest()
        self._resuming = resuming
        self._key = key
        self._name = f"conversation_{digest}"

    @property
    def _store(self) -> Store:
        return self._resuming.store

    @property
    def _owner(self) -> str:
        return owner_of(self._key, self._name)

    async def log_id(self) -> str | None:
        """The newest answer's, which may be gone; None: there is none to go on with. Raises StoreDown."""
        with suppress(LogGone):
            return (await self._store.load(self._name, self._owner)).decode() or None
        return None

    async def stop(self) -> None:
        """End the answer that is under way, if there is one, and have none to go on with. Raises StoreDown."""
        await self._replace(_NONE)

    @asynccontextmanager
    async def answered_by(self, log_id: str) -> AsyncGenerator[None, None]:
        """Lead whoever comes back to this log from now on, without making the answer wait for the store."""
        leading, staying = asyncio.create_task(self._lead(log_id)), asyncio.create_task(self._stay(log_id))
        try:
            yield
        finally:
            staying.cancel()
            await asyncio.wait({leading, staying})

    async def delivered(self, log_id: str) -> None:
        """A client has all of this answer, so there is nothing to go on with."""
        with suppress(StoreDown):  # one that comes back gets it once more
            if await self.log_id() == log_id:
                await self._save(_NONE)

    async def _lead(self, log_id: str) -> None:
        try:
            await self._replace(log_id.encode())
        except StoreDown:
            self._resuming.counts.unkept("down")

    async def _stay(self, log_id: str) -> None:
        """Keep the value while the answer is under way, unless another message came, or a stop."""
        while True:
            await asyncio.sleep(REFRESH_S)
            with suppress(StoreDown):  # it is tried again, and the value is kept for longer than that
                if await self.log_id() != log_id:
                    return
                await self._save(log_id.encode())

    async def _replace(self, data: bytes) -> None:
        """Stop the answer before, with this in its place. Raises StoreDown."""
        former = await self.log_id()
        if former is not None or data:
            await self._save(data)
        if former is not None:
            with suppress(LogGone):
                await self._store.stop(former, owner_of(self._key, former))

    async def _save(self, data: bytes) -> None:
        await self._store.save(self._name, data, self._owner)
