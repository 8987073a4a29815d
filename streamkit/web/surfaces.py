"""Read what a client requests. ``Surface`` in ``streamkit/dialects/http.py`` has the paths and formats of each dialect.

A request becomes a value, ``Ask``, which never names an upstream: ``base_url``, ``api_base`` or ``headers`` in a body are
ignored (limits.md T5: they could choose a host). A request that refers to an earlier one is completed from what the
application kept (``RECALL``), or refused with a message that says what to send instead.

Refused as ``Refused``: bodies that are too large, too slow or in an unknown encoding, and everything that ``decode_request``
calls a bad request, including too deep nesting.

Source: clients.md §10.1, §10.5; dialects.md §1.3, §2.3, §3.2, §4.1, §5.1; limits.md T4, T5, T8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Protocol

import orjson
from aiohttp import StreamReader, web
from attrs import define, field, frozen

from streamkit.conversation.messages import Request, Tool, Turn
from streamkit.dialects import DIALECTS, dialect_named, endpoints
from streamkit.dialects.http import Address, Operation, RequestLine, StoredForm, Surface
from streamkit.errors import BadRequest, UsageError
from streamkit.events import ProviderFailed
from streamkit.framing.frame import VALUE_BYTES
from streamkit.limits import REQUEST_VALUES
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.translation.bodies import decode_request
from streamkit.web.budget import UNCOUNTED_BYTES, Hold, hold_in
from streamkit.web.heavy import count_values, in_thread, is_heavy
from streamkit.web.refusals import Refused, bad_request, shown, with_status

#: Seconds that a body may take to arrive: 32 MiB at 2 Mbit/s take 134. A slower one would hold a task and memory for too long.
BODY_S: Final = 150.0
BODY_SILENCE_S: Final = 20.0  #: Seconds that a body may pause. A mobile client may lose its network for some seconds.
#: The largest read of a body. With asyncio's default of 256 KiB, twenty bodies that arrive together take 20 ms of each turn of
#: the event loop, which delays every event of the responses in progress by as much.
READ_BYTES: Final = 32 * 1024
#: Content encodings of a request that aiohttp decodes. If the library for an encoding is missing, aiohttp refuses the request.
ENCODINGS: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
#: How many conversation turns are freed in one step, because freeing a long conversation at once blocks the event loop.
FORGOTTEN_AT_ONCE: Final = 2000
VERSIONS: Final = frozenset({"v1", "v1beta"})


@define(kw_only=True)
class Stored:
    """A request, completed with the earlier responses that it refers to."""

    body: bytes = field(repr=False)
    previous_id: str = ""  #: the id of the response that the request continues; empty: none
    #: The whole input for the model, which is kept with the response; empty if it is not kept.
    input: bytes = field(default=b"", repr=False)
    is_kept: bool = False


@frozen(kw_only=True)
class Ask:
    """What a client requests. ``request`` has the model and the stream flag, wherever the client put them."""

    dialect: str
    operation: Operation
    model: str
    mark: str = ""  #: the suffix of the model's name that asks for a feature (``Endpoint.marks``)
    stream: bool
    as_array: bool = False  #: The stream must be sent as one JSON array. See ``json_array.py``.
    request: Request = field(repr=False)  # must not be logged: it has people's messages
    #: The repairs that were made while the request was read.
    report: StreamReport = field(factory=StreamReport, repr=False)
    heavy: bool = False  #: whether the request is so large that it is translated in a thread
    background: bool = False  #: the response continues in the background, even without a reader
    #: The client does not wait for the response. ``stream`` is true then, because the response is kept as a stream.
    at_once: bool = False
    #: The responses that this request refers to, and what is kept of it; None: the application keeps no responses.
    stored: Stored | None = field(default=None, repr=False)
    #: The memory that the request holds of the application's budget. The receiver of the request shrinks it to 0 at the end.
    hold: Hold = field(factory=Hold, repr=False)

    def let_go(self) -> None:
        """Free the conversation, which is not sent again. Keep the tools, which translating the response needs."""
        _forget(self.request.turns)
        self.request.turns, self.request.extras = [], {}
        kept = 0 if self.stored is None else len(self.stored.input)
        if self.stored is not None:
            self.stored.body = b""
        self.hold.shrink(sum(map(_size_of, self.request.tools)) + kept)


class Recall(Protocol):
    """The responses that an application keeps, for requests that refer to them."""

    async def whole(
        self, request: web.Request, form: StoredForm, asked: Request, body: bytes, hold: Hold
    ) -> Stored | None:
        """Return a request that is complete by itself; None if requests of this application or form can't refer to kept ones.

        ``hold`` gets the added bytes before the request is completed. Raises Refused if the budget has no room for them, and
        if the request refers to something that is not kept.
        """

    async def answer(self, request: web.Request, answer_id: str) -> bytes | None:
        """Return a kept response (``KeptAnswer``); None: not kept. Raises Refused if the store can't be read."""


