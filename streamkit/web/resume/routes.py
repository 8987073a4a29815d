"""``GET`` and ``DELETE`` of a stream, which resume and stop it, and ``POST`` with an event id, which also resumes it.

A client gets 200 and the rest of the stream; 204 if it has all of a complete response, and after a stop; 404 for a response
that does not exist, exists no longer, or belongs to another key; 400 for an invalid cursor; 503 if the store can't be read. A
request that names a response never asks a model.

Source: resume.md §5; R15, R16, R24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from attrs import frozen

from streamkit.resume import BadCursor, Cursor, LogError, cursor_in, offset_in, owner_of
from streamkit.resume.log import checked_id
from streamkit.web.client_dialect import expected, in_dialect
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, Reply
from streamkit.web.resume.answer import takes_ids
from streamkit.web.resume.following import Following, follow
from streamkit.web.resume.settings import RESUMING, Resuming, opened, refusal
from streamkit.web.resume.stored import add_stored

LAST_EVENT_ID: Final = "Last-Event-ID"
#: The router's pattern for a stream's id, which is added to the path of streams.
ID_PATTERN: Final = "/{stream_id}"


@frozen
class Resumed:
    """The response to a client that resumes."""

    response: web.StreamResponse
    reply: Reply | None = None  #: None: there was nothing to read


async def resumed(
    request: web.Request,
    resuming: Resuming,
    cursor: Cursor,
    *,
    is_sent: bool,
    delivery: Delivery = DEFAULT_DELIVERY,
    headers: Mapping[str, str] | None = None,
    with_ids: bool = True,
) -> Resumed:
    """Send the rest of a stream after ``cursor``. ``is_sent``: the client sent the cursor. Raises Refused.

    Events have ids if ``with_ids`` is true and the dialect's clients accept ids.
    """
    log_id = cursor.log_id
    reading, owner = await opened(request, resuming, log_id, cursor.offset)
    try:
        if is_sent and reading.ended == "done":
            resuming.counts.resumed("nothing_left")
            return Resumed(web.Response(status=204))
        has_ids = with_ids and takes_ids(reading.meta)
        following = Following(resuming.store, log_id, owner, cursor.offset, reading, has_ids=has_ids)
        response, reply = await follow(request, following, reading, delivery=delivery, headers=headers, has_ids=has_ids)
        resuming.counts.resumed("broken" if following.is_broken else "resumed")
        return Resumed(response, reply)
    finally:
        await reading.aclose()


def named_cursor(request: web.Request) -> Cursor | None:
    """Return the cursor in the request's ``Last-Event-ID``; None if the header is missing or is not streamkit's id."""
    text = request.headers.get(LAST_EVENT_ID, "")
    try:
        return cursor_in(text) if text else None
    except BadCursor:
        return None


async def attached(request: web.Request, delivery: Delivery) -> Resumed | None:
    """Send the rest of the response that a request names by event id; None: it is a new request. Raises Refused."""
    resuming = request.config_dict.get(RESUMING)
    cursor = None if resuming is None else named_cursor(request)
    if resuming is None or cursor is None:
        return None
    return await resumed(request, resuming, cursor, is_sent=True, delivery=delivery)


def cursor_of(request: web.Request, resuming: Resuming, log_id: str) -> tuple[Cursor, bool]:
    """Return where a ``GET`` of a stream wants to begin, and whether the client sent this place. Raises Refused."""
    try:
        checked_id(log_id)
        text = request.headers.get(LAST_EVENT_ID, "")
        if text:
            cursor = cursor_in(text)
            if cursor.log_id != log_id:
                raise BadCursor("Last-Event-ID is the id of an event of another stream")
            return cursor, True
        after = request.query.get("after")
        return Cursor(log_id, 0 if after is None else offset_in(after)), after is not None
    except LogError as error:
        raise refusal(resuming, error) from error


async def stop(request: web.Request, resuming: Resuming, log_id: str) -> web.Response:
    """Stop a response. Return 204, even if it is over already. Raises Refused."""
    try:
        await resuming.store.stop(log_id, owner_of(resuming.key(request), checked_id(log_id)))
    except LogError as error:
        raise refusal(resuming, error) from error
    resuming.counts.resumed("stopped")
    return web.Response(status=204)


def add_resuming(
    app: web.Application,
    resuming: Resuming,
    *,
    delivery: Delivery = DEFAULT_DELIVERY,
    observe: Callable[[web.Request, Reply], None] = lambda _request, _reply: None,
    prefix: str = "",
    misspelt_too: bool = False,
) -> None:
    """Keep the responses of ``relay`` and ``setup`` in ``app`` as ``resuming`` says, and serve their rest at its path.

    If clients of a dialect look up responses by id (``GET /v1/responses/{id}``), this is served too, after the ``prefix`` of
    ``setup``; ``misspelt_too``: also at paths with a missing or doubled version. The store is closed with the application.
    ``observe`` is called after each response that was resumed. Raises ValueError for a path that aiohttp does not accept.
    """
    app[RESUMING] = resuming

    async def read_on(request: web.Request) -> web.StreamResponse:
        cursor, is_sent = cursor_of(request, resuming, request.match_info["stream_id"])
        found = await resumed(request, resuming, cursor, is_sent=is_sent, delivery=delivery)
        if found.reply is not None:
            observe(request, found.reply)
        return found.response

    async def stopped(request: web.Request) -> web.StreamResponse:
        return await stop(request, resuming, request.match_info["stream_id"])

    async def started(_app: web.Application) -> None:
        await resuming.store.start()

    async def closed(_app: web.Application) -> None:
        await resuming.store.close()

    app.router.add_get(resuming.path + ID_PATTERN, in_dialect(read_on), allow_head=False, expect_handler=expected)
    app.router.add_delete(resuming.path + ID_PATTERN, in_dialect(stopped), expect_handler=expected)
    app.on_startup.append(started)
    add_stored(app, resuming, delivery=delivery, observe=observe, prefix=prefix, misspelt_too=misspelt_too)
    app.on_cleanup.append(closed)
