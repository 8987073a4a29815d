"""Fetch images that a client names by URL, for upstreams whose dialect accepts images only inside the request.

Any client can make this process request a URL, so little is allowed: only ``https`` at public internet addresses, which are
checked by the resolver and again when the socket is created. Redirects are followed one by one under the same rules. Requests
use no proxy, cookie, key or client header.

Size, type, number and total time of the files are limited. If a file can't be fetched, the request fails and the error names
the place of the URL. Nothing is kept for the next request.

Source: OWASP, "Server Side Request Forgery Prevention"; RFC 6890 (special-purpose addresses).
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from ssl import SSLContext
from typing import Any, Final, Literal

from aiohttp import (
    AddrInfoType,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from attrs import define, evolve, field, frozen
from yarl import URL

from streamkit.conversation.messages import Media, Request, ToolResult
from streamkit.dialects.base import Dialect
from streamkit.errors import BadRequest
from streamkit.translation.bodies import linked_in
from streamkit.web.budget import Hold
from streamkit.web.hosts import IPAddress, ip_address_in
from streamkit.web.refusals import Refused

#: The content types that each kind of media may have.
TYPES: Final[Mapping[str, frozenset[str]]] = {
    "image": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    "audio": frozenset({"audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac"}),
    "video": frozenset({"video/mp4", "video/webm", "video/quicktime", "video/mpeg"}),
    "file": frozenset({"application/pdf", "text/plain", "text/csv", "text/html", "text/markdown"}),
}
#: The memory for a fetched file as a multiple of its size: it is in memory as received, as base64 (4/3 of the size), and as
#: base64 inside the request.
HELD_TIMES: Final = 4
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: The range of all public IPv6 unicast addresses (RFC 4291 §2.4). Site-local and local NAT64 addresses are not in the range.
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
#: IPv6 addresses that lead to the IPv4 address inside: NAT64 (RFC 6052). ``ipv4_mapped`` covers IPv4-mapped addresses.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
#: Addresses that Python calls global although they are not public: services, relays, Azure's platform, examples.
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(each) for each in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20")
)


def is_public(address: IPAddress) -> bool:
    """Return whether an address is public. An address that leads to an IPv4 address is judged by the IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _GLOBAL_UNICAST or address.sixtofour is not None or address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast and not any(address in each for each in _NOT_PUBLIC)


@frozen(kw_only=True)
class FetchLimits:
    """The limits on what is fetched for one request."""

    #: The largest file in bytes. A photograph takes 5 MiB; providers refuse images over 5 to 20 MiB.
    file_bytes: int = 10 * 1024 * 1024
    #: The most files of a request. Two providers accept 20 images at full size; they accept more images only if these are
    #: smaller.
    files: int = 20
    #: The most bytes of all files together; a URL counts as often as the request has it. All files are in memory at once, also
    #: as base64, and providers refuse requests over 20 to 32 MiB.
    total_bytes: int = 32 * 1024 * 1024
    total_s: float = 20.0  #: the most seconds for fetching all files together; the client waits meanwhile
    redirects: int = 3


class NoPublicAddress(OSError):
    """The host name of a URL has no public address."""


class PublicResolver(AbstractResolver):
    """Resolves names to public addresses only. Connections go only to addresses that the resolver returns."""

    def __init__(self, resolver: AbstractResolver, allows: Callable[[IPAddress], bool]) -> None:
        self._resolver = resolver
        self._allows = allows

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        public = [each for each in found if self._allows(ipaddress.ip_address(each["host"].partition("%")[0]))]
        if not public:
            raise NoPublicAddress(None, f"{host} has no public address")
        return public

    async def close(self) -> None:
        await self._resolver.close()


@define
class _Budget:
    """The bytes that all files of one request have, their limit, and the memory that is held for them."""

    limit: int
    hold: Hold
    taken: int = 0

    def take(self, size: int) -> None:
        """Reserve room for ``size`` bytes. Raises if that exceeds the limit, and Refused if the memory budget has no room."""
        self.taken += size
        if self.taken > self.limit:
            raise _Unfetched(f"the files together exceed {self.limit} bytes")
        self.hold.add(HELD_TIMES * size)


class _Unfetched(Exception):
    """The reason that a file can't be fetched, as text for the client."""


