"""The other framing of a stream: one JSON array, for clients that request a stream without ``alt=sse``.

Each event becomes an element as soon as it is complete, however the input is divided and written (with comments, or as an
array already). A payload that is not an object (``[DONE]``) is not an element. A separator is written before the next
element, so that an array can stop after any element. A keep-alive is white space between elements. When the input ends, the
array is closed, whether or not the response is complete: a stop reason or an error in the last element shows a client which
of the two it is. If the input broke off, the array stays open.

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
    """A machine that turns complete frames of an event stream into bytes of an array."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.fault: Exception | None = None
        # The parser's report is discarded: the stream was already read once, and its repairs would be counted twice.
        self._parser = GeminiParser(limits=limits, report=StreamReport())
        self._separator = b"["

    def feed(self, chunk: bytes, /) -> bytes:
        """Return the elements that these bytes complete."""
        return self._written(self._parser.feed(chunk))

    def finish(self) -> bytes:
        """Return the end of the array, or nothing after an incomplete frame."""
        output = self._written(self._parser.finish())
        if self.fault is not None:
            return output
        return output + (b"[]" if self._separator == b"[" else b"\r\n]")

    def abandon(self) -> bytes:
        """Return nothing: the array stays open."""
        return b""

    def _written(self, frames: list[Frame]) -> bytes:
        output = bytearray()
        for frame in frames:
            if not frame.terminated:  # streamkit's own encoder writes complete frames
                self.fault = BrokenFrame("the input ended inside a frame", frame.data, offset=frame.offset)
            elif frame.data.lstrip().startswith(b"{"):
                output += self._separator + frame.data
                self._separator = b",\r\n"
        self.fault = self.fault or self._parser.fault
        return bytes(output)


def _error(failed: ProviderFailed) -> bytes:
    """Return an array with only an error. Keep-alives may precede it."""
    writer = ArrayWriter()
    return writer.feed(GeminiEncoder(Encoding(), StreamReport()).feed([failed])) + writer.finish()


ARRAY: Final = ArrayForm(writer=lambda limits: ArrayWriter(limits=limits), error=_error)
