"""A parser and a decoder as one machine, which reads runs of like frames by their skeleton (``skeleton.py``).

Theory: a frame says what it says by its bytes and by the decoder's state. A skeleton is **proved** by decoding one frame with
probes in its holes: out comes one delta with the probe for its text, nothing is repaired, and the decoder's state is what it
was. Frames that only differ in the holes then mean the same, and leave the state as it is, so that it holds for the next as
well. As soon as the state is another, the skeleton is **forgotten**: after a reused index of Anthropic's the same bytes belong
to another block.

Where frames are not alike, what is tried in vain is bounded: after each failure twice the bytes pass before the next attempt.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import orjson
from attrs import define

from streamkit.dialects.decoding import FrameDecoder
from streamkit.dialects.skeleton import STRINGS, Kind, Skeleton
from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, WireEvent
from streamkit.framing.frame import Frame
from streamkit.pipeline import Chain, Machine, Stage
from streamkit.report import StreamReport
from streamkit.tool_calls.delta_run import Delta, DeltaRun, delta_like

#: How many bytes are decoded frame by frame before the next attempt to find a skeleton, at least and at most.
LEAST_BYTES: Final = 512
MOST_BYTES: Final = 1024 * 1024
#: A skeleton that was good for fewer was not worth its proof.
WORTH_BYTES: Final = 4 * 1024
#: If an event that only the decoder can read comes after fewer, the skeleton was not worth it either.
ODD_BYTES: Final = 4096
#: Longer reads are read in pieces, so that what is looked at again after a failure is bounded.
PIECE_BYTES: Final = 64 * 1024
#: The beginning of an event that may be held until more comes. Of a longer one nothing is copied again.
HELD_BYTES: Final = 4096
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

    def end_of_event(self, text: bytes, start: int, /) -> int:
        """Where the first event ends that ends at ``start`` or behind it; -1 if none does."""

    def may_pass(self, size: int, /) -> bool:
        """Whether an event may begin here, and ``size`` bytes can't break a limit."""

    def pass_over(self, size: int, frames: int, /) -> None:
        """So many bytes were read by somebody else: whole events."""

    def is_event(self, raw: bytes, /) -> bool:
        """Whether these bytes are one event and nothing beside that the parser would remember."""


@define(eq=False)
class Proved:
    """A skeleton, and what its frames mean."""

    skeleton: Skeleton
    model: Delta
    text: int  #: which hole has the text
    index: int | None  #: which hole has the index of the call
    state: bytes  #: of the decoder


