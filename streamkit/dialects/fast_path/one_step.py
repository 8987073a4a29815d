"""Reads of one event or a few, each like the last one, from bytes to bytes in one step.

A stream of text is, at one event a read, the same way through the same machines again and again: the framing takes off what
stands around the payload, a template reads the text of it (``template.py``), accumulating and checking hand it on, the encoder
writes what it wrote around the last one. As long as nothing else comes, a function does all of that at once; whatever does not
fit goes through the machines, which then say whether there is a function for the next read. Behind the text may stand what is
always the same and only counts as a loss. Fragments of calls of which everything is settled go so, too.

Gain: two thirds of the time of a text, a quarter to a half of that of a fragment.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

import orjson

from streamkit.dialects.fast_path.like_frames import LikeFrameDecoder
from streamkit.dialects.fast_path.template import Template
from streamkit.dialects.streams.event_encoder import EventEncoder
from streamkit.errors import StreamError
from streamkit.events import ToolCallDelta
from streamkit.framing.sse import SSEParser
from streamkit.pipeline import Machine
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.check import JSONChecker

#: From a read to what is written of it; None where it is not like the last one, and nothing is done.
Step: TypeAlias = Callable[[bytes], bytes | None]
#: From a text to a delta of it.
Write: TypeAlias = Callable[[str], bytes]
#: Returns a function that notes the text of further deltas like one, for a machine after these; None: it must see them.
Noting: TypeAlias = Callable[[Any, Sequence[Any]], Callable[[str], None] | None]
#: From what stands between the head and the tail of an event to its text as JSON; None where it does not fit.
TextIn: TypeAlias = Callable[[bytes], bytes | None]
#: The last two hand on a delta of text as it is, behind another one.
_MACHINES: Final = (SSEParser, LikeFrameDecoder, ToolCallAccumulator, JSONChecker)
#: Of more events in a read the machines take many together, which is faster.
MOST_EVENTS: Final = 16
_QUOTE: Final = ord('"')
loads = orjson.loads


def one_step(machines: Sequence[Machine[Any, Any]], encoder: Any) -> Callable[[], Step | None] | None:
    """What gives the function for the next read, if there is one, once a read went through these; None where there is none."""
    noting = [getattr(machine, "noting", None) for machine in machines[len(_MACHINES) :]]
    if tuple(map(type, machines[: len(_MACHINES)])) != _MACHINES or not isinstance(encoder, EventEncoder):
        return None
    if len(noting) > 1 or None in noting:
        return None
    parser, decoder, accumulator = cast("tuple[SSEParser, LikeFrameDecoder, ToolCallAccumulator]", tuple(machines[:3]))
    return _Steps(parser, decoder, accumulator, encoder, *noting).next


class _Steps:
    """The machines that have to be asked."""

    def __init__(
        self,
        parser: SSEParser,
        decoder: LikeFrameDecoder,
        accumulator: ToolCallAccumulator,
        encoder: EventEncoder,
        noting: Noting | None = None,
    ) -> None:
        self._noting = noting
        self._parser = parser
        self._decoder = decoder
        self._accumulator = accumulator
        self._encoder = encoder

    def next(self) -> Step | None:
        found = self._decoder.alone
        if found is None:
            return None
        template, event = found
        framing = self._parser.framing_of(event)
        if framing is None:
            return None
        note = None
        if self._noting is not None and (note := self._noting(template.like, template.events)) is None:
            return None
        if type(template.like) is ToolCallDelta:
            return self._fragment(framing, template)
        write, losses = self._encoder.writes_again(template.like), self._encoder.losses_of(template.events)
        if write is None or losses is None:
            return None
        if note is not None:
            write = _writing(write, note)
        return self._step(framing, template, write, losses)

    def _fragment(self, framing: tuple[bytes, bytes], template: Template) -> Step:
        """The function of a read with a fragment of a call about which nothing is to be decided."""
        head, tail = framing
        begin, end, most = len(head), -len(tail), self._parser.most_bytes
        read_payload, grown_by, feed, skip = (
            template.read,
            self._accumulator.grown,
            self._encoder.feed,
            self._parser.skip,
        )

        def step(read: bytes) -> bytes | None:
            size = len(read)
            if size > most or not read.startswith(head) or not read.endswith(tail):
                return None
            try:
                decoded = read_payload(read[begin:end])
            except ValueError:  # no JSON: the decoder says so
                return None
            grown = None if decoded is None else grown_by(decoded[0])
            if grown is None:
                return None
            skip(size)
            return feed([grown])

        return step

    def _step(self, framing: tuple[bytes, bytes], template: Template, write: Write, losses: list[str]) -> Step:
        """The function of a read with a delta like the template's, behind which is nothing but what counts as ``losses``."""
        joined, skip, note, lose = self._encoder.joined, self._parser.skip, self._decoder.noting, self._encoder.lose
        most = self._parser.most_bytes
        head, tail = framing[0] + template.head, template.tail + framing[1]
        around = len(head) + len(tail)
        text_in = None if template.kinds == ["text"] else template.text_within
        several = _never if losses else self._several(tail + head, text_in, write)

        def step(read: bytes) -> bytes | None:
            size, whole = len(read), read.removeprefix(head).removesuffix(tail)
            if len(whole) != size - around or size > most:
                return None
            within = whole
            if text_in is None:  # as ``_text_of``, a call less
                if size - around < 3 or within[0] != _QUOTE or within[-1] != _QUOTE:
                    return None
            elif not (within := text_in(within) or b""):
                return several(size, whole)
            try:
                text = loads(within)
                output = write(text)
            except ValueError:
                return several(size, whole)
            except StreamError:  # the machines tell of it
                return None
            skip(size)
            if note is not None:
                note(text)
            return output if output.isascii() else joined([output])

        def counting(read: bytes) -> bytes | None:
            output = step(read)
            if output is not None:
                for kind in losses:
                    lose(kind)
            return output

        return counting if losses else step

    def _several(self, between: bytes, text_in: TextIn | None, write: Write) -> Callable[[int, bytes], bytes | None]:
        """The same of a few events, by the size of the read and what stands behind the first head and before the last tail."""
        joined, skip, note = self._encoder.joined, self._parser.skip, self._decoder.noting
        joins = self._accumulator.join  # the texts of a read leave as one

        def several(size: int, within: bytes) -> bytes | None:
            parts = within.split(between) if joins else []
            if not 1 < len(parts) <= MOST_EVENTS:
                return None
            try:
                texts = [text for part in parts if (text := _text_of(part, text_in)) is not None]
                if len(texts) != len(parts):
                    return None
                output = write("".join(texts))
            except (ValueError, StreamError):  # the machines tell of it
                return None
            skip(size, len(texts))
            if note is not None:
                for text in texts:
                    note(text)
            return output if output.isascii() else joined([output])

        return several


def _writing(write: Write, note: Callable[[str], None]) -> Write:
    """Return a function that writes a text, and then notes it."""

    def written(text: str) -> bytes:
        output = write(text)
        note(text)
        return output

    return written


def _never(_size: int, _within: bytes) -> None:
    """Several events that are written one after the other: the machines do it."""


def _text_of(within: bytes, text_in: TextIn | None) -> str | None:
    """The text of an event by what stands between its head and its tail; None where it does not fit. Raises ValueError."""
    if text_in is not None:
        within = text_in(within) or b""
    if len(within) < 3 or within[0] != _QUOTE or within[-1] != _QUOTE:
        return None
    return cast("str", loads(within))
