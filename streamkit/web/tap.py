"""An observer of the bytes of a response, for applications that want to inspect their streams.

Without a tap, each read and each write costs one check. A tap does not change the response: it gets the bytes when they were
read or are about to be written, and must neither wait nor raise. It gets no headers and no requests.

Source: observe.md 9, O39, O40.
"""

from __future__ import annotations

from typing import Protocol

from streamkit.read_options import ReadOptions


class Tap(Protocol):
    """Observes one response."""

    def attempt(self, upstream: str, dialect: str, options: ReadOptions, /) -> None:
        """The upstream of this name is tried from now on. Its response is read with these options."""

    def read(self, chunk: bytes, /) -> None:
        """These bytes were read from the present upstream."""

    def unread(self, data: bytes, /) -> None:
        """These bytes were put back and will be read again."""

    def wrote(self, data: bytes, /, *, keep_alive: bool = False) -> None:
        """These bytes are about to be written to the client."""
