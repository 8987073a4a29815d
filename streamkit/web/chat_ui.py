"""``chat_ui``: the route that ``useChat`` asks, in an application of your own, answered by one upstream.

A browser sends the messages and nothing else that counts: model, system message and tools are the application's. What a body
says of them beside its messages is dropped and counted, and a message of the system in it is refused, since anybody could
write one. A client shows the body of an error as it is, so an error before the stream is one sentence of text.

Nothing is kept of an answer, so there is nothing to resume: that route answers 204. The dialect is the one whose surface has a
``ChatForm``.

Source: ui-protocols.md §1.1, §1.8; ai 7.0.173, ``HttpChatTransport``.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web
from attrs import frozen

from streamkit.conversation.messages import Options, Request, Text, Tool, Turn
from streamkit.dialects.http import Address, ChatForm, RequestLine
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.http_errors import ErrorAnswer, encode_error
from streamkit.report import StreamReport
from streamkit.web.client_dialect import expected
from streamkit.web.refusals import FAILURE, Refused
from streamkit.web.reply import DEFAULT_DELIVERY, Delivery, reply_to
from streamkit.web.setup import add_answering, answered
from streamkit.web.surfaces import read_ask, surfaces
from streamkit.web.upstream import Upstream


@frozen(kw_only=True)
class _Chat:
    """What the application decides, and how its clients ask."""

    client: str
    form: ChatForm
    upstream: Upstream
    model: str
    system: str | None
    tools: tuple[Tool, ...]
    delivery: Delivery

    async def answer(self, request: web.Request) -> web.StreamResponse:
        try:
            ask = await read_ask(request, self.client, address=self._address)
        except Refused as refused:
            return _response(refused, self.client)
        with ask.hold:
            self._decide(ask.request, ask.report)
            reply = reply_to(request, ask, self.delivery, self.form.headers, error_answer=in_words)
            return await answered(request, ask, reply, self.upstream, self.model)

    def _address(self, _line: RequestLine, asked: Request) -> Address:
        """The application's model. Raises BadRequest for what only the application may say."""
        for turn in asked.turns:
            if turn.role == "system" and turn.native_role is None:
                raise BadRequest("messages", "no message of the system is taken from a client")
        return Address(self.model, stream=True)

    def _decide(self, asked: Request, report: StreamReport) -> None:
        """Put the application's system message and tools in the place of the client's."""
        said = [turn for turn in asked.turns if turn.role == "system"]
        for name, told in ("system", said), ("tools", asked.tools), ("options", asked.options != Options()):
            if told:
                report.lose("parameter", what=name)
        asked.turns = [turn for turn in asked.turns if turn.role != "system"]
        if self.system:
            asked.turns.insert(0, Turn("system", [Text(self.system)]))
        asked.tools, asked.options = [*self.tools], Options()
        asked.exchange.pop("system", None)


def in_words(failed: ProviderFailed, client: str) -> ErrorAnswer:
    """An error over HTTP as one sentence of text, with the status and the headers that the dialect has for it."""
    answer = encode_error(failed, client)
    return ErrorAnswer(
        answer.status, {**answer.headers, "content-type": "text/plain; charset=utf-8"}, failed.message.encode()
    )


def _response(refused: Refused, client: str) -> web.Response:
    answer = in_words(refused.failed, client)
    response = web.Response(status=answer.status, body=answer.body, headers={**refused.headers, **answer.headers})
    response[FAILURE] = refused.failed
    return response


async def _nothing_kept(_request: web.Request) -> web.Response:
    """There is no answer to go on with."""
    return web.Response(status=204)


def chat_ui(
    app: web.Application,
    upstream: Upstream,
    path: str = "/api/chat",
    *,
    model: str,
    system: str | None = None,
    tools: Iterable[Tool] = (),
    delivery: Delivery = DEFAULT_DELIVERY,
    grace_s: float = 30.0,
) -> None:
    """Serve ``useChat`` at ``path`` from ``upstream``; ``{path}/{id}/stream`` has nothing to resume.

    ``model``, ``system`` and ``tools`` are what the upstream is asked with, whatever a client says. A call of a tool goes to
    the client, which runs it once the answer is whole (``onToolCall``) and asks again with its result. An answer that fails
    or breaks off ends with an ``error``, which ``useChat`` shows, and none of its calls is run.

    As ``setup``: who may ask is for the application's middlewares to say, live streams end within ``grace_s`` seconds when it
    shuts down, and its ``client_max_size`` bounds the bodies. ``setup`` may serve clients at the same path, so one of both
    needs another. Raises ValueError for a path that aiohttp does not take.
    """
    client, form = next((name, surface.chat) for name, surface in surfaces().items() if surface.chat is not None)
    chat = _Chat(
        client=client, form=form, upstream=upstream, model=model, system=system, tools=tuple(tools), delivery=delivery
    )
    app.router.add_post(path, chat.answer, expect_handler=expected)
    app.router.add_get(path + form.resume, _nothing_kept, expect_handler=expected)
    add_answering(app, grace_s=grace_s)
