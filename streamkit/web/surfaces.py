"""What a request of a client asks. Where clients of a dialect ask, and how, is ``Surface`` in ``streamkit/dialects/http.py``.

What is asked becomes a value, ``Ask``, and nothing of it names an upstream: ``base_url``, ``api_base`` or ``headers`` in a
body are members that nobody reads (limits.md T5). A request that leans on an earlier one is made whole from what the
application kept (``RECALL``), or refused with what to send instead.

Refused, as ``Refused``: bodies that are too large, too slow or encoded in a way that nobody here reads; whatever
``decode_request`` calls a bad request, nesting that is too deep included.

Source: clients.md §10.1, §10.5; dialects.md §1.3, §2.3, §3.2, §4.1, §5.1; limits.md T4, T5, T8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Protocol

import orjson
from aiohttp import web
from attrs import define, field, frozen

from streamkit.conversation.messages import Request, Tool, Turn
from streamkit.dialects import DIALECTS, endpoints
from streamkit.dialects.http import Address, Operation, RequestLine, StoredForm, Surface
from streamkit.errors import BadRequest, UsageError
from streamkit.events import ProviderFailed
from streamkit.framing.value_count import VALUE_BYTES
from streamkit.limits import REQUEST_VALUES
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.translation.bodies import decode_request
from streamkit.web.budget import UNCOUNTED_BYTES, Hold, hold_in
from streamkit.web.heavy import beside, count_values, is_heavy
from streamkit.web.refusals import Refused, bad_request, shown, with_status

#: How long a body may take to arrive, in seconds: 32 MiB at 2 Mbit/s take 134. One that drips holds a task and its memory.
BODY_S: Final = 150.0
#: How long nothing of it may come, in seconds. A client on the move loses its network for some.
BODY_SILENCE_S: Final = 20.0
#: What is read of a body at once. With asyncio's own 256 KiB, twenty bodies that come at once take 20 ms of each turn of the
#: event loop, and the answers under way as long for each event.
READ_BYTES: Final = 32 * 1024
#: What aiohttp decodes by itself, or refuses by itself where it has no library for it.
ENCODINGS: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
#: Turns of a conversation.
FORGOTTEN_AT_ONCE: Final = 2000
VERSIONS: Final = frozenset({"v1", "v1beta"})


@define(kw_only=True)
class Stored:
    """A request together with what it leans on."""

    body: bytes = field(repr=False)
    #: The answer that it goes on from; empty: none.
    previous_id: str = ""
    #: All that the model is told, which is kept with the answer; empty where that is not to be kept.
    input: bytes = field(default=b"", repr=False)
    is_kept: bool = False


@frozen(kw_only=True)
class Ask:
    """What a client asks. ``request`` has the model and whether to stream, wherever they stood."""

    dialect: str
    operation: Operation
    model: str
    #: The mark after the model's name (``Endpoint.marks``).
    mark: str = ""
    stream: bool
    #: The stream is to be one JSON array. See ``json_array.py``.
    as_array: bool = False
    request: Request = field(repr=False)  # what people said belongs in no log
    #: What was repaired as it was read.
    report: StreamReport = field(factory=StreamReport, repr=False)
    #: Whether it is large enough to be translated in a thread.
    heavy: bool = False
    #: The answer goes on in the background, whoever reads it.
    background: bool = False
    #: The client does not wait for it: ``stream`` is true, since that is how it is made and kept.
    at_once: bool = False
    #: What it leans on, and what of it is kept; None: the application keeps nothing that a request may lean on.
    stored: Stored | None = field(default=None, repr=False)
    #: What it holds of the application's budget; whoever got the request shrinks it to nothing once it is over.
    hold: Hold = field(factory=Hold, repr=False)

    def let_go(self) -> None:
        """Forget the conversation, which nobody is asked with any more. What the answer is translated by stays: the tools."""
        _forget(self.request.turns)
        self.request.turns, self.request.extras = [], {}
        kept = 0 if self.stored is None else len(self.stored.input)
        if self.stored is not None:
            self.stored.body = b""
        self.hold.shrink(sum(map(_size_of, self.request.tools)) + kept)


class Recall(Protocol):
    """What an application keeps of its answers, for requests that lean on them."""

    async def whole(
        self, request: web.Request, form: StoredForm, asked: Request, body: bytes, hold: Hold
    ) -> Stored | None:
        """A request that leans on nothing that is kept; None where nothing is kept that it could lean on.

        ``hold`` gets the added bytes before the request is made whole. Raises Refused where it has no room, and where the
        request refers to something that is not kept.
        """

    async def answer(self, request: web.Request, answer_id: str) -> bytes | None:
        """The value of an answer (``KeptAnswer``); None: it is not kept. Raises Refused where the store can't be read."""


