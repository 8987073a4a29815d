"""Gemini's other framing: events as one JSON array that is streamed, for clients that ask without ``alt=sse``.

The encoder, and frames that passed unchanged, are events; each payload becomes an element, as soon as it is there. The machine
reads events however they are cut and written, with LF, comments or as an array already, by the reader of the dialect, and what
is no object (``[DONE]``) is no element. Separators stand in front of what follows, so that an array can stop behind any
element; white space may stand there, which is all the keep-alive that there is.

An array that ends is closed, as one that passed through is: whole or not is said by its elements, by a reason to stop or an
error as the last one. An array whose input broke is left open.

Source: dialects.md §0.3, §5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkit.dialects.gemini.encode import GeminiEncoder
from streamkit.dialects.gemini.framing import GeminiParser
from streamkit.dialects.profiles import Encoding
from streamkit.errors import BrokenFrame
from streamkit.events import ProviderFailed
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Pipe, Stage, pipe
from streamkit.report import StreamReport

if TYPE_CHECKING:
    from streamkit.errors import StreamkitError


class ArrayWriter:
    """The machine: bytes of an event stream to bytes of an array."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.fault: StreamkitError | None = None
        # Its findings are left aside: the stream was read before, and they would be counted twice.
        self._parser = GeminiParser(limits=limits, report=StreamReport())
        self._separator = b"["

    def feed(self, chunk: bytes, /) -> bytes:
        return self._written(self._parser.feed(chunk))

    def finish(self) -> bytes:
        output = self._written(self._parser.finish())
        if self.fault is not None:
            return output
        return output + (b"[]" if self._separator == b"[" else b"\r\n]")

    def abandon(self) -> bytes:
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


def events_to_array(*, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, bytes]:
    """A stage from bytes of Gemini's event stream, in whole frames, to bytes of one JSON array.

    Raises BrokenFrame for a frame that its end broke off, and LimitExceeded.
    """
    return Stage("events to array", lambda _report: ArrayWriter(limits=limits))


def as_array(stream: Pipe[bytes], *, limits: Limits = DEFAULT_LIMITS) -> Pipe[bytes]:
    """What ``transcode(…, "gemini")`` returns, as an array: to be entered instead of ``stream``, whose report it keeps."""
    return pipe(Entered(stream), events_to_array(limits=limits), report=stream.report)


def array_error(failed: ProviderFailed) -> bytes:
    """An array that says nothing but an error: behind keep-alives, before any element."""
    writer = ArrayWriter()
    return writer.feed(GeminiEncoder(Encoding(), StreamReport()).feed([failed])) + writer.finish()


class Entered:
    """A pipe as the source of another: entered with the first read, left when the outer pipe closes its source."""

    def __init__(self, stream: Pipe[bytes]) -> None:
        self._stream = stream
        self._entered = False

    def __aiter__(self) -> Entered:
        return self

    async def __anext__(self) -> bytes:
        if not self._entered:
            self._entered = True
            await self._stream.__aenter__()
        return await anext(self._stream)

    async def aclose(self) -> None:
        await self._stream.__aexit__()
