"""Texts that were said, as far as a later whole text must be compared with them.

A provider that ends with the whole answer says everything again: what it says is already with the client, and only what is
missing of it may be added (``RunningText.rest_of``). What contradicts can't be taken back, and is withheld.

A text may be endless, so that only the beginning of a stream's first texts is kept, and compared as it is. Of a longer one,
and of one more text, the length and two checksums tell whether a whole one begins with it. Two different texts of one length
have the same checksums once in 2^60; then what contradicts is taken for what was said. Fragments are joined a few dozen at a
time, which costs less than one by one; most texts are never compared, so that no checksum of a kept one is ever made.

Only what a provider marks as a whole is compared. A delta that repeats all that came before it is text: some models say
"haha", and a line end is often a delta of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from zlib import adler32, crc32

#: Fragments that are folded together; a longer one at once, so that no more than these are kept.
FOLD_EVERY: Final = 64
LONG_CHARS: Final = 1024
#: What is kept of the beginning, to see early that another text is another.
HEAD_CHARS: Final = 64
#: A text that is no longer is kept, and so many texts of a stream: half a megabyte at most, and nearly every answer whole.
KEPT_CHARS: Final = 16 * 1024
KEPT_TEXTS: Final = 16


class RunningText:
    """A text that grows: how long it is, how it begins, and itself or its checksums.

    ``kept_chars``: a text that is no longer is kept.
    """

    __slots__ = ("_adler", "_chars", "_crc", "_head", "_kept", "_kept_chars", "recent")

    def __init__(self, kept_chars: int = KEPT_CHARS) -> None:
        self._chars = 0
        self._crc = 0
        self._adler = 1
        self._head = ""
        self._kept: list[str] | None = []  # all of it but what is recent; None once the checksums stand for it
        self._kept_chars = kept_chars
        self.recent: list[str] = []  #: fragments that are not in the text or its checksums yet

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
        """How it begins."""
        if self.recent:
            self.fold()
        return self._head

    def rest_of(self, whole: str) -> str | None:
        """What ``whole`` has behind this text; None if it does not begin with it."""
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
        """Take what is recent into the text that is kept, or into the checksums."""
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
    """The texts of a stream, by whatever a dialect tells them apart with."""

    __slots__ = ("_by_label",)

    def __init__(self) -> None:
        self._by_label: dict[Hashable, RunningText] = {}

    def of(self, label: Hashable) -> RunningText:
        """The text with this label; an empty one if there is none."""
        text = self._by_label.get(label)
        if text is None:
            kept_chars = KEPT_CHARS if len(self._by_label) < KEPT_TEXTS else 0
            text = self._by_label[label] = RunningText(kept_chars)
        return text

    def begun(self, label: Hashable) -> RunningText | None:
        """The text with this label, if anything of it was said."""
        text = self._by_label.get(label)
        return text if text is not None and text.chars else None


class StartText:
    """The text that a block started with: its deltas say it once more, or go on from there, and only they tell which."""

    __slots__ = ("_held", "_repeated", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._held: list[str] = []
        self._repeated = 0  # so many characters of it came again

    def follow(self, text: str) -> tuple[str, bool] | None:
        """What to say once a delta brought ``text``, and whether the start was repeated; None while that is open."""
        size = min(len(text), len(self._text) - self._repeated)
        repeats = self._text.startswith(text[:size], self._repeated)
        self._held.append(text)
        self._repeated += size
        if repeats and self._repeated < len(self._text):
            return None
        return "".join(self._held if repeats else [self._text, *self._held]), repeats

    def settle(self) -> tuple[str, bool]:
        """The same where nothing more comes."""
        return self._text, bool(self._held)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
