"""A parser and a decoder as one machine, which reads runs of like frames by their template (``template.py``, ``probe.py``).

``RunReader`` does it where frames are lines of text: the bytes of an event are template, and are neither framed nor decoded.
``FrameRunReader`` does it with the payloads of frames that must be read one by one, since each has a length and checksums.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, cast

from attrs import evolve

from streamkit.dialects.fast_path.probe import LearnedTemplate, TemplateFinder
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import FOLD_EVERY
from streamkit.events import ToolCallDelta, WireEvent
from streamkit.framing.frame import Frame, repairs_of
from streamkit.pipeline import Machine, Stage
from streamkit.report import BatchMarks, StreamReport
from streamkit.tool_calls.delta_run import DeltaRun

#: Longer reads are read in pieces, so that what is looked at again after a failure is bounded.
PIECE_BYTES: Final = 64 * 1024
#: How much of a piece is looked at, at first, and after something else stood between the like events.
WINDOW_BYTES: Final = 4 * 1024
#: The beginning of an event that may be held until more comes. Of a longer one nothing is copied again.
HELD_BYTES: Final = 4096
#: No place in a stream.
NOT_ENDED: Final = -1


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
        """Whether an event may begin here, and ``size`` bytes can't break a limit. ``boundary`` is then where it begins."""

    def pass_over(self, size: int, frames: int, /) -> bool:
        """So many bytes were read by somebody else: whole events. False, and nothing is done, if they may not pass."""

    def is_event(self, raw: bytes, /) -> bool:
        """Whether these bytes are one event and nothing beside that the parser would remember."""


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
        self._finder = TemplateFinder(decoder)
        self._at = 0  # where the last plain piece ended: what the parser passed over since then, the template read
        self._held = b""  # the beginning of a like event
        self._window = WINDOW_BYTES  # so much is looked at: twice as much as it read before, up to a piece
        self._marks = ReadMarks(decoder, parser)

    def feed(self, chunk: bytes, /) -> list[Any]:
        if self._held:
            chunk, self._held = self._held + chunk, b""
        learned, size = self._finder.learned, len(chunk)
        if learned is not None and size <= learned.one_event_bytes:  # as nearly always: ``_by_event`` for it alone
            try:
                events = learned.read_one(chunk)
            except ValueError:
                events = None
            if events is not None and self._parser.pass_over(size, 1):
                if (said := learned.text_so_far) is not None:
                    recent = said.recent
                    recent.append(events[0].text)  # ``append`` without a call for each event: its length is bounded
                    if len(recent) >= FOLD_EVERY:
                        said.fold()
                return events
        out: list[Any] = []
        self._marks.clear()
        if learned is not None and learned.one_event_bytes < size < learned.few_events_bytes:
            chunk = self._by_event(chunk, learned, out)
        if 0 < len(chunk) <= PIECE_BYTES:
            self._read(chunk, out)
        else:
            self._read_long(chunk, out)
        self._marks.end()
        return out

    def _read_long(self, chunk: bytes, out: list[Any]) -> None:
        for begin in range(0, len(chunk), PIECE_BYTES):
            if self.fault is None:
                held, self._held = self._held, b""
                self._read(held + chunk[begin : begin + PIECE_BYTES], out)

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        return self._marks.take_back(behind)

    def _by_event(self, text: bytes, learned: LearnedTemplate, out: list[Any]) -> bytes:
        """Read the like events that ``text`` begins with one by one, which is faster for few; gives what is left of it."""
        events: list[Any] = []
        template, size, frames = learned.template, 0, 0
        try:
            while (end := template.end(text, size)) and (said := learned.read_one(text[size:end])) is not None:
                events += said
                size = end
                frames += 1
        except ValueError:  # no JSON in the hole of the next one
            pass
        if not frames or not self._parser.pass_over(size, frames):
            return text
        self._marks.add_like(frames, 2 if learned.usage else 1)
        if learned.text_so_far is not None:
            learned.text_so_far.append("".join([event.text for event in events[:: 2 if learned.usage else 1]]))
        if self.gives_runs and frames > 1 and not (learned.usage or isinstance(learned.model, ToolCallDelta)):
            out.append(DeltaRun(learned.model, [event.text for event in events]))
        else:
            out += events
        return text[size:]

    def finish(self) -> list[Any]:
        self._marks.clear()
        out = self._release()
        self._marks.clear()
        if self.fault is None:
            out += self._decode(self._parser.finish())
        if self.fault is None:
            out += self._decoder.finish()
            self.fault = self._decoder.fault
        return out

    def abandon(self) -> list[Any]:
        out = self._release()
        if self.fault is None:
            out += self._decode(self._parser.abandon())
        return out + self._decoder.abandon()

    def _decode(self, frames: list[Frame]) -> list[Any]:
        """What frames say. A fault of the parser's stands behind them."""
        out = self._decoder.feed(frames) if frames else []
        self.fault = self._decoder.fault or self._parser.fault
        return out

    def _release(self) -> list[Any]:
        """Hand the parser what was held."""
        out: list[Any] = []
        held, self._held = self._held, b""
        if held and self.fault is None:
            self._by_frame(held, out)
        return out

    def _read(self, text: bytes, out: list[Any]) -> None:
        """By the template as far as it goes, then ``LEAST_BYTES`` frame by frame, up to the end of an event, and again."""
        while self.fault is None:
            learned = self._finder.learned
            if learned is not None and self._parser.may_pass(len(text)):
                text = self._by_event(text, learned, out) if learned.usage else self._by_template(text, learned, out)
                if self._begins(text, learned):
                    self._held = text
                    return
            if not text:
                return
            end = self._parser.end_of_event(text, self._finder.plain_bytes())
            if end < 0:
                self._by_frame(text, out)
                return
            self._by_frame(text[:end], out)
            text = text[end:]

    def _begins(self, text: bytes, learned: LearnedTemplate) -> bool:
        """Whether ``text`` may be the beginning of a like event, of which the parser could say nothing yet either.

        A CR could end an event already.
        """
        if not 0 < len(text) < HELD_BYTES or not learned.template.begins(text) or b"\r" in text:
            return False
        return self._parser.end_of_event(text, 0) < 0

    def _by_template(self, text: bytes, learned: LearnedTemplate, out: list[Any]) -> bytes:
        """Read the like events that ``text`` begins with; gives what is left of it."""
        begin, stopped = 0, False
        while begin < len(text) and not stopped:
            piece = text[begin : begin + self._window]
            is_last = begin + len(piece) == len(text)
            columns, size = learned.template.read(piece)
            run = learned.run(columns) if size else None
            if run is not None:
                learned.give(run, out, as_run=self.gives_runs)
                self._parser.pass_over(size, len(run.texts))
                self._marks.add_like(len(run.texts), 1)
                begin += size
            # no more like events, though one ends here; else the window cut one
            is_odd = (size > 0 and run is None) or learned.template.end(piece, size) > 0
            stopped = is_odd or is_last
            self._window = max(2 * begin, WINDOW_BYTES) if is_odd else 2 * self._window
            self._window = min(self._window, PIECE_BYTES)
        return text[begin:]

    def _settle(self) -> int:
        """Tell the finder what its template has read; gives where the next piece begins."""
        start = max(self._at, self._parser.boundary)
        if start > self._at:
            self._finder.has_read(start - self._at)
            self._at = start
        return start

    def _by_frame(self, piece: bytes, out: list[Any]) -> None:
        start = self._settle()
        self._at += len(piece)
        self._marks.begin(behind=bool(out))
        out += self._decode(self._parser.feed(piece))
        self._marks.add_decoded()
        if self._finder.is_due(len(piece)) and self.fault is None:
            self._learn(piece, start)

    def _learn(self, piece: bytes, start: int) -> None:
        """Try to learn the template of the last whole event in ``piece``, which begins at byte ``start``."""
        frame = self._decoder.frame
        raw = piece[frame.offset - start : self._parser.boundary - start] if frame.offset >= start else b""
        shift = raw.find(frame.data)
        behind = raw[shift + len(frame.data) :]
        if shift >= 0 and b"\n" in behind and self._parser.is_event(raw):
            self._finder.learn(raw[:shift], frame.data, behind, self._framed)

    def _framed(self, raw: bytes, report: StreamReport) -> list[Frame] | None:
        parser = self._make_parser(report)
        frames: list[Frame] = parser.feed(raw)
        return frames if len(frames) == 1 and parser.boundary == len(raw) else None


