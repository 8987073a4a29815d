"""A parser and a decoder as one machine, which reads runs of like frames by their skeleton (``skeleton.py``).

Theory: a frame says what it says by its bytes and by the decoder's state. A skeleton is **proved** by decoding one frame with
probes in its holes, in a twin of the decoder: out comes one delta with the probe for its text, nothing is repaired, and the
twin's state is what it was. Frames that only differ in the holes then mean the same, and leave the state as it is, so that it
holds for the next as well. As soon as the state is another, the skeleton is **forgotten**: after a reused index of Anthropic's
the same bytes belong to another block.

Where frames are not alike, what is tried in vain is bounded: after each failure twice the bytes pass before the next attempt.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, Protocol, cast

import orjson
from attrs import define

from streamkit.dialects.base import Dialect
from streamkit.dialects.decoding import FrameDecoder
from streamkit.dialects.skeleton import STRINGS, Kind, Skeleton
from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, WireEvent
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.pipeline import Chain, Machine
from streamkit.report import StreamReport
from streamkit.tool_calls.delta_run import Delta, DeltaRun

#: How many bytes are decoded frame by frame before the next attempt to find a skeleton, at least and at most.
LEAST_BYTES: Final = 2048
MOST_BYTES: Final = 1024 * 1024
#: A skeleton that was good for fewer was not worth its proof.
WORTH_BYTES: Final = 16 * 1024
#: Text that no field of a frame has by chance, and a number in its place.
PROBE: Final = "\x02probe %d\x03"
PROBE_NUMBER: Final = 60_000


class RunParser(Protocol):
    """A parser between whose events a run may be read by somebody else."""

    fault: Any
    boundary: int

    def feed(self, chunk: bytes, /) -> list[Frame]: ...
    def finish(self) -> list[Frame]: ...
    def abandon(self) -> list[Frame]: ...

    def take_back(self, chunk: bytes, /) -> bytes | None:
        """``chunk`` behind what is held of a line, which is held no longer; None unless it begins an event."""

    def pass_over(self, size: int, frames: int, /) -> None:
        """So many bytes were read by somebody else: whole events."""


class RunReader:
    """Machine: bytes to wire events and runs of them."""

    def __init__(self, parser: RunParser, decoder: FrameDecoder, make_parser: Callable[[StreamReport], Any]) -> None:
        self.fault: Exception | None = None
        self._parser = parser
        self._decoder = decoder
        self._make_parser = make_parser
        self._plain = Chain(parser, decoder)
        self._at = 0  # bytes of the stream that were read
        self._proved: Proved | None = None
        #: Bytes to read plainly before the next proof is tried; how many they were the last time; what a proof was good for.
        self._due = self._wait = LEAST_BYTES
        self._served = WORTH_BYTES

    def feed(self, chunk: bytes, /) -> list[WireEvent | DeltaRun]:
        out: list[WireEvent | DeltaRun] = []
        while True:
            if self._proved is not None:
                chunk = self._by_skeleton(chunk, self._proved, out)
            if not chunk or self.fault is not None:
                return out
            size = LEAST_BYTES if self._proved is not None else self._due
            self._plainly(chunk[:size], out)
            chunk = chunk[size:]

    def finish(self) -> list[WireEvent]:
        out = self._plain.finish()
        self.fault = self._plain.fault
        return out

    def abandon(self) -> list[WireEvent]:
        return self._plain.abandon()

    def _by_skeleton(self, chunk: bytes, proved: Proved, out: list[WireEvent | DeltaRun]) -> bytes:
        """Read the like frames that ``chunk`` begins with; gives what is left of it."""
        text = self._parser.take_back(chunk)
        if text is None:
            return chunk
        self._at -= len(text) - len(chunk)
        found = proved.skeleton.read(text)
        if found is None:
            return text
        columns, size = found
        indices = None if proved.index is None else columns[proved.index]
        if indices is not None and not 0 <= min(indices) <= max(indices) <= self._decoder.limits.index:
            return text
        texts = columns[proved.text]
        out.append(DeltaRun(proved.model, texts, indices))
        self._parser.pass_over(size, len(texts))
        self._at += size
        self._served += size
        self._due = self._wait
        return text[size:]

    def _plainly(self, piece: bytes, out: list[WireEvent | DeltaRun]) -> None:
        start = self._at
        self._at += len(piece)
        self._due -= len(piece)
        out += self._plain.feed(piece)
        self.fault = self._plain.fault
        if self._proved is not None and self._decoder.snapshot() != self._proved.state:
            self._proved = None
        if self._due <= 0 and self.fault is None:
            self._wait = LEAST_BYTES if self._served >= WORTH_BYTES else min(2 * self._wait, MOST_BYTES)
            self._due, self._served = self._wait, 0
            self._proved = self._prove(piece, start)

    def _prove(self, piece: bytes, start: int) -> Proved | None:
        """The skeleton of the last whole event in ``piece``, which begins at byte ``start``; None if it has none."""
        frame = self._decoder.frame
        holes = self._decoder.holes
        if holes is None or frame.offset < start or not frame.terminated:
            return None
        raw = piece[frame.offset - start : self._parser.boundary - start]
        shift = raw.find(frame.data)
        if shift < 0:
            return None
        parts, kinds, end = [], [], 0
        for hole in holes.finditer(frame.data):
            kind = cast("Kind", hole.lastgroup)
            parts.append(raw[end : shift + hole.start(kind)])
            kinds.append(kind)
            end = shift + hole.end(kind)
        parts.append(raw[end:])
        return self._probed(parts, kinds) if "text" in kinds else None

    def _probed(self, parts: list[bytes], kinds: list[Kind]) -> Proved | None:
        """Decode the event with probes in its holes, in a twin of the decoder."""
        probes = [PROBE % n if kind in STRINGS else PROBE_NUMBER + n for n, kind in enumerate(kinds)]
        raw = parts[0] + b"".join(orjson.dumps(probe) + part for probe, part in zip(probes, parts[1:], strict=True))
        report = StreamReport()
        parser, twin = self._make_parser(report), self._decoder.twin(report)
        frames = parser.feed(raw)
        if len(frames) != 1 or parser.boundary != len(raw):
            return None
        events = twin.feed(frames)
        state = self._decoder.snapshot()
        if len(events) != 1 or twin.fault is not None or report.repairs or twin.snapshot() != state:
            return None
        (event,) = events
        text, index = _places(event, probes)
        if text is None or kinds[text] != "text":
            return None
        return Proved(Skeleton(parts, kinds), event, text, index, deepcopy(state))


@define(eq=False)
class Proved:
    """A skeleton, and what its frames mean."""

    skeleton: Skeleton
    model: Delta
    text: int  #: which hole has the text
    index: int | None  #: which hole has the index of the call
    state: dict[str, Any]  #: of the decoder


def _places(event: WireEvent, probes: list[str | int]) -> tuple[int | None, int | None]:
    """Which probes are the text and the index of a delta; no text if it is none, or has anything else to say."""
    if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
        return _place(event.text, probes), None
    if not isinstance(event, ToolCallDelta) or event.arguments is None:
        return None, None
    if event.index is None or event != ToolCallDelta(event.index, None, None, event.arguments, event.choice, event.kind):
        return None, None
    return _place(event.arguments, probes), _place(event.index, probes)


def _place(value: str | int, probes: list[str | int]) -> int | None:
    return probes.index(value) if value in probes else None


def reader(dialect: Dialect, limits: Limits, report: StreamReport) -> Machine[bytes, list[Any]]:
    """What reads a dialect: its parser and its decoder, by skeletons if both can."""
    parser, decoder = dialect.parser(limits, report), dialect.decoder(limits, report)
    if isinstance(decoder, FrameDecoder) and decoder.holes is not None and hasattr(parser, "take_back"):
        return RunReader(cast("RunParser", parser), decoder, lambda report: dialect.parser(limits, report))
    return Chain(parser, decoder)
