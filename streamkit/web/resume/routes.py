"""``GET`` and ``DELETE`` of a stream, which resume and stop it, and the requests that look up or name a response by its id.

A client gets 200 and the rest of the stream; 204 if it has all of a complete response, and after a stop; 404 for a response
that does not exist, exists no longer, or belongs to another key; 400 for an invalid cursor; 503 if the store can't be read. A
request that names a response never asks a model.

In dialects whose clients know ids, a response can be looked up, resumed, cancelled, deleted, and referred to. A background
response is read from its log. It is in progress until the log has ended; the log's last bytes then have the final status.
Other responses are found if the application keeps them (``Resuming.state``): each with the whole conversation before it, so
one look-up completes the next request that refers to it, whichever upstream is asked. A response is kept before the client
reads its end, because the client may send the next request at once.

Source: resume.md §4.6, §5, §13.2; dialects.md §2.3; ui-protocols.md §4.1; R6, R10, R15, R16, R24, R27.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import web
from attrs import define, field, frozen

from streamkit.conversation.messages import Request
from streamkit.dialects.http import STATE_SETTING, AnswerWriter, KeptAnswer, StoredForm, StoredRequest
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.limits import MIB
from streamkit.resume import BadCursor, Cursor, LogGone, StoreDown, cursor_in, offset_in, owner_of
from streamkit.resume.log import checked_id
from streamkit.web.budget import Hold
from streamkit.web.client_dialect import expected, in_dialect
from streamkit.web.heavy import in_thread, is_heavy
from streamkit.web.refusals import Refused, bad_request
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, Reply
from streamkit.web.resume.following import LAST_EVENT_ID, Following, resumed
from streamkit.web.resume.settings import RESUMING, Resuming, State, opened, refusing, stored_name
from streamkit.web.surfaces import RECALL, Stored, misspelt, surfaces

ID_PATTERN: Final = "/{stream_id}"  #: the router's pattern for a stream's id, which is added to the path of streams
_NOTHING: Final = b""  #: the value that is stored in place of a deleted value


@frozen
class States:
    """The kept responses of the client with this key."""

    resuming: Resuming
    state: State
    key: str

    async def load(self, name: str) -> bytes:
        """Return the value of ``response ID``, or of ``item ID``. Raises LogGone and StoreDown."""
        data = await self.resuming.store.load(stored_name("state", self.key, name))
        if not data:
            raise LogGone
        return data

    async def keep(self, answer_id: str, kept: KeptAnswer) -> None:
        """Keep a response and its items, unless it is too large. If the store fails, count that."""
        if len(kept.value) > self.state.response_bytes:
            self.resuming.counts.not_resumable["too_long"] += 1
            return
        try:
            await self._save(f"response {answer_id}", kept.value)
            for item_id, text in kept.items.items():
                await self._save(f"item {item_id}", text)
        except StoreDown:
            self.resuming.counts.not_resumable["down"] += 1

    async def forget(self, form: StoredForm, answer_id: str) -> None:
        """Delete a response and its items. Raises LogGone and StoreDown."""
        value = await self.load(f"response {answer_id}")
        for name in (f"response {answer_id}", *(f"item {item_id}" for item_id in form.ids_in(value))):
            await self._save(name, _NOTHING)

    async def _save(self, name: str, data: bytes) -> None:
        await self.resuming.store.save(stored_name("state", self.key, name), data, ttl_s=self.state.ttl_s)


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
        stored = await in_thread(partial(form.request, body)) if is_heavy(len(body), 0) else form.request(body)
        if any(each.of_conversation for each in asked.unreadable) and (stored.previous_id or stored.item_ids):
            with refusing(self.resuming):
                body = await self._resolved(stored, states, _Growth(len(body), request.client_max_size, hold))
        kept = stored.input if stored.is_kept else b""
        return Stored(body=body, previous_id=stored.previous_id, input=kept, is_kept=stored.is_kept)

    async def answer(self, request: web.Request, answer_id: str) -> bytes | None:
        states = states_of(request, self.resuming)
        with refusing(self.resuming), suppress(LogGone):
            return None if states is None else await states.load(f"response {answer_id}")
        return None

    async def _resolved(self, stored: StoredRequest, states: States, growth: _Growth) -> bytes:
        """Return the body without references to earlier responses. Raises Refused and StoreDown."""
        place, named = "", Counter(stored.item_ids.values())
        items: dict[str, bytes] = {}
        try:
            previous = await states.load(f"response {stored.previous_id}") if stored.previous_id else _NOTHING
            growth.add(previous)
            for at, item_id in stored.item_ids.items():
                if item_id not in items:
                    place = at
                    items[item_id] = await states.load(f"item {item_id}")
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
            message = (
                f"the request and the responses that it refers to exceed {self.most_bytes:,} bytes together; send less"
            )
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


# -- responses by id ---------------------------------------------------------------------------------------------------------


#: Seconds for reading the bytes that a log has now. A log in this process's memory returns them all at once.
READ_S: Final = 0.25
#: The lowest speed at which a store reads a long log, in bytes per second; no model writes as fast.
STORED_BYTES_PER_S: Final = MIB
CANCEL_S: Final = 5.0  #: seconds that a client that cancels waits for the response's end


@frozen
class StoredAnswers:
    """The handlers for responses of one dialect's clients."""

    resuming: Resuming
    form: StoredForm
    delivery: Callable[[web.Request], Delivery]
    observe: Callable[[web.Request, Reply], None] = field(repr=False)

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        try:
            is_stream, number = self.form.stream_asked(request.query)
        except BadRequest as error:
            self.resuming.counts.resumes["bad_cursor"] += 1
            raise Refused(bad_request(error)) from error
        if is_stream:
            return await self._read_on(request, answer_id, number)
        with refusing(self.resuming):
            found = await self._answer(request, answer_id, READ_S)
        self.resuming.counts.resumes["looked_up"] += 1
        return _json_response(found)

    async def input_items(self, request: web.Request) -> web.StreamResponse:
        if self.resuming.state is None:
            raise Refused(ProviderFailed("not_found", f"this server keeps no input of responses, {STATE_SETTING}"))
        with refusing(self.resuming):
            value = await self._value(request, checked_id(request.match_info["stream_id"]))
        listed = partial(self.form.input_items, value, request.query)
        try:
            page = await in_thread(listed) if is_heavy(len(value), 0) else listed()
        except BadRequest as error:
            raise Refused(bad_request(error)) from error
        self.resuming.counts.resumes["looked_up"] += 1
        return _json_response(page)

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        with refusing(self.resuming):
            try:
                await self.resuming.store.stop(answer_id, self._owner(request, answer_id))
            except LogGone:
                await self._kept(request, answer_id)
                raise Refused(self.form.not_background) from None
            found = await self._answer(request, answer_id, CANCEL_S)
        self.resuming.counts.resumes["stopped"] += 1
        return _json_response(found)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        states = states_of(request, self.resuming)
        deleted = 0
        with refusing(self.resuming):
            with suppress(LogGone):
                await self.resuming.store.delete(answer_id, self._owner(request, answer_id))
                deleted += 1
            with suppress(LogGone):
                if states is not None:
                    await states.forget(self.form, answer_id)
                    deleted += 1
            if not deleted:
                raise LogGone
        return web.json_response(self.form.deleted(answer_id))

    def _owner(self, request: web.Request, answer_id: str) -> str:
        return owner_of(self.resuming.key(request), checked_id(answer_id))

    async def _kept(self, request: web.Request, answer_id: str) -> bytes:
        """Return a response that is kept for requests that refer to it. Raises LogGone and StoreDown."""
        return self.form.answer_in(await self._value(request, answer_id))

    async def _value(self, request: web.Request, answer_id: str) -> bytes:
        """Return what is kept of a response (``KeptAnswer.value``). Raises LogGone and StoreDown."""
        states = states_of(request, self.resuming)
        if states is None:
            raise LogGone
        return await states.load(f"response {answer_id}")

    async def _answer(self, request: web.Request, answer_id: str, within_s: float) -> bytes:
        """Return a response when it is complete, or after ``within_s`` seconds (more for a long log). Raises LogError."""
        try:
            reading = await self.resuming.store.open(answer_id, self._owner(request, answer_id))
        except LogGone:
            return await self._kept(request, answer_id)
        written = bytearray()
        until = asyncio.get_running_loop().time() + within_s
        try:
            while True:
                async with asyncio.timeout_at(until + len(written) / STORED_BYTES_PER_S):
                    written += await anext(reading)
        except (StopAsyncIteration, TimeoutError):
            begun = self.form.queued(answer_id, int(reading.meta.created), reading.meta.model, {})
            found = partial(self.form.answer, bytes(written), reading.ended or "", begun)
            return await in_thread(found) if is_heavy(len(written), 0) else found()
        finally:
            await reading.aclose()

    async def _read_on(self, request: web.Request, answer_id: str, number: int) -> web.StreamResponse:
        """Send the events of a response after event ``number``. Raises Refused."""
        log, reading = await opened(request, self.resuming, answer_id)
        following = Following(log, 0, reading, has_ids=False, behind=self.form.behind(answer_id, number))
        response, reply = await following.answer(request, self.resuming, delivery=self.delivery(request))
        self.observe(request, reply)
        return response


