"""``chat_ui``: add the route that ``useChat`` requests to an aiohttp application; one upstream answers it.

A browser sends the messages. The application decides the model, the system message and the tools: other values in a body are
dropped and counted, and a system message in a body is refused, since any page could write one. An error before the stream is
one sentence of text, which clients show unchanged.

If the application keeps responses (``add_resuming``), a response continues without its client, and a reloaded page gets all of
it from the first chunk. Stopping it takes a separate request. The dialect is the one whose surface has a ``ChatForm``.

Clients resume with the conversation's name, which they choose, and without a cursor. So a name belongs to the key that
``Resuming.key`` reads from the request: the same name with another key is another conversation. The store records which log is
the newest one of a conversation, for every worker and node. A new message replaces the response before it: that response is
stopped, and the name no longer leads to it. The name also no longer leads to a response that a client has received completely,
because a page that already shows it would show it twice.

Source: ui-protocols.md §1.1, §1.8; resume.md §2, §5; ai 7.0.173, ``HttpChatTransport``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web
from attrs import frozen

from streamkit.conversation.messages import Options, Request, Text, Tool, Turn
from streamkit.dialects.http import Address, ChatForm, RequestLine
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.resume import Cursor, LogGone, StoreDown, owner_of
from streamkit.rewrite.given import EventStage, given_stages
from streamkit.web.client_dialect import Handler, expected
from streamkit.web.refusals import Refused
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, reply_to
from streamkit.web.resume.answer import resumable_outlet
from streamkit.web.resume.following import resumed
from streamkit.web.resume.settings import RESUMING, Resumable, Resuming, refusal, stored_name
from streamkit.web.setup import add_answering, answered
from streamkit.web.surfaces import read_ask, surfaces
from streamkit.web.upstream import Upstream

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


# -- the route ---------------------------------------------------------------------------------------------------------


#: The values of ``Reply.ending`` after which the client has received everything that exists of the response.
DELIVERED: Final = frozenset({"whole", "error", "broken"})


@frozen(kw_only=True)
class _Chat:
    """What the application decides, and the form of its clients' requests."""

    client: str
    form: ChatForm
    upstream: Upstream
    model: str
    system: str | None
    tools: tuple[Tool, ...]
    delivery: Delivery
    place: str  #: the route's path; it separates the chats of several routes
    resumable: Resumable
    stages: tuple[EventStage, ...]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        ask = await read_ask(request, self.client, address=self._address)
        with ask.hold:
            self._decide(ask.request, ask.report)
            conversation = self._conversation(request, ask.request.exchange.get(self.form.conversation))
            outlet = None
            if conversation is not None:
                outlet = resumable_outlet(
                    request, self.client, model=self.model, resumable=self.resumable, is_named=True
                )
            reply = reply_to(request, ask, self.delivery, self.form.headers, outlet=outlet)
            if conversation is None or outlet is None:
                return await answered(request, ask, reply, self.upstream, self.model, self.stages)
            self.form.name_answer(ask.request)
            async with conversation.answered_by(outlet.log_id):
                response = await answered(request, ask, reply, self.upstream, self.model, self.stages)
            if not outlet.has_left and reply.ending in DELIVERED:
                await conversation.delivered(outlet.log_id)
            return response

    async def go_on(self, request: web.Request) -> web.StreamResponse:
        """Return the newest response of a chat from its start; 204 if there is none."""
        conversation = self._conversation(request, request.match_info[self.form.conversation])
        log_id = None if conversation is None else await conversation.log_id()
        if conversation is None or log_id is None:
            return web.Response(status=204)
        resuming = request.config_dict[RESUMING]
        try:
            response, reply = await resumed(
                request,
                resuming,
                Cursor(log_id, 0),
                is_sent=False,
                delivery=self.delivery,
                headers=self.form.headers,
                with_ids=False,
            )
        except Refused as refused:
            if refused.failed.type != "not_found":
                raise
            return web.Response(status=204)
        if reply is not None and reply.ending in DELIVERED:
            await conversation.delivered(log_id)
        return response

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """End the response of a chat, whichever client reads it. Return 204, even if there is none."""
        conversation = self._conversation(request, request.match_info[self.form.conversation])
        if conversation is not None:
            await conversation.stop()
            request.config_dict[RESUMING].counts.resumes["stopped"] += 1
        return web.Response(status=204)

    def _conversation(self, request: web.Request, name: object) -> Conversation | None:
        """Return the chat with this name; None if the application keeps no responses or the name is empty."""
        resuming = request.config_dict.get(RESUMING)
        if resuming is None or not isinstance(name, str) or not name:
            return None
        return Conversation(request, resuming, self.place, name)

    def route(self, handler: Handler) -> Handler:
        """Return the handler, with refusals as responses."""

        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except Refused as refused:
                return refused.response(self.client)
            except StoreDown as error:
                return refusal(request.config_dict[RESUMING], error).response(self.client)

        return answer

    def _address(self, _line: RequestLine, asked: Request) -> Address:
        """Choose the application's model. Raises BadRequest if a client sent a system message."""
        for turn in asked.turns:
            if turn.role == "system" and turn.native_role is None:
                raise BadRequest("messages", "system messages from clients are not accepted")
        return Address(self.model, stream=True)

    def _decide(self, asked: Request, report: StreamReport) -> None:
        """Replace the client's system message, tools and options with the application's."""
        said = [turn for turn in asked.turns if turn.role == "system"]
        for name, told in ("system", said), ("tools", asked.tools), ("options", asked.options != Options()):
            if told:
                report.lose("parameter", what=name)
        asked.turns = [turn for turn in asked.turns if turn.role != "system"]
        if self.system:
            asked.turns.insert(0, Turn("system", [Text(self.system)]))
        asked.tools, asked.options = [*self.tools], Options()
        asked.exchange.pop("system", None)


