"""Remove an upstream's keys from its error messages: some servers repeat the request that they refuse, including its headers.

``text/quoting.py`` removes texts that look like keys. The keys here may look like ordinary text, but they are known. Only
failures are searched. Responses pass byte for byte: if the key is a placeholder (``no-key-required``), a model may write it.

The text may be JSON that is not decoded, so each letter is also found in its JSON escapes. The text may be an excerpt, so the
beginning of a key is also removed at the end of the text or of a quotation. Keys under 8 characters stay, because they would
be found in ordinary words.

Source: limits.md T6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from aiohttp import ClientResponse
from attrs import evolve

from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.text.known_keys import KEY_CHARS, spelled
from streamkit.text.quoting import CUT
from streamkit.web.upstream.requests import NO_HEADERS
from streamkit.web.upstream.value import Upstream

Cut: TypeAlias = Callable[[str], str]

#: The longest text that is searched for beginnings of keys: in longer ones this search could take too long.
EXCERPT_CHARS: Final = 16 * 1024
_END: Final = re.compile(r"\\*['\"…]|\Z")
#: The header with the session token of an AWS signature. Hidden, because a reader could use the token until the session ends.
SESSION: Final = "x-amz-security-token"
_SECRETS: Final = attrgetter("secrets")


def redactor(upstreams: Iterable[Upstream], sent: Mapping[str, str] = NO_HEADERS, *, keys: Iterable[str] = ()) -> Cut:
    """Return a function that removes keys from a text: the upstreams' keys, ``keys``, and the AWS session token in ``sent``.

    Values of the operator's headers count as keys, except those of public headers.
    """
    return _cutter(frozenset(keys).union([sent.get(SESSION, "")], *map(_SECRETS, upstreams)))


def redactor_for(upstream: Upstream, response: ClientResponse) -> Cut:
    """Return the function of ``redactor`` for a response of ``upstream``."""
    return redactor([upstream], response.request_info.headers if upstream.auth == "sigv4" else NO_HEADERS)


@lru_cache(maxsize=256)  # compiling takes a millisecond, and every response needs it
def _cutter(texts: frozenset[str]) -> Cut:
    keys = {text for text in texts if len(text) >= KEY_CHARS}
    if not keys:
        return str
    known = sorted(keys | {quote(key, safe="") for key in keys}, key=len, reverse=True)
    whole = re.compile("|".join(map(spelled, known)))
    begun = re.compile("|".join(map(_begun, known)))

    def cut(text: str) -> str:
        text = whole.sub(CUT, text)
        return begun.sub(_cut_at_end, text) if len(text) <= EXCERPT_CHARS else text

    return cut


def _begun(key: str) -> str:
    """Return a pattern for the beginning of ``key`` and all text after it without a gap.

    A second beginning of a key inside the match ends where the match ends, so one search is enough.
    """
    return spelled(key[:KEY_CHARS]) + r"(?:[^\s'\"…\\]++|\\++(?!['\"]))*+"


def _cut_at_end(found: re.Match[str]) -> str:
    """Replace the beginning of a key if the text or its quotation ends there."""
    return CUT if _END.match(found.string, found.end()) else found[0]


def hidden(failed: ProviderFailed, cut: Cut) -> ProviderFailed:
    """Return the failure with keys removed from all its texts."""
    return evolve(
        failed,
        message=cut(failed.message),
        native_type=failed.native_type and cut(failed.native_type),
        code=failed.code and cut(failed.code),
        raw=_value(failed.raw, cut),
    )


def _value(value: Any, cut: Cut) -> Any:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list):
        return [_value(item, cut) for item in value]
    if isinstance(value, dict):
        return {cut(name): _value(inner, cut) for name, inner in value.items()}
    return value


def without_keys_in(headers: dict[str, str], cut: Cut) -> dict[str, str]:
    """Return the headers with keys removed from their values.

    The values are searched as one text. The quotation marks between them end the beginning of a key, as a value's end does.
    """
    joined = '"'.join(headers.values())
    if len(joined) <= EXCERPT_CHARS and cut(joined) == joined:
        return headers
    return {name: cut(value) for name, value in headers.items()}


def without_keys(chunk: bytes, cut: Cut, report: StreamReport) -> bytes:
    """Remove keys from a chunk of ``transcode`` if ``report`` has a failure.

    The failure is in ``report`` before it is written, and it is written as one chunk. This is a function and not a stage,
    because a stage with its pipe took 4 % of the CPU time of an event.
    """
    if report.failure is None and report.error is None:
        return chunk
    return cut(chunk.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
