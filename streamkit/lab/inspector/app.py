"""The inspector's listener: a page of static files, and a feed for whoever has the token.

What streams say is private, and pages of the web may not have it. So the feed wants the token in ``Authorization``, where no
link and no form can put it; the page takes it from the URL's fragment, which no browser sends. Whoever asks by another name
than this machine's is told so (421: DNS rebinding), and a browser that says that another site asks is refused (403). The
policy of the page (CSP) lets it load nothing from elsewhere, run no inline script and make no markup of a text. No request
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

#: Pages that may be open at once.
WATCHERS: Final = 8
#: How long a page may take none of what it is sent before its connection is closed.
PATIENCE_S: Final = 10.0
#: What changes within so many seconds is sent together.
TICK_S: Final = 0.05
#: Silence after which an empty line is sent, so that a page which left is noticed.
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
    """A token that nobody can guess: 256 bits."""
    return secrets.token_urlsafe(32)


def url_with(url: str, token: str) -> str:
    """The address to open: browsers send no fragment, so that the token reaches no log."""
    return f"{url}/#{token}"


def inspector_app(captures: Captures, token: str, hosts: Hosts | None = None) -> web.Application:
    """The application; ``hosts`` are the names by which it may be called, by default this machine's own."""
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
    """``GET /feed``, with ``?stream=ID`` also of that stream all that came: JSON Lines, without an end."""
    expected = f"Bearer {token}".encode()

    async def serve(request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            return web.Response(status=401, text="the token is needed\n", headers={"WWW-Authenticate": "Bearer"})
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
    """Write what the feed has until the page leaves, or takes nothing for too long."""
    await response.prepare(request)
    try:
        while True:
            changed.clear()
            while data := feed.take():
                await _write(response, data)
                await asyncio.sleep(0)  # streams go on in between
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
