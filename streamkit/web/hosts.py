"""The names by which clients may call a server, what stands in ``Host``; and where a request comes from, in ``Origin``.

A page of the web can have its own name turned to this machine once it is loaded (DNS rebinding): the browser takes a server
here for the page's own, and lets the page read what it answers. Such a request has the page's name in ``Host``. Nobody can
turn an address, nor ``localhost``, which browsers do not look up.

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
#: In a list of names: any is served.
ANY: Final = "*"
#: What containers of Docker and Podman call the machine that they run on; no public name ends so (ICANN, .INTERNAL).
CONTAINER_NAMES: Final = frozenset({"host.docker.internal", "host.containers.internal"})
#: What browsers say where the page itself asks, or somebody who typed its address (``Sec-Fetch-Site``).
OWN_SITES: Final = frozenset({"same-origin", "none"})
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{0,5})?", re.ASCII)
_NAME: Final = re.compile(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*", re.ASCII)


def is_host_name(name: str) -> bool:
    """Whether ``Hosts`` takes it: a name or an address without its port, ``*.example.org`` for all below one, or ``*``."""
    return name == ANY or _NAME.fullmatch(name) is not None or ip_address_in(name) is not None


def is_host(text: str) -> bool:
    """Whether it can stand in ``Host``: a name or an address, with or without a port (RFC 9110 §7.2)."""
    return _HOST.fullmatch(text) is not None


class Hosts:
    """Names that are served, besides every address, ``localhost`` and what containers call their machine."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        lower = [name.lower() for name in names]
        self._any = ANY in lower
        self._names = CONTAINER_NAMES.union(name for name in lower if not name.startswith("*."))
        self._ends = tuple(name[1:] for name in lower if name.startswith("*."))

    def allows(self, host: str) -> bool:
        """Whether a request with this ``Host`` is served, whatever its port."""
        found = _HOST.fullmatch(host)
        if found is None:
            return self._any
        name = found[1].lower().strip("[]").removesuffix(".")
        served = self._any or name in self._names or name.endswith(self._ends) or is_loopback(name)
        return served or ip_address_in(name) is not None


def ip_address_in(text: str) -> IPAddress | None:
    """The address that a text is; None for a name."""
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
    """Raise Refused (421) for a request to a name that is not of ``hosts``; None: all are served.

    ``server`` and ``advice`` are for the message. A request without ``Host`` is served: that is HTTP/1.0, which no browser
    speaks.
    """
    if hosts is None:
        return
    for host in request.headers.getall("Host", ()):
        if not hosts.allows(host):
            message = f"{server} is not served by the name {shown(host)}{advice}"
            raise Refused(with_status("permission", message, 421, client_dialect(request)))


def guarded(hosts: Hosts, server: str, *, own_page: bool = False) -> Middleware:
    """Return a middleware for a server of this machine alone: refuse other names (421), and pages of other sites (403).

    The client gets these errors, and every Refused of a handler, in its dialect; ``server`` is what messages call the server.
    With ``own_page``, only the server's own page and who typed its address may ask, and nobody without ``Host``.
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
    """Whether only this machine reaches that host."""
    address = ip_address_in(host)
    if address is None:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
    return address.is_loopback


def is_foreign(origin: str | None) -> bool:
    """Whether a browser says that a page of the web asks: not of this machine, and no application's own scheme."""
    if origin is None:
        return False
    try:
        url = urlsplit(origin)
        host = url.hostname or ""
    except ValueError:
        return True
    return origin == "null" or (url.scheme in {"http", "https"} and not is_loopback(host))
