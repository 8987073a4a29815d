r"""Find known API keys in bytes: plain, percent-encoded, or with JSON escapes.

A key is searched for by its longest run of letters and digits, which no encoding changes, and only then by its full pattern. A
key with an escaped letter or digit (``\u0061``) is not found, nor is a key under 8 characters, which ordinary words would
match.

Source: limits.md T6; observe.md O25.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final
from urllib.parse import quote

from streamkit.text.quoting import CUT

KEY_CHARS: Final = 8  #: minimum length of a key that is searched for
WINDOW_BYTES: Final = 1024 * 1024  #: bytes to search at once: a search blocks the interpreter
BEGUN_BYTES: Final = 4  #: minimum number of bytes at the end of the data that count as the beginning of a key
_RUN: Final = re.compile(r"[0-9A-Za-z]+")
_ESCAPED_BYTES: Final = 7  #: maximum number of bytes for one escaped character: ``\\u002b``


def spelled(key: str) -> str:
    r"""Return a pattern for the key. Other characters than letters and digits may be escaped (``\u002b``, ``\/``, ``\\/``)."""
    return "".join(
        letter if letter.isalnum() else rf"(?:\\{{0,2}}{re.escape(letter)}|\\{{1,2}}u00(?i:{ord(letter):02x}))"
        for letter in key
    )


class KnownKeys:
    """A set of keys. Keys shorter than ``KEY_CHARS`` are left out."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        named = {key for key in keys if len(key) >= KEY_CHARS}
        self.keys = frozenset(named | {quote(key, safe="", errors="surrogateescape") for key in named})
        self._runs = tuple({max(_RUN.findall(key) or [""], key=len).encode() for key in self.keys})
        self._begun = tuple((_bytes(key)[:BEGUN_BYTES], _bytes(key)) for key in self.keys)
        self._letters = frozenset(b"".join(map(_bytes, self.keys)))
        #: Maximum number of bytes of any key in any encoding.
        self.longest_bytes = max((len(_bytes(key)) * _ESCAPED_BYTES for key in self.keys), default=0)

    def with_more(self, keys: Iterable[str]) -> KnownKeys:
        more = self.keys.union(keys)
        return self if more == self.keys else KnownKeys(more)

    def are_in(self, data: bytes) -> bool:
        return self._may_be_in(data) and self._pattern.search(data) is not None

    def cut(self, data: bytes) -> bytes:
        """Return the data with ``[removed]`` in place of each key."""
        return self._pattern.sub(CUT.encode(), data) if self._may_be_in(data) else data

    def begins_at(self, data: bytes) -> int:
        """Return the offset of a possible beginning of a key at the end of ``data``, or the length of ``data``.

        A beginning has at least ``BEGUN_BYTES`` bytes, and is found only if it is not escaped or encoded.
        """
        if not data or data[-1] not in self._letters:  # true for most reads, which end with a line end
            return len(data)
        return min((place for begun, key in self._begun for place in _begun_at(data, begun, key)), default=len(data))

    def _may_be_in(self, data: bytes) -> bool:
        if len(data) > WINDOW_BYTES:
            windows = range(0, len(data), WINDOW_BYTES)
            return any(data.find(run, at, at + WINDOW_BYTES + len(run)) >= 0 for run in self._runs for at in windows)
        for run in self._runs:  # noqa: SIM110 - a generator takes four times as long, and each read is searched
            if run in data:
                return True
        return False

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        longest_first = sorted(self.keys, key=len, reverse=True)
        return re.compile(b"|".join(_bytes(spelled(key)) for key in longest_first))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _begun_at(data: bytes, begun: bytes, key: bytes) -> Iterator[int]:
    place = data.find(begun, max(0, len(data) - len(key) + 1))
    while place >= 0:
        if key.startswith(data[place:]):
            yield place
            return
        place = data.find(begun, place + 1)
