"""The HTTP surface of each client dialect: its paths, and what a request to one of them asks.

What is asked becomes a value, ``Ask``, and nothing of it names an upstream: a body that says ``base_url``, ``api_base`` or
``headers`` only has members that nobody here reads (limits.md T5). The model and whether to stream stand in the body, in
Gemini's dialect in the URL, whatever its body says.

No state is kept between requests. A request that leans on an earlier one is refused with what to send instead.

Refused, as ``Refused``: bodies that are too large, too slow or encoded in a way that nobody here reads; whatever
``decode_request`` calls a bad request, nesting that is too deep included.

Source: clients.md §10.1, §10.5; dialects.md §1.3, §2.3, §3.2, §4.1, §5.1; limits.md T4, T5, T8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import orjson
from aiohttp import web
from attrs import field, frozen

from streamkit.conversation.messages import Request, Tool
from streamkit.dialects.gemini.wire import camel_case
from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.framing.value_count import VALUE_BYTES
from streamkit.limits import REQUEST_VALUES
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request
from streamkit.web.budget import UNCOUNTED_BYTES, Hold, hold_in
from streamkit.web.heavy import beside, count_values, is_heavy
from streamkit.web.refusals import Refused, bad_request, shown, with_status
from streamkit.web.upstream import Operation

__all__ = ["SURFACES", "Address", "Ask", "Refused", "Surface", "misspelt", "read_ask", "read_body"]

#: How long a body may take to arrive, in seconds: 32 MiB at 2 Mbit/s take 134. One that drips holds a task and its memory.
BODY_S: Final = 150.0
#: How long nothing of it may come, in seconds. A client on the move loses its network for some.
BODY_SILENCE_S: Final = 20.0
#: What is read of a body at once. With asyncio's own 256 KiB, twenty bodies that come at once take 20 ms of each turn of the
#: event loop, and the answers under way as long for each event.
READ_BYTES: Final = 32 * 1024
#: What aiohttp decodes by itself, or refuses by itself where it has no library for it.
ENCODINGS: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
#: google-genai writes ``models/x`` or ``tunedModels/y`` and leaves slashes in names as they are.
GEMINI_NAME: Final = "{name:(?:models|tunedModels)/.+}"
VERSIONS: Final = frozenset({"v1", "v1beta"})
STREAM_METHOD: Final = ":streamGenerateContent"
#: Gemini's member for a whole request, in a request to count its tokens.
COUNTED: Final = "generateContentRequest"
STATELESS: Final = "this gateway is stateless: it keeps no responses and no conversations"


@frozen(kw_only=True)
class Ask:
    """What a client asks. ``request`` has the model and whether to stream, wherever they stood."""

    dialect: str
    operation: Operation
    model: str
    stream: bool
    #: Gemini without ``alt=sse``: the stream is to be one JSON array. See ``json_array.py``.
    as_array: bool = False
    request: Request = field(repr=False)  # what people said belongs in no log
    #: What was repaired as it was read.
    report: StreamReport = field(factory=StreamReport, repr=False)
    #: Whether it is large enough to be translated in a thread.
    heavy: bool = False
    #: What it holds of the application's budget; whoever got the request shrinks it to nothing once it is over.
    hold: Hold = field(factory=Hold, repr=False)

    def let_go(self) -> None:
        """Forget the conversation, which nobody is asked with any more. What the answer is translated by stays: the tools."""
        self.request.turns, self.request.extras = [], {}
        self.hold.shrink(sum(map(_size_of, self.request.tools)))


def _size_of(tool: Tool) -> int:
    """About how many bytes a definition has."""
    described = [tool.name, tool.description, tool.parameters, tool.format, tool.extras, tool.raw]
    return len(orjson.dumps(described, default=str))


class ReadCount(Protocol):
    """Reads a request for a count of tokens; what it repairs is in the report."""

    def __call__(self, raw: bytes, *, report: StreamReport) -> Request: ...


class Address(NamedTuple):
    """Which model is asked, and how it is to answer."""

    model: str
    stream: bool
    as_array: bool = False


@frozen(kw_only=True)
class Surface:
    """The paths of one dialect, all POST, as patterns of aiohttp's router, and what is peculiar to them."""

    dialect: str
    generate: tuple[str, ...]
    count: tuple[str, ...] = ()
    #: Raises BadRequest.
    address: Callable[[web.Request, Request], Address]
    #: Raises BadRequest for what is well-formed and can't be served here.
    check: Callable[[Request], None] = lambda _asked: None
    #: Reads a request for a count, where it is not as any other. Raises BadRequest.
    read_count: ReadCount | None = None

    @property
    def paths(self) -> Mapping[str, Operation]:
        return {**dict.fromkeys(self.generate, "generate"), **dict.fromkeys(self.count, "count")}

    @property
    def aliases(self) -> Mapping[str, Operation]:
        """The paths that come of a base URL with a version too few, one too many or a slash at its end."""
        return {other: operation for path, operation in self.paths.items() for other in misspelt(path)}