RECALL: Final = web.AppKey("streamkit-recall", Recall)  #: an application without this key keeps no responses


def _forget(turns: list[Turn]) -> None:
    """Empty a long list in slices, one per turn of the event loop: freeing 60,000 turns at once blocked it for 50 ms."""
    if len(turns) > FORGOTTEN_AT_ONCE:
        del turns[-FORGOTTEN_AT_ONCE:]
        asyncio.get_running_loop().call_soon(_forget, turns)


def _size_of(tool: Tool) -> int:
    """Return roughly how many bytes a tool definition has."""
    described = [tool.name, tool.description, tool.parameters, tool.format, tool.extras, tool.raw]
    return len(orjson.dumps(described, default=str))


@cache
def surfaces() -> Mapping[str, Surface]:
    """Return the paths and formats for clients of each dialect, by dialect name. Includes dialects of other packages."""
    return {name: dialect.http.surface for name, dialect in DIALECTS.items() if dialect.http.surface is not None}


def surface_of(dialect: str) -> Surface:
    """Return the paths and formats for clients of ``dialect``. Raises UsageError if such clients are not served."""
    found = surfaces().get(dialect)
    if found is None:
        name = dialect_named(dialect).name
        raise UsageError(f"clients of {quoted(name)} are not served; the served dialects are {', '.join(surfaces())}")
    return found


def aliases(surface: Surface) -> Mapping[str, Operation]:
    """Return the paths that result from a base URL with a missing or doubled version, or with a slash at its end."""
    return {other: operation for path, operation in surface.paths.items() for other in misspelt(path)}


def misspelt(path: str) -> tuple[str, ...]:
    """Return how clients change ``path`` if people mistype the base URL: ``/messages``, ``/v1/v1/messages``."""
    version, rest = path[1:].split("/", 1)
    twice = f"/{version}{path}"
    return (f"/{path}", twice, f"/{rest}") if version in VERSIONS else (f"/{path}", twice)


@cache
def _marks() -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for endpoint in endpoints() for mark in endpoint.marks))


def unmarked(model: str) -> tuple[str, str]:
    """Return a model's name, and the suffix that asks for a feature; "" for none."""
    if not model.lower().endswith(_marks()):
        return model, ""
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
    """Read the request of a client of ``dialect``. ``address`` chooses the model; by default the request names it.

    The application's ``client_max_size`` limits the body's size; the body must arrive within ``body_s`` seconds. Raises
    Refused, and UsageError for a dialect whose clients are not served.
    """
    hold = hold_in(request)
    try:
        raw = await _whole_body(request, dialect, hold, body_s)
        return await ask_in(request, dialect, raw, hold, operation=operation, address=address)
    except BaseException:
        hold.shrink(0)
        raise


