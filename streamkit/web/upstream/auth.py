"""How a request shows that it may be made: a key in a header, AWS's signature, or a token of Google's.

Source: limits.md T6; the official clients' own headers (the tests compare).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Final

from streamkit.dialects import endpoints, key_headers
from streamkit.dialects.vocabulary.error_bodies import REFUSED_KEY
from streamkit.events import ProviderFailed
from streamkit.web.upstream.value import Upstream

#: Words of refusals of a request's content, which some providers write with the kind of a permission.
_OF_CONTENT: Final = re.compile(r"moderat|flagged|\bcontent\b|\bsafety\b|usage polic", re.IGNORECASE)


async def authorised(
    upstream: Upstream, method: str, url: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """``headers`` and those that authorise this request, names in lower case.

    Raises SourceFailed where AWS's or Google's credentials can't be had; how long AWS's may take is botocore's setting.
    """
    if upstream.auth == "sigv4":
        # the service of the dialect, or the one that has other dialects' paths too
        own = [upstream.endpoint] if upstream.endpoint is not None else []
        service = next(endpoint.aws_service for endpoint in (*own, *endpoints()) if endpoint.aws_service)
        asked = (service, upstream.region or "", method, url, headers["content-type"], body)
        signature = await asyncio.to_thread(_signed, *asked)
        return {**headers, **signature}
    if upstream.auth == "google":
        from streamkit.web.upstream import google  # noqa: PLC0415 - the extra `google`, and 0.2 s

        return {**headers, "authorization": f"Bearer {await google.token()}"}
    if upstream.key is None:
        return dict(headers)
    name, scheme = key_headers()[upstream.auth]
    return {**headers, name: scheme + upstream.key.reveal()}


def as_gateway_failure(
    failed: ProviderFailed, upstreams: Iterable[Upstream], client_headers: Mapping[str, str]
) -> ProviderFailed:
    """Return the failure for a client: an upstream's refusal of the gateway's own credentials is a fault of the server (502).

    A client shows 401 as "your key is wrong", and asks for another. Where the key is the client's own, 401 stays.
    """
    if failed.type not in {"auth", "permission"} or _OF_CONTENT.search(failed.message):
        return failed
    keys = [upstream.key.reveal() for upstream in upstreams if upstream.key is not None]
    if any(key in value for key in keys for value in client_headers.values()):
        return failed
    status = "" if failed.http_status is None else f" (status {failed.http_status})"
    message = f"the upstream refused the gateway's credentials for it{status}; the gateway's operator has to renew them"
    return ProviderFailed("server", message, code=REFUSED_KEY)


def _signed(service: str, region: str, method: str, url: str, content_type: str, body: bytes) -> dict[str, str]:
    """In a thread: credentials may come over the network, and hashing 32 MiB takes its time."""
    from streamkit.web.upstream.sigv4 import signed  # noqa: PLC0415 - the extra `aws`, and 0.2 s

    return signed(service, region, method, url, content_type, body)