#: An application without it keeps no answers.
RECALL: Final = web.AppKey("streamkit-recall", Recall)


def _forget(turns: list[Turn]) -> None:
    """Empty a long list, a slice in each turn of the event loop: letting go of 60,000 turns at once held it for 50 ms."""
    if len(turns) > FORGOTTEN_AT_ONCE:
        del turns[-FORGOTTEN_AT_ONCE:]
        asyncio.get_running_loop().call_soon(_forget, turns)


def _size_of(tool: Tool) -> int:
    """About how many bytes a definition has."""
    described = [tool.name, tool.description, tool.parameters, tool.format, tool.extras, tool.raw]
    return len(orjson.dumps(described, default=str))


@cache
def surfaces() -> Mapping[str, Surface]:
    """Where the clients of each dialect ask, by its name; dialects of other packages included."""
    return {name: dialect.http.surface for name, dialect in DIALECTS.items() if dialect.http.surface is not None}


def surface_of(dialect: str) -> Surface:
    """Where its clients ask. Raises UsageError for a dialect whose clients are not served."""
    found = surfaces().get(dialect)
    if found is None:
        raise UsageError(f"no clients of {quoted(dialect)} are served; there are {', '.join(surfaces())}")
    return found


def aliases(surface: Surface) -> Mapping[str, Operation]:
    """The paths that come of a base URL with a version too few, one too many or a slash at its end."""
    return {other: operation for path, operation in surface.paths.items() for other in misspelt(path)}


def misspelt(path: str) -> tuple[str, ...]:
    """What clients make of ``path`` when people write the base URL otherwise: ``/messages``, ``/v1/v1/messages``."""
    version, rest = path[1:].split("/", 1)
    twice = f"/{version}{path}"
    return (f"/{path}", twice, f"/{rest}") if version in VERSIONS else (f"/{path}", twice)


@cache
def _marks() -> frozenset[str]:
    return frozenset(mark for endpoint in endpoints() for mark in endpoint.marks)


def unmarked(model: str) -> tuple[str, str]:
    """Return a model's name, and the mark of a feature after it; "" for none."""
    mark = next((mark for mark in _marks() if model.lower().endswith(mark) and len(model) > len(mark)), "")
    return model[: len(model) - len(mark)], mark


async def read_ask(
    request: web.Request,
    dialect: str,
    operation: Operation = "generate",
    *,
    body_s: float = BODY_S,
    address: Callable[[RequestLine, Request], Address] | None = None,
) -> Ask:
    """Read what a client of ``dialect`` asks: of the model that its request names, unless ``address`` says which.

    The body's size is bounded by the application's ``client_max_size``, and the time it takes by ``body_s`` seconds. Raises
    Refused, and UsageError for a dialect whose clients are not served.
    """
    hold = hold_in(request)
    try:
        raw, values = await _counted_body(request, dialect, hold, body_s)
        return await _ask_in(request, dialect, raw, values, operation=operation, hold=hold, address=address)
    except BaseException:
        hold.shrink(0)
        raise


async def ask_in(request: web.Request, dialect: str, raw: bytes, hold: Hold, report: StreamReport) -> Ask:
    """What a client of ``dialect`` asks by a body that came otherwise, in a message. Raises Refused.

    ``hold`` has its bytes already; the values are added to it. ``report`` has what was repaired of the message, and gets more.
    """
    return await _ask_in(request, dialect, raw, await _counted(raw, hold), hold=hold, report=report)


async def _ask_in(
    request: web.Request,
    dialect: str,
    raw: bytes,
    values: int,
    *,
    hold: Hold,
    operation: Operation = "generate",
    address: Callable[[RequestLine, Request], Address] | None = None,
    report: StreamReport | None = None,
) -> Ask:
    surface, is_message, heavy = surface_of(dialect), report is not None, is_heavy(len(raw), values)
    report = StreamReport() if report is None else report
    stored, background = None, False
    try:
        asked = await _decoded(raw, dialect, operation, report, heavy=heavy)
        if surface.stored is not None and operation == "generate":
            recall = request.config_dict.get(RECALL)
            background = surface.stored.background(asked, recall is not None and not is_message)
            stored = None if recall is None else await recall.whole(request, surface.stored, asked, raw, hold)
            if stored is not None and stored.body is not raw:
                heavy = is_heavy(len(stored.body), await _counted(stored.body, hold))
                asked = await _decoded(stored.body, dialect, operation, StreamReport(), heavy=heavy)
                surface.stored.background(asked, True)  # which takes it out of what is sent on
        surface.check(asked)
        found = (address or surface.address)(request, asked)
    except BadRequest as error:
        raise Refused(bad_request(error)) from error
    model, mark = unmarked(found.model)
    asked.model, asked.stream = model, found.stream or background
    return Ask(
        dialect=dialect,
        operation=operation,
        model=model,
        mark=mark,
        stream=found.stream or background,
        as_array=found.as_array,
        request=asked,
        report=report,
        heavy=heavy,
        background=background,
        at_once=background and not found.stream,
        stored=stored,
        hold=hold,
    )


