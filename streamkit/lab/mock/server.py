"""The mock as an aiohttp application: a scripted provider of one dialect or of all dialects, which judges its client.

The mock reads a request as the gateway does, writes a turn of the script as a response (``writing.py``), applies the quirks,
and sends the result. The verdict uses the response without quirks; ``GET /verdict`` returns the verdict. Without a script the
demo model answers. API keys are ignored. Ids and pace depend on the seed, the request, and how often its conversation repeated
the request. Requests for host names other than this machine's are refused (421), and so are those of other web pages (403).

Source: observe.md O31, O32.
"""

from __future__ import annotations

import hashlib
import logging
import random
import socket
import struct
import time
from asyncio import sleep
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import orjson
from aiohttp import web
from attrs import evolve

from streamkit.conversation.messages import Request
from streamkit.dialects import DIALECTS, dialect_named
from streamkit.dialects.http import ModelCard, model_in_body
from streamkit.errors import BadRequest, StreamError, UsageError
from streamkit.events import ProviderFailed
from streamkit.lab.demo_model import answer as demo_answer
from streamkit.lab.demo_model import texts
from streamkit.lab.mock.answer import Answer
from streamkit.lab.mock.paths import Path, Place, places
from streamkit.lab.mock.quirks import Quirk, quirks_of
from streamkit.lab.mock.script import Script
from streamkit.lab.mock.verdict import LEAVE_S, READ_TIMEOUT_S, ClientVerdict, Conversation, Exchange, Watch
from streamkit.lab.mock.writing import AT_ONCE, CREATED, Timing, Writer, Written
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.toml.findings import meant
from streamkit.translation.bodies import decode_request
from streamkit.web.client_dialect import refuse_in_dialect
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.inventory import add_inventory
from streamkit.web.refusals import bad_request, error_response

