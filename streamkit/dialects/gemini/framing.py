"""Gemini's two framings, distinguished by the first byte that is not blank: ``[`` begins a streamed JSON array.

Source: dialects.md §5.1.

Anything else is read as an event stream. A bare JSON object in it, behind events or as the whole body, be it printed over
many lines, is how Google reports an error when it is too late for a status.

Bytes that passed in one framing are continued in the same one: see ``continued``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkit.framing.frame import BEGINNING_BYTES, BOM, WHITE, Frame
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.sse import SSEParser
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport

if TYPE_CHECKING:
    from streamkit.errors import StreamkitError

#: What ends an event, as Google writes it.
EVENT_END = b"\r\n\r\n"


class GeminiParser:
    """The machine: bytes to frames, by one of two machines, which the first byte decides."""

    gives_runs = False

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None) -> None:
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._parser: SSEParser | JSONArrayParser | None = None
        self._held = b""

    @property
    def is_array(self) -> bool:
        """Whether the body is a JSON array."""
        return isinstance(self._parser, JSONArrayParser)

    @property
    def boundary(self) -> int:
        """The offset behind the last whole frame."""
        return 0 if self._parser is None else self._parser.boundary

    @property
    def fault(self) -> StreamkitError | None:
        """What broke the reading."""
        return None if self._parser is None else self._parser.fault

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that a chunk completes."""
        if self._parser is not None:
            return self._parser.feed(chunk)
        self._held += chunk
        start = self._held[:BEGINNING_BYTES].removeprefix(BOM).lstrip(WHITE)
        if len(self._held) < BEGINNING_BYTES and (not start or BOM.startswith(start)):
            return []
        return self._begin(start)

    def finish(self) -> list[Frame]:
        """The frames at the end of the input."""
        return [*self._begin(b""), *self._chosen().finish()]

    def abandon(self) -> list[Frame]:
        """The frames at the end of an input that failed."""
        return [*self._begin(b""), *self._chosen().abandon()]

    def _chosen(self, start: bytes = b"") -> SSEParser | JSONArrayParser:
        if self._parser is None:
            if start.startswith(b"["):
                self._parser = JSONArrayParser(limits=self._limits, report=self._report)
            else:
                self._parser = SSEParser(limits=self._limits, report=self._report, stray_errors=True, bare_body=True)
                self._parser.gives_runs = self.gives_runs
        return self._parser

    def _begin(self, start: bytes) -> list[Frame]:
        """Hand the bytes that were held to the machine that ``start`` asks for."""
        held, self._held = self._held, b""
        parser = self._chosen(start)
        return parser.feed(held) if held else []


def continued(parser: object, last: bytes, frame: bytes) -> bytes | None:
    """What stands in an array behind bytes that passed and end with ``last``: the frame as last element, or the end alone."""
    if not isinstance(parser, GeminiParser) or not parser.is_array:
        return None
    if not frame:
        return b"" if last == b"]" else b"]"
    separator = {b"": b"[", b"[": b"", b",": b""}.get(last, b",\r\n")
    return separator + frame.removeprefix(b"data: ").removesuffix(EVENT_END) + b"\r\n]"
