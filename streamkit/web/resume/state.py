"""Responses that later requests lean on: what is kept of an answer, and requests that are made whole from it.

A response is kept with all that was said before it, so that one look-up makes the next request whole, whichever upstream is
asked. It is kept before the client reads its end, which may ask on at once. Names in the store come from the key with which
the answer was asked for: another key's are never found.

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

#: What stands in the place of a value that is forgotten.
_NOTHING: Final = b""


@frozen
class States:
    """What is kept for the client that shows this key."""

    resuming: Resuming
    state: State
    key: str

    async def answer(self, answer_id: str) -> bytes:
        """The value of a response. Raises LogGone and StoreDown."""
        return await self._load(f"response {answer_id}")

    async def item(self, item_id: str) -> bytes:
        """An item of a response. Raises LogGone and StoreDown."""
        return await self._load(f"item {item_id}")

    async def keep(self, answer_id: str, kept: KeptAnswer) -> None:
        """Keep a response and its items, unless it is too large. That the store can't is counted."""
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
        """Raises LogGone and StoreDown."""
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
        """The name in the store, which says nothing of the key or the id, and which no other key leads to."""
        return f"state_{hmac.new(self.key.encode(), name.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


def states_of(request: web.Request, resuming: Resuming) -> States | None:
    """What is kept for whoever asks; None: nothing is."""
    return None if resuming.state is None else States(resuming, resuming.state, resuming.key(request))


@frozen
class Recalling:
    """The application's ``Recall``."""

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
        """The body that leans on nothing. Raises Refused and StoreDown."""
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
    """The size of a request with all items that it names, each as often as it is named: at most that of a body."""

    size_bytes: int
    most_bytes: int  #: 0: no bound
    hold: Hold

    def add(self, kept: bytes, times: int = 1) -> None:
        """Ask for room before anything is written: in the body, and in the input that is kept with the answer."""
        self.size_bytes += times * len(kept)
        if self.size_bytes > self.most_bytes > 0:
            message = f"with all that it names, the request is larger than the {self.most_bytes:,} bytes that are read"
            raise Refused(ProviderFailed("too_large", message))
        self.hold.add(2 * times * len(kept))


class Shaping:
    """An answer on its way to the client, as a ``Shape``: with an id of ours, and kept if its request wants that."""

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
