"""The mock as an aiohttp application: a scripted provider of one dialect or of all dialects, which judges its client.

The mock reads a request as the gateway does, writes a turn of the script as a response (``writing.py``), applies the quirks,
and sends the result. The verdict uses the response without quirks; ``GET /verdict`` returns the verdict. Without a script the
demo model answers. API keys are ignored. Ids and pace depend on the seed, the request, and how often its conversation repeated
the request. Requests for host names other than this machine's are refused (421), and so are those of other web pages (403).

If the gateway serves clients of a dialect, the mock uses the same paths; for any other dialect, the paths of its servers. If
two dialects share a path, the first one gets it, and the second one gets its name as a prefix: ``/NAME/v1/…``.

Source: observe.md O31, O32; clients.md §10.1.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from asyncio import CancelledError, sleep
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike, fspath
from typing import Final, TypeAlias

import orjson
from aiohttp import web
from attrs import evolve, frozen

from streamkit.conversation.messages import Request
from streamkit.dialects import DIALECTS, dialect_named
from streamkit.dialects.http import ModelCard, model_in_body
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import BadRequest, StreamError, UsageError, stage_of
from streamkit.events import ProviderFailed
from streamkit.lab.demo_model import answer as demo_answer
from streamkit.lab.demo_model import texts
from streamkit.lab.mock.quirks import quirks_of
from streamkit.lab.mock.script import MockTurn, Script, Step
from streamkit.lab.mock.verdict import LEAVE_S, READ_TIMEOUT_S, ClientVerdict, Conversation, Exchange, Watch
from streamkit.lab.mock.writing import AT_ONCE, CREATED, Answer, Timing, Writer, Written
from streamkit.lab.server import reset
from streamkit.report import StreamReport
from streamkit.rewrite.given import EventStage, given_stages
from streamkit.testing.serving import served
from streamkit.text.quoting import meant, quoted
from streamkit.translation.bodies import decode_request
from streamkit.web.client_dialect import refuse_in_dialect
from streamkit.web.hosts import Hosts, guarded
from streamkit.web.inventory import add_inventory
from streamkit.web.refusals import bad_request, error_response

log = logging.getLogger("streamkit.mock")
REQUEST_BYTES: Final = 32 * 1024 * 1024  #: the largest request body; the gateway has the same limit
#: The model in the list of models. A request may name any model.
MODEL: Final = "mock"
ANY: Final = "any"  #: the name that selects all dialects


class Mock:
    """A scripted provider. ``app`` returns its web application, and ``verdict`` has the faults of its client.

    ``dialect`` is a dialect's name or ``any``. ``quirks`` are kinds from ``lab/mock/quirks.py``. They are applied in this
    order to every response in a dialect that has them. ``stages`` change every response before that; they must not wait. If
    one raises, the response is an error with status 500, and the log names the stage. Raises UsageError for an unknown
    dialect or quirk, and for what is not a stage.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        dialect: str = ANY,
        quirks: Sequence[str] = (),
        timing: Timing = AT_ONCE,
        seed: int = 0,
        stages: Iterable[EventStage] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        names = tuple(DIALECTS) if dialect == ANY else (dialect_named(dialect).name,)
        self.places: tuple[Place, ...] = tuple(places(names))  #: the base URL and paths of each dialect
        known = {name: quirks_of(name) for name in names}
        for kind in quirks:
            if not any(kind in having for having in known.values()):
                whose = f"{names[0]} has" if len(names) == 1 else "there is"
                words = sorted({each for having in known.values() for each in having})
                near = meant(kind, words) or "; streamkit mock --list-quirks lists them"
                raise UsageError(f"{whose} no quirk {quoted(kind)}{near}")
        self._quirks = {name: [having[kind] for kind in quirks if kind in having] for name, having in known.items()}
        self._script, self._timing, self._seed = script, timing, seed
        self._stages = given_stages(stages, "mock")
        self._watch = Watch(clock)

    @property
    def verdict(self) -> ClientVerdict:
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

    async def _count(self, path: ServedPath, request: web.Request) -> web.Response:
        surface = dialect_named(path.dialect).http.surface
        if surface is None:
            raise UsageError(f"{path.dialect} does not count tokens")
        try:
            body, _ = surface.counted(await request.read(), StreamReport())
            asked = decode_request(body, path.dialect)
        except BadRequest as error:
            return error_response(bad_request(error), path.dialect)
        words = sum(len(text.split()) for text in texts(asked))
        return web.Response(body=orjson.dumps(surface.count_answer(words)), content_type="application/json")

    async def _answer(self, path: ServedPath, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            asked, as_array = _asked(path, request, raw)
        except BadRequest as error:
            return error_response(bad_request(error), path.dialect)
        digest = hashlib.sha256(b"%s\n%s" % (request.path_qs.encode(), raw)).digest()
        conversation, exchange = self._watch.ask(asked, digest)
        try:
            written = self._written(asked, as_array, conversation, exchange)
        except Exception as error:
            if (stage := stage_of(error)) is None:
                raise
            log.exception("request %d: the response failed in the stage %s", exchange.number, stage)
            writer = Writer(asked, streamed=False, source=random.Random())  # noqa: S311 - makes no id
            written = writer.refused(failure_from(error))
        self._watch.answer(exchange, written)
        _log(exchange, written)
        return await self._sent(request, evolve(written, answer=self._quirky(exchange, written.answer)), exchange)

    def _written(self, asked: Request, as_array: bool, conversation: Conversation, exchange: Exchange) -> Written:
        times = sum(each.digest == exchange.digest for each in conversation.exchanges)
        seed = f"{self._seed}/{exchange.digest.hex()}/{times}"
        source = random.Random(seed)  # noqa: S311 - not a secret: the same seed must give the same bytes
        writer = Writer(
            asked,
            streamed=asked.stream is True,
            as_array=as_array,
            timing=self._timing,
            source=source,
            stages=self._stages,
        )
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
                log.info("request %d: %s changes nothing, because it needs %s", exchange.number, quirk.kind, needed)
            answer = changed
        return answer

    # -- sending -------------------------------------------------------------------------------------------------------

    async def _sent(self, request: web.Request, written: Written, exchange: Exchange) -> web.StreamResponse:
        """Send the response, or as much of it as the connection lasts for. aiohttp cancels this when the client leaves."""
        answer = written.answer
        response, sent = _response(answer), 0
        try:
            for number, frame in enumerate(answer.frames):
                await sleep(answer.waits_s.get(number, 0.0))
                exchange.sent_at = self._watch.clock()
                await _begin(request, response)
                await response.write(frame)
                sent += len(frame)
            await sleep(answer.waits_s.get(len(answer.frames), 0.0))
            match answer.end:
                case "whole":
                    await _begin(request, response)
                    await response.write_eof()
                case "cut":
                    if request.transport is not None:
                        request.transport.close()
                case "reset":
                    reset(request)
                case "stalled":
                    await self._stall(request, written, exchange)
        except (ConnectionError, CancelledError) as error:
            log.info("request %d: the connection closed after %d of %d bytes", exchange.number, sent, len(answer.body))
            if isinstance(error, CancelledError):
                raise
        return response

    async def _stall(self, request: web.Request, written: Written, exchange: Exchange) -> None:
        is_over = exchange.read is not None and exchange.read.whole
        bound_s = None if written.stall is None else written.stall.bound_s
        if bound_s is None:
            bound_s = LEAVE_S if is_over else READ_TIMEOUT_S
        await sleep(bound_s)
        if request.transport is not None and not request.transport.is_closing():  # the runner may not cancel handlers
            self._watch.stayed(exchange, bound_s)
            reset(request)


def _asked(path: ServedPath, request: web.Request, raw: bytes) -> tuple[Request, bool]:
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
    message = f"the script has no turn for this request: the conversation has had {turns}, and no other turn matches"
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


# -- paths -------------------------------------------------------------------------------------------------------------


#: A sample model name for building a URL. It is then replaced by the router's pattern for any name.
_MODEL: Final = "a-model"
_MODEL_PATTERN: Final = "{model:.+}"


@frozen(kw_only=True)
class ServedPath:
    """A path of a dialect, as a pattern for aiohttp's router."""

    pattern: str
    dialect: str
    stream: bool | None = None  #: whether requests to this path stream; None: the request decides
    counts: bool = False  #: the path counts tokens and generates nothing


@frozen(kw_only=True)
class Place:
    """The base URL of one dialect, relative to the server's URL, and its paths."""

    dialect: str
    base: str
    paths: tuple[ServedPath, ...]


def places(dialects: Iterable[str]) -> Iterator[Place]:
    """Yield the place of each dialect. Raises UsageError for an unknown dialect."""
    taken: set[str] = set()
    for name in dialects:
        paths = list(_paths(name))
        prefix = f"/{name}" if any(path.pattern in taken for path in paths) else ""
        paths = [evolve(path, pattern=prefix + path.pattern) for path in paths]
        taken.update(path.pattern for path in paths)
        yield Place(dialect=name, base=prefix + _base(name), paths=tuple(paths))


def _paths(name: str) -> Iterator[ServedPath]:
    http = dialect_named(name).http
    if http.surface is not None:
        for pattern, operation in http.surface.paths.items():
            if operation != "compact":  # a script has no compactions
                yield ServedPath(pattern=pattern, dialect=name, counts=operation == "count")
        return
    if http.endpoint is None:
        yield ServedPath(pattern=f"/{name}", dialect=name)
        return
    streamed, whole = (http.endpoint.url("", _MODEL, stream).partition("?")[0] for stream in (True, False))
    yield ServedPath(pattern=_pattern(streamed), dialect=name, stream=None if streamed == whole else True)
    if streamed != whole:
        yield ServedPath(pattern=_pattern(whole), dialect=name, stream=False)


def _pattern(path: str) -> str:
    return path.replace(_MODEL, _MODEL_PATTERN)


def _base(name: str) -> str:
    """Return the part of the path between the server's URL and the path that official clients append to their base URL."""
    http, paths = dialect_named(name).http, [path.pattern for path in _paths(name)]
    asked = "" if http.endpoint is None else http.endpoint.url("", _MODEL, True).partition("?")[0]
    if not asked:  # the dialect's requests go to the base URL itself, without a path
        return paths[0]
    return next((path.removesuffix(asked) for path in paths if path.endswith(asked)), "")


# -- serving from a thread ---------------------------------------------------------------------------------------------


#: A script, its turns, the steps of its only turn, or the path of a TOML file. None: the demo model answers.
ScriptLike: TypeAlias = Script | Iterable[MockTurn | Step] | str | PathLike[str] | None


@frozen
class ServedMock:
    """A mock and the server that serves it."""

    mock: Mock
    root: str  #: the server's URL

    @property
    def urls(self) -> Mapping[str, str]:
        """The base URL of each dialect, for its official clients."""
        return self.mock.urls(self.root)

    @property
    def url(self) -> str:
        """The base URL of the mock's only dialect; the server's URL if there are several."""
        urls = list(self.urls.values())
        return urls[0] if len(urls) == 1 else self.root

    @property
    def verdict(self) -> ClientVerdict:
        return self.mock.verdict


@contextmanager
def served_mock(
    script: ScriptLike = None,
    *,
    dialect: str = ANY,
    quirk: str | Sequence[str] = (),
    timing: Timing = AT_ONCE,
    seed: int = 0,
    stages: Iterable[EventStage] = (),
) -> Iterator[ServedMock]:
    """Serve a mock on a free loopback port while the block runs.

    ``quirk`` is one kind or several (``streamkit mock --list-quirks``); ``stages`` is as in ``Mock``. Raises UsageError for an
    unknown dialect or quirk, an impossible script, or what is not a stage. A script in a file needs the extra ``gateway``.
    """
    quirks = (quirk,) if isinstance(quirk, str) else tuple(quirk)
    mock = Mock(script_of(script), dialect=dialect, quirks=quirks, timing=timing, seed=seed, stages=stages)
    with served(mock.app) as root:
        yield ServedMock(mock, root)


def script_of(script: ScriptLike) -> Script | None:
    """Return the script. Raises UsageError for an impossible one, and ConfigError for a file with faults."""
    if script is None or isinstance(script, Script):
        return script
    if isinstance(script, str | PathLike):
        from streamkit.lab.mock.script_file import load_script  # noqa: PLC0415 - cattrs is an extra

        return load_script(fspath(script))
    return Script(script)
