"""Where a request comes from: this machine, or a page of the web in somebody's browser.

Source: RFC 6454 §7; limits.md T5.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


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
