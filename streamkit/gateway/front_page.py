"""What stands at ``/``: what this is and where clients are served, for people and for programs that look whether it lives.

Nothing of the configuration is on it: no model, no upstream, no key, and so it is for whoever asks. Browsers get a page that
may load and run nothing; all others get the same as text. ``HEAD`` is answered too, which some clients ask before
anything else.

Source: W3C Content Security Policy Level 3 §6; clients.md §10.2.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Final

from aiohttp import web

from streamkit.dialects import dialect_named
from streamkit.web.surfaces import surfaces

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
        return web.Response(text=_page(), content_type="text/html", charset="utf-8", headers=HEADERS)
    return web.Response(text=_text(), headers=HEADERS)


def _served() -> list[tuple[str, str]]:
    """Where clients of each dialect ask, and what it is called."""
    first = ((dialect, surface.generate[0]) for dialect, surface in surfaces().items())
    return [(re.sub(r"\{.*\}", "models/…", path), dialect_named(dialect).title) for dialect, path in first] + [
        ("/v1/models", "the models there are"),
        ("/healthz, /readyz", "whether it lives, and takes requests"),
    ]


@cache
def _text() -> str:
    return "\n".join([TITLE, WHAT, "", *(f"{path}  {title}" for path, title in _served()), ""])


@cache
def _page() -> str:
    rows = "".join(f"<dt><code>{escape(path)}</code></dt><dd>{escape(title)}</dd>" for path, title in _served())
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title></head>'
        f"<body><h1>{TITLE}</h1><p>{WHAT}</p><dl>{rows}</dl></body></html>\n"
    )
