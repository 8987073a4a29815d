"""Gemini's two framings, distinguished by the first byte that is not blank: ``[`` begins a streamed JSON array.

Anything else is read as an event stream. A bare JSON object in it, after events or as the whole body, even printed over many
lines, is how Google sends an error after the HTTP status was sent.

A client that requests a stream without ``alt=sse`` gets an array (``ArrayWriter``). Each event becomes an element as soon as
it is complete, however the input is divided and written (with comments, or as an array already). A payload that is not an
object (``[DONE]``) is not an element. A separator is written before the next element, so that an array can stop after any
element. A keep-alive is white space between elements. When the input ends, the array is closed, whether or not the response is
complete: a stop reason or an error in the last element shows a client which of the two it is. If the input broke off, the
array stays open.

Source: dialects.md §0.3, §5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamkit.dialects.gemini.encode import GeminiEncoder
from streamkit.dialects.http import ArrayForm
from streamkit.dialects.profiles import Encoding
from streamkit.errors import BrokenFrame
from streamkit.events import ProviderFailed
from streamkit.framing.frame import BEGINNING_BYTES, BOM, WHITE, Frame
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.sse import SSEParser
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.report import StreamReport

EVENT_END = b"\r\n\r\n"  # as Google writes it


class GeminiParser(Link):
    """A machine that turns bytes into frames, with one of two parsers. The first byte decides which."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._parser: SSEParser | JSONArrayParser | None = None
        self._held = b""

    @property
    def is_array(self) -> bool:
        return isinstance(self._parser, JSONArrayParser)

    @property
    def boundary(self) -> int:
        """The offset after the last complete frame."""
        return 0 if self._parser is None else self._parser.boundary

    @property
    def emit(self) -> Callable[[Any], object]:  # also set on the chosen parser
        return self._emit

    @emit.setter
    def emit(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        if self._parser is not None:
            self._parser.emit = emit

    @emit.deleter
    def emit(self) -> None:
        del self._emit
        if self._parser is not None:
            del self._parser.emit

    @property
    def fault(self) -> Exception | None:  # the fault of the chosen parser
        return None if self._parser is None else self._parser.fault

    @fault.setter
    def fault(self, fault: Exception | None) -> None:
        if self._parser is not None:
            self._parser.fault = fault

    def push(self, chunk: bytes, /) -> None:
        if self._parser is not None:
            self._parser.push(chunk)
            return
        self._held += chunk
        start = self._held[:BEGINNING_BYTES].removeprefix(BOM).lstrip(WHITE)
        if len(self._held) >= BEGINNING_BYTES or (start and not BOM.startswith(start)):
            self._begin(start)

    push_batch = push

    def push_end(self) -> None:
        self._begin(b"").push_end()

    def push_rest(self) -> None:
        """Read the frames at the end of an input that failed."""
        self._begin(b"").push_rest()

    def _begin(self, start: bytes) -> SSEParser | JSONArrayParser:
        """Choose the parser by ``start``, and pass it the held bytes."""
        if self._parser is None:
            if start.startswith(b"["):
                self._parser = JSONArrayParser(limits=self._limits, report=self._report)
            else:
                self._parser = SSEParser(limits=self._limits, report=self._report, stray_errors=True, bare_body=True)
            self._parser.emit, self._parser.several = self.emit, self.several
            self._parser.emit_run, self._parser.emit_payload = self.emit_run, self.emit_payload
            if held := self._held:
                self._held = b""
                self._parser.push(held)
        return self._parser


def continued(parser: object, last: bytes, frame: bytes) -> bytes | None:
    """Return what to append to a forwarded array that ends with ``last``: the frame as last element, or only the end."""
    if not isinstance(parser, GeminiParser) or not parser.is_array:
        return None
    if not frame:
        return b"" if last == b"]" else b"]"
    separator = {b"": b"[", b"[": b"", b",": b""}.get(last, b",\r\n")
    return separator + frame.removeprefix(b"data: ").removesuffix(EVENT_END) + b"\r\n]"


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
