"""Observe a stream: each frame, its events, and the repairs and losses counted for it.

An ``Observer`` reads bytes that the caller receives. It does no I/O, and a fault in the stream raises nothing. The parser gets
one line at a time and the decoder one frame at a time, so the repairs that they count belong to the current frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.response_events import response_events
from streamkit.dialects import client_named, source_named
from streamkit.dialects.base import FramingParser
from streamkit.dialects.profiles import Encoding, report_for
from streamkit.dialects.streams.encode_stage import ErrorWriter
from streamkit.errors import StreamError, check_type
from streamkit.events import Event
from streamkit.framing.frame import Frame
from streamkit.machines import Chain
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.recipes import reading_stages
from streamkit.translation.bodies import decode_response

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@frozen
class Seen:
    """A frame with its events. If ``frame`` is None, the events come from bytes outside a frame, from a whole read
    (``by_frame=False``), or from the end of the input.
    """

    #: The byte offset of the frame in the stream. If ``frame`` is None, this is the offset of the line or of the read.
    offset: int
    frame: Frame | None
    events: list[Event]
    repairs: Mapping[str, int]  #: the number of new repairs of each kind
    losses: Mapping[str, int]  #: the number of new losses of each kind, in the output for ``client``
    written: bytes  #: the bytes to send to ``client``
    fault: Exception | None  #: the error that stopped the parser or the decoder here


class Observer:
    """Reads a stream of ``dialect``, and returns the events, repairs and losses of each frame.

    Call ``feed`` with the bytes of each read, and ``finish`` at the end of the input. Both methods return a list with
    one ``Seen`` for each frame. The list also has a ``Seen`` for each repair outside a frame, for an error of the
    parser, and for the end of the input. ``report`` covers the whole stream, and ``fault`` is the error that stopped
    the reading. After such an error, both methods still return frames, but without events.

    ``client`` is the name of a dialect or of a client. If you pass ``client``, the events are also encoded: each
    ``Seen`` then has the encoded bytes (``written``) and the losses (``losses``). With ``by_frame=False``, there is one
    ``Seen`` for each read, with the deltas of one block joined. ``by_frame=False`` takes a fifth of the time, and is
    enough for a program that needs only the events. ``whole=True`` is for a whole response instead of a stream:
    ``feed`` then returns an empty list, and ``finish`` returns everything. Raises UsageError for an unknown name or a
    bad schema.
    """

    def __init__(
        self,
        dialect: str,
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        client: str | None = None,
        by_frame: bool = True,
        whole: bool = False,
    ) -> None:
        self.dialect, provider = source_named(dialect)
        self.report = report_for(provider, None)
        self.fault: Exception | None = None
        self._name, self._options = dialect, options
        self._body: bytearray | None = bytearray() if whole else None
        stages = reading_stages(self.dialect, provider, options, join=not by_frame)
        machines: list[Any] = [stage.make(self.report) for stage in stages]
        self._parser: FramingParser | None = machines.pop(0) if by_frame else None
        self._reader = Chain(*machines)
        self._writer: ErrorWriter[list[Event]] | None = None
        if client is not None:
            target, profile = client_named(client)
            self._writer = target.encoder(Encoding(limits=options.limits, profile=profile), self.report)
        self._offset = 0  # offset of the next byte
        self._repairs: Counter[str] = Counter()  # repairs already returned in a ``Seen``
        self._losses: Counter[str] = Counter()  # losses already returned in a ``Seen``

    def feed(self, chunk: bytes) -> list[Seen]:
        check_type("a chunk", chunk, bytes, "text.encode()")
        seen: list[Seen] = []
        if self._body is not None:
            self._body += chunk
        elif self._parser is None:
            seen.append(self._see(self._offset, self._reader.feed, chunk))
            self._offset += len(chunk)
        else:
            for line in chunk.splitlines(keepends=True):
                if self._parser.fault is None:
                    seen += self._frames(self._parser, self._parser.feed(line))
                self._offset += len(line)
        return seen

    def finish(self) -> list[Seen]:
        """Return the results of the end of the input; the last item is the end itself."""
        if self._body is not None:
            return [self._whole(bytes(self._body))]
        seen: list[Seen] = []
        if self._parser is not None and self._parser.fault is None:
            seen = self._frames(self._parser, self._parser.finish())
        return [*seen, self._see(self._offset, self._reader.finish, is_end=True)]

    def _frames(self, parser: FramingParser, frames: list[Frame]) -> list[Seen]:
        """Read the parser's frames. Also return repairs without a frame, and the fault that stopped the parser."""
        seen = [self._see(frame.offset, self._reader.feed, [frame], frame=frame) for frame in frames]
        if (fault := parser.fault) is not None:
            offset = getattr(fault, "offset", None)
            seen.append(self._see(self._offset if offset is None else offset, self._reader.abandon, fault=fault))
        elif self.report.repairs.total() != self._repairs.total():
            seen.append(self._see(self._offset, list))
        return seen

    def _whole(self, body: bytes) -> Seen:
        try:
            response = decode_response(body, self._name, self._options, report=self.report)
        except StreamError as error:
            self.fault = error  # nothing is encoded: the client gets an HTTP error instead
            return self._see(0, list, fault=error)
        return self._see(0, response_events, response, is_end=True)

    def _see(
        self,
        offset: int,
        read: Callable[..., list[Event]],
        *given: Any,
        frame: Frame | None = None,
        fault: Exception | None = None,
        is_end: bool = False,
    ) -> Seen:
        """Run ``read`` and encode its events, unless a fault came before. Return them with the counts since the last call."""
        events: list[Event] = []
        written, writer = b"", self._writer
        if self.fault is None:
            events = read(*given)
            self.fault = fault = fault or self._reader.fault
            if fault is not None:
                self.report.failed(fault)
            if writer is not None:
                written = writer.feed(events) if events else b""
                written += writer.fail(fault) if fault is not None else writer.finish() if is_end else b""
        repairs, losses = _since(self.report.repairs, self._repairs), _since(self.report.losses, self._losses)
        return Seen(offset, frame, events, repairs, losses, written, fault)


def _since(counted: Counter[str], known: Counter[str]) -> Mapping[str, int]:
    """Return the counts that ``known`` lacks, and add them to ``known``."""
    if counted.total() == known.total():
        return _NOTHING
    new = counted - known
    known.update(new)
    return new