def _json_response(answer: bytes) -> web.Response:
    return web.Response(body=answer, content_type="application/json", headers={"Cache-Control": "no-store"})


def _cursor_of(request: web.Request, log_id: str) -> tuple[Cursor, bool]:
    """Return where a ``GET`` of a stream wants to begin, and whether the client sent this place. Raises LogError."""
    checked_id(log_id)
    text = request.headers.get(LAST_EVENT_ID, "")
    if text:
        cursor = cursor_in(text)
        if cursor.log_id != log_id:
            raise BadCursor("Last-Event-ID is the id of an event of another stream")
        return cursor, True
    after = request.query.get("after")
    return Cursor(log_id, 0 if after is None else offset_in(after)), after is not None


def add_resuming(
    app: web.Application,
    resuming: Resuming,
    *,
    delivery: Delivery | Callable[[web.Request], Delivery] = DEFAULT_DELIVERY,
    observe: Callable[[web.Request, Reply], None] = lambda _request, _reply: None,
    prefix: str = "",
    misspelt_too: bool = False,
) -> None:
    """Keep the responses of ``relay`` and ``setup`` in ``app`` as ``resuming`` says, and serve their rest at its path.

    If clients of a dialect look up responses by id (``GET /v1/responses/{id}``), this is served too, after the ``prefix`` of
    ``setup``; ``misspelt_too``: also at paths with a missing or doubled version. The store is closed with the application.
    ``delivery`` may be a function of the request. ``observe`` is called after each response that was resumed. Raises
    ValueError for a path that aiohttp does not accept.
    """
    app[RESUMING] = resuming
    delivery_of = (lambda _request: delivery) if isinstance(delivery, Delivery) else delivery

    async def read_on(request: web.Request) -> web.StreamResponse:
        with refusing(resuming):
            cursor, is_sent = _cursor_of(request, request.match_info["stream_id"])
        response, reply = await resumed(request, resuming, cursor, is_sent=is_sent, delivery=delivery_of(request))
        if reply is not None:
            observe(request, reply)
        return response

    async def stopped(request: web.Request) -> web.StreamResponse:
        log_id = request.match_info["stream_id"]
        with refusing(resuming):
            await resuming.store.stop(log_id, owner_of(resuming.key(request), checked_id(log_id)))
        resuming.counts.resumes["stopped"] += 1
        return web.Response(status=204)  # even if the response is over already

    async def started(_app: web.Application) -> None:
        await resuming.store.start()

    async def closed(_app: web.Application) -> None:
        await resuming.store.close()

    app.router.add_get(resuming.path + ID_PATTERN, in_dialect(read_on), allow_head=False, expect_handler=expected)
    app.router.add_delete(resuming.path + ID_PATTERN, in_dialect(stopped), expect_handler=expected)
    app.on_startup.append(started)
    app.on_cleanup.append(closed)
    app[RECALL] = Recalling(resuming)
    for surface in surfaces().values():
        form = surface.stored
        if form is None:
            continue
        answers = StoredAnswers(resuming, form, delivery_of, observe)
        for path in (form.path, *(misspelt(form.path) if misspelt_too else ())):
            at = f"{prefix}{path}/{{stream_id:{form.prefix}[^/]+}}"
            app.router.add_get(at, in_dialect(answers.retrieve), allow_head=False, expect_handler=expected)
            app.router.add_get(
                f"{at}/input_items", in_dialect(answers.input_items), allow_head=False, expect_handler=expected
            )
            app.router.add_post(f"{at}/cancel", in_dialect(answers.cancel), expect_handler=expected)
            app.router.add_delete(at, in_dialect(answers.delete), expect_handler=expected)
