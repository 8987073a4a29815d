"""Resuming: send a log as the response to a client, with 200; 204 if it has all of a complete response.

The client gets the log's bytes, with event ids if its dialect accepts them. ``Reply`` handles keep-alives, slow readers and
clients that disconnect, as in any response. If the log can't be read to its end, the client gets an error in its dialect after
the bytes that it has.

Source: resume.md §5.1, §5.2, §6.4, §11.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Final

from aiohttp import web

from streamkit.errors import SourceFailed, StreamError
from streamkit.events import ProviderFailed
from streamkit.machines import Machine
from streamkit.pipeline import Pipe, pipe
from streamkit.report import StreamReport
from streamkit.resume import BadCursor, Cursor, EventIDs, LogError, Reading, StoredLog, cursor_in
from streamkit.resume.event_ids import ends_an_event, without_blank_line
from streamkit.resume.memory import MemoryLog
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, HTTPOutlet, Reply, Writer
from streamkit.web.resume.settings import RESUMING, Resuming, opened, takes_ids
from streamkit.web.source import TimedSource, Timeouts

#: Seconds to wait for the log's end when the server stops, since the process that writes the log writes an error too.
END_FIRST_S: Final = 0.5
_PATIENT: Final = Timeouts(first_byte_s=1e7, idle_s=1e7)  #: very long time-outs, since a log may be silent for any time
_EVENT_END_BYTES: Final = 4  #: the most bytes of an event's line end and the blank line after it (two CRLF)
LAST_EVENT_ID: Final = "Last-Event-ID"


class FollowingOutlet(HTTPOutlet):
    """Writes the response to a client that resumes."""

    def __init__(self, request: web.Request, *, has_ids: bool) -> None:
        super().__init__(request)
        self._has_ids = has_ids

    def keep_alive(self, usual: bytes, /) -> bytes:
        return without_blank_line(usual) if self._has_ids else usual

    async def begin(self, response: web.StreamResponse, /) -> Writer | None:
        response.headers["Cache-Control"] = "no-store, no-transform"  # resume.md §5.1: no cache may keep it
        return await super().begin(response)


class Following:
    """The bytes after byte ``after`` of ``log``, as a ``pipe`` that ``Reply.interrupt`` can end.

    ``behind`` removes what the client already has, if its cursor is not a number of bytes.
    """

    def __init__(
        self,
        log: StoredLog | MemoryLog,
        after: int,
        reading: Reading,
        *,
        has_ids: bool,
        behind: Machine[bytes, bytes] | None = None,
    ) -> None:
        self.report: StreamReport | None = None
        self.is_broken = False  #: the log could not be read to its end
        self._log, self._after = log, after
        self._reading = reading
        self._source = TimedSource(reading, _PATIENT)
        self._has_ids = has_ids
        self._behind = behind
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def fail(self, error: Exception) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(END_FIRST_S, self._source.fail, error)

    def pipe(self) -> Pipe[bytes]:
        """Return the pipe with the bytes for the client."""
        return pipe(self._source, self._read)

    async def answer(
        self,
        request: web.Request,
        resuming: Resuming,
        *,
        delivery: Delivery = DEFAULT_DELIVERY,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[web.StreamResponse, Reply]:
        """Respond to ``request`` with the rest of the log, and count the outcome. Returns when the response is over."""
        meta = self._reading.meta
        outlet = FollowingOutlet(request, has_ids=self._has_ids)
        reply = Reply(request, meta.dialect, as_array=meta.is_array, delivery=delivery, headers=headers, outlet=outlet)

        async def work() -> None:
            failed = await reply.send(self.pipe(), self, is_array=True)
            if failed is not None:
                await reply.fail(failed)

        try:
            response = await reply.run(work())
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._reading.aclose()
        resuming.counts.resumes["broken" if self.is_broken else "resumed"] += 1
        return response, reply

    async def _read(self, source: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
        report = self.report or StreamReport()
        report.spoken = True  # so that the log's bytes are written at once
        position = self._after
        machine = EventIDs(self._log.id, self._after) if self._has_ids else self._behind
        try:
            if self._has_ids and self._after:
                machine = EventIDs(self._log.id, self._after, inside=not ends_an_event(await self._before()))
            async for data in source:
                position += len(data)
                if written := data if machine is None else machine.feed(data):
                    yield written
        except (LogError, StreamError) as error:
            failed = error if isinstance(error, StreamError) else SourceFailed(str(error))
            report.failed(failed)
            self.is_broken = True
            # the client got nothing of an incomplete event, so it does not count
            if machine is not None and self._has_ids:
                position -= len(machine.finish())
            ending = await self._reading.closing(position, failed)
            yield ending if machine is None or self._has_ids else machine.abandon() + machine.feed(ending)
            return
        if machine is not None and (rest := machine.finish()):
            yield rest
        if machine is not None and machine.fault is not None:  # the client asked for bytes after the log's end
            report.failure, report.clean = ProviderFailed("invalid_request", str(machine.fault)), False
            return
        report.clean = self._reading.ended == "done"
        report.completed = bool(report.clean)

    async def _before(self) -> bytes:
        """Return the log's last bytes before the cursor, which show whether an event begins there. Raises LogError."""
        size = min(self._after, _EVENT_END_BYTES)
        reading = await self._log.open(self._after - size)
        found = b""
        try:
            while len(found) < size and (data := await anext(reading, b"")):
                found += data[:size]
        finally:
            await reading.aclose()
        return found[:size]


async def resumed(
    request: web.Request,
    resuming: Resuming,
    cursor: Cursor,
    *,
    is_sent: bool,
    delivery: Delivery = DEFAULT_DELIVERY,
    headers: Mapping[str, str] | None = None,
    with_ids: bool = True,
) -> tuple[web.StreamResponse, Reply | None]:
    """Send the rest of a stream after ``cursor``. Return the response, and its reply if there was something to read.

    ``is_sent``: the client sent the cursor. Events have ids if ``with_ids`` is true and the dialect's clients accept ids.
    Raises Refused.
    """
    log, reading = await opened(request, resuming, cursor.log_id, cursor.offset)
    if is_sent and reading.ended == "done":
        await reading.aclose()
        resuming.counts.resumes["nothing_left"] += 1
        return web.Response(status=204), None
    has_ids = with_ids and takes_ids(reading.meta.dialect, is_array=reading.meta.is_array)
    following = Following(log, cursor.offset, reading, has_ids=has_ids)
    return await following.answer(request, resuming, delivery=delivery, headers=headers)


async def attached(request: web.Request, delivery: Delivery) -> tuple[web.StreamResponse, Reply | None] | None:
    """Send the rest of the response that a request names by event id; None: it is a new request. Raises Refused."""
    resuming = request.config_dict.get(RESUMING)
    try:
        cursor = cursor_in(request.headers.get(LAST_EVENT_ID, ""))
    except BadCursor:  # the header is missing, or is not streamkit's id
        return None
    return None if resuming is None else await resumed(request, resuming, cursor, is_sent=True, delivery=delivery)
