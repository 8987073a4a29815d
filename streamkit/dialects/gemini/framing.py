"""Gemini's two framings: a stream whose first byte that is not blank is ``[`` is a JSON array; others are event streams.

Source: dialects.md §5.1.

An event stream may contain a bare JSON object, after events or as the whole body, and over many lines: Google reports an
error in this way once the status is sent.

Bytes that passed in one framing are continued in the same framing: see ``continued``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamkit.framing.frame import BEGINNING_BYTES, BOM, WHITE
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.sse import SSEParser
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.report import StreamReport

#: The end of an event, as Google writes it.
EVENT_END = b"\r\n\r\n"


class GeminiParser(Link):
    """The machine from bytes to frames. It uses one of two parsers, which the first byte decides."""

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
        """The offset after the last whole frame."""
        return 0 if self._parser is None else self._parser.boundary

    @property
    def emit(self) -> Callable[[Any], object]:  # of the parser in use
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
    def fault(self) -> Exception | None:  # of the parser in use
        return None if self._parser is None else self._parser.fault

    @fault.setter
    def fault(self, fault: Exception | None) -> None:
        if self._parser is not None:
            self._parser.fault = fault

    def push(self, chunk: bytes, /) -> None:
        """Read the frames that a chunk completes."""
        if self._parser is not None:
            self._parser.push(chunk)
            return
        self._held += chunk
        start = self._held[:BEGINNING_BYTES].removeprefix(BOM).lstrip(WHITE)
        if len(self._held) >= BEGINNING_BYTES or (start and not BOM.startswith(start)):
            self._begin(start)

    push_batch = push

    def push_end(self) -> None:
        """Read the frames at the end of the input."""
        self._begin(b"").push_end()

    def push_rest(self) -> None:
        """Read the frames at the end of an input that failed."""
        self._begin(b"").push_rest()

    def _begin(self, start: bytes) -> SSEParser | JSONArrayParser:
        """Choose the parser by ``start``, give it the held bytes, and return it."""
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
    """Return what follows bytes ending with ``last`` in an array: the frame as its last element, or ``]``; else None."""
    if not isinstance(parser, GeminiParser) or not parser.is_array:
        return None
    if not frame:
        return b"" if last == b"]" else b"]"
    separator = {b"": b"[", b"[": b"", b",": b""}.get(last, b",\r\n")
    return separator + frame.removeprefix(b"data: ").removesuffix(EVENT_END) + b"\r\n]"
