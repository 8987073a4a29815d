"""The keys that clients must send, if the operator requires any.

A key is read where the official clients send it, and nowhere else. A client may send several, such as a provider's key that it
found in its environment and the gateway's. One known key is enough. Keys are compared as keyed hashes, each with every known
key, so that the time reveals neither how much of a key was right nor which known key it resembles. No key appears in a
``repr``, a message or a response header.

Source: limits.md T6; clients.md §10.3.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from itertools import islice
from typing import Final

from aiohttp import web

from streamkit.errors import UsageError
from streamkit.events import ProviderFailed
from streamkit.web.hosts import Origins, is_foreign
from streamkit.web.refusals import Refused

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
