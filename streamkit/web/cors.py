"""Let pages of other sites send requests, if the operator allows it: the CORS headers that browsers require.

Before a request that an HTML form could not send, such as one with JSON or a key, a browser sends a preflight: an ``OPTIONS``
request without the key. If the response does not name the page's origin, the browser never sends the request. A browser also
hides responses without that header from the page. Cookies are neither requested nor read, so no page gets its user's rights.

Source: Fetch Standard §3.3 (HTTP CORS protocol); RFC 6454.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from aiohttp import web

#: The item in a list of origins that allows every origin.
ANY: Final = "*"
#: Seconds that a browser may cache the response to a preflight; Chrome allows at most 7,200.
REMEMBERED_S: Final = 600
#: The names of the headers that a page wants to send, as browsers list them. No library sends as many as 100.
_NAMES: Final = re.compile(r"[\w-]{1,100}(?: ?, ?[\w-]{1,100}){0,99}", re.ASCII)
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)


def is_origin(text: str) -> bool:
    """Return whether ``Origins`` accepts ``text``: scheme, host and port, as browsers write them, or ``*``."""
    return text == ANY or _ORIGIN.fullmatch(text) is not None


class Origins:
    """The sites whose pages may send requests."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origins)

    def allows(self, origin: str | None) -> bool:
        """Return whether a page of this origin may send requests."""
        return origin is not None and (ANY in self._origins or origin in self._origins)

    def preflight(self, request: web.Request) -> web.Response | None:
        """Return the response to a preflight of an allowed origin; None for every other request."""
        asked = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not asked or not self.allows(request.headers.get("Origin")):
            return None
        headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": str(REMEMBERED_S)}
        wanted = request.headers.get("Access-Control-Request-Headers", "")
        if _NAMES.fullmatch(wanted):
            headers["Access-Control-Allow-Headers"] = wanted
        return web.Response(status=204, headers=headers)

    async def tell(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers that name the origin whose pages may read a response. A handler for ``on_response_prepare``."""
        if not self._origins:
            return
        response.headers.add("Vary", "Origin, Access-Control-Request-Headers")
        origin = request.headers.get("Origin")
        if origin is not None and self.allows(origin):
            response.headers["Access-Control-Allow-Origin"] = ANY if ANY in self._origins else origin
            response.headers["Access-Control-Expose-Headers"] = ANY
