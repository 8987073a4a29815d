"""An upstream's keys, cut out of what it says when it fails: some repeat the request that they refuse, headers and all.

``text/redact.py`` finds what looks like a key; these may look like nothing, but are known. Failures alone are looked at: an
answer passes byte for byte, and where a key is a placeholder (``no-key-required``), a model may well say it.

A text may be JSON that nobody has decoded, so a letter is found as JSON may escape it. It may be an excerpt, so the beginning
of a key is one where the text or its quotation ends. Values under 8 characters stay: they would be cut out of ordinary words.

Source: limits.md T6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from attrs import evolve

from streamkit.dialects import endpoints
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.text.known_keys import KEY_CHARS, spelled
from streamkit.text.redact import CUT
from streamkit.web.upstream.headers import NO_HEADERS
from streamkit.web.upstream.value import Upstream

Cut: TypeAlias = Callable[[str], str]

#: An operator's headers that say nothing secret, beside those that ask for features. All others may.
PUBLIC: Final = frozenset({"accept", "http-referer", "referer", "user-agent", "x-title"})
#: Where an excerpt may stand. In what is longer a server could repeat a beginning often enough to hold up everybody.
EXCERPT_CHARS: Final = 16 * 1024
_END: Final = re.compile(r"\\*['\"…]|\Z")
#: What comes with a signature and is of use to others as long as the session lasts.
SESSION: Final = "x-amz-security-token"


def redactor(upstreams: Iterable[Upstream], sent: Mapping[str, str] = NO_HEADERS, *, keys: Iterable[str] = ()) -> Cut:
    """A function that cuts the upstreams' own keys out of a text, other ``keys``, and the session's token if one was ``sent``.

    Values of operators' headers count as keys, except those of headers that are public.
    """
    known = [*(key for upstream in upstreams for key in keys_of(upstream)), *keys, sent.get(SESSION, "")]
    return _cutter(frozenset(key for key in known if len(key) >= KEY_CHARS))


@cache
def _public() -> frozenset[str]:
    return PUBLIC.union(*(endpoint.features for endpoint in endpoints()))


@lru_cache(maxsize=256)  # compiling takes a millisecond, and each answer needs it
def _cutter(keys: frozenset[str]) -> Cut:
    if not keys:
        return str
    known = sorted(keys | {quote(key, safe="") for key in keys}, key=len, reverse=True)
    whole = re.compile("|".join(map(spelled, known)))
    begun = re.compile("|".join(map(_begun, known)))

    def cut(text: str) -> str:
        text = whole.sub(CUT, text)
        return begun.sub(_cut_at_end, text) if len(text) <= EXCERPT_CHARS else text

    return cut


def keys_of(upstream: Upstream) -> Iterator[str]:
    """The key of an upstream, and the values of its operator's headers, which may be keys."""
    if upstream.key is not None:
        yield upstream.key.reveal()
    for name, value in upstream.headers.items():
        if name not in _public():
            yield value
            yield value.rpartition(" ")[2]  # what stands behind `Bearer`


def _begun(key: str) -> str:
    """Its beginning, and all that follows without a gap: other beginnings in it end where it ends, and are not looked at."""
    return spelled(key[:KEY_CHARS]) + r"(?:[^\s'\"…\\]++|\\++(?!['\"]))*+"


def _cut_at_end(found: re.Match[str]) -> str:
    """The beginning of a key is one where the text or its quotation ends with it."""
    return CUT if _END.match(found.string, found.end()) else found[0]


def hidden(failed: ProviderFailed, cut: Cut) -> ProviderFailed:
    """A failure without keys."""
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


def without_keys(chunk: bytes, cut: Cut, report: StreamReport) -> bytes:
    """What ``transcode`` yields, without keys from its failure on, which stands in ``report``.

    It stands there before it is written, and is written in one piece. A function and no stage, which with the pipe around it
    took 4 % of the CPU of an event.
    """
    if report.failure is None and report.error is None:
        return chunk
    return cut(chunk.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
