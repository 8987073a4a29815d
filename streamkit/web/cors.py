"""Pages of other sites that an operator lets ask: what a browser wants to hear before it hands a page an answer.

Before a request that a form could not send, with JSON or with a key, a browser asks whether the page may (the preflight): with
``OPTIONS``, and without the key. Where the answer does not name the page's origin the request is never sent. Answers without
that header are kept from the page. Cookies are neither asked for nor read, so no page has the visitor's own rights.

Source: Fetch Standard §3.3 (HTTP CORS protocol); RFC 6454.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from aiohttp import web

#: In a list of origins: any is served.
ANY: Final = "*"
#: How long a browser may remember what a preflight said, in seconds; Chrome takes 7,200 at most.
REMEMBERED_S: Final = 600
#: Names of headers that a page wants to send, as browsers list them. So many are more than any library sends.
_NAMES: Final = re.compile(r"[\w-]{1,100}(?: ?, ?[\w-]{1,100}){0,99}", re.ASCII)
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)


def is_origin(text: str) -> bool:
    """Whether ``Origins`` takes it: scheme, host and port, as a browser says them, or ``*``."""
    return text == ANY or _ORIGIN.fullmatch(text) is not None


class Origins:
    """The sites whose pages may ask, besides those of this machine."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origins)

    def allows(self, origin: str | None) -> bool:
        """Whether a page of this origin may ask."""
        return origin is not None and (ANY in self._origins or origin in self._origins)

    def preflight(self, request: web.Request) -> web.Response | None:
        """The answer to a preflight of an origin that is allowed; None for all else."""
        asked = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not asked or not self.allows(request.headers.get("Origin")):
            return None
        headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": str(REMEMBERED_S)}
        wanted = request.headers.get("Access-Control-Request-Headers", "")
        if _NAMES.fullmatch(wanted):
            headers["Access-Control-Allow-Headers"] = wanted
        return web.Response(status=204, headers=headers)

    async def tell(self, request: web.Request, response: web.StreamResponse) -> None:
        """Say in an answer whose pages may read it: a handler of ``on_response_prepare``."""
        if not self._origins:
            return
        response.headers.add("Vary", "Origin, Access-Control-Request-Headers")
        origin = request.headers.get("Origin")
        if origin is not None and self.allows(origin):
            response.headers["Access-Control-Allow-Origin"] = ANY if ANY in self._origins else origin
            response.headers["Access-Control-Expose-Headers"] = ANY
