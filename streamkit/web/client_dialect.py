"""Who asks: the dialect of a client, told by the path, and where several share one by a header that only its clients send.

So a client that asks for what there is not, or in a way that there is not, still gets an error that its library can read.

A path is looked at before any key is, so each pattern reads it once, whatever stands in it: what begins and is not the end is
taken to the end of the path, and the end of a path is compared by itself.

Source: clients.md §10.2, §10.3. Seen: google-genai 3.4 sends ``x-goog-api-key`` and never ``?key=``; anthropic 2.12 sends
``anthropic-version`` with every request, and its key as ``Authorization``.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import HttpVersion11, web
from aiohttp.web_urldispatcher import MatchInfoError
from attrs import evolve

from streamkit.text.quoting import shortened
from streamkit.web.refusals import Refused, shown, with_status
from streamkit.web.surfaces import STATELESS, SURFACES

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Paths that tell the dialect, or that it is for the headers to tell. Each is looked for at the end: an application may serve
#: us under a prefix of its own.
_BY_PATH: Final = tuple(
    (re.compile(pattern, re.DOTALL), dialect)
    for pattern, dialect in (
        (r"(?:^/?|/v1)/models(?:/.*+)?\Z", None),  # behind it may stand anything that is a model's name
        (r"(?:^/?|/v1)/chat/completions\Z", "openai-chat"),
        (r"(?:^/?|/v1)/responses(?:/.*+)?\Z", "openai-responses"),
        (r"(?:^/?|/v1)/messages(?:/.*+)?\Z", "anthropic"),
        (r"/v1beta(?:/.*+)?\Z|(?:^/?|/v1)/tunedModels(?:/.*+)?\Z", "gemini"),
        (r"/api/[a-z]++\Z", "ollama"),
    )
)
_BY_HEADER: Final = (("x-goog-api-key", "gemini"), ("anthropic-version", "anthropic"))
#: ``:generateContent, :streamGenerateContent or :countTokens``
_GEMINI_ENDS: Final = " or ".join(
    ", ".join(dict.fromkeys(f":{path.rpartition(':')[2]}" for path in SURFACES["gemini"].paths)).rsplit(", ", 1)
)
#: The paths without a version are ours at the root only.
_OURS: Final = re.compile(
    r"/(?:v1|v1beta|api)(?:/|$)|^//?(?:chat/completions|messages|responses|models|tunedModels)(?:/|$)"
)
_OF_A_RESPONSE: Final = re.compile(r"(?:^/?|/v1)/responses/")
_OF_A_MODEL: Final = re.compile(r"(?:^/?|/v1|/v1beta)/models/.", re.DOTALL)
#: A method of HTTP is any word, of which so much is repeated.
METHOD_CHARS: Final = 20
_METHODS: Final = frozenset(path.rpartition(":")[2] for path in SURFACES["gemini"].paths)


def client_dialect(request: web.Request) -> str:
    """The dialect of the client, by path, else by header; Chat where neither tells."""
    if _method_of_a_model(request.path) in _METHODS:
        return "gemini"
    by_path = next((dialect for pattern, dialect in _BY_PATH if pattern.search(request.path)), None)
    return by_path or next((dialect for header, dialect in _BY_HEADER if header in request.headers), "openai-chat")


def _method_of_a_model(path: str) -> str:
    """Gemini's way to say what is asked of a model, behind the last colon; "" for other paths."""
    before, _, method = path.rpartition(":")
    return method if method.isalpha() and method.isascii() and _OF_A_MODEL.search(before) else ""


def wants_socket(request: web.Request) -> bool:
    """Whether a client asks for a WebSocket (RFC 6455 §4.1)."""
    protocols = request.headers.get("Upgrade", "").lower().split(",")
    return request.method == "GET" and "websocket" in (protocol.strip() for protocol in protocols)


def no_socket(request: web.Request) -> Refused:
    """The refusal of a WebSocket: 426, at which Codex goes on over HTTP at once, and after seven attempts at any other.

    RFC 9110 §15.5.22 wants the protocol that is spoken beside it, and its §7.8 names that header in ``Connection``.
    """
    message = f"no WebSocket is served at {shown(request.path)}; POST the request there, and read its events over HTTP"
    failed = with_status("invalid_request", message, 426, client_dialect(request))
    return Refused(evolve(failed, code="websocket_unsupported"), {"Upgrade": "HTTP/1.1", "Connection": "Upgrade"})


def unrouted(request: web.Request, error: web.HTTPException) -> web.Response:
    """The answer to a path that is not served (404), or not in this way (405), in the client's dialect.

    ``error`` is what the router says: ``request.match_info.http_exception``.
    """
    dialect = client_dialect(request)
    asked = (
        f"{shortened(request.method, METHOD_CHARS)} {shown(request.path)}"  # without the query, in which keys are sent
    )
    unknown = request.method == "POST" and _method_of_a_model(request.path) != ""  # the same path may be looked up
    if isinstance(error, web.HTTPMethodNotAllowed) and wants_socket(request):
        return no_socket(request).response(dialect)
    if isinstance(error, web.HTTPMethodNotAllowed) and not unknown:
        allowed = ", ".join(sorted(error.allowed_methods))
        failed = with_status("invalid_request", f"{asked} is not served here, only {allowed}", 405, dialect)
        return Refused(failed, {"Allow": allowed}).response(dialect)
    known = ", ".join(path for surface in SURFACES.values() for path in surface.generate if "{" not in path)
    message = f"{asked} is not served here; requests go to {known} or Gemini's paths, which end in {_GEMINI_ENDS}"
    if _OF_A_RESPONSE.search(request.path):
        message = f"{asked} is not served: {STATELESS}"
    failed = evolve(
        with_status("not_found", message, 404, dialect), code="not_found"
    )  # OpenAI's usual code says: no such model
    return Refused(failed).response(dialect)


async def expected(request: web.Request) -> None:
    """What a client expects (RFC 9110 §10.1.1): a body that waits for 100 is asked for, and of all else nothing is known.

    As aiohttp's own, which refuses all else in the client's words, and fails to write those that are no UTF-8.
    """
    if request.version == HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # which is that of the answer


class _Unserved(MatchInfoError):
    """What is not served, whatever its client expects."""

    @property
    def expect_handler(self) -> Handler:
        return expected  # type: ignore[return-value]  # aiohttp takes None for "go on"


def expect_anything(router: web.UrlDispatcher) -> None:
    """Let ``expected`` read expectations on paths that nobody serves too, for which aiohttp has a reader of its own."""
    resolve = router.resolve

    async def resolved(request: web.Request) -> web.UrlMappingMatchInfo:
        found = await resolve(request)
        return found if found.http_exception is None else _Unserved(found.http_exception)

    vars(router)["resolve"] = resolved


def in_dialect(handler: Handler) -> Handler:
    """The same handler, but what it refuses is said in the client's dialect."""

    async def refusing(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as refused:
            return refused.response(client_dialect(request))

    return refusing


@web.middleware
async def refuse_in_dialect(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A middleware, for an application of our own: the same for all handlers, and for paths like ours that nobody serves."""
    error = request.match_info.http_exception
    if error is not None and _OURS.search(request.path):
        return unrouted(request, error)
    return await in_dialect(handler)(request)
