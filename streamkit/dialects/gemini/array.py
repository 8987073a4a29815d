"""Write a Gemini stream as one JSON array, for clients that ask without ``alt=sse``.

Each event becomes an element as soon as it is complete, whatever its cuts and framing; comments and payloads that are no
object (``[DONE]``) are dropped. A separator is written before the next element, so that an array can stop after any element.
Keep-alives are white space there. When the stream ends, the array is closed, even if the response is not whole: the last
element has a finish reason or an error. If the input broke off inside a frame, the array stays open.

Source: dialects.md §0.3, §5.1 (the array form).
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
    """The machine: bytes of an event stream, in whole frames, to bytes of a JSON array."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.fault: Exception | None = None
        # The findings of this parser are discarded: the stream was read before, and they would be counted twice.
        self._parser = GeminiParser(limits=limits, report=StreamReport())
        self._separator = b"["

    def feed(self, chunk: bytes, /) -> bytes:
        """Return the elements that these bytes complete."""
        return self._written(self._parser.feed(chunk))

    def finish(self) -> bytes:
        """Return the end of the array; not if the input ended inside a frame."""
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
            if not frame.terminated:  # the stages before this one write whole frames
                self.fault = BrokenFrame("the input ended inside a frame", frame.data, offset=frame.offset)
            elif frame.data.lstrip().startswith(b"{"):
                output += self._separator + frame.data
                self._separator = b",\r\n"
        self.fault = self.fault or self._parser.fault
        return bytes(output)


def _error(failed: ProviderFailed) -> bytes:
    """Return an error as a whole array: keep-alives may precede it, but no element."""
    writer = ArrayWriter()
    return writer.feed(GeminiEncoder(Encoding(), StreamReport()).feed([failed])) + writer.finish()


ARRAY: Final = ArrayForm(writer=lambda limits: ArrayWriter(limits=limits), error=_error)
