"""A decoder's machine with a way in front of it for frames that only differ in their text (``template.py``).

Two frames that the decoder read one after the other, and that said the same but for their text, are a template for those that
follow, until one does not fit: the decoder reads that one, and whatever it says may give other bytes another meaning. So a
template is used again only once the decoder has read a frame as the template would.

Gain: at one event a read decoding takes a quarter of the time, at 64 KiB a twentieth (``docs/benchmarks``).

Source: design.md §9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from streamkit.dialects.fast_path.template import DELTAS, Template, template_of
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText
from streamkit.events import WireEvent
from streamkit.framing.frame import Frame, FrameRun, repairs_of
from streamkit.pipeline import Machine, Stage
from streamkit.report import BatchMarks, StreamReport

#: How many templates of a stream are kept: of text, of reasoning, of the fragments of calls.
KEPT: Final = 4
#: A frame that says more is left to the decoder.
MOST_EVENTS: Final = 4
#: After so many attempts that found no template the next ones come ever more seldom, down to one in so many frames.
ATTEMPTS: Final = 4
MOST_FRAMES: Final = 256
#: So many payloads of a run are looked at, at first, and at most.
WINDOW: Final = 16
MOST_WINDOW: Final = 4096


class LikeFrameDecoder:
    """Machine: frames to wire events, and to runs of them where the next machine takes runs."""

    takes_runs = True
    gives_runs = False

    def __init__(self, decoder: FrameDecoder, holes: re.Pattern[bytes]) -> None:
        self.fault: Exception | None = None
        self._decoder = decoder
        self._holes = holes
        self._template: Template | None = None  # that the next frame may fit
        self._text: RunningText | None = None  # where its text goes, if the decoder keeps it
        self._frame = Frame(b"")  # the last one that said a delta as it was decoded, and what it said
        self._said: list[WireEvent] | None = None
        self._templates: list[Template] = []
        self._failed = 0  # attempts to find a template
        self._wait = 0  # so many frames are read before the next attempt
        self._marks: BatchMarks | None = None  # of the last batch, where it had several frames

    def feed(self, frames: list[Any], /) -> list[Any]:
        if len(frames) != 1 or type(frame := frames[0]) is FrameRun:
            return self._feed_many(frames)
        self._marks = None
        if self._template is not None and (said := self._read(frame)) is not None:
            return said
        return self._decode(frame)

    def finish(self) -> list[Any]:
        self._marks = None
        said = self._decoder.finish()
        self.fault = self._decoder.fault
        return said

    def abandon(self) -> list[Any]:
        return self._decoder.abandon()

    def take_back(self, behind: int) -> int:
        """As ``FrameDecoder.take_back``."""
        if self._marks is None:
            return self._decoder.take_back(behind)
        report = self._decoder.report
        report.take_back(self._marks.take_back(report, behind))
        return 0

    def _read(self, frame: Frame) -> list[Any] | None:
        """What a frame says by the template; None if it does not fit."""
        like, template = self._frame, self._template
        if template is None or frame.event != like.event or not frame.terminated or type(frame) is not Frame:
            return None
        if frame.headers is not like.headers and frame.headers != like.headers:
            return None
        try:
            said = template.read(frame.data)
        except ValueError:  # no JSON: the decoder says so
            return None
        if said is not None and self._text is not None:
            self._text.append(said[0].text)
        return said

    def _decode(self, frame: Frame) -> list[Any]:
        """What a frame says by the decoder, and whether the next one may be read by a template."""
        decoder, repairs = self._decoder, self._decoder.report.repairs
        repaired = repairs.total() if repairs else 0
        said = decoder.feed([frame])
        self.fault = decoder.fault
        self._template = None
        if self._wait:
            self._wait -= 1
        elif (
            not said
            or type(said[0]) not in DELTAS
            or len(said) > MOST_EVENTS
            or type(frame) is not Frame
            or not frame.terminated
            or decoder.held_from is not None
            or self.fault is not None
            or (repairs and repairs.total() != repaired)
        ):
            self._said = None
        else:
            self._learn(frame, said)
        return said

    def _learn(self, frame: Frame, said: list[WireEvent]) -> None:
        like, before = self._frame, self._said
        self._frame, self._said = frame, said
        decoder, payload = self._decoder, frame.data
        found = None
        try:
            found = next((template for template in self._templates if template.read(payload) == said), None)
            if found is None and before is not None and (frame.event, frame.headers) == (like.event, like.headers):
                most = decoder.limits.index
                found = template_of(self._holes, (like.data, payload), (before, said), most, decoder.usage)
                self._failed += 1
        except ValueError:
            return
        if found is not None:
            self._template, self._failed = found, 0
            self._templates = [found, *(kept for kept in self._templates if kept is not found)][:KEPT]
            self._text = decoder.text_of_run(said[0])
        elif self._failed >= ATTEMPTS:
            self._wait = min(2**self._failed, MOST_FRAMES)

    # Several frames at once.

    def _feed_many(self, frames: Sequence[Any]) -> list[Any]:
        out: list[Any] = []
        marks = self._marks = BatchMarks([])
        self._decoder.marks_all = True
        for frame in frames:
            if self.fault is not None:
                count, repairs = (len(frame.payloads), ()) if type(frame) is FrameRun else (1, repairs_of(frame))
                self._decoder.report.take_back(count, repairs)
            elif type(frame) is FrameRun:
                self._feed_run(frame, out, marks)
            else:
                self._feed_one(frame, out, marks)
        self._decoder.marks_all = False
        return out

    def _feed_one(self, frame: Frame, out: list[Any], marks: BatchMarks) -> None:
        said = None if self._template is None else self._read(frame)
        if said is None:
            said = self._decode(frame)
            if (own := self._decoder.marks) is not None:
                marks.repairs += [(len(marks.ends), kind, times) for _, kind, times in own.repairs]
        out += said
        cast("list[int]", marks.ends).append(marks.events + len(said))

    def _feed_run(self, run: FrameRun, out: list[Any], marks: BatchMarks) -> None:
        at, count, window = 0, len(run.payloads), WINDOW
        while at < count and self.fault is None:
            template, like, found = self._template, self._frame, None
            if template is not None and template.reads_many and run.event == like.event:
                found = template.read_many(run.payloads[at : at + window])
            if found is None:
                self._feed_one(run.frame(at), out, marks)
                at, window = at + 1, WINDOW
                continue
            if self.gives_runs:
                out.append(found)
            else:
                out += found.deltas()
            if self._text is not None:
                self._text.append(found.text)
            read, said = len(found.texts), marks.events
            cast("list[int]", marks.ends).extend(range(said + 1, said + read + 1))
            at += read
            window = min(2 * window, MOST_WINDOW)
        if at < count:
            self._decoder.report.take_back(count - at)


def decode_stage(name: str, make: Callable[[StreamReport], Any]) -> Stage[list[Frame], list[WireEvent]]:
    """The stage of a decoder, with ``LikeFrameDecoder`` in front of one that says where its frames differ."""

    def machine(report: StreamReport) -> Machine[list[Frame], list[WireEvent]]:
        decoder: Machine[list[Frame], list[WireEvent]] = make(report)
        if isinstance(decoder, FrameDecoder) and (holes := decoder.holes()) is not None:
            return LikeFrameDecoder(decoder, holes)
        return decoder

    return Stage(name, machine, takes="frames", gives="wire events")