log = logging.getLogger("streamkit.mock")
#: The largest request body; the gateway has the same limit.
REQUEST_BYTES: Final = 32 * 1024 * 1024
#: The model in the list of models. A request may name any model.
MODEL: Final = "mock"
#: The name that selects all dialects.
ANY: Final = "any"
#: The value of SO_LINGER that turns a close into a reset.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class Mock:
    """A scripted provider. ``app`` returns its web application, and ``verdict`` has the faults of its client.

    ``dialect`` is a dialect's name or ``any``. ``quirks`` are kinds from ``lab/mock/quirks.py``. They are applied in this
    order to every response in a dialect that has them. Raises UsageError for an unknown dialect or quirk.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        dialect: str = ANY,
        quirks: Sequence[str] = (),
        timing: Timing = AT_ONCE,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        names = tuple(DIALECTS) if dialect == ANY else (dialect_named(dialect).name,)
        self.places: tuple[Place, ...] = tuple(places(names))  #: the base URL and paths of each dialect
        self._quirks = {name: _chosen(name, quirks) for name in names}
        _refuse_unknown(quirks, names)
        self._script, self._timing, self._seed = script, timing, seed
        self._watch = Watch(clock)

    @property
    def verdict(self) -> ClientVerdict:
        """The verdict on the client so far."""
        return self._watch.verdict

    def urls(self, root: str) -> dict[str, str]:
        """Return the base URL of each dialect for its official clients. ``root`` is the server's URL."""
        return {place.dialect: root + place.base for place in self.places}

    def app(self) -> web.Application:
        """Return the web application: the paths of its dialects, a list of one model, and ``/verdict``."""
        app = web.Application(client_max_size=REQUEST_BYTES, middlewares=[guarded(Hosts(), "mock"), refuse_in_dialect])
        app.router.add_get("/verdict", self._show_verdict)
        for path in (path for place in self.places for path in place.paths):
            app.router.add_post(path.pattern, partial(self._count if path.counts else self._answer, path))
        add_inventory(app.router, [ModelCard(id=MODEL)], lambda name, _dialect: ModelCard(id=name))
        return app

    async def _show_verdict(self, _request: web.Request) -> web.Response:
        return web.Response(body=orjson.dumps(self.verdict.as_json()), content_type="application/json")

    async def _count(self, path: Path, request: web.Request) -> web.Response:
        surface = dialect_named(path.dialect).http.surface
        if surface is None:
            raise UsageError(f"{path.dialect} counts no tokens")
        try:
            body, _ = surface.counted(await request.read(), StreamReport())
            asked = decode_request(body, path.dialect)
        except BadRequest as error:
            return error_response(bad_request(error), path.dialect)
        words = sum(len(text.split()) for text in texts(asked))
        return web.Response(body=orjson.dumps(surface.count_answer(words)), content_type="application/json")

    async def _answer(self, path: Path, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            asked, as_array = _asked(path, request, raw)
        except BadRequest as error:
            return error_response(bad_request(error), path.dialect)
        digest = hashlib.sha256(b"%s\n%s" % (request.path_qs.encode(), raw)).digest()
        conversation, exchange = self._watch.ask(asked, digest)
        written = self._written(asked, as_array, conversation, exchange)
        self._watch.answer(exchange, written)
        _log(exchange, written)
        return await self._sent(request, evolve(written, answer=self._quirky(exchange, written.answer)), exchange)

    def _written(self, asked: Request, as_array: bool, conversation: Conversation, exchange: Exchange) -> Written:
        times = sum(each.digest == exchange.digest for each in conversation.exchanges)
        seed = f"{self._seed}/{exchange.digest.hex()}/{times}"
        source = random.Random(seed)  # noqa: S311 - not a secret: the same seed must give the same bytes
        writer = Writer(asked, streamed=asked.stream is True, as_array=as_array, timing=self._timing, source=source)
        if self._script is None:
            try:
                events = demo_answer(asked, reasons=False, make_id=writer.make_id, clock=lambda: CREATED)
            except BadRequest as error:
                return writer.refused(bad_request(error))
            return writer.events(events)
        number = self._script.next(asked, conversation.had)
        if number is None:
            self._watch.out_of_turns(exchange)
            return writer.refused(_no_turn(self._script, conversation))
        conversation.had.add(number)
        return writer.steps(self._script.turns[number].steps)

    def _quirky(self, exchange: Exchange, answer: Answer) -> Answer:
        """Return the response with its dialect's quirks. A quirk that fails on the script's raw bytes changes nothing."""
        for quirk in self._quirks[answer.dialect] if answer.frames else ():
            try:
                changed = quirk.apply(answer)
            except StreamError:
                changed = answer
            if changed == answer:
                needed = ", ".join(quirk.needs)
                log.info("request %d: %s changes nothing here: it needs %s", exchange.number, quirk.kind, needed)
            answer = changed
        return answer

    # -- sending -------------------------------------------------------------------------------------------------------

    async def _sent(self, request: web.Request, written: Written, exchange: Exchange) -> web.StreamResponse:
        """Send the response. aiohttp cancels this handler when the client leaves."""
        answer = written.answer
        response = _response(answer)
        for number, frame in enumerate(answer.frames):
            await sleep(answer.waits_s.get(number, 0.0))
            exchange.sent_at = self._watch.clock()
            await _begin(request, response)
            await response.write(frame)
        await sleep(answer.waits_s.get(len(answer.frames), 0.0))
        match answer.end:
            case "whole":
                await _begin(request, response)
                await response.write_eof()
            case "cut":
                if request.transport is not None:
                    request.transport.close()
            case "reset":
                _reset(request)
            case "stalled":
                await self._stall(request, written, exchange)
        return response

    async def _stall(self, request: web.Request, written: Written, exchange: Exchange) -> None:
        is_over = exchange.read is not None and exchange.read.whole
        bound_s = None if written.stall is None else written.stall.bound_s
        if bound_s is None:
            bound_s = LEAVE_S if is_over else READ_TIMEOUT_S
        await sleep(bound_s)
        if request.transport is not None and not request.transport.is_closing():  # the runner may not cancel handlers
            self._watch.stayed(exchange, bound_s)
            _reset(request)


def _chosen(dialect: str, kinds: Sequence[str]) -> list[Quirk]:
    """Return the quirks of these kinds that the dialect has."""
    quirks = quirks_of(dialect)
    return [quirks[kind] for kind in kinds if kind in quirks]


def _refuse_unknown(kinds: Sequence[str], dialects: Sequence[str]) -> None:
    known = {kind for dialect in dialects for kind in quirks_of(dialect)} if kinds else set()
    for kind in kinds:
        if kind not in known:
            whose = f"{dialects[0]} has" if len(dialects) == 1 else "there is"
            raise UsageError(f"{whose} no quirk {quoted(kind)}{meant(kind, sorted(known))}")


def _asked(path: Path, request: web.Request, raw: bytes) -> tuple[Request, bool]:
    """Return the parsed request, and whether its response must be streamed as one JSON array. Raises BadRequest."""
    asked = decode_request(raw, path.dialect)
    surface = dialect_named(path.dialect).http.surface
    if surface is not None:
        surface.check(asked)
        found = surface.address(request, asked)
        asked.model, asked.stream = found.model, found.stream
        return asked, found.as_array
    asked.model = request.match_info.get("model") or asked.model
    found = model_in_body(request, asked)
    asked.stream = found.stream if path.stream is None else path.stream
    return asked, False


def _no_turn(script: Script, conversation: Conversation) -> ProviderFailed:
    count = len(script.turns)
    turns = "its only turn" if count == 1 else f"{len(conversation.had)} of its {count} turns"
    message = f"the script has no turn for this request: the conversation had {turns}, and no other one fits"
    return ProviderFailed("invalid_request", message)


def _log(exchange: Exchange, written: Written) -> None:
    answer = written.answer
    what = f"status {answer.status}, {len(answer.body)} bytes"
    lost = f"; lost: {', '.join(sorted(written.losses))}" if written.losses else ""
    log.info("request %d: %s, %s, %s%s", exchange.number, answer.dialect, what, answer.end, lost)


def _response(answer: Answer) -> web.StreamResponse:
    headers = {**answer.headers, "Content-Type": answer.content_type}
    if answer.streamed:
        headers["Cache-Control"] = "no-cache"
    elif answer.end == "whole":
        headers["Content-Length"] = str(len(answer.body))
    return web.StreamResponse(status=answer.status, headers=headers)


async def _begin(request: web.Request, response: web.StreamResponse) -> None:
    """Send the headers unless they are sent. Called just before the first bytes, so that both leave together."""
    if not response.prepared:
        await response.prepare(request)


def _reset(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        request.transport.abort()
