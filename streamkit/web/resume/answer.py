"""A response that continues without its client. Its bytes are also written to a log, from which it can be resumed.

The client is written to directly, since reading through the log would cost 7 to 9 µs per event. For a slow client, bytes wait
here, and do not slow the upstream until the log is full. A client that disconnects before the headers has no id to resume
with, so its response ends like any other, unless the client has a name for it. After the headers, the response continues until
it ends, is stopped, or has had no reader for ``unattended_s``. The bytes that state that it is complete are appended to the
log together with its end.

In dialects whose clients look up a response by its id (``Surface.stored``), a response may be in the *background*. A client
that asked for a stream gets it as usual and may disconnect. A client that asked for no stream gets an empty response object at
once, and its connection is closed while the work continues. Such a client has declared that nobody has to wait, so the
response runs to its end. Only the upstream's time-outs limit it, not ``unattended_s``.

Source: resume.md §4.2, §5.3, §5.4, §6, §13.1; R27.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web
from attrs import frozen

from streamkit.dialects import client_named
from streamkit.errors import Stopped, Unattended
from streamkit.events import ProviderFailed
from streamkit.resume import EventIDs, Log, Meta, StoreDown, owner_of
from streamkit.resume.event_ids import without_blank_line
from streamkit.resume.log import End
from streamkit.web.refusals import Refused
from streamkit.web.reply import HTTPOutlet, Outlet, Reply, Shape, Writer
from streamkit.web.resume.routes import Shaping, states_of
from streamkit.web.resume.settings import RESUMING, RETRY_S, Resumable, Resuming, takes_ids
from streamkit.web.surfaces import Ask, surface_of

CREATE_S: Final = 0.05  #: the most seconds that a response's headers wait until the store has created the log
CHUNK_BYTES: Final = 32  #: the most bytes that the chunked transfer coding adds to one write
LOOKS: Final = 10  #: how often a response without its client is checked for readers within ``unattended_s``
LOOK_S: Final = 60.0  #: the longest time between two such checks, in seconds


def resumable_outlet(
    request: web.Request,
    client: str,
    *,
    is_array: bool = False,
    model: str = "",
    resumable: Resumable | None = None,
    is_named: bool = False,
) -> ResumableOutlet | None:
    """Return the outlet for a stream that is kept; None: it is not kept.

    ``resumable`` overrides the setting in the application's ``Resuming``. ``is_named``: the client resumes by a name that it
    chooses, even before the headers, and always from the start, so events need no ids.
    """
    resuming = request.config_dict.get(RESUMING)
    if resuming is None or not resuming.wanted(request, resumable):
        return None
    log_id = resuming.store.new_id()
    return ResumableOutlet(
        request, resuming, log_id, client, is_array=is_array, model=model, with_ids=not is_named, is_named=is_named
    )


class ResumableOutlet(HTTPOutlet):
    """Writes the response to ``request``, and keeps it as ``resuming`` says.

    ``with_ids``: events get ids if clients of the dialect accept them. ``is_named``: the client can resume before it has the
    headers.
    """

    outlives = True
    joins_end = False

    def __init__(
        self,
        request: web.Request,
        resuming: Resuming,
        log_id: str,
        client: str,
        *,
        is_array: bool = False,
        model: str = "",
        background: bool = False,
        with_ids: bool = True,
        is_named: bool = False,
    ) -> None:
        super().__init__(request)
        self.log_id = log_id
        self.meta = Meta(
            dialect=client,
            media_type="application/json" if is_array else client_named(client)[0].media_type,
            is_array=is_array,
            owner=owner_of(resuming.key(request), log_id),
            created=time.time(),
            model=model,
            background=background,
        )
        self._resuming = resuming
        self._unattended_s = math.inf if background else resuming.unattended_s
        self._loop = asyncio.get_running_loop()
        self._transport = request.transport
        self._is_named = is_named
        self._log: Log | None = None
        self._ids = EventIDs(log_id) if with_ids and takes_ids(client, is_array=is_array) else None
        self._last: list[bytes] | None = None  # the last bytes; they are appended together with the log's end
        self._writer: Writer | None = None  # the writer of the HTTP response
        self.went_on_s = 0.0  #: seconds that the response continued without its client
        self._is_over = False
        self._pending: deque[bytes] = deque()  # bytes for a slow client
        self._catching_up: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reply: Reply
        self._creating = asyncio.ensure_future(resuming.store.create(log_id, self.meta, self._stop))

    def answers(self, reply: Reply) -> None:
        self._reply = reply

    def keep_alive(self, usual: bytes, /) -> bytes:
        return usual if self._ids is None else without_blank_line(usual)

    async def begin(self, response: web.StreamResponse, /) -> Writer | None:
        if self.has_left:
            return self
        if isinstance(response, web.Response):  # an error over HTTP
            return await super().begin(response)
        self._log = await self._created()
        if self._log is None:
            self._ids = None
        else:
            response.headers["Location"] = f"{self._resuming.path}/{self.log_id}"
        self._writer = await super().begin(response)
        return self

    async def _created(self) -> Log | None:
        done, _ = await asyncio.wait({self._creating}, timeout=CREATE_S)
        if not done:
            self._resuming.counts.not_resumable["slow"] += 1
            return None
        try:
            return self._creating.result()
        except StoreDown:
            self._resuming.counts.not_resumable["down"] += 1
            return None

    @property
    def output_size(self) -> int:
        return 0 if self._writer is None else self._writer.output_size

    # -- writing ---------------------------------------------------------------------------------------------------

    async def write(self, data: bytes, /) -> None:
        log = self._log
        if log is not None:
            if self._last is not None:
                self._last.append(data)
            else:
                log.append(data)
        if self.has_left:
            if log is None or log.lost is not None:  # there is no reader, and no client can resume
                raise ConnectionResetError("the client disconnected, and the response is no longer kept")
            return
        piece = data if self._ids is None else self._ids.feed(data)
        if log is None or log.lost is not None:  # without a log, the upstream must wait for a slow client
            await self._caught_up()
            await self._written(piece)
        elif self._pending or self._is_slow(len(piece)):
            self._pending.append(piece)
            if self._catching_up is None or self._catching_up.done():
                self._catching_up = self._loop.create_task(self._catch_up())
        elif piece and self._writer is not None:
            try:
                await self._writer.write(piece)
            except ConnectionError:
                if not self.goes_on():
                    raise

    async def stay_alive(self, _writer: Writer, data: bytes, /) -> None:
        if not self._pending:
            await self._written(data)

    def last(self) -> None:
        if self._last is None:
            self._last = []

    async def end(self, response: web.StreamResponse, failed_end: bytes | None, /) -> None:
        if not self.has_left and self._ids is not None and (rest := self._ids.finish()):
            self._pending.append(rest)
        await self._caught_up()
        if not self.has_left:
            await super().end(response, failed_end)

    def over(self, why: End) -> None:
        if self.has_left and not self._is_over:
            self.went_on_s = self._loop.time() - self._left_at
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._log is not None:
            self._log.end(why, b"".join(self._last or ()))
        else:
            self._discard()
        if self._catching_up is not None and self.has_left:
            self._catching_up.cancel()

    def _was_made(self) -> bool:
        creating = self._creating
        return creating.done() and not creating.cancelled() and creating.exception() is None

    def _discard(self) -> None:
        """Discard the log, even if it is created later: no client knows of it."""
        if self._was_made():
            self._creating.result().discard()
        elif not self._creating.done():
            self._creating.add_done_callback(lambda _made: self._discard())

    # -- slow and disconnected clients -----------------------------------------------------------------------------

    def _is_slow(self, size: int) -> bool:
        """Return whether writing ``size`` more bytes would have to wait for the client."""
        transport, allowed = self._transport, self._reply.delivery.unsent_bytes
        return transport is not None and transport.get_write_buffer_size() + size + CHUNK_BYTES > allowed

    async def _written(self, piece: bytes) -> None:
        if self._writer is None or not piece or self.has_left:
            return
        try:
            await self._writer.write(piece)
        except ConnectionError:
            if not self.goes_on():
                raise

    async def _catch_up(self) -> None:
        with suppress(ConnectionError):
            while self._pending:
                await self._written(self._pending.popleft())

    async def _caught_up(self) -> None:
        """Wait until the client has the waiting bytes, or has disconnected."""
        if self._pending and (self._catching_up is None or self._catching_up.done()):
            self._catching_up = self._loop.create_task(self._catch_up())
        if self._catching_up is not None:
            await asyncio.wait({self._catching_up})

    def goes_on(self) -> bool:
        if self._log is None and self._is_named and self._was_made():
            self._log = self._creating.result()
        if self._log is None or self._log.lost is not None or self._is_over:
            return False
        if self._writer is None and not self._is_named:
            return False
        if not self.has_left:
            self.has_left = True
            self._pending.clear()
            if self._catching_up is not None:
                self._catching_up.cancel()
            self._left_at = self._loop.time()
            self._look()
        return True

    def _look(self) -> None:
        """End the response if it had no reader for too long."""
        log, allowed_s = self._log, self._unattended_s
        read_at = None if log is None else log.read_at
        since = max(self._left_at, read_at or 0.0)
        if log is not None and log.lost is not None:
            self._reply.interrupt(Unattended("the response can't be kept, and its client disconnected"))
        elif self._loop.time() - since >= allowed_s:
            self._reply.interrupt(Unattended(f"the response had no reader for {allowed_s:g} s"))
        else:
            self._timer = self._loop.call_later(min(allowed_s / LOOKS, LOOK_S), self._look)

    async def answer_at_once(self, begun: bytes, headers: Mapping[str, str]) -> web.Response:
        """Respond to a client that does not wait. Everything after this goes only to the log. Raises Refused."""
        log = await self._created()
        if log is None:
            self._discard()
            failed = ProviderFailed("unavailable", "the response can't be kept now; retry later", retry_after_s=RETRY_S)
            raise Refused(failed)
        response = web.Response(body=begun, content_type="application/json", headers=headers)
        response.headers["Cache-Control"] = "no-store"
        response.force_close()
        try:
            self._writer = await self.begin(response)
            await response.write_eof()
        except BaseException as error:
            log.discard()
            # the client left before it got the response's id, so nobody could read the response
            if isinstance(error, ConnectionError):
                raise Refused(ProviderFailed("server", "the client disconnected")) from error
            raise
        self._log, self._ids = log, None
        self.goes_on()
        return response

    def _stop(self) -> None:
        self._reply.interrupt(Stopped("the client stopped the response"))


# -- responses in the background ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Kept:
    """Where a response is written, and what the client got already."""

    outlet: Outlet | None = None  #: None: the usual outlet of its request or message
    shape: Shape | None = None
    response: web.StreamResponse | None = None  #: the response that was sent already, if the client does not wait


async def keeping(
    request: web.Request,
    ask: Ask,
    *,
    resumable: Resumable | None = None,
    outlet: Outlet | None = None,
    headers: Mapping[str, str] | None = None,
) -> Kept:
    """Return how to keep the response to a client's request, if it is kept. ``outlet`` is a message's, which can't be resumed.

    A client that does not wait gets its response here, with ``headers``. Raises Refused if its response can't be kept.
    """
    resuming, form = request.config_dict.get(RESUMING), surface_of(ask.dialect).stored
    if outlet is None and ask.stream and not ask.background:
        outlet = resumable_outlet(request, ask.dialect, is_array=ask.as_array, model=ask.model, resumable=resumable)
    is_kept = ask.background or (ask.stored is not None and ask.stored.is_kept)
    if resuming is None or form is None or not is_kept:
        return Kept(outlet=outlet)
    answer_id = resuming.store.new_id(form.prefix)
    previous_id = "" if ask.stored is None else ask.stored.previous_id
    writer = form.writer(answer_id, ask.background, previous_id)
    shape = Shaping(writer, answer_id, ask.stored, states_of(request, resuming))
    if not ask.background:
        return Kept(outlet=outlet, shape=shape)
    background = ResumableOutlet(
        request, resuming, answer_id, ask.dialect, model=ask.model, background=True, with_ids=resuming.wanted(request)
    )
    response = None
    if ask.at_once:
        settings = client_named(ask.dialect)[0].settings(ask.request)
        begun = form.queued(answer_id, int(background.meta.created), ask.model, settings)
        response = await background.answer_at_once(begun, headers or {})
    return Kept(outlet=background, shape=shape, response=response)
