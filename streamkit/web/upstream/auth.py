"""How a request shows that it may be made: a key in a header, or AWS's signature; and how keys are kept out of what is shown.

Source: limits.md T6; the official clients' own headers (the tests compare).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from streamkit.redact import CUT
from streamkit.web.upstream.value import KEY_HEADERS, Upstream

#: Shorter values are no keys: placeholders such as ``ollama`` would be cut out of ordinary words.
KEY_CHARS: Final = 8
#: An operator's headers that say nothing secret. All others may.
PUBLIC: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "http-referer", "openai-beta", "referer", "user-agent", "x-title"}
)


async def authorised(
    upstream: Upstream, method: str, url: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """``headers`` and those that authorise this request, names in lower case.

    Raises SourceFailed where AWS's credentials can't be had; how long that may take is botocore's setting.
    """
    if upstream.auth == "sigv4":
        signature = await asyncio.to_thread(_signed, upstream.region or "", method, url, headers["content-type"], body)
        return {**headers, **signature}
    if upstream.key is None:
        return dict(headers)
    name, scheme = KEY_HEADERS[upstream.auth]
    return {**headers, name: scheme + upstream.key.reveal()}


def _signed(region: str, method: str, url: str, content_type: str, body: bytes) -> dict[str, str]:
    """In a thread: credentials may come over the network, and hashing 32 MiB takes its time."""
    from streamkit.web.upstream.sigv4 import signed  # noqa: PLC0415 - the extra `aws`, and 0.2 s

    return signed(region, method, url, content_type, body)


def redactor(upstreams: Iterable[Upstream]) -> Callable[[str], str]:
    """A function that cuts the upstreams' own keys out of a text, for upstreams that repeat what they were sent.

    ``redact.py`` finds what looks like a key; these may look like nothing. Values of operators' headers count as keys, except
    those of headers that are public. Values under 8 characters stay.
    """
    known = {form for upstream in upstreams for key in _keys(upstream) for form in (key, quote(key, safe=""))}
    known = {form for form in known if len(form) >= KEY_CHARS}
    if not known:
        return str
    pattern = re.compile("|".join(re.escape(form) for form in sorted(known, key=len, reverse=True)))
    return lambda text: pattern.sub(CUT, text)


def _keys(upstream: Upstream) -> Iterator[str]:
    if upstream.key is not None:
        yield upstream.key.reveal()
    for name, value in upstream.headers.items():
        if name not in PUBLIC:
            yield value
            yield value.rpartition(" ")[2]  # what stands behind `Bearer`
