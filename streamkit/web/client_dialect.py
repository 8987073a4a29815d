"""Find out the dialect of a client from its request's path.

On paths that several dialects share, a header decides that only one dialect's clients send. So even a request for an unknown
path or with a wrong method gets an error that the client's library can parse.

Paths are matched before any key is checked, so each pattern must take linear time on any path. A part in the middle of a path
therefore matches up to the path's end, and the end of a path is compared separately.

Source: clients.md §10.2, §10.3.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Container
from functools import lru_cache
from itertools import chain
from typing import Final, TypeAlias

from aiohttp import HttpVersion11, web
from aiohttp.web_urldispatcher import MatchInfoError
from attrs import evolve

from streamkit.text.quoting import shortened
from streamkit.web.refusals import Refused, shown, with_status
from streamkit.web.surfaces import surfaces

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Paths that several dialects share, so that headers decide. Any model's name may follow. The pattern matches at the end of a
#: path, because an application may serve these paths after a prefix.
_MODELS: Final = re.compile(r"(?:^/?|/v1)/models(?:/.*+)?\Z", re.DOTALL)
#: Paths that streamkit serves itself. Those without a version match only at the root of the server.
_OURS: Final = re.compile(
    r"/(?:v1|v1beta|api)(?:/|$)|^//?(?:chat/completions|messages|responses|models|tunedModels)(?:/|$)"
)
_OF_A_MODEL: Final = re.compile(r"(?:^/?|/v1|/v1beta)/models/.", re.DOTALL)
KNOWN_CHARS: Final = 200  #: the longest path whose dialect is remembered
METHOD_CHARS: Final = 20  #: an HTTP method may be any word; a message repeats this many characters of it


def client_dialect(request: web.Request) -> str:
    """Return the client's dialect, by path or else by header. If neither decides, return the first dialect."""
    return dialect_of(request.path, request.headers)


def dialect_of(path: str, headers: Container[str]) -> str:
    """Return the client's dialect for a path and header names. The names' letter case does not matter."""
    every = surfaces()
    by_path = _dialect_of_path(path) if len(path) <= KNOWN_CHARS else _dialect_of_path.__wrapped__(path)
    return by_path or next((name for name in every if every[name].header in headers), next(iter(every)))


@lru_cache(maxsize=512)
def _dialect_of_path(path: str) -> str | None:
    """Return the client's dialect by path alone; None: the headers decide."""
    every, method = surfaces(), _method_of_a_model(path)
    by_method = (name for name in every if method and method in every[name].methods)
    shared = _MODELS.search(path) is not None
    by_path = (name for name in every if not shared and every[name].path.search(path))
    return next(chain(by_method, by_path), None)


def _method_of_a_model(path: str) -> str:
    """Return the method of a model after the last colon of a path (``…/models/NAME:METHOD``); "" for other paths."""
    before, _, method = path.rpartition(":")
    return method if method.isalpha() and method.isascii() and _OF_A_MODEL.search(before) else ""


def wants_socket(request: web.Request) -> bool:
    """Return whether a request asks for a WebSocket (RFC 6455 §4.1)."""
    protocols = request.headers.get("Upgrade", "").lower().split(",")
    return request.method == "GET" and "websocket" in (protocol.strip() for protocol in protocols)


def no_socket(request: web.Request) -> Refused:
    """Return the refusal of a WebSocket, with status 426.

    After 426 Codex continues over HTTP at once; after other statuses it first tries seven times. RFC 9110 §15.5.22 requires a
    header with the supported protocol, and §7.8 requires that ``Connection`` names this header.
    """
    message = (
        f"{shown(request.path)} does not serve WebSockets; send the request with POST, and read its events over HTTP"
    )
    failed = with_status("invalid_request", message, 426, client_dialect(request))
    return Refused(evolve(failed, code="websocket_unsupported"), {"Upgrade": "HTTP/1.1", "Connection": "Upgrade"})


def unrouted(request: web.Request, error: web.HTTPException) -> web.Response:
    """Return the response for a path that is not served (404), or not with this method (405), in the client's dialect.

    ``error`` is the router's: ``request.match_info.http_exception``.
    """
    dialect = client_dialect(request)
    # the path without the query, since some clients send keys in the query
    asked = f"{shortened(request.method, METHOD_CHARS)} {shown(request.path)}"
    unknown = request.method == "POST" and _method_of_a_model(request.path) != ""  # the path also serves GET
    if isinstance(error, web.HTTPMethodNotAllowed) and wants_socket(request):
        return no_socket(request).response(dialect)
    if isinstance(error, web.HTTPMethodNotAllowed) and not unknown:
        allowed = ", ".join(sorted(error.allowed_methods))
        failed = with_status("invalid_request", f"{asked} is not supported; use {allowed}", 405, dialect)
        return Refused(failed, {"Allow": allowed}).response(dialect)
    every = surfaces().values()
    known = ", ".join(path for surface in every for path in surface.generate if "{" not in path)
    in_words = "".join(f" or {surface.in_words}" for surface in every if surface.in_words)
    message = f"{asked} does not exist; send requests to {known}{in_words}"
    if any(surface.kept is not None and surface.kept.search(request.path) for surface in every):
        message = f"{asked} is not served: no response with this id is kept here"
    failed = with_status("not_found", message, 404, dialect)
    return Refused(evolve(failed, code="not_found")).response(dialect)  # OpenAI's usual code here means: no such model


async def expected(request: web.Request) -> None:
    """Handle the ``Expect`` header (RFC 9110 §10.1.1): answer 100 if the client waits for that; ignore other expectations.

    aiohttp's own handler refuses other expectations with a message that repeats the client's text, and fails if that text is
    not UTF-8.
    """
    if request.version == HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # so that ``output_size`` counts only the bytes of this response


class _Unserved(MatchInfoError):
    """The route of a path that is not served. It handles ``Expect`` with ``expected``."""

    @property
    def expect_handler(self) -> Handler:
        return expected  # type: ignore[return-value]  # for aiohttp, None means: continue


def expect_anything(router: web.UrlDispatcher) -> None:
    """Use ``expected`` on paths without a route too; aiohttp has a different handler for those."""
    resolve = router.resolve

    async def resolved(request: web.Request) -> web.UrlMappingMatchInfo:
        found = await resolve(request)
        return found if found.http_exception is None else _Unserved(found.http_exception)

    vars(router)["resolve"] = resolved


def in_dialect(handler: Handler) -> Handler:
    """Return the handler, with its refusals sent in the client's dialect."""

    async def refusing(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as refused:
            return refused.response(client_dialect(request))

    return refusing


@web.middleware
async def refuse_in_dialect(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A middleware: send each Refused of a handler, and errors for unknown API paths, in the client's dialect."""
    error = request.match_info.http_exception
    if error is not None and is_of_api(request.path):
        return unrouted(request, error)
    return await in_dialect(handler)(request)


def is_of_api(path: str) -> bool:
    """Return whether a path is one of an API, served or not."""
    return any(pattern.search(path) for pattern in (_OURS, *(surface.path for surface in surfaces().values())))
