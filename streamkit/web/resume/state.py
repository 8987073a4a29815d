"""Responses that later requests refer to: keep them, and complete requests from them.

A response is kept with the whole conversation before it, so one look-up completes the next request, whichever upstream is
asked. It is kept before the client reads its end, because the client may send the next request at once. Names in the store are
derived from the key in the request, so another key never finds them.

Source: resume.md §13.2; dialects.md §2.3; ui-protocols.md §4.1.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from functools import partial
from typing import Final

from aiohttp import web
from attrs import define, frozen

from streamkit.conversation.messages import Request
from streamkit.dialects.http import AnswerWriter, KeptAnswer, StoredForm, StoredRequest
from streamkit.events import ProviderFailed
from streamkit.resume import LogGone, StoreDown
from streamkit.resume.log import LogError
from streamkit.web.budget import Hold
from streamkit.web.heavy import beside, is_heavy
from streamkit.web.refusals import Refused
from streamkit.web.resume.look_up import refusal
from streamkit.web.resume.settings import Resuming, State
from streamkit.web.surfaces import Stored

#: The value that is stored in place of a deleted value.
_NOTHING: Final = b""


@frozen
class States:
    """The kept responses of the client with this key."""

    resuming: Resuming
    state: State
    key: str

    async def answer(self, answer_id: str) -> bytes:
        """Return the value of a response. Raises LogGone and StoreDown."""
        return await self._load(f"response {answer_id}")

    async def item(self, item_id: str) -> bytes:
        """Return an item of a response. Raises LogGone and StoreDown."""
        return await self._load(f"item {item_id}")

    async def keep(self, answer_id: str, kept: KeptAnswer) -> None:
        """Keep a response and its items, unless it is too large. If the store fails, count that."""
        if len(kept.value) > self.state.response_bytes:
            self.resuming.counts.unkept("too_long")
            return
        try:
            await self._save(f"response {answer_id}", kept.value)
            for item_id, text in kept.items.items():
                await self._save(f"item {item_id}", text)
        except StoreDown:
            self.resuming.counts.unkept("down")

    async def forget(self, form: StoredForm, answer_id: str) -> None:
        """Delete a response and its items. Raises LogGone and StoreDown."""
        value = await self.answer(answer_id)
        for name in (f"response {answer_id}", *(f"item {item_id}" for item_id in form.ids_in(value))):
            await self._save(name, _NOTHING)

    async def _save(self, name: str, data: bytes) -> None:
        await self.resuming.store.save(self._hidden(name), data, ttl_s=self.state.ttl_s)

    async def _load(self, name: str) -> bytes:
        data = await self.resuming.store.load(self._hidden(name))
        if not data:
            raise LogGone
        return data

    def _hidden(self, name: str) -> str:
        """Return the name in the store. It reveals neither key nor id, and other keys give other names."""
        return f"state_{hmac.new(self.key.encode(), name.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


def states_of(request: web.Request, resuming: Resuming) -> States | None:
    """Return the kept responses of the request's client; None: the application keeps none."""
    return None if resuming.state is None else States(resuming, resuming.state, resuming.key(request))


@frozen
class Recalling:
    """Implements ``Recall`` with the store of ``resuming``."""

    resuming: Resuming

    async def whole(
        self, request: web.Request, form: StoredForm, asked: Request, body: bytes, hold: Hold
    ) -> Stored | None:
        states = states_of(request, self.resuming)
        if states is None:
            return None
        stored = await beside(partial(form.request, body)) if is_heavy(len(body), 0) else form.request(body)
        if asked.stored and (stored.previous_id or stored.item_ids):
            try:
                body = await self._resolved(stored, states, _Growth(len(body), request.client_max_size, hold))
            except LogError as error:
                raise refusal(self.resuming, error) from error
        kept = stored.input if stored.is_kept else b""
        return Stored(body=body, previous_id=stored.previous_id, input=kept, is_kept=stored.is_kept)

    async def answer(self, request: web.Request, answer_id: str) -> bytes | None:
        states = states_of(request, self.resuming)
        try:
            return None if states is None else await states.answer(answer_id)
        except LogGone:
            return None
        except LogError as error:
            raise refusal(self.resuming, error) from error

    async def _resolved(self, stored: StoredRequest, states: States, growth: _Growth) -> bytes:
        """Return the body without references to earlier responses. Raises Refused and StoreDown."""
        place, named = "", Counter(stored.item_ids.values())
        items: dict[str, bytes] = {}
        try:
            previous = await states.answer(stored.previous_id) if stored.previous_id else _NOTHING
            growth.add(previous)
            for at, item_id in stored.item_ids.items():
                if item_id not in items:
                    place = at
                    items[item_id] = await states.item(item_id)
                    growth.add(items[item_id], named[item_id])
        except LogGone as error:
            raise Refused(stored.unknown(place)) from error
        return stored.resolved(previous, items)


@define
class _Growth:
    """The size of a request with all items that it refers to, at most the limit of a body.

    An item counts as often as the request refers to it.
    """

    size_bytes: int
    most_bytes: int  #: 0: no limit
    hold: Hold

    def add(self, kept: bytes, times: int = 1) -> None:
        """Reserve room before anything is copied: into the body, and into the input that is kept with the response."""
        self.size_bytes += times * len(kept)
        if self.size_bytes > self.most_bytes > 0:
            message = f"with all that it names, the request is larger than the {self.most_bytes:,} bytes that are read"
            raise Refused(ProviderFailed("too_large", message))
        self.hold.add(2 * times * len(kept))


class Shaping:
    """A ``Shape`` that puts the gateway's response id into a response, and keeps the response if the request asks for that."""

    def __init__(self, writer: AnswerWriter, answer_id: str, asked: Stored | None, states: States | None) -> None:
        self._writer = writer
        self._id = answer_id
        self._asked = asked if asked is not None and asked.is_kept else None
        self._states = states

    async def stream(self, chunk: bytes, /) -> bytes:
        written = self._writer.feed(chunk)
        await self._keep()
        return written

    async def whole(self, body: bytes, /) -> bytes:
        written = self._writer.whole(body)
        await self._keep()
        return written

    async def _keep(self) -> None:
        if self._asked is None or self._states is None:
            return
        kept = self._writer.kept(self._asked.input)
        if kept is not None:
            self._asked = None
            await self._states.keep(self._id, kept)
