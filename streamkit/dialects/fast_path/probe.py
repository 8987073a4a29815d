"""When a template of a stream's frames is looked for, and what shows that it holds.

Theory: a frame says what it says by its bytes and by the decoder's state. A template (``template.py``) is **learned** by
decoding one frame with probes in its holes, other values than it has: out comes one delta with the probe for its text, where
the frame itself had its own, nothing is repaired, and the decoder's state is what it was. Frames that only differ in the holes
then mean the same, and leave the state as it is, so that it holds for the next as well. As soon as the state is another, the
template is **forgotten**: after a reused index of Anthropic's the same bytes belong to another block.

What is tried in vain is bounded: after each failure twice the bytes pass before the next attempt, and a template is given up
where more bytes are decoded beside it than it reads.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import orjson

from streamkit.dialects.fast_path.single_event import Reader, single_reader
from streamkit.dialects.fast_path.template import STRINGS, Kind, Template
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText
from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, WireEvent
from streamkit.framing.frame import Frame
from streamkit.report import StreamReport
from streamkit.tool_calls.delta_run import Delta, DeltaRun, delta_like

#: How many bytes are decoded frame by frame before the next attempt to find a template, at least and at most. A probe takes
#: as long as decoding ten frames.
LEAST_BYTES: Final = 512
MOST_BYTES: Final = 1024 * 1024
#: What a template read long ago does not keep it for ever.
MOST_BALANCE: Final = 64 * 1024
#: A template that was good for fewer bytes was not worth its probe.
WORTH_BYTES: Final = 4 * 1024
#: Of fewer events in one read each is read by itself: of text, and of fragments of calls that may differ in their index.
FEW_TEXTS: Final = 6
FEW_CALLS: Final = 10
#: Of fewer bytes each event is read by itself where it says its usage, too.
USAGE_BYTES: Final = 64 * 1024
#: A longer event is not read as the only one of its read: texts of a few dozen are kept until they are joined.
ONE_BYTES: Final = 4 * 1024
#: What a probe adds to the text that the frame has.
PROBE: Final = "\x02probe %d\x03"
Probe: TypeAlias = str | int | dict[str, Any]
#: A frame as raw bytes to the frames that a parser makes of it; None if they are not one.
Framer: TypeAlias = Callable[[bytes, StreamReport], list[Frame] | None]


class LearnedTemplate:
    """A template, and what its frames mean."""

    def __init__(
        self,
        template: Template,
        model: Delta,
        text: int,
        index: int | None,
        most: int,
        state: bytes,
        read_one: Reader,
        *,
        usage: bool,
    ) -> None:
        self.template = template
        self.model = model
        self.state = state  #: of the decoder
        self._text = text  # which hole has the text
        self._index = index  # which hole has the index of the call
        self._most = most  # the greatest index
        self.text_so_far: RunningText | None = None  #: where the text goes, if the decoder keeps it
        self.usage = usage  #: whether a frame has token counts in a hole, so that it says two events
        #: So many bytes are one whole event at most; fewer than these are few events.
        self.one_event_bytes = min(2 * template.size, ONE_BYTES)
        self.few_events_bytes = (FEW_TEXTS if index is None else FEW_CALLS) * template.size
        if usage:
            self.few_events_bytes = USAGE_BYTES
        #: The events of a like frame alone; None if it is none, or of a shape that it can't read.
        self.read_one = read_one

    def run(self, columns: list[list[Any]]) -> DeltaRun | None:
        """The deltas that the values in the holes make; None if an index is none."""
        texts = columns[self._text]
        if self._index is None:
            return DeltaRun(self.model, texts)
        run = DeltaRun(self.model, texts, columns[self._index])
        labels = list(run.by_call())
        if not 0 <= min(labels) <= max(labels) <= self._most:
            return None
        return run if len(labels) > 1 else DeltaRun(delta_like(self.model, "", labels[0]), texts)

    def give(self, run: DeltaRun, out: list[Any], *, as_run: bool) -> None:
        """Hand on a run, or its deltas, and keep its text if the decoder keeps it."""
        if as_run:
            out.append(run)
        else:
            out += run.deltas()
        if self.text_so_far is not None:
            self.text_so_far.append(run.text)


class TemplateFinder:
    """Keeps the template of a stream, if it has one, and says when to look for one."""

    def __init__(self, decoder: FrameDecoder) -> None:
        self.learned: LearnedTemplate | None = None
        self._decoder = decoder
        #: Bytes to decode before the next probe; how many they were the last time; bytes that the last template read.
        self._due = self._wait = LEAST_BYTES
        self._served = WORTH_BYTES
        #: Of the template: bytes that it read, less twice those that were decoded beside it.
        self._balance = 0

    def plain_bytes(self) -> int:
        """How many bytes to decode frame by frame, at least, where the template reads no further."""
        return LEAST_BYTES if self.learned is not None else max(self._due, LEAST_BYTES)

    def has_read(self, size: int) -> None:
        """The template read so many bytes."""
        self._served += size
        self._balance = min(self._balance + size, MOST_BALANCE)
        self._due = self._wait

    def is_due(self, size: int) -> bool:
        """So many bytes were decoded frame by frame; whether to probe now. A template that holds no more is forgotten."""
        self._due -= size
        if self.learned is not None:
            self._balance -= 2 * size
            if self._balance < 0:
                self.learned, self._served = None, 0
                self._due = self._next_wait()
                return False
            if self._decoder.state() != self.learned.state:
                self.learned = None
        if self._due > 0 or self._decoder.fault is not None:
            return False
        self._due = self._next_wait()
        return True

    def _next_wait(self) -> int:
        self._wait = LEAST_BYTES if self._served >= WORTH_BYTES else min(2 * self._wait, MOST_BYTES)
        self._served = 0
        return self._wait

    def learn(self, before: bytes, payload: bytes, behind: bytes, framed: Framer) -> bool:
        """Try to learn the template of the frame that was decoded last: its payload, with the bytes of its framing around."""
        holes = self._decoder.holes()
        if holes is None:
            return False
        parts, kinds, values, end = [], [], [], 0
        for hole in holes.finditer(payload):
            kind = cast("Kind", hole.lastgroup)
            parts.append(payload[end : hole.start(kind)])
            kinds.append(kind)
            values.append(hole[kind])
            end = hole.end(kind)
        if "text" not in kinds:
            return False
        parts[0] = before + parts[0]
        try:
            found = list(map(orjson.loads, values))
        except ValueError:
            return False
        learned = self._probed([*parts, payload[end:] + behind], kinds, found, framed)
        if learned is not None:
            self.learned, self._balance = learned, WORTH_BYTES
            learned.text_so_far = self._decoder.text_of_run(learned.model)
        return learned is not None

    def _probed(
        self, parts: list[bytes], kinds: list[Kind], values: list[Any], framed: Framer
    ) -> LearnedTemplate | None:
        """Decode the frame with probes in its holes, in the place of ``values``."""
        most = self._decoder.limits.index
        probes = [
            _probe(kind, number, value, most) for number, (kind, value) in enumerate(zip(kinds, values, strict=True))
        ]
        raw = parts[0] + b"".join(orjson.dumps(probe) + part for probe, part in zip(probes, parts[1:], strict=True))
        report = StreamReport()
        said, frames = self._decoder.out, framed(raw, report)
        tried = None if frames is None else self._decoder.tried(frames, report)
        if tried is None or not tried[0] or report.repairs:
            return None
        events, state = tried
        event, *others = events
        text, index = _places(event, kinds, probes)
        if text is None:
            return None
        like = cast("Delta", event)
        expected = [delta_like(like, values[text], None if index is None else values[index])]
        for probe, value, kind in zip(probes, values, kinds, strict=True):
            if kind == "usage":
                expected.append(self._decoder.usage(value))
                if others != [self._decoder.usage(cast("dict[str, Any]", probe))]:
                    return None
        if len(expected) != len(events) or said[-len(expected) :] != expected:
            return None
        one = single_reader(parts, kinds, like, most, self._decoder.usage)
        return LearnedTemplate(Template(parts, kinds), like, text, index, most, state, one, usage=bool(others))


def _probe(kind: Kind, number: int, value: Any, most: int) -> Any:
    """Another value than the frame has, so that nothing that stays the same is taken for what is in the hole."""
    if kind == "usage":
        return {PROBE % number: number}
    if kind in STRINGS:
        return f"{value}{PROBE % number}"
    return value + 1 if value < most else max(value - 1, 0)


def _places(event: WireEvent, kinds: list[Kind], probes: list[Probe]) -> tuple[int | None, int | None]:
    """Which holes have the text and the index of a delta; no text if it is none, or has anything else to say."""
    texts = [number for number, kind in enumerate(kinds) if kind == "text"]
    indices = [number for number, kind in enumerate(kinds) if kind == "index"]
    if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
        return (None if indices else _place(event.text, texts, probes)), None
    if not isinstance(event, ToolCallDelta) or event.arguments is None or event.index is None:
        return None, None
    if event != ToolCallDelta(event.index, None, None, event.arguments, event.choice, event.kind) or len(indices) > 1:
        return None, None
    index = _place(event.index, indices, probes)
    return (None if index is None and indices else _place(event.arguments, texts, probes)), index


def _place(value: str | int, holes: list[int], probes: list[Probe]) -> int | None:
    """Which of ``holes`` has the probe."""
    return next((hole for hole in holes if probes[hole] == value), None)