class ReadMarks:
    """What the frames of one read say, in pieces: by the template or by the decoder (``BatchMarks``)."""

    __slots__ = ("_at", "_decoder", "_parser", "_pieces")

    def __init__(self, decoder: FrameDecoder, parser: Any) -> None:
        self._decoder = decoder
        self._parser = parser
        self._pieces: list[BatchMarks] = []
        self._at = NOT_ENDED  # the parser's boundary at the end of the read

    def clear(self) -> None:
        self._at = NOT_ENDED
        if self._pieces:
            self._pieces = []

    def end(self) -> None:
        """The read is over. One that moves the boundary later is not this one."""
        self._at = self._parser.boundary

    def begin(self, *, behind: bool) -> None:
        """The decoder is to read a piece; ``behind``: others came before it, so that all of it may stand behind a fault."""
        self._decoder.marks = None
        self._decoder.marks_all = behind

    def add_decoded(self) -> None:
        """The decoder read a piece."""
        if self._decoder.marks is not None:
            self._pieces.append(self._decoder.marks)

    def add_like(self, frames: int, events: int) -> None:
        """The template read so many frames, each of which says so many events."""
        self._pieces.append(BatchMarks(range(events, frames * events + 1, events)))

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        if self._at == self._parser.boundary:
            for piece in reversed(self._pieces):
                report = self._decoder.report
                report.take_back(piece.take_back(report, behind))
                behind -= piece.events
                if behind < 0:
                    break
        return 0