async def ask_in(
    request: web.Request,
    dialect: str,
    raw: bytes,
    hold: Hold,
    *,
    operation: Operation = "generate",
    address: Callable[[RequestLine, Request], Address] | None = None,
    report: StreamReport | None = None,
) -> Ask:
    """Return the request in the body ``raw``. Raises Refused.

    ``hold`` already includes the bytes of ``raw``; the JSON values are added. ``report`` has the repairs of a message, whose
    body is not that of ``request``.
    """
    surface, is_message, heavy = surface_of(dialect), report is not None, is_heavy(len(raw), await _counted(raw, hold))
    report = StreamReport() if report is None else report
    stored, background = None, False
    try:
        asked = await _decoded(raw, dialect, operation, report, heavy=heavy)
        if surface.stored is not None and operation != "count":
            recall = request.config_dict.get(RECALL)
            background = surface.stored.background(asked, recall is not None and not is_message)
            stored = None if recall is None else await recall.whole(request, surface.stored, asked, raw, hold)
            if stored is not None and stored.body is not raw:
                heavy = is_heavy(len(stored.body), await _counted(stored.body, hold))
                asked = await _decoded(stored.body, dialect, operation, StreamReport(), heavy=heavy)
                surface.stored.background(asked, True)  # this also removes the member from what is sent
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
    """Return the request in a body. Raises BadRequest."""

    def read() -> Request:
        body, member = surface_of(dialect).counted(raw, report) if operation == "count" else (raw, "")
        try:
            return decode_request(body, dialect, report=report)
        except BadRequest as error:
            if member:
                raise BadRequest(f"{member}.{error.path}", error.reason) from error
            # not `raise error from error`: an error that is its own cause keeps the request until garbage is collected
            raise

    return await in_thread(read) if heavy else read()


async def read_body(request: web.Request, dialect: str) -> bytes:
    """Return the decompressed body of a request of a client of ``dialect``, without holding memory for it. Raises Refused."""
    with hold_in(request) as hold:
        raw = await _whole_body(request, dialect, hold, BODY_S)
        await _counted(raw, hold)
        return raw


async def _counted(raw: bytes, hold: Hold) -> int:
    """Return the number of JSON values in a body, after adding them to ``hold``. Raises Refused."""
    values = await count_values(raw, REQUEST_VALUES)
    if values > REQUEST_VALUES:
        message = f"the body exceeds the limit of {REQUEST_VALUES:,} JSON values; send less at once"
        raise Refused(ProviderFailed("too_large", message))
    hold.add(values * VALUE_BYTES)
    return values


async def _whole_body(request: web.Request, dialect: str, hold: Hold, body_s: float) -> bytes:
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        message = f"the Content-Encoding {shown(encoding)} is not supported; use gzip, or none"
        raise Refused(
            with_status("invalid_request", message, 415, dialect), {"Accept-Encoding": "gzip, deflate, identity"}
        )
    try:
        if request.content.is_eof():  # the body has arrived: nothing is waited for
            return await _read(request, dialect, hold)
        async with asyncio.timeout(body_s):
            return await _read(request, dialect, hold)
    except TimeoutError as error:
        raise _too_slow(f"the body did not arrive within {body_s:g} s", dialect) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        message = "the body was interrupted, or does not match its Content-Encoding"
        raise Refused(ProviderFailed("invalid_request", message), {"Connection": "close"}) from error


async def _read(request: web.Request, dialect: str, hold: Hold) -> bytes:
    """Read the body. ``request.read`` would unpack a decompression bomb in pieces as large as the limit, several at once."""
    announced = min(request.content_length or 0, request.client_max_size)
    hold.budget.refuse_beyond(max(0, announced - UNCOUNTED_BYTES))  # before any of the body is read
    transport: Any = request.transport
    if hasattr(transport, "max_size"):  # asyncio's own transport
        transport.max_size = READ_BYTES
    parts: list[bytes] = []
    size = 0
    content = request.content
    while True:
        chunk = await (content.readany() if content.is_eof() else _before_silence(content, dialect))
        if not chunk:
            return b"".join(parts)
        size += len(chunk)
        if size > request.client_max_size > 0:
            message = f"the body exceeds the limit of {request.client_max_size:,} bytes; send less at once"
            raise Refused(ProviderFailed("too_large", message))
        hold.add(len(chunk))
        parts.append(chunk)


async def _before_silence(content: StreamReader, dialect: str) -> bytes:
    """Return the next bytes of a body. Raises Refused if none arrive in time."""
    try:
        async with asyncio.timeout(BODY_SILENCE_S) as silence:
            return await content.readany()
    except TimeoutError as error:
        if silence.expired():
            raise _too_slow(f"no bytes of the body arrived for {BODY_SILENCE_S:g} s", dialect) from error
        raise


def _too_slow(message: str, dialect: str) -> Refused:
    return Refused(with_status("timeout", message, 408, dialect), {"Connection": "close"})
