"""Which requests are admitted: by ``Host``, the server's name for the client, by ``Origin``, the site of a page, and by key.

A web page can point its own host name at this machine after it is loaded (DNS rebinding). The browser then takes a server on
this machine for the page's own server, and lets the page read the responses. Such a request has the page's host name in
``Host``. An IP address can't be redirected like this, nor can ``localhost``, which browsers do not look up.

Pages of other sites may send requests if the operator allows it, with the CORS headers that browsers require. Before a request
that an HTML form could not send, such as one with JSON or a key, a browser sends a preflight: an ``OPTIONS`` request without
the key. If the response does not name the page's origin, the browser never sends the request. A browser also hides responses
without that header from the page. Cookies are neither requested nor read, so no page gets its user's rights.

A key is read where the official clients send it, and nowhere else. A client may send several, such as a provider's key that it
found in its environment and the gateway's. One known key is enough. Keys are compared as keyed hashes, each with every known
key, so that the time reveals neither how much of a key was right nor which known key it resembles. No key appears in a
``repr``, a message or a response header.

Source: RFC 9110 §7.2, §15.5.20 (421); RFC 6454; RFC 6761 §6.3 (localhost); Fetch Standard §3.3 (HTTP CORS protocol); limits.md
T6, T15; observe.md O21, F58; clients.md §10.3.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from streamkit.errors import UsageError
from streamkit.events import ProviderFailed
from streamkit.web.client_dialect import client_dialect
from streamkit.web.refusals import Refused, shown, with_status

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
ANY: Final = "*"  #: the item in a list of host names or origins that allows every one
#: The names for the host machine in Docker and Podman containers. No public name ends with ``.internal`` (reserved by ICANN).
CONTAINER_NAMES: Final = frozenset({"host.docker.internal", "host.containers.internal"})
#: Values of ``Sec-Fetch-Site`` if the server's own page sent the request (``same-origin``) or the user typed the URL
#: (``none``).
OWN_SITES: Final = frozenset({"same-origin", "none"})
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{0,5})?", re.ASCII)
_NAME: Final = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*", re.ASCII)


def is_host_name(name: str) -> bool:
    """Return whether ``Hosts`` accepts ``name``: a name or address without port, ``*.example.org``, or ``*``."""
    return name == ANY or _NAME.fullmatch(name) is not None or ip_address_in(name) is not None


def is_host(text: str) -> bool:
    """Return whether ``text`` is valid in ``Host``: a name or an address, with or without a port (RFC 9110 §7.2)."""
    return _HOST.fullmatch(text) is not None


class Hosts:
    """The served host names. Every IP address, ``localhost`` and the containers' names for their host are always served."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        lower = [name.lower() for name in names]
        self._any = ANY in lower
        self._names = CONTAINER_NAMES.union(name for name in lower if not name.startswith("*."))
        self._ends = tuple(name[1:] for name in lower if name.startswith("*."))

    def allows(self, host: str) -> bool:
        """Return whether a request with this ``Host`` is served, whatever its port."""
        found = _HOST.fullmatch(host)
        if found is None:
            return self._any
        name = found[1].lower().strip("[]").removesuffix(".")
        served = self._any or name in self._names or name.endswith(self._ends) or is_loopback(name)
        return served or ip_address_in(name) is not None


