"""Check ``Host``, the name by which a client calls a server, and ``Origin``, the site that a request is from.

A web page can point its own host name at this machine after it is loaded (DNS rebinding). The browser then takes a server on
this machine for the page's own server, and lets the page read the responses. Such a request has the page's host name in
``Host``. An IP address can't be redirected like this, nor can ``localhost``, which browsers do not look up.

Source: RFC 9110 §7.2, §15.5.20 (421); RFC 6454 §7; RFC 6761 §6.3 (localhost); limits.md T15; observe.md O21, F58.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from streamkit.web.client_dialect import client_dialect
from streamkit.web.refusals import Refused, shown, with_status

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
#: The item in a list of host names that allows every name.
ANY: Final = "*"
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
            message = f"{server} is not served by the name {shown(host)}{advice}"
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
                raise Refused(with_status("permission", f"the {server} is not served by this name", 421, dialect))
            refuse_other_hosts(request, hosts, f"the {server}", advice="")
            sites = request.headers.getall("Sec-Fetch-Site", ())
            is_other = not OWN_SITES.issuperset(sites) if own_page else origin is None and "cross-site" in sites
            if is_foreign(origin) or is_other:
                message = f"pages of the web may not use the {server}"
                raise Refused(with_status("permission", message, 403, dialect))
            return await handler(request)
        except Refused as refused:
            return refused.response(dialect)

    return guard


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
