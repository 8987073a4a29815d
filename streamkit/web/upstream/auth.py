"""How a request shows that it may be made: a key in a header, AWS's signature, or a token of Google's.

Source: limits.md T6; the official clients' own headers (the tests compare).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from streamkit.dialects import endpoints, key_headers
from streamkit.web.upstream.value import Upstream


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


def _signed(service: str, region: str, method: str, url: str, content_type: str, body: bytes) -> dict[str, str]:
    """In a thread: credentials may come over the network, and hashing 32 MiB takes its time."""
    from streamkit.web.upstream.sigv4 import signed  # noqa: PLC0415 - the extra `aws`, and 0.2 s

    return signed(service, region, method, url, content_type, body)
