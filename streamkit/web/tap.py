"""Who sees the bytes of an answer as they pass: where an application wants to look at its streams.

Without a tap each read and each write costs one check. With one, nothing of the answer changes: a tap gets the bytes
themselves, when they were read or are about to be written, and can neither wait nor fail. It gets no headers and no requests.

Source: observe.md 9, O39, O40.
"""

from __future__ import annotations

from typing import Protocol

from streamkit.read_options import ReadOptions


class Tap(Protocol):
    """Sees one answer."""

    def attempt(self, upstream: str, dialect: str, options: ReadOptions, /) -> None:
        """The upstream of that name is asked from now on; its answer is read by these options."""

    def read(self, chunk: bytes, /) -> None:
        """These bytes came of the upstream that was asked last."""

    def unread(self, data: bytes, /) -> None:
        """These were put back, and will be read again."""

    def wrote(self, data: bytes, /, *, keep_alive: bool = False) -> None:
        """These are written to the client."""