class FrameRunReader:
    """The same for frames without lines: what a template is made of is the payload, and frames must have like headers.

    Gain: a third of the whole recipe from Bedrock, at 64 KiB reads.
    """

    gives_runs = False

    def __init__(self, parser: Machine[bytes, list[Frame]], decoder: FrameDecoder) -> None:
        self.fault: Exception | None = None
        self._parser = parser
        self._decoder = decoder
        self._finder = TemplateFinder(decoder)
        self._like = Frame(b"")  # whose payload is the template
        self._marks = ReadMarks(decoder, parser)

    def feed(self, chunk: bytes, /) -> list[Any]:
        frames = self._parser.feed(chunk)
        learned = self._finder.learned
        if learned is not None and len(frames) == 1 and self._parser.fault is None and self._is_like(frames[0]):
            data = frames[0].data
            try:
                events = learned.read_one(data)
            except ValueError:
                events = None
            if events is not None:
                self._finder.has_read(len(data))
                if learned.text_so_far is not None:
                    learned.text_so_far.append(events[0].text)
                return events
        self._marks.clear()
        out = self._read(frames)
        self._marks.end()
        return out

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        return self._marks.take_back(behind)

    def finish(self) -> list[Any]:
        self._marks.clear()
        out = self._read(self._parser.finish())
        if self.fault is None:
            out += self._decoder.finish()
            self.fault = self._decoder.fault
        return out

    def abandon(self) -> list[Any]:
        out = self._read(self._parser.abandon()) if self.fault is None else []
        return out + self._decoder.abandon()

    def _read(self, frames: list[Frame]) -> list[Any]:
        """By the template as far as it goes, then at least ``LEAST_BYTES`` frame by frame, and again."""
        out: list[Any] = []
        at = 0
        while at < len(frames) and self.fault is None:
            learned = self._finder.learned
            if learned is not None:
                at += self._by_template(frames, at, learned, out)
            size, begin, least = 0, at, self._finder.plain_bytes()
            while at < len(frames) and size < least:
                size += len(frames[at].data)
                at += 1
            if begin < at:
                self._by_frame(frames[begin:at], size, out)
        for frame in frames[at:]:  # behind a fault
            self._decoder.report.take_back(1, repairs_of(frame))
        if self.fault is None:
            self.fault = self._parser.fault
        return out

    def _by_template(self, frames: list[Frame], at: int, learned: LearnedTemplate, out: list[Any]) -> int:
        """Read the like frames from number ``at`` on; gives how many they are."""
        columns, size = learned.template.read_payloads(self._payloads(frames, at))
        run = learned.run(columns) if size else None
        if run is None:
            return 0
        self._finder.has_read(size)
        self._marks.add_like(len(run.texts), 1)
        learned.give(run, out, as_run=self.gives_runs)
        return len(run.texts)

    def _payloads(self, frames: list[Frame], at: int) -> Iterator[bytes]:
        """The payloads of the frames from number ``at`` on that are like the one that was learned but for their payload."""
        for number in range(at, len(frames)):
            if not self._is_like(frames[number]):
                return
            yield frames[number].data

    def _is_like(self, frame: Frame) -> bool:
        like = self._like
        if frame.headers is not like.headers and frame.headers != like.headers:
            return False
        return frame.terminated and frame.event == like.event

    def _by_frame(self, frames: list[Frame], size: int, out: list[Any]) -> None:
        self._marks.begin(behind=bool(out))
        out += self._decoder.feed(frames)
        self._marks.add_decoded()
        self.fault = self._decoder.fault
        last = frames[-1]
        if self._finder.is_due(size) and self.fault is None and last.terminated:

            def framed(raw: bytes, _report: StreamReport) -> list[Frame]:
                return [evolve(last, data=raw)]

            if self._finder.learn(b"", last.data, b"", framed):
                self._like = last


class DecodeStage(Stage[list[Frame], list[WireEvent]]):
    """``decode``: behind a parser, one machine with it where its frames may be alike."""

    def make_with(self, before: Stage[Any, Any], report: StreamReport) -> Machine[Any, Any] | None:
        parser, decoder = before.make(report), self.make(report)
        if not isinstance(decoder, FrameDecoder) or decoder.holes() is None:
            return None
        if hasattr(parser, "may_pass"):
            return RunReader(cast("RunParser", parser), decoder, before.make)
        return FrameRunReader(parser, decoder)
