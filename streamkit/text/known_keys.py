r"""Keys that are known, found in bytes wherever they stand: as they are, percent-encoded, or escaped as JSON may escape them.

A key is looked for by its longest run of letters and digits, which every way to write it leaves as it is; the pattern that
knows the rest is tried only where that is found. So bytes without a key cost one search a key, at the speed of ``bytes.find``.

A key of which a letter or a digit is written as an escape (``\u0061``) is not found, nor one under 8 characters, which would
be found in ordinary words.

Source: limits.md T6; observe.md O25.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final
from urllib.parse import quote

from streamkit.text.redact import CUT

#: The least characters of a key that is looked for.
KEY_CHARS: Final = 8
#: What is searched at once: a search holds the interpreter.
WINDOW_BYTES: Final = 1024 * 1024
#: The least bytes at an end that count as the beginning of a key.
BEGUN_BYTES: Final = 4
_RUN: Final = re.compile(r"[0-9A-Za-z]+")
#: Bytes that one character may be written as: ``\\u002b``.
_ESCAPED_BYTES: Final = 7


def spelled(key: str) -> str:
    r"""The key; what is neither a letter nor a digit of it as ``\u002b`` or ``\/`` as well, or as ``\\/`` in an excerpt."""
    return "".join(
        letter if letter.isalnum() else rf"(?:\\{{0,2}}{re.escape(letter)}|\\{{1,2}}u00(?i:{ord(letter):02x}))"
        for letter in key
    )


class KnownKeys:
    """A set of keys. Those under ``KEY_CHARS`` are left out."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        named = {key for key in keys if len(key) >= KEY_CHARS}
        self.keys = frozenset(named | {quote(key, safe="", errors="surrogateescape") for key in named})
        self._runs = tuple({max(_RUN.findall(key) or [""], key=len).encode() for key in self.keys})
        self._begun = tuple((_bytes(key)[:BEGUN_BYTES], _bytes(key)) for key in self.keys)
        self._letters = frozenset(b"".join(map(_bytes, self.keys)))
        #: Bytes that the longest of them takes, however it is written.
        self.longest_bytes = max((len(_bytes(key)) * _ESCAPED_BYTES for key in self.keys), default=0)

    def with_more(self, keys: Iterable[str]) -> KnownKeys:
        """These and others."""
        more = self.keys.union(keys)
        return self if more == self.keys else KnownKeys(more)

    def are_in(self, data: bytes) -> bool:
        return self._may_be_in(data) and self._pattern.search(data) is not None

    def cut(self, data: bytes) -> bytes:
        """The same bytes with ``[removed]`` in place of each."""
        return self._pattern.sub(CUT.encode(), data) if self._may_be_in(data) else data

    def begins_at(self, data: bytes) -> int:
        """Where the last bytes begin that may be the beginning of one; the length where none does.

        A beginning is ``BEGUN_BYTES`` long at least, and is found where it is written as it is.
        """
        if not data or data[-1] not in self._letters:  # as of most reads, which end with a line
            return len(data)
        return min((place for begun, key in self._begun for place in _begun_at(data, begun, key)), default=len(data))

    def _may_be_in(self, data: bytes) -> bool:
        if len(data) > WINDOW_BYTES:
            windows = range(0, len(data), WINDOW_BYTES)
            return any(data.find(run, at, at + WINDOW_BYTES + len(run)) >= 0 for run in self._runs for at in windows)
        for run in self._runs:  # noqa: SIM110 - a generator takes four times as long, and each read is looked at
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
