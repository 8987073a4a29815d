"""The earlier texts of a stream, kept because a later whole text must be compared with them.

A provider that ends with the whole text repeats what the client already has. Only the missing rest may be added
(``RunningText.rest_of``). A text that contradicts the first cannot be taken back, and is withheld.

A text may be endless. So only texts up to ``KEPT_CHARS`` are kept, and only the first ``KEPT_TEXTS`` of a stream. Of other
texts, only the length and two checksums are kept, to check whether a whole text begins with them. Two texts of one length have
same checksums once in 2^60 cases; then a contradiction is not noticed. A few dozen fragments are joined at a time, which
costs less than one by one. Most texts are never compared, so checksums of a kept text are never computed.

Only a text that a provider marks as whole is compared. A delta that equals the text before it is ordinary text: some
models say "haha", and a line end is often a delta of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from zlib import adler32, crc32

#: The number of fragments that are joined at a time. A fragment above ``LONG_CHARS`` is joined at once, to limit memory.
FOLD_EVERY: Final = 64
LONG_CHARS: Final = 1024
HEAD_CHARS: Final = 64  #: The length of the beginning that is kept, to notice early that another text differs.
#: The longest text that is kept, and the most kept texts of a stream: half a megabyte at most, and nearly every response.
KEPT_CHARS: Final = 16 * 1024
KEPT_TEXTS: Final = 16


class RunningText:
    """A growing text: its length, its beginning, and either the whole text or its checksums.

    Texts longer than ``kept_chars`` are replaced by checksums.
    """

    __slots__ = ("_adler", "_chars", "_crc", "_head", "_kept", "_kept_chars", "recent")

    def __init__(self, kept_chars: int = KEPT_CHARS) -> None:
        self._chars = 0
        self._crc = 0
        self._adler = 1
        self._head = ""
        self._kept: list[str] | None = []  # the text except ``recent``; None after checksums replaced it
        self._kept_chars = kept_chars
        self.recent: list[str] = []  #: fragments that are not yet in the text or its checksums

    def append(self, text: str) -> None:
        recent = self.recent
        recent.append(text)
        if len(recent) >= FOLD_EVERY or len(text) > LONG_CHARS:
            self.fold()

    @property
    def chars(self) -> int:
        if self.recent:
            self.fold()
        return self._chars

    @property
    def head(self) -> str:
        if self.recent:
            self.fold()
        return self._head

    def rest_of(self, whole: str) -> str | None:
        """Return the part of ``whole`` after this text; None if ``whole`` does not begin with this text."""
        chars = self.chars
        if chars > len(whole) or not whole.startswith(self._head):
            return None
        if self._kept is not None:
            said = "".join(self._kept)
            self._kept = [said]
            return whole[chars:] if whole.startswith(said) else None
        raw = _raw(whole[:chars])
        return whole[chars:] if crc32(raw) == self._crc and adler32(raw) == self._adler else None

    def fold(self) -> None:
        """Move recent fragments into the kept text or the checksums."""
        text = "".join(self.recent)
        self.recent.clear()
        if not text:
            return
        if self._chars < HEAD_CHARS:
            self._head += text[: HEAD_CHARS - self._chars]
        self._chars += len(text)
        if self._kept is not None:
            self._kept.append(text)
            if self._chars <= self._kept_chars:
                return
            text, self._kept = "".join(self._kept), None
        raw = _raw(text)
        self._crc, self._adler = crc32(raw, self._crc), adler32(raw, self._adler)


class Texts:
    """The texts of a stream, by the labels that a dialect distinguishes them with."""

    __slots__ = ("_by_label",)

    def __init__(self) -> None:
        self._by_label: dict[Hashable, RunningText] = {}

    def of(self, label: Hashable) -> RunningText:
        """Return the text with this label; a new one if there is none."""
        text = self._by_label.get(label)
        if text is None:
            kept_chars = KEPT_CHARS if len(self._by_label) < KEPT_TEXTS else 0
            text = self._by_label[label] = RunningText(kept_chars)
        return text

    def begun(self, label: Hashable) -> RunningText | None:
        """Return the text with this label; None if there is none or it is empty."""
        text = self._by_label.get(label)
        return text if text is not None and text.chars else None


class StartText:
    """The text with which a block started. Its deltas may repeat this text or continue it, which only the deltas show."""

    __slots__ = ("_held", "_repeated", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._held: list[str] = []
        self._repeated = 0  # how many characters of the start the deltas have repeated so far

    def follow(self, text: str) -> tuple[str, bool] | None:
        """Return the text to emit after the delta ``text``, and whether the start was repeated; None while undecided."""
        size = min(len(text), len(self.text) - self._repeated)
        repeats = self.text.startswith(text[:size], self._repeated)
        self._held.append(text)
        self._repeated += size
        if repeats and self._repeated < len(self.text):
            return None
        return "".join(self._held if repeats else [self.text, *self._held]), repeats

    def settle(self) -> tuple[str, bool]:
        """Return the same as ``follow`` at the end of the block, when no more deltas follow."""
        return self.text, bool(self._held)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