async def _decoded(raw: bytes, dialect: str, operation: Operation, report: StreamReport, *, heavy: bool) -> Request:
    """The request in a body. Raises BadRequest."""

    def read() -> Request:
        body, member = surface_of(dialect).counted(raw, report) if operation == "count" else (raw, "")
        try:
            return decode_request(body, dialect, report=report)
        except BadRequest as error:
            if member:
                raise BadRequest(f"{member}.{error.path}", error.reason) from error
            raise  # as it is: an error that is its own cause keeps the request until garbage is collected

    return await beside(read) if heavy else read()


async def read_body(request: web.Request, dialect: str) -> bytes:
    """The body of a request of a client of ``dialect``, decompressed, that is read at once and not held. Raises Refused."""
    with hold_in(request) as hold:
        return (await _counted_body(request, dialect, hold, BODY_S))[0]


async def _counted_body(request: web.Request, dialect: str, hold: Hold, body_s: float) -> tuple[bytes, int]:
    """The body, and how many JSON values it has: no more than ``REQUEST_VALUES``. Raises Refused."""
    raw = await _whole_body(request, dialect, hold, body_s)
    return raw, await _counted(raw, hold)


async def _counted(raw: bytes, hold: Hold) -> int:
    """How many JSON values a body has, each of which is held. Raises Refused."""
    values = await count_values(raw, REQUEST_VALUES)
    if values > REQUEST_VALUES:
        message = f"the body has more than the {REQUEST_VALUES:,} JSON values that are read; send less at once"
        raise Refused(ProviderFailed("too_large", message))
    hold.add(values * VALUE_BYTES)
    return values


async def _whole_body(request: web.Request, dialect: str, hold: Hold, body_s: float) -> bytes:
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        message = f"a body with the Content-Encoding {shown(encoding)} can't be read; send gzip, or none"
        raise Refused(
            with_status("invalid_request", message, 415, dialect), {"Accept-Encoding": "gzip, deflate, identity"}
        )
    try:
        async with asyncio.timeout(body_s):
            return await _read(request, dialect, hold)
    except TimeoutError as error:
        raise _too_slow(f"the body did not arrive within {body_s:g} s", dialect) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        message = "the body broke off, or is not what its Content-Encoding says"
        raise Refused(ProviderFailed("invalid_request", message), {"Connection": "close"}) from error


async def _read(request: web.Request, dialect: str, hold: Hold) -> bytes:
    """As ``request.read``, which unpacks a bomb in pieces as large as the bound, and has several of them in memory."""
    announced = min(request.content_length or 0, request.client_max_size)
    hold.budget.refuse_beyond(max(0, announced - UNCOUNTED_BYTES))  # before any of it is read
    transport: Any = request.transport
    if hasattr(transport, "max_size"):  # asyncio's own
        transport.max_size = READ_BYTES
    parts: list[bytes] = []
    size = 0
    while chunk := await _next(request, dialect):
        size += len(chunk)
        if size > request.client_max_size > 0:
            message = f"the body is larger than the {request.client_max_size:,} bytes that are read; send less at once"
            raise Refused(ProviderFailed("too_large", message))
        hold.add(len(chunk))
        parts.append(chunk)
    return b"".join(parts)


async def _next(request: web.Request, dialect: str) -> bytes:
    try:
        async with asyncio.timeout(BODY_SILENCE_S) as silence:
            return await request.content.readany()
    except TimeoutError as error:
        if silence.expired():
            raise _too_slow(f"nothing came of the body for {BODY_SILENCE_S:g} s", dialect) from error
        raise


def _too_slow(message: str, dialect: str) -> Refused:
    return Refused(with_status("timeout", message, 408, dialect), {"Connection": "close"})
