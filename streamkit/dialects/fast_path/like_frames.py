"""A decoder's machine with a way in front of it for frames that only differ in their text (``template.py``).

Two frames that the decoder read one after the other, and that said the same but for their text, are a template for those that
follow, until one does not fit: the decoder reads that one, and whatever it says may give other bytes another meaning. So a
template is used again only once the decoder has read a frame as the template would.

Gain: of alike chunks of Chat, one a read, decoding takes 0.9 times the instructions of ``orjson.loads``; the decoder alone
takes six times the time (``docs/benchmarks``, "decode").

Source: design.md §9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from streamkit.dialects.fast_path.template import DELTAS, Template, template_around, template_of
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import FOLD_EVERY, LONG_CHARS, RunningText
from streamkit.events import ToolCallDelta, WireEvent
from streamkit.framing.frame import NO_HEADERS, Frame, FrameRun, repairs_of
from streamkit.pipeline import Machine, Stage
from streamkit.report import BatchMarks, StreamReport

#: How many templates of a stream are kept: of text, of reasoning, of the fragments of calls.
KEPT: Final = 4
#: A frame that says more is left to the decoder.
MOST_EVENTS: Final = 4
#: Frames that differ in more than one text are compared once so many of them came: a short stream has fewer.
PATIENCE: Final = 3
#: After so many attempts that found no template the next ones come ever more seldom, down to one in so many frames.
ATTEMPTS: Final = 4
MOST_FRAMES: Final = 256
#: So many payloads are looked at together, at first, and at most.
WINDOW: Final = 16
MOST_WINDOW: Final = 4096


class LikeFrameDecoder:
    """Machine: frames to wire events, and to runs of them where the next machine takes runs."""

    takes_runs = True
    gives_runs = False
    # What most streams never change stands in the class: half of what one costs to make.
    fault: Exception | None = None
    _template: Template | None = None  # that the next frame may fit
    _text: RunningText | None = None  # where its text goes, if the decoder keeps it
    _recent: list[str] | None = None
    _frame = Frame(b"")  # the last one that said a delta as it was decoded, and what it said
    _decoded: list[WireEvent] | None = None
    #: The template of the next frame, if a function may read it (``one_step.py``), and the name of its event.
    alone: tuple[Template, str] | None = None
    _deltas = 0  # so many frames in a row said deltas and were decoded
    _failed = 0  # attempts to find a template
    _wait = 0  # so many frames are read before the next attempt
    _window = WINDOW  # so many payloads are looked at together: twice as many where all were alike
    _marks: BatchMarks | None = None  # of the last batch, where it had several frames

    def __init__(self, decoder: FrameDecoder, holes: re.Pattern[bytes]) -> None:
        self._decoder = decoder
        self._holes = holes
        self._templates: list[Template] = []

    def feed(self, frames: list[Any], /) -> list[Any]:
        if len(frames) != 1 or type(frame := frames[0]) is FrameRun:
            return self._feed_many(frames)
        self._marks = None
        if self._template is not None and (decoded := self._read(frame, self._template)) is not None:
            return decoded
        return self._decode(frame)

    def finish(self) -> list[Any]:
        self._marks = None
        decoded = self._decoder.finish()
        self.fault = self._decoder.fault
        return decoded

    def abandon(self) -> list[Any]:
        return self._decoder.abandon()

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        if self._marks is None:
            return self._decoder.take_back(behind)
        report = self._decoder.report
        report.take_back(self._marks.take_back(report, behind))
        return 0

    @property
    def noting(self) -> Callable[[str], None] | None:
        """What takes the text of a frame that somebody else reads by the template; None where no text is kept."""
        return None if self._text is None else self._text.append

    def _read(self, frame: Frame, template: Template) -> list[Any] | None:
        """What a frame says by the template; None if it does not fit."""
        like = self._frame
        if frame.event != like.event or type(frame) is not Frame or not frame.terminated:
            return None
        if frame.headers is not like.headers and frame.headers != like.headers:
            return None
        try:
            decoded = template.read(frame.data)
        except ValueError:  # no JSON: the decoder says so
            return None
        if decoded is not None and self._recent is not None:
            text = decoded[0].text
            self._recent.append(text)  # as ``RunningText.append``, a call less
            if len(self._recent) >= FOLD_EVERY or len(text) > LONG_CHARS:
                cast("RunningText", self._text).fold()
        return decoded

    def _decode(self, frame: Frame) -> list[Any]:
        """What a frame says by the decoder, and whether the next one may be read by a template."""
        decoder, repairs = self._decoder, self._decoder.report.repairs
        repaired = repairs.total() if repairs else 0
        decoded = decoder.feed([frame])
        self.fault = decoder.fault
        self._template = self.alone = None
        if self._wait:
            self._wait -= 1
        elif not decoded or type(decoded[0]) not in DELTAS:
            self._decoded, self._deltas = None, 0
        elif (
            len(decoded) > MOST_EVENTS
            or type(frame) is not Frame
            or not frame.terminated
            or decoder.held_from is not None
            or self.fault is not None
            or (repairs and repairs.total() != repaired)
        ):
            self._decoded = None
        else:
            self._learn(frame, decoded)
        return decoded

    def _learn(self, frame: Frame, decoded: list[WireEvent]) -> None:
        like, before = self._frame, self._decoded
        self._frame, self._decoded = frame, decoded
        self._deltas += 1
        found = None
        try:
            for template in self._templates:
                if template.read(frame.data) == decoded:
                    found = template
                    break
            else:
                if before is not None and frame.event == like.event and frame.headers == like.headers:
                    found = self._compared((like.data, frame.data), before, decoded)
        except ValueError:
            return
        if found is not None:
            self._template, self._failed = found, 0
            if frame.headers is NO_HEADERS and found.is_simple:
                self.alone = found, frame.event
            self._templates = [found, *(kept for kept in self._templates if kept is not found)][:KEPT]
            self._text = self._decoder.text_of_run(decoded[0])
            self._recent = None if self._text is None else self._text.recent
        elif self._failed >= ATTEMPTS:
            self._wait = min(2**self._failed, MOST_FRAMES)

    def _compared(
        self, payloads: tuple[bytes, bytes], before: list[WireEvent], decoded: list[WireEvent]
    ) -> Template | None:
        """The template of two payloads and of what they said; None if they have none, or if it is too early to look for it."""
        decoder, found = self._decoder, None
        delta: Any = decoded[0]
        other: Any = before[0]
        if type(delta) is not type(other) or (type(delta) is ToolCallDelta and delta.id != other.id):
            return None  # a call begins: not an attempt
        if decoder.may_repeat(payloads[1]):
            return None
        if len(decoded) == len(before) == 1:
            found = template_around(self._holes, payloads, (other, delta), decoder.limits.index)
        if found is None and self._deltas >= PATIENCE:
            found = template_of(self._holes, payloads, (before, decoded), decoder.limits.index, decoder.usage)
            self._failed += 1
        return found

    # Several frames at once.

    def _feed_many(self, frames: Sequence[Any]) -> list[Any]:
        out: list[Any] = []
        marks = self._marks = BatchMarks([])
        self._decoder.marks_all = True
        at = 0
        while at < len(frames) and self.fault is None:
            frame = frames[at]
            if type(frame) is FrameRun:
                self._feed_run(frame, out, marks)
                at += 1
            elif read := self._read_many(self._alike(frames, at), out, marks):
                at += read
            else:
                self._feed_one(frame, out, marks)
                at += 1
        for frame in frames[at:]:  # behind a fault
            count, repairs = (len(frame.payloads), ()) if type(frame) is FrameRun else (1, repairs_of(frame))
            self._decoder.report.take_back(count, repairs)
        self._decoder.marks_all = False
        return out

    def _feed_one(self, frame: Frame, out: list[Any], marks: BatchMarks) -> None:
        decoded = None if self._template is None else self._read(frame, self._template)
        if decoded is None:
            decoded = self._decode(frame)
            if (own := self._decoder.marks) is not None:
                marks.repairs += [(len(marks.ends), kind, times) for _, kind, times in own.repairs]
        out += decoded
        cast("list[int]", marks.ends).append(marks.events + len(decoded))

    def _feed_run(self, run: FrameRun, out: list[Any], marks: BatchMarks) -> None:
        at, count = 0, len(run.payloads)
        while at < count and self.fault is None:
            alike = run.payloads[at : at + self._window] if run.event == self._frame.event else []
            if read := self._read_many(alike, out, marks):
                at += read
            else:
                self._feed_one(run.frame(at), out, marks)
                at += 1
        self._decoder.report.take_back(count - at)

    def _alike(self, frames: Sequence[Any], at: int) -> list[bytes]:
        """The payloads of the frames from number ``at`` on that only differ there from the one that was decoded last."""
        payloads: list[bytes] = []
        if self._template is None or not self._template.reads_many:
            return payloads
        event, headers = self._frame.event, self._frame.headers
        for frame in frames[at : at + self._window]:
            if type(frame) is not Frame or frame.event != event or not frame.terminated or frame.headers != headers:
                break
            payloads.append(frame.data)
        return payloads

    def _read_many(self, payloads: list[bytes], out: list[Any], marks: BatchMarks) -> int:
        """Read the like payloads with which these begin; gives how many they are."""
        template = self._template
        found = template.read_many(payloads) if template is not None and template.reads_many else None
        if found is None:
            self._window = max(self._window // 4, WINDOW)
            return 0
        self._window = min(2 * self._window, MOST_WINDOW)
        if self.gives_runs:
            out.append(found)
        else:
            out += found.deltas()
        if self._text is not None:
            self._text.append(found.text)
        decoded, read = marks.events, len(found.texts)
        cast("list[int]", marks.ends).extend(range(decoded + 1, decoded + read + 1))
        return read


def decode_stage(name: str, make: Callable[[StreamReport], Any]) -> Stage[list[Frame], list[WireEvent]]:
    """The stage of a decoder, with ``LikeFrameDecoder`` in front of one that says where its frames differ."""

    def machine(report: StreamReport) -> Machine[list[Frame], list[WireEvent]]:
        decoder: Machine[list[Frame], list[WireEvent]] = make(report)
        if isinstance(decoder, FrameDecoder) and (holes := decoder.holes()) is not None:
            return LikeFrameDecoder(decoder, holes)
        return decoder

    return Stage(name, machine, takes="frames", gives="wire events")
