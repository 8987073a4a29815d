"""Who asks: the dialect of a client, told by the path, and where several share one by a header that only its clients send.

So a client that asks for what there is not, or in a way that there is not, still gets an error that its library can read.

A path is looked at before any key is, so each pattern reads it once, whatever stands in it: what begins and is not the end is
taken to the end of the path, and the end of a path is compared by itself.

Source: clients.md §10.2, §10.3.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Container, Iterable
from itertools import chain
from typing import Final, TypeAlias

from aiohttp import HttpVersion11, web
from aiohttp.web_urldispatcher import MatchInfoError
from attrs import evolve

from streamkit.dialects.http import STATELESS
from streamkit.text.quoting import shortened
from streamkit.web.refusals import Refused, shown, with_status
from streamkit.web.surfaces import surfaces

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Paths that several dialects share, so that the headers tell: behind it may stand anything that is a model's name. It is
#: looked for at the end: an application may serve us under a prefix of its own.
_MODELS: Final = re.compile(r"(?:^/?|/v1)/models(?:/.*+)?\Z", re.DOTALL)
#: The paths without a version are ours at the root only.
_OURS: Final = re.compile(
    r"/(?:v1|v1beta|api)(?:/|$)|^//?(?:chat/completions|messages|responses|models|tunedModels)(?:/|$)"
)
_OF_A_MODEL: Final = re.compile(r"(?:^/?|/v1|/v1beta)/models/.", re.DOTALL)
#: A method of HTTP is any word, of which so much is repeated.
METHOD_CHARS: Final = 20


def client_dialect(request: web.Request) -> str:
    """The dialect of the client, by path, else by header; the first of the table where neither tells."""
    return dialect_of(request.path, request.headers)


def dialect_of(path: str, headers: Container[str]) -> str:
    """Return the same for a path and the names of headers, in any case."""
    every = surfaces()
    method, shared = _method_of_a_model(path), _MODELS.search(path) is not None
    by_method = (name for name in every if method and method in every[name].methods)
    by_path = (name for name in every if not shared and every[name].path.search(path))
    by_header = (name for name in every if every[name].header in headers)
    return next(chain(by_method, by_path, by_header, every))


def _method_of_a_model(path: str) -> str:
    """What is asked of a model behind the last colon of its path; "" for other paths."""
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


def not_allowed(request: web.Request, methods: Iterable[str]) -> Refused:
    """The refusal (405) of a method at a path that is served by ``methods`` only."""
    allowed = ", ".join(sorted(methods))
    message = f"{shortened(request.method, METHOD_CHARS)} {shown(request.path)} is not served here, only {allowed}"
    failed = with_status("invalid_request", message, 405, client_dialect(request))
    return Refused(failed, {"Allow": allowed})


def unrouted(request: web.Request, error: web.HTTPException) -> web.Response:
    """The answer to a path that is not served (404), or not in this way (405), in the client's dialect.

    ``error`` is what the router says: ``request.match_info.http_exception``.
    """
    dialect = client_dialect(request)
    # without the query, in which keys are sent
    asked = f"{shortened(request.method, METHOD_CHARS)} {shown(request.path)}"
    unknown = request.method == "POST" and _method_of_a_model(request.path) != ""  # the same path may be looked up
    if isinstance(error, web.HTTPMethodNotAllowed) and wants_socket(request):
        return no_socket(request).response(dialect)
    if isinstance(error, web.HTTPMethodNotAllowed) and not unknown:
        return not_allowed(request, error.allowed_methods).response(dialect)
    every = surfaces().values()
    known = ", ".join(path for surface in every for path in surface.generate if "{" not in path)
    in_words = "".join(f" or {surface.in_words}" for surface in every if surface.in_words)
    message = f"{asked} is not served here; requests go to {known}{in_words}"
    if any(surface.kept is not None and surface.kept.search(request.path) for surface in every):
        message = f"{asked} is not served: {STATELESS}"
    failed = with_status("not_found", message, 404, dialect)
    return Refused(evolve(failed, code="not_found")).response(dialect)  # OpenAI's usual code says: no such model


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
    if error is not None and _is_ours(request.path):
        return unrouted(request, error)
    return await in_dialect(handler)(request)


def _is_ours(path: str) -> bool:
    return bool(_OURS.search(path)) or any(surface.path.search(path) for surface in surfaces().values())
