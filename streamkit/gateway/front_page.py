"""What stands at ``/``: what this is and where clients are served, for people and for programs that look whether it lives.

Nothing of the configuration is on it: no model, no upstream, no key, and so it is for whoever asks. Browsers get a page that
may load and run nothing; all others get the same as text. ``HEAD`` is answered too, which the ``ollama`` command asks before
anything else.

Source: W3C Content Security Policy Level 3 §6; ollama ``api/client.go`` (``Heartbeat``).
"""

from __future__ import annotations

from html import escape
from typing import Final

from aiohttp import web

from streamkit.dialects import dialect_named
from streamkit.web.surfaces import GEMINI_NAME, SURFACES

TITLE: Final = "streamkit gateway"
WHAT: Final = "A gateway for clients of language models. It is running."
#: Nothing is loaded or run, nowhere is the page shown inside another, and nothing is guessed of it.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def front_page(request: web.Request) -> web.Response:
    """Answer ``GET /`` and ``HEAD /``."""
    if "text/html" in request.headers.get("Accept", ""):
        return web.Response(text=_PAGE, content_type="text/html", charset="utf-8", headers=HEADERS)
    return web.Response(text=_TEXT, headers=HEADERS)


def _served() -> list[tuple[str, str]]:
    """Where clients of each dialect ask, and what it is called."""
    first = ((surface, surface.generate[0]) for surface in SURFACES.values())
    return [
        (path.replace(GEMINI_NAME, "models/…"), dialect_named(surface.dialect).title) for surface, path in first
    ] + [("/v1/models", "the models there are"), ("/healthz, /readyz", "whether it lives, and takes requests")]


_TEXT: Final = "\n".join([TITLE, WHAT, "", *(f"{path}  {title}" for path, title in _served()), ""])
_ROWS: Final = "".join(f"<dt><code>{escape(path)}</code></dt><dd>{escape(title)}</dd>" for path, title in _served())
_PAGE: Final = (
    f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title></head>'
    f"<body><h1>{TITLE}</h1><p>{WHAT}</p><dl>{_ROWS}</dl></body></html>\n"
)
