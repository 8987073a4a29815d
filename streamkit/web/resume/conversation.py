"""The response of a conversation, for clients that resume with the conversation's name and without a cursor.

Clients choose the name, so it belongs to the key that ``Resuming.key`` reads from the request: the same name with another key
is another conversation. The store records which log is the newest one of a conversation, for every worker and node. A new
message replaces the response before it: that response is stopped, and the name no longer leads to it. The name also no longer
leads to a response that a client has received completely, because a page that already shows it would show it twice.

Source: resume.md §2, §5; ui-protocols.md §1.8.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

from streamkit.resume import LogGone, StoreDown, owner_of
from streamkit.web.resume.settings import Resuming, stored_name

#: Seconds after which a value is written again. The store keeps a value as long as an ended log; a response may take longer.
REFRESH_S: Final = 60.0
_NONE: Final = b""  #: the value of a conversation that has no response to resume


class Conversation:
    """The conversation that the client of ``request`` calls ``name``. ``place`` separates the names of several routes."""

    def __init__(self, request: web.Request, resuming: Resuming, place: str, name: str) -> None:
        self._resuming, self._store = resuming, resuming.store
        self._key = resuming.key(request)
        self._name = stored_name("conversation", self._key, f"{len(place)} {place}{name}")
        self._owner = owner_of(self._key, self._name)

    async def log_id(self) -> str | None:
        """Return the newest response's log id, which may be gone; None: nothing to resume. Raises StoreDown."""
        with suppress(LogGone):
            return (await self._store.load(self._name, self._owner)).decode() or None
        return None

    async def stop(self) -> None:
        """End the response in progress, if any, so that there is nothing to resume. Raises StoreDown."""
        await self._replace(_NONE)

    @asynccontextmanager
    async def answered_by(self, log_id: str) -> AsyncGenerator[None, None]:
        """Make the conversation's name lead to this log from now on. The response does not wait for the store."""
        leading, staying = asyncio.create_task(self._lead(log_id)), asyncio.create_task(self._stay(log_id))
        try:
            yield
        finally:
            staying.cancel()
            await asyncio.wait({leading, staying})

    async def delivered(self, log_id: str) -> None:
        """Note that a client has received all of this response, so there is nothing to resume."""
        with suppress(StoreDown):  # if the store is down, a client that resumes gets the response once more
            if await self.log_id() == log_id:
                await self._save(_NONE)

    async def _lead(self, log_id: str) -> None:
        try:
            await self._replace(log_id.encode())
        except StoreDown:
            self._resuming.counts.not_resumable["down"] += 1

    async def _stay(self, log_id: str) -> None:
        """Keep the value while the response is in progress, unless a new message or a stop has replaced it."""
        while True:
            await asyncio.sleep(REFRESH_S)
            with suppress(StoreDown):  # if the store is down, the next round tries again before the value expires
                if await self.log_id() != log_id:
                    return
                await self._save(log_id.encode())

    async def _replace(self, data: bytes) -> None:
        """Stop the present response and write ``data`` in its place. Raises StoreDown."""
        former = await self.log_id()
        if former is not None or data:
            await self._save(data)
        if former is not None:
            with suppress(LogGone):
                await self._store.stop(former, owner_of(self._key, former))

    async def _save(self, data: bytes) -> None:
        await self._store.save(self._name, data, self._owner)