@lru_cache(maxsize=256)
def ip_address_in(text: str) -> IPAddress | None:
    """Return the IP address in a text; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def refuse_other_hosts(
    request: web.Request,
    hosts: Hosts | None,
    server: str = "this gateway",
    advice: str = "; its operator can add it to server.hosts",
) -> None:
    """Raise Refused (421) for a request whose host name is not in ``hosts``; None: all names are served.

    ``server`` and ``advice`` are used in the message. A request without ``Host`` is served, because only HTTP/1.0 allows it
    and no browser speaks HTTP/1.0.
    """
    if hosts is None:
        return
    for host in request.headers.getall("Host", ()):
        if not hosts.allows(host):
            message = f"{server} does not serve the host name {shown(host)}{advice}"
            raise Refused(with_status("permission", message, 421, client_dialect(request)))


def guarded(hosts: Hosts, server: str, *, own_page: bool = False) -> Middleware:
    """Return a middleware for a server that only this machine may use.

    It refuses other host names (421) and pages of other sites (403).

    The client gets these errors, and each Refused that a handler raises, in its dialect. ``server`` is the server's name in
    messages. With ``own_page``, only the server's own page and a user who typed its address may send requests, and a request
    without ``Host`` is refused.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        dialect, origin = client_dialect(request), request.headers.get("Origin")
        try:
            named = request.headers.getall("Host", ())
            if own_page and not (named and all(map(hosts.allows, named))):
                raise Refused(with_status("permission", f"the {server} does not serve this host name", 421, dialect))
            refuse_other_hosts(request, hosts, f"the {server}", advice="")
            sites = request.headers.getall("Sec-Fetch-Site", ())
            is_other = not OWN_SITES.issuperset(sites) if own_page else origin is None and "cross-site" in sites
            if is_foreign(origin) or is_other:
                message = f"web pages may not use the {server}"
                raise Refused(with_status("permission", message, 403, dialect))
            return await handler(request)
        except Refused as refused:
            return refused.response(dialect)

    return guard


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``."""
    address = ip_address_in(host)
    if address is None:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
    return address.is_loopback


def is_foreign(origin: str | None) -> bool:
    """Return whether ``Origin`` names a web page that is not on this machine. Schemes of applications do not count."""
    if origin is None:
        return False
    try:
        url = urlsplit(origin)
        host = url.hostname or ""
    except ValueError:
        return True
    return origin == "null" or (url.scheme in {"http", "https"} and not is_loopback(host))


# -- pages of other sites ----------------------------------------------------------------------------------------------


REMEMBERED_S: Final = 600  #: seconds that a browser may cache the response to a preflight; Chrome allows at most 7,200
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


# -- keys --------------------------------------------------------------------------------------------------------------


#: Other headers in which some providers' clients send their key (clients.md §10.3).
KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key", "api-key")
SENT: Final = 8  #: the most keys in one request that are checked
NO_ORIGINS: Final = Origins()
_NO_PAGES: Final = (
    "requests from web pages of other sites need an API key; "
    "the gateway's operator can configure keys, or add the site to server.cors"
)


def client_keys(request: web.Request) -> list[str]:
    """Return the keys that a client sent, without blank ones. A key may be in the URL, where some REST clients put it."""
    headers = request.headers
    sent = [value.partition(" ") for value in headers.getall("Authorization", ())]
    keys = [token for scheme, _, token in sent if scheme.lower() == "bearer"]
    keys += [key for name in KEY_HEADERS for key in headers.getall(name, ())]
    keys += request.query.getall("key", ())
    return list(islice(filter(None, map(str.strip, keys)), SENT))


class KeyRing:
    """The keys that clients may use. Raises UsageError if there is no key or one is blank."""

    def __init__(self, keys: Iterable[str]) -> None:
        known = [key.strip() for key in keys]
        if not known or not all(known):
            raise UsageError("a key ring needs at least one key, and no blank keys; omit it to admit every client")
        self._salt = secrets.token_bytes(32)
        self._digests = tuple(map(self._digest, known))

    def __repr__(self) -> str:
        return f"<ring of {len(self._digests)} client keys>"

    def accepted(self, request: web.Request) -> str | None:
        """Return the first known key of a request; None if it has none."""
        return next(filter(self.allows, client_keys(request)), None)

    def allows(self, key: str | None) -> bool:
        digest = self._digest(key or "")
        return any([hmac.compare_digest(digest, known) for known in self._digests])  # noqa: C419 - a list: each is compared

    def _digest(self, key: str) -> bytes:
        # aiohttp decodes headers this way
        return hmac.digest(self._salt, key.encode("utf-8", "surrogateescape"), "sha256")


def admit(request: web.Request, ring: KeyRing | None, origins: Origins = NO_ORIGINS) -> None:
    """Raise Refused (401) if the request has no known key.

    Without a ring, only pages of sites that are not in ``origins`` are refused (403).

    Such pages could use a gateway on the machine of the browser's user, since a browser sends some requests without a
    preflight. A page that pointed its host name at this machine (DNS rebinding) names its site in ``Origin`` as well.
    """
    if ring is None:
        origin = request.headers.get("Origin")
        if is_foreign(origin) and not origins.allows(origin):
            raise Refused(ProviderFailed("permission", _NO_PAGES))
        return
    if ring.accepted(request) is None:
        unknown = "this API key is not valid here; ask the gateway's operator for one"
        none = f"the request has no API key; send one as Authorization: Bearer, {' or '.join(KEY_HEADERS)}"
        challenge = {"WWW-Authenticate": "Bearer"}  # RFC 9110 §15.5.2 requires it with each 401
        raise Refused(ProviderFailed("auth", unknown if client_keys(request) else none), challenge)