@frozen(kw_only=True)
class Fetcher:
    """Fetches files at URLs. The fields other than ``limits`` are for tests, which have no public address."""

    limits: FetchLimits = field(factory=FetchLimits)
    allows: Callable[[IPAddress], bool] = is_public
    resolver: Callable[[], AbstractResolver] = DefaultResolver
    ssl: SSLContext | Literal[True] = field(default=True)

    async def fetch(self, media: list[Media], hold: Hold) -> dict[str, Media]:
        """Return fetched media by URL; ``hold`` counts their bytes. Raises BadRequest with the URL's place, and Refused."""
        wanted = {each.url: each for each in media if each.url is not None}
        times = Counter(each.url for each in media)
        if len(wanted) > self.limits.files:
            message = f"the request names {len(wanted)} files by URL; at most {self.limits.files} are fetched"
            raise BadRequest(media[0].place, message)
        resolver = PublicResolver(self.resolver(), self.allows)
        connector = TCPConnector(
            resolver=resolver, use_dns_cache=False, force_close=True, limit=4, ssl=self.ssl, socket_factory=self._socket
        )
        session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=self.limits.total_s),
            trust_env=False,
            auto_decompress=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "streamkit"},
        )
        budget = _Budget(self.limits.total_bytes, hold)
        try:
            async with session, asyncio.timeout(self.limits.total_s), asyncio.TaskGroup() as group:
                tasks = {
                    url: group.create_task(self._fetch(session, each, url, budget, times[url]))
                    for url, each in wanted.items()
                }
        except* (BadRequest, Refused, TimeoutError) as several:
            first: BaseException = several
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            if isinstance(first, BadRequest | Refused):
                raise first from None
            raise BadRequest(
                media[0].place, f"downloading files took longer than {self.limits.total_s:g} seconds; send their bytes"
            ) from None
        finally:
            await resolver.close()
        return {url: task.result() for url, task in tasks.items()}

    async def _fetch(self, session: ClientSession, media: Media, url: str, budget: _Budget, times: int) -> Media:
        try:
            return await self._followed(session, media, URL(url), budget, times)
        except (_Unfetched, ValueError) as error:
            reason = str(error) if isinstance(error, _Unfetched) else "its URL is invalid"
        except TimeoutError:
            reason = "its server did not respond in time"
        except (ClientError, OSError) as error:
            hidden = isinstance(getattr(error, "os_error", None), NoPublicAddress)
            reason = "it has no public address" if hidden else "its server could not be reached"
        raise BadRequest(media.place, f"the {media.kind} can't be fetched: {reason}")

    async def _followed(self, session: ClientSession, media: Media, url: URL, budget: _Budget, times: int) -> Media:
        for _ in range(self.limits.redirects + 1):
            self._check(url)
            async with session.get(url, allow_redirects=False) as response:
                if response.status not in REDIRECTS:
                    return await self._read(media, response, budget, times)
                url = url.join(URL(response.headers.get("Location", "")))
        raise _Unfetched(f"its server redirects more than {self.limits.redirects} times")

    def _check(self, url: URL) -> None:
        if url.scheme != "https" or not url.host:
            raise _Unfetched("its URL must use https")
        if url.user is not None or url.password is not None:
            raise _Unfetched("its URL must not contain a user or a password")
        # only IP addresses are checked here; the resolver checks the addresses of host names
        literal = ip_address_in(url.host)
        if literal is not None and not self.allows(literal):
            raise _Unfetched("it has no public address")

    def _socket(self, address: AddrInfoType) -> socket.socket:
        """Create the socket for exactly the address that is connected to, after checking this address again."""
        family, kind, protocol, _, peer = address
        if not self.allows(ipaddress.ip_address(str(peer[0]).partition("%")[0])):
            raise NoPublicAddress(None, "the connection would not go to a public address")
        return socket.socket(family, kind, protocol)

    async def _read(self, media: Media, response: ClientResponse, budget: _Budget, times: int) -> Media:
        if response.status != 200:
            raise _Unfetched(f"its server responded with status {response.status}")
        kind = response.content_type.lower()
        if kind not in TYPES[media.kind]:
            raise _Unfetched(f"its content type must be one of {', '.join(sorted(TYPES[media.kind]))}")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise _Unfetched("its server sent it compressed")
        too_long = _Unfetched(f"it exceeds {self.limits.file_bytes} bytes")
        if (response.content_length or 0) > self.limits.file_bytes:
            raise too_long
        pieces, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > self.limits.file_bytes:
                raise too_long
            budget.take(times * len(piece))
            pieces.append(piece)
        return evolve(media, data=base64.b64encode(b"".join(pieces)).decode(), media_type=kind, url=None)


DEFAULT_FETCHER: Final = Fetcher()


async def with_fetched_media(
    request: Request, dialect: Dialect, fetcher: Fetcher = DEFAULT_FETCHER, *, hold: Hold | None = None
) -> Request:
    """Return the request with the bytes of all media that ``dialect`` does not accept as URLs; ``hold`` gets their memory.

    Raises BadRequest, and Refused if the budget of ``hold`` has no room for them.
    """
    linked = linked_in(request, dialect)
    if not linked:
        return request
    fetched = await fetcher.fetch(linked, Hold() if hold is None else hold)
    found = {id(media): fetched[media.url] for media in linked if media.url is not None}
    turns = [evolve(turn, parts=[_with_media(part, found) for part in turn.parts]) for turn in request.turns]
    return evolve(request, turns=turns)


def _with_media(part: Any, found: Mapping[int, Media]) -> Any:
    """Return a part with the fetched bytes in place of its URLs; other members stay unchanged."""
    if isinstance(part, ToolResult):
        return evolve(part, parts=[_with_media(each, found) for each in part.parts])
    fetched = found.get(id(part))
    return part if fetched is None else evolve(part, data=fetched.data, media_type=fetched.media_type, url=None)