def misspelt(path: str) -> tuple[str, ...]:
    """What clients make of ``path`` when people write the base URL otherwise: ``/messages``, ``/v1/v1/messages``."""
    version, rest = path[1:].split("/", 1)
    twice = f"/{version}{path}"
    return (f"/{path}", twice, f"/{rest}") if version in VERSIONS else (f"/{path}", twice)


async def read_ask(
    request: web.Request,
    surface: Surface,
    operation: Operation = "generate",
    *,
    body_s: float = BODY_S,
) -> Ask:
    """Read what a request to one of ``surface``'s paths asks.

    The body's size is bounded by the application's ``client_max_size``, and the time it takes by ``body_s`` seconds. Raises
    Refused.
    """
    hold, report = hold_in(request), StreamReport()
    try:
        raw, values = await _counted_body(request, surface.dialect, hold, body_s)
        heavy = is_heavy(len(raw), values)

        def read() -> tuple[Request, Address]:
            counts = operation == "count" and surface.read_count is not None
            readers = (
                surface.read_count
                if counts and surface.read_count
                else partial(decode_request, dialect=surface.dialect)
            )
            asked = readers(raw, report=report)
            surface.check(asked)
            return asked, surface.address(request, asked)

        try:
            asked, (model, stream, as_array) = await beside(read) if heavy else read()
        except BadRequest as error:
            raise Refused(bad_request(error)) from error
    except BaseException:
        hold.shrink(0)
        raise
    asked.model, asked.stream = model, stream
    return Ask(
        dialect=surface.dialect,
        operation=operation,
        model=model,
        stream=stream,
        as_array=as_array,
        request=asked,
        report=report,
        heavy=heavy,
        hold=hold,
    )


async def read_body(request: web.Request, dialect: str, *, body_s: float = BODY_S) -> bytes:
    """The body of a request of a client of ``dialect``, decompressed, that is read at once and not held. Raises Refused."""
    hold = hold_in(request)
    try:
        return (await _counted_body(request, dialect, hold, body_s))[0]
    finally:
        hold.shrink(0)


async def _counted_body(request: web.Request, dialect: str, hold: Hold, body_s: float) -> tuple[bytes, int]:
    """The body, and how many JSON values it has: no more than ``REQUEST_VALUES``. Raises Refused."""
    raw = await _whole_body(request, dialect, hold, body_s)
    values = await count_values(raw, REQUEST_VALUES)
    if values > REQUEST_VALUES:
        message = f"the body has more than the {REQUEST_VALUES:,} JSON values that are read; send less at once"
        raise Refused(ProviderFailed("too_large", message))
    hold.add(values * VALUE_BYTES)
    return raw, values


async def _whole_body(request: web.Request, dialect: str, hold: Hold, body_s: float) -> bytes:
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        message = f"a body with the Content-Encoding {shown(encoding)} can't be read; send gzip, or none"
        raise Refused(
            with_status("invalid_request", message, 415, dialect), {"Accept-Encoding": "gzip, deflate, identity"}
        )
    try:
        async with asyncio.timeout(body_s):
            return await _read(request, hold)
    except web.HTTPRequestEntityTooLarge as error:
        message = f"the body is larger than the {request.client_max_size:,} bytes that are read; send less at once"
        raise Refused(ProviderFailed("too_large", message)) from error
    except SilentBodyError as error:
        message = f"nothing came of the body for {BODY_SILENCE_S:g} s"
        raise Refused(with_status("timeout", message, 408, dialect), {"Connection": "close"}) from error
    except TimeoutError as error:
        message = f"the body did not arrive within {body_s:g} s"
        raise Refused(with_status("timeout", message, 408, dialect), {"Connection": "close"}) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        message = "the body broke off, or is not what its Content-Encoding says"
        raise Refused(ProviderFailed("invalid_request", message)) from error


