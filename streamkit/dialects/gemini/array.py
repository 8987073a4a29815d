"""The other framing of a stream: one JSON array, for clients that ask without ``alt=sse``.

Events become elements as soon as they are there, however they are cut and written, with comments or as an array already; what
is no object (``[DONE]``) is no element. Separators stand in front of what follows, so that an array can stop behind any
element; the keep-alive is white space there. An array that ends is closed, whole or not: its last element says which, by a
reason to stop or an error. An array whose input broke is left open.

Source: dialects.md §0.3, §5.1.
"""

from __future__ import annotations

from typing import Final

from streamkit.dialects.gemini.encode import GeminiEncoder
from streamkit.dialects.gemini.framing import GeminiParser
from streamkit.dialects.http import ArrayForm
from streamkit.dialects.profiles import Encoding
from streamkit.errors import BrokenFrame
from streamkit.events import ProviderFailed
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport


class ArrayWriter:
    """The machine: bytes of an event stream, in whole frames, to bytes of an array."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.fault: Exception | None = None
        # Its findings are left aside: the stream was read before, and they would be counted twice.
        self._parser = GeminiParser(limits=limits, report=StreamReport())
        self._separator = b"["

    def feed(self, chunk: bytes, /) -> bytes:
        """The elements that these bytes end."""
        return self._written(self._parser.feed(chunk))

    def finish(self) -> bytes:
        """The end of the array; without one where a frame broke off."""
        output = self._written(self._parser.finish())
        if self.fault is not None:
            return output
        return output + (b"[]" if self._separator == b"[" else b"\r\n]")

    def abandon(self) -> bytes:
        """Nothing: the array stays open."""
        return b""

    def _written(self, frames: list[Frame]) -> bytes:
        output = bytearray()
        for frame in frames:
            if not frame.terminated:  # what stands in front of us writes whole frames
                self.fault = BrokenFrame("the input ended inside a frame", frame.data, offset=frame.offset)
            elif frame.data.lstrip().startswith(b"{"):
                output += self._separator + frame.data
                self._separator = b",\r\n"
        self.fault = self.fault or self._parser.fault
        return bytes(output)


def _error(failed: ProviderFailed) -> bytes:
    """Behind keep-alives, before any element."""
    writer = ArrayWriter()
    return writer.feed(GeminiEncoder(Encoding(), StreamReport()).feed([failed])) + writer.finish()


ARRAY: Final = ArrayForm(writer=lambda limits: ArrayWriter(limits=limits), error=_error)
