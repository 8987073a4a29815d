"""Responses by id, in dialects whose clients know ids: look one up, resume its stream, cancel it, delete it.

A background response is read from its log. It is in progress until the log has ended; the log's last bytes then have the final
status. Other responses are found if the application keeps them (``Resuming.state``). A response that does not exist, exists no
longer, or belongs to another key is a 404 in the dialect.

Source: resume.md §4.6, §5, §5.4; R6, R10, R16, R27.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import web
from attrs import field, frozen

from streamkit.dialects.http import StoredForm
from streamkit.errors import BadRequest
from streamkit.limits import MIB
from streamkit.resume import LogError, LogGone, owner_of
from streamkit.resume.identity import checked_id
from streamkit.web.client_dialect import expected, in_dialect
from streamkit.web.heavy import beside, is_heavy
from streamkit.web.refusals import Refused, bad_request
from streamkit.web.reply import Delivery, Reply
from streamkit.web.resume.following import Following, follow
from streamkit.web.resume.look_up import opened, refusal
from streamkit.web.resume.settings import Resuming
from streamkit.web.resume.state import Recalling, states_of
from streamkit.web.surfaces import RECALL, misspelt, surfaces

#: Seconds for reading the bytes that a log has now. A log in this process's memory returns them all at once.
READ_S: Final = 0.25
#: The lowest speed at which a store reads a long log, in bytes per second; no model writes as fast.
STORED_BYTES_PER_S: Final = MIB
#: Seconds that a client that cancels waits for the response's end.
CANCEL_S: Final = 5.0


@frozen
class StoredAnswers:
    """The handlers for responses of one dialect's clients."""

    resuming: Resuming
    form: StoredForm
    delivery: Delivery
    observe: Callable[[web.Request, Reply], None] = field(repr=False)

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        try:
            is_stream, number = self.form.stream_asked(request.query)
        except BadRequest as error:
            self.resuming.counts.resumed("bad_cursor")
            raise Refused(bad_request(error)) from error
        if is_stream:
            return await self._read_on(request, answer_id, number)
        try:
            found = await self._answer(request, answer_id, READ_S)
        except LogError as error:
            raise refusal(self.resuming, error) from error
        self.resuming.counts.resumed("looked_up")
        return _json_response(found)

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        try:
            try:
                await self.resuming.store.stop(answer_id, self._owner(request, answer_id))
            except LogGone:
                await self._kept(request, answer_id)
                raise Refused(self.form.not_background) from None
            found = await self._answer(request, answer_id, CANCEL_S)
        except LogError as error:
            raise refusal(self.resuming, error) from error
        self.resuming.counts.resumed("stopped")
        return _json_response(found)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        answer_id = request.match_info["stream_id"]
        states = states_of(request, self.resuming)
        deleted = 0
        try:
            with suppress(LogGone):
                await self.resuming.store.delete(answer_id, self._owner(request, answer_id))
                deleted += 1
            with suppress(LogGone):
                if states is not None:
                    await states.forget(self.form, answer_id)
                    deleted += 1
            if not deleted:
                raise LogGone
        except LogError as error:
            raise refusal(self.resuming, error) from error
        return web.json_response(self.form.deleted(answer_id))

    def _owner(self, request: web.Request, answer_id: str) -> str:
        return owner_of(self.resuming.key(request), checked_id(answer_id))

    async def _kept(self, request: web.Request, answer_id: str) -> bytes:
        """Return a response that is kept for requests that refer to it. Raises LogGone and StoreDown."""
        states = states_of(request, self.resuming)
        if states is None:
            raise LogGone
        return self.form.answer_in(await states.answer(answer_id))

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
            return await beside(found) if is_heavy(len(written), 0) else found()
        finally:
            await reading.aclose()

    async def _read_on(self, request: web.Request, answer_id: str, number: int) -> web.StreamResponse:
        """Send the events of a response after event ``number``. Raises Refused."""
        reading, owner = await opened(request, self.resuming, answer_id, 0)
        following = Following(
            self.resuming.store, answer_id, owner, 0, reading, has_ids=False, behind=self.form.behind(answer_id, number)
        )
        try:
            response, reply = await follow(request, following, reading, delivery=self.delivery, has_ids=False)
        finally:
            await reading.aclose()
        self.resuming.counts.resumed("broken" if following.is_broken else "resumed")
        self.observe(request, reply)
        return response


def _json_response(answer: bytes) -> web.Response:
    return web.Response(body=answer, content_type="application/json", headers={"Cache-Control": "no-store"})


def add_stored(
    app: web.Application,
    resuming: Resuming,
    *,
    delivery: Delivery,
    observe: Callable[[web.Request, Reply], None],
    prefix: str,
    misspelt_too: bool,
) -> None:
    """Serve the responses of each dialect whose clients look them up by id; see ``add_resuming``."""
    app[RECALL] = Recalling(resuming)
    for surface in surfaces().values():
        form = surface.stored
        if form is None:
            continue
        answers = StoredAnswers(resuming, form, delivery, observe)
        for path in (form.path, *(misspelt(form.path) if misspelt_too else ())):
            at = f"{prefix}{path}/{{stream_id:{form.prefix}[^/]+}}"
            app.router.add_get(at, in_dialect(answers.retrieve), allow_head=False, expect_handler=expected)
            app.router.add_post(f"{at}/cancel", in_dialect(answers.cancel), expect_handler=expected)
            app.router.add_delete(at, in_dialect(answers.delete), expect_handler=expected)
