"""``GET`` and ``DELETE`` of a stream: to read it on, and to stop it; and ``POST`` with an event's id, which attaches.

What a client is answered: 200 and the rest of the stream; 204 where it has all of a whole answer, and for a stop; 404 for an
answer that is not there, not any more, or another key's; 400 for a cursor that can't be; 503 where the store can't be read. A
request that names an answer never asks a model.

Source: resume.md §5; R15, R16, R24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from attrs import frozen

from streamkit.resume import BadCursor, Cursor, LogError, cursor_in, offset_in, owner_of
from streamkit.resume.identity import checked_id
from streamkit.web.client_dialect import expected, in_dialect
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, Reply
from streamkit.web.resume.answer import takes_ids
from streamkit.web.resume.following import Following, follow
from streamkit.web.resume.look_up import opened, refusal
from streamkit.web.resume.settings import RESUMING, Resuming
from streamkit.web.resume.stored import add_stored

LAST_EVENT_ID: Final = "Last-Event-ID"
#: Behind the path of streams.
ID_PATTERN: Final = "/{stream_id}"


@frozen
class Resumed:
    """What answered a client that came back."""

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
    """The rest of a stream behind ``cursor``, which the client sent or not (``is_sent``). Raises Refused.

    Its events have ids where ``with_ids`` is true and their readers take them.
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
    """The cursor that a client names by the id of the last event that it got; None: none of ours."""
    text = request.headers.get(LAST_EVENT_ID, "")
    try:
        return cursor_in(text) if text else None
    except BadCursor:
        return None


async def attached(request: web.Request, delivery: Delivery) -> web.StreamResponse | None:
    """The rest of the answer that a request names by an event's id; None: it names none, and asks for one. Raises Refused."""
    resuming = request.config_dict.get(RESUMING)
    cursor = None if resuming is None else named_cursor(request)
    if resuming is None or cursor is None:
        return None
    return (await resumed(request, resuming, cursor, is_sent=True, delivery=delivery)).response


def cursor_of(request: web.Request, resuming: Resuming, log_id: str) -> tuple[Cursor, bool]:
    """From where a ``GET`` of a stream wants to read, and whether it says so. Raises Refused."""
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
    """Stop an answer: 204, also where it is over. Raises Refused."""
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
    """Keep the answers of ``relay`` and ``setup`` in ``app`` as ``resuming`` says, and serve their rest at its path.

    Where clients of a dialect know answers by their ids (``GET /v1/responses/{id}``), they are served there, behind the
    ``prefix`` of ``setup``; ``misspelt_too``: also where a base URL has a version too few or one too many.
    The store is closed with the application. ``observe`` is told of each answer that was read on, once it is over. Raises
    ValueError for a path that aiohttp does not take.
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
