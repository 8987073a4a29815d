"""Reads that each are one event like the last one, from bytes to bytes in one step.

A stream of text is, at one event a read, the same way through the same machines again and again: the framing takes off what
stands around the payload, a template reads the text of it (``template.py``), accumulating and checking hand it on, the encoder
writes what it wrote around the last one. As long as nothing else comes, a function does all of that at once; whatever does not
fit goes through the machines, which then say whether there is a function for the next read.

Gain: two thirds of the time of such a read.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

import orjson

from streamkit.dialects.fast_path.like_frames import LikeFrameDecoder
from streamkit.dialects.streams.event_encoder import EventEncoder
from streamkit.errors import StreamError
from streamkit.framing.sse import SSEParser
from streamkit.pipeline import Machine
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.check import JSONChecker

#: From a read to what is written of it; None where it is not like the last one, and nothing is done.
Step: TypeAlias = Callable[[bytes], bytes | None]
#: From a payload to its text as JSON.
TextIn: TypeAlias = Callable[[bytes], bytes | None]
#: Machines that hand on a delta of text as it is, behind another one.
_LAST: Final = [ToolCallAccumulator, JSONChecker]
loads = orjson.loads


def one_step(machines: Sequence[Machine[Any, Any]], encoder: Any) -> Callable[[], Step | None] | None:
    """What gives the function for the next read, if there is one, once a read went through these; None where there is none."""
    if len(machines) != 4 or [type(machine) for machine in machines[2:]] != _LAST:
        return None
    parser, like = machines[:2]
    if type(parser) is SSEParser and type(like) is LikeFrameDecoder and isinstance(encoder, EventEncoder):
        return _Steps(parser, like, encoder).next
    return None


class _Steps:
    """The machines that have to be asked."""

    def __init__(self, parser: SSEParser, decoder: LikeFrameDecoder, encoder: EventEncoder) -> None:
        self._parser = parser
        self._decoder = decoder
        self._encoder = encoder

    def next(self) -> Step | None:
        found = self._decoder.of_text
        if found is None:
            return None
        template, event = found
        framing, write = self._parser.framing_of(event), self._encoder.writes_again(template.like)
        if framing is None or write is None:
            return None
        return self._step(framing, cast("TextIn", template.text_in), write)

    def _step(self, framing: tuple[bytes, bytes], text_in: TextIn, write: Callable[[str], bytes]) -> Step:
        parser, decoder, encoder = self._parser, self._decoder, self._encoder
        (head, tail), most = framing, parser.most_bytes
        around = len(head) + len(tail)

        def step(read: bytes) -> bytes | None:
            size, payload = len(read), read.removeprefix(head).removesuffix(tail)
            if len(payload) != size - around or size > most or (hole := text_in(payload)) is None:
                return None
            try:
                text = loads(hole)
                output = write(text)
            except (ValueError, StreamError):  # the machines tell of it
                return None
            parser.skip(size)
            decoder.note(text)
            return output if output.isascii() else encoder.joined([output])

        return step
