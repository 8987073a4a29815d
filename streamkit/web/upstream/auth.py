"""Authorise a request to an upstream: with a key in a header, an AWS signature, or a Google token.

Source: limits.md T6; the headers of the official clients (the tests compare).
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

#: Matches errors about a request's content. Some providers report these with the type of a permission error.
_OF_CONTENT: Final = re.compile(r"moderat|flagged|\bcontent\b|\bsafety\b|usage polic", re.IGNORECASE)


async def authorised(
    upstream: Upstream, method: str, url: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """Return ``headers`` with the headers that authorise this request, names in lower case.

    Raises SourceFailed if AWS's or Google's credentials can't be fetched. botocore's settings limit the time for AWS's.
    """
    if upstream.auth == "sigv4":
        # The AWS service of this dialect. If it has none, use the service that also has the paths of other dialects.
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
    """Return the failure for the client. If the upstream refused the gateway's credentials, it becomes a server error (502).

    With 401, a client would report that the user's key is wrong and ask the user for another key. If the client itself sent
    the refused key, the failure stays as it is.
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
    """Sign a request. Runs in a thread: credentials may come over the network, and hashing 32 MiB takes time."""
    from streamkit.web.upstream.sigv4 import signed  # noqa: PLC0415 - the extra `aws`, and 0.2 s

    return signed(service, region, method, url, content_type, body)
