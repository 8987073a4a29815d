"""The inspector's web server: static files for the page, and a feed of streams for clients that have the token.

Streams have private content that other web pages must not read. The feed requires the token in the ``Authorization`` header,
which no link and no form can set. The page takes the token from the URL's fragment, which browsers never send. A request for a
host name other than this machine's gets status 421 (DNS rebinding), and a browser's request from another site gets 403. The
page's content security policy (CSP) forbids loading from other origins, inline scripts, and markup made from text. No request
changes anything.

Source: observe.md O35, O36, O39; Fetch Metadata (Sec-Fetch-Site); RFC 9110 §15.5.20 (421).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import Feed
from streamkit.web.hosts import Hosts, guarded

WATCHERS: Final = 8  #: the most inspector pages that may be open at once
PATIENCE_S: Final = 10.0  #: seconds after which a connection is closed if the page reads nothing
TICK_S: Final = 0.05  #: changes within this many seconds are sent together
#: Seconds without changes after which an empty line is sent, which shows whether the page is still connected.
ALIVE_S: Final = 15.0
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final[Mapping[str, str]] = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def new_token() -> str:
    """Return a random token of 256 bits, which cannot be guessed."""
    return secrets.token_urlsafe(32)


def url_with(url: str, token: str) -> str:
    """Return the page's address with the token as its fragment. Browsers do not send it, so no log contains the token."""
    return f"{url}/#{token}"


def inspector_app(captures: Captures, token: str, hosts: Hosts | None = None) -> web.Application:
    """Return the web application. ``hosts`` are the accepted ``Host`` names, by default this machine's names."""
    app = web.Application(middlewares=[guarded(hosts or Hosts(), "inspector", own_page=True)])
    app.on_response_prepare.append(_with_headers)
    for path in sorted(STATIC.iterdir()):
        name = "" if path.name == "index.html" else path.name
        app.router.add_get(f"/{name}", _file(path))
    app.router.add_get("/feed", _feed(captures, token), allow_head=False)
    return app


async def _with_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _file(path: Path) -> Handler:
    body, media_type = path.read_bytes(), MEDIA_TYPES[path.suffix]

    async def serve(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=media_type, charset="utf-8")

    return serve


def _feed(captures: Captures, token: str) -> Handler:
    """Return the handler of ``GET /feed``: endless JSON Lines. ``?stream=ID`` adds everything in that stream."""
    expected = f"Bearer {token}".encode()

    async def serve(request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            return web.Response(status=401, text="missing or wrong token\n", headers={"WWW-Authenticate": "Bearer"})
        if len(captures.watchers) >= WATCHERS:
            return web.Response(status=503, text=f"{WATCHERS} pages are open already\n")
        changed = asyncio.Event()
        captures.watchers.add(changed)
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
            await _send(request, response, Feed(captures, request.query.get("stream")), changed)
        finally:
            captures.watchers.discard(changed)
        return response

    return serve


async def _send(request: web.Request, response: web.StreamResponse, feed: Feed, changed: asyncio.Event) -> None:
    """Write the feed's messages until the page disconnects, or reads nothing for too long."""
    await response.prepare(request)
    try:
        while True:
            changed.clear()
            while data := feed.take():
                await _write(response, data)
                await asyncio.sleep(0)  # lets the proxied streams continue
            try:
                async with asyncio.timeout(ALIVE_S):
                    await changed.wait()
            except TimeoutError:
                await _write(response, b"\n")
            await asyncio.sleep(TICK_S)
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await response.write(data)
