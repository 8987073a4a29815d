"""The keys by which clients are let in, where an operator wants any.

A key is looked for where the official clients send it, and nowhere else: not in the URL, which stands in the log of every
proxy on the way. Keys are compared as keyed hashes, each with every one that is known, so that the time tells neither how much
of a key was right nor which one it was like. None is in a ``repr``, a message or a header of an answer.

Source: limits.md T6; clients.md §10.3.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from streamkit.errors import UsageError
from streamkit.events import ProviderFailed
from streamkit.web.cors import Origins
from streamkit.web.hosts import is_foreign
from streamkit.web.refusals import Refused

#: Where some vendors' clients have their key instead (clients.md §10.3).
KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key", "api-key")
_HOW: Final = f"send it as Authorization: Bearer, {', '.join(KEY_HEADERS[:-1])} or {KEY_HEADERS[-1]}"
#: RFC 9110 §15.5.2 wants it beside each 401.
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}


NO_ORIGINS: Final = Origins()
_NO_PAGES: Final = (
    "web pages of other sites are not served without a key; "
    "the gateway's operator can set some, or name the site in server.cors"
)


def client_key(request: web.Request) -> str | None:
    """The key that a client sent, the first of those that are not blank; None if it sent none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    bearer = token if scheme.lower() == "bearer" else ""
    sent = (bearer, *(request.headers.get(name, "") for name in KEY_HEADERS))
    return next((key.strip() for key in sent if key.strip()), None)


class KeyRing:
    """The keys that let clients in. Raises UsageError for no key at all, and for a blank one."""

    def __init__(self, keys: Iterable[str]) -> None:
        known = [key.strip() for key in keys]
        if not known or not all(known):
            raise UsageError("a ring of client keys needs keys that are not blank; leave it out to let everybody in")
        self._salt = secrets.token_bytes(32)
        self._digests = tuple(map(self._digest, known))

    def __repr__(self) -> str:
        return f"<ring of {len(self._digests)} client keys>"

    def allows(self, key: str | None) -> bool:
        digest = self._digest(key or "")
        return any([hmac.compare_digest(digest, known) for known in self._digests])  # noqa: C419 - a list: each is compared

    def _digest(self, key: str) -> bytes:
        return hmac.digest(self._salt, key.encode("utf-8", "surrogateescape"), "sha256")  # as aiohttp decodes headers


def admit(request: web.Request, ring: KeyRing | None, origins: Origins = NO_ORIGINS) -> None:
    """Let a request in, or raise Refused (401). Without a ring all are let in but pages of sites beside ``origins`` (403).

    Those could use a gateway on their visitor's own machine: a browser sends such a request without asking first. One that a
    name was turned to this machine for (DNS rebinding) says its site as well.
    """
    if ring is None:
        origin = request.headers.get("Origin")
        if is_foreign(origin) and not origins.allows(origin):
            raise Refused(ProviderFailed("permission", _NO_PAGES))
        return
    key = client_key(request)
    if key is None:
        raise Refused(ProviderFailed("auth", f"a key is needed, and none was sent; {_HOW}"), _CHALLENGE)
    if not ring.allows(key):
        raise Refused(
            ProviderFailed("auth", "this key is not known here; ask the gateway's operator for one"), _CHALLENGE
        )