def chat_ui(
    app: web.Application,
    upstream: Upstream,
    path: str = "/api/chat",
    *,
    model: str,
    system: str | None = None,
    tools: Iterable[Tool] = (),
    resumable: Resumable = "always",
    delivery: Delivery = DEFAULT_DELIVERY,
    grace_s: float = 30.0,
    stages: Iterable[EventStage] = (),
) -> None:
    """Serve ``useChat`` at ``path`` from ``upstream``, and resume its responses at ``{path}/{id}/stream``.

    Every request to the upstream uses ``model``, ``system`` and ``tools``, whatever the client sends. A tool call is sent to
    the client, which runs it after the response is complete (``onToolCall``) and sends its result in a new request. If a
    response fails or is interrupted, it ends with an ``error``, which ``useChat`` shows, and the client runs none of its
    calls. ``stages`` are as in ``setup``.

    If the application uses ``add_resuming``, before or after this call, ``resumable`` says which responses continue after
    their client has left. ``GET {path}/{id}/stream`` returns the chat's newest response from its start, whether it is in
    progress or kept. The status is 204 if there is none, or if a client already has all of it. ``DELETE`` at the same path
    stops the response, and so does the chat's next message. The client chooses a chat's id. A chat belongs to the key that
    ``Resuming.key`` finds in the request; without such a key, anyone who knows the id gets the response.

    As with ``setup``, the application's middlewares decide who may send requests, live streams end within ``grace_s`` seconds
    at shutdown, and ``client_max_size`` limits the bodies. ``setup`` may serve clients at the same path; then choose another
    path for one of them. Raises ValueError for a path that aiohttp does not accept, and UsageError for an object that is not
    a stage.
    """
    client, form = next((name, surface.chat) for name, surface in surfaces().items() if surface.chat is not None)
    chat = _Chat(
        client=client,
        form=form,
        upstream=upstream,
        model=model,
        system=system,
        tools=tuple(tools),
        delivery=delivery,
        place=path,
        resumable=resumable,
        stages=given_stages(stages, "chat_ui"),
    )
    app.router.add_post(path, chat.route(chat.answer), expect_handler=expected)
    app.router.add_get(path + form.resume, chat.route(chat.go_on), allow_head=False, expect_handler=expected)
    app.router.add_delete(path + form.resume, chat.route(chat.stop), expect_handler=expected)
    add_answering(app, grace_s=grace_s)