class RunReader:
    """Machine: bytes to wire events, and to runs of them where the next machine takes runs.

    Gain: 64 KiB reads of Chat cost a tenth of what they cost frame by frame, one event a read less than a third.
    """

    gives_runs = False

    def __init__(self, parser: RunParser, decoder: FrameDecoder, make_parser: Callable[[StreamReport], Any]) -> None:
        self.fault: Exception | None = None
        self._parser = parser
        self._decoder = decoder
        self._make_parser = make_parser
        self._plain = Chain(parser, decoder)
        self._counts = type(decoder).ran is not FrameDecoder.ran
        self._at = 0  # bytes of the stream that were read
        self._held = b""  # the beginning of a like event
        self._proved: Proved | None = None
        #: Bytes to read plainly before the next proof is tried; how many they were the last time; what a proof was good for.
        self._due = self._wait = LEAST_BYTES
        self._served = WORTH_BYTES

    def feed(self, chunk: bytes, /) -> list[Any]:
        if self._held:
            chunk, self._held = self._held + chunk, b""
        proved = self._proved
        if proved is not None and (event := self._one(chunk, proved)) is not None:
            return [event]
        out: list[Any] = []
        if len(chunk) <= PIECE_BYTES:
            self._read(chunk, out)
            return out
        for begin in range(0, len(chunk), PIECE_BYTES):
            if self.fault is None:
                held, self._held = self._held, b""
                self._read(held + chunk[begin : begin + PIECE_BYTES], out)
        return out

    def finish(self) -> list[Any]:
        out = self._release()
        if self.fault is None:
            out += self._plain.finish()
            self.fault = self._plain.fault
        return out

    def abandon(self) -> list[Any]:
        return self._release() + self._plain.abandon()

    def _release(self) -> list[Any]:
        """Hand the parser what was held."""
        out: list[Any] = []
        held, self._held = self._held, b""
        if held and self.fault is None:
            self._plainly(held, out)
        return out

    def _read(self, text: bytes, out: list[Any]) -> None:
        """By the skeleton as far as it goes, then at least ``LEAST_BYTES`` plainly, up to the end of an event, and again."""
        while self.fault is None:
            proved = self._proved
            if proved is not None and self._parser.may_pass(len(text)):
                text = self._by_skeleton(text, proved, out)
                if self._begins(text, proved):
                    self._held = text
                    return
            if not text:
                return
            end = self._parser.end_of_event(text, LEAST_BYTES if proved is not None else max(self._due, LEAST_BYTES))
            if end < 0:
                self._plainly(text, out)
                return
            self._plainly(text[:end], out)
            text = text[end:]

    def _begins(self, text: bytes, proved: Proved) -> bool:
        """Whether ``text`` may be the beginning of a like event, of which the parser could say nothing yet either.

        A CR could end an event already.
        """
        if not 0 < len(text) < HELD_BYTES or not proved.skeleton.begins(text) or b"\r" in text:
            return False
        return self._parser.end_of_event(text, 0) < 0

    def _by_skeleton(self, text: bytes, proved: Proved, out: list[Any]) -> bytes:
        """Read the like events that ``text`` begins with; gives what is left of it."""
        found = proved.skeleton.read(text)
        if found is None:
            return text
        columns, size, is_odd = found
        if is_odd and size < ODD_BYTES:  # often what only the decoder can say, and count: not worth the search for it
            self._proved, self._due = None, self._next_wait()
        if not size:
            return text
        texts, indices = columns[proved.text], None
        if proved.index is not None:
            indices = columns[proved.index]
            if not 0 <= min(indices) <= max(indices) <= self._decoder.limits.index:
                return text
        run = DeltaRun(proved.model, texts, indices)
        if self.gives_runs:
            out.append(run)
        else:
            out += run.deltas()
        if self._counts:
            self._decoder.ran(proved.model, sum(map(len, texts)))
        self._parser.pass_over(size, len(texts))
        self._at += size
        self._served += size
        self._due = self._wait
        return text[size:]

    def _one(self, text: bytes, proved: Proved) -> Any:
        """What ``text`` says if it is one like event and no more; else None, and nothing is done."""
        try:
            values = proved.skeleton.read_one(text)
        except ValueError:
            return None
        if values is None:
            return None
        index = None
        if proved.index is not None:
            index = values[proved.index]
            if not 0 <= index <= self._decoder.limits.index:
                return None
        size = len(text)
        if not self._parser.may_pass(size):
            return None
        self._parser.pass_over(size, 1)
        self._at += size
        self._served += size
        self._due = self._wait
        like = proved.model
        if self._counts:
            self._decoder.ran(like, len(values[proved.text]))
        if type(like) is TextDelta:
            return TextDelta(values[proved.text], like.choice, like.block)
        return delta_like(like, values[proved.text], index)

    def _plainly(self, piece: bytes, out: list[Any]) -> None:
        start = self._at
        self._at += len(piece)
        self._due -= len(piece)
        out += self._plain.feed(piece)
        self.fault = self._plain.fault
        if self._proved is not None and self._decoder.state() != self._proved.state:
            self._proved = None
        if self._due <= 0 and self.fault is None:
            self._due = self._next_wait()
            self._proved = self._prove(piece, start) or self._proved

    def _next_wait(self) -> int:
        self._wait = LEAST_BYTES if self._served >= WORTH_BYTES else min(2 * self._wait, MOST_BYTES)
        self._served = 0
        return self._wait

    def _prove(self, piece: bytes, start: int) -> Proved | None:
        """The skeleton of the last whole event in ``piece``, which begins at byte ``start``; None if it has none."""
        frame, holes = self._decoder.frame, self._decoder.holes
        raw = piece[frame.offset - start : self._parser.boundary - start] if frame.offset >= start else b""
        shift = raw.find(frame.data)
        if holes is None or shift < 0 or not self._parser.is_event(raw):
            return None
        parts, kinds, end = [], [], 0
        for hole in holes.finditer(frame.data):
            kind = cast("Kind", hole.lastgroup)
            parts.append(raw[end : shift + hole.start(kind)])
            kinds.append(kind)
            end = shift + hole.end(kind)
        parts.append(raw[end:])
        return self._probed(parts, kinds) if "text" in kinds and b"\n" in parts[-1] else None

    def _probed(self, parts: list[bytes], kinds: list[Kind]) -> Proved | None:
        """Decode the event with probes in its holes."""
        probes = [PROBE % n if kind in STRINGS else PROBE_NUMBER + n for n, kind in enumerate(kinds)]
        raw = parts[0] + b"".join(orjson.dumps(probe) + part for probe, part in zip(probes, parts[1:], strict=True))
        report = StreamReport()
        parser = self._make_parser(report)
        frames = parser.feed(raw)
        if len(frames) != 1 or parser.boundary != len(raw):
            return None
        events = self._decoder.tried(frames, report)
        if events is None or len(events) != 1 or report.repairs:
            return None
        (event,) = events
        text, index = _places(event, probes)
        if text is None or kinds[text] != "text":
            return None
        return Proved(Skeleton(parts, kinds), cast("Delta", event), text, index, self._decoder.state())


def _places(event: WireEvent, probes: list[str | int]) -> tuple[int | None, int | None]:
    """Which probes are the text and the index of a delta; no text if it is none, or has anything else to say."""
    if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
        return _place(event.text, probes), None
    if not isinstance(event, ToolCallDelta) or event.arguments is None:
        return None, None
    if event.index is None or event != ToolCallDelta(
        event.index, None, None, event.arguments, event.choice, event.kind
    ):
        return None, None
    return _place(event.arguments, probes), _place(event.index, probes)


def _place(value: str | int, probes: list[str | int]) -> int | None:
    return probes.index(value) if value in probes else None


class DecodeStage(Stage[list[Frame], list[WireEvent]]):
    """``decode``: behind a parser that allows it, one machine with it."""

    def make_with(self, before: Stage[Any, Any], report: StreamReport) -> Machine[Any, Any] | None:
        parser, decoder = before.make(report), self.make(report)
        if isinstance(decoder, FrameDecoder) and decoder.holes is not None and hasattr(parser, "may_pass"):
            return RunReader(cast("RunParser", parser), decoder, before.make)
        return None