async def _read(request: web.Request, hold: Hold) -> bytes:
    """As ``request.read``, which unpacks a bomb in pieces as large as the bound, and has several of them in memory."""
    announced = min(request.content_length or 0, request.client_max_size)
    hold.budget.refuse_beyond(max(0, announced - UNCOUNTED_BYTES))  # before any of it is read
    transport: Any = request.transport
    if hasattr(transport, "max_size"):  # asyncio's own
        transport.max_size = READ_BYTES
    parts: list[bytes] = []
    size = 0
    while chunk := await _next(request):
        size += len(chunk)
        if size > request.client_max_size > 0:
            raise web.HTTPRequestEntityTooLarge(request.client_max_size)
        hold.add(len(chunk))
        parts.append(chunk)
    return b"".join(parts)


async def _next(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SILENCE_S) as silence:
            return await request.content.readany()
    except TimeoutError as error:
        if silence.expired():
            raise SilentBodyError from error
        raise


class SilentBodyError(Exception):
    """A client sent nothing of its body for long."""


# -- which model, and how ----------------------------------------------------------------------------------------------


def _in_body(_request: web.Request, asked: Request) -> Address:
    if not asked.model:
        raise BadRequest("model", "the name of a model is needed, and there is none")
    return Address(asked.model, asked.stream is True)


def _in_url(request: web.Request, _asked: Request) -> Address:
    """Gemini's: the name behind ``models/``; a tuned model keeps its prefix, since it may be called as another is."""
    stream = request.path.endswith(STREAM_METHOD)
    alt = request.query.get("alt", "json")
    if alt not in {"json", "sse"}:
        raise BadRequest("alt", f"'sse' or 'json' is needed, not {shown(alt)}")
    return Address(request.match_info["name"].removeprefix("models/"), stream, stream and alt != "sse")


def _refuse_state(asked: Request) -> None:
    """Responses may lean on what a server keeps (dialects.md §2.3), and none is kept here."""
    for path, instead in asked.stored:
        if path != "prompt":  # which is no state of a conversation: an upstream of this dialect may have it
            raise BadRequest(path, f"{STATELESS}; {instead}")
    if asked.extras.get("background"):
        raise BadRequest("background", f"{STATELESS}; ask without background, and with stream: true if it takes long")


def _counted_inside(raw: bytes, *, report: StreamReport) -> Request:
    """Gemini's: bare contents, or a whole request in a member of its own."""
    outer = StreamReport()
    fields = fields_of(raw, outer).spelled(camel_case)
    if COUNTED not in fields:
        return decode_request(raw, "gemini", report=report)
    if "contents" in fields:
        raise fields.wrong(f"this stands beside {COUNTED}, and one of them is read", "contents")
    if not isinstance(fields.peek(COUNTED), dict):
        raise fields.wrong("an object is needed", COUNTED)
    try:
        inner = decode_request(fields.text_of(COUNTED).encode(), "gemini", report=report)
    except BadRequest as error:
        raise BadRequest(f"{COUNTED}.{error.path}", error.reason) from error
    report.repairs.update(outer.repairs)  # of the text around it; bare contents are read once more instead
    return inner


# -- the table ---------------------------------------------------------------------------------------------------------


def _gemini_paths(*methods: str) -> tuple[str, ...]:
    """Both versions: google-genai 3.4 asks ``/v1``, earlier ones and most programs ``/v1beta``."""
    return tuple(f"/{version}/{GEMINI_NAME}:{method}" for version in ("v1", "v1beta") for method in methods)


_CHAT: Final = Surface(dialect="openai-chat", generate=("/v1/chat/completions",), address=_in_body)
_RESPONSES: Final = Surface(
    dialect="openai-responses",
    generate=("/v1/responses",),
    count=("/v1/responses/input_tokens",),
    address=_in_body,
    check=_refuse_state,
)
_ANTHROPIC: Final = Surface(
    dialect="anthropic", generate=("/v1/messages",), count=("/v1/messages/count_tokens",), address=_in_body
)
#: It streams unless it is told not to, as ``decode_request`` says.
_OLLAMA: Final = Surface(dialect="ollama", generate=("/api/chat",), address=_in_body)
_GEMINI: Final = Surface(
    dialect="gemini",
    generate=_gemini_paths("generateContent", "streamGenerateContent"),
    count=_gemini_paths("countTokens"),
    address=_in_url,
    read_count=_counted_inside,
)
SURFACES: Final[Mapping[str, Surface]] = {
    surface.dialect: surface for surface in (_CHAT, _RESPONSES, _ANTHROPIC, _OLLAMA, _GEMINI)
}
