"""The bytes of a stream, read a second time: which events, repairs and losses came of which byte.

The machines are those that read the stream the first time. They are fed a line at a time, and each frame by itself, so that
what they count meanwhile belongs to the byte at which that frame begins, as ``streamkit lint`` finds it.

Source: observe.md O38.
"""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from streamkit.conversation.replay import replay
from streamkit.dialects import client_named, source_named
from streamkit.dialects.profiles import Encoding, report_for
from streamkit.dialects.streams.encode_stage import ErrorWriter
from streamkit.errors import StreamError
from streamkit.events import Event
from streamkit.framing.frame import Frame
from streamkit.machines import Chain
from streamkit.read_options import ReadOptions
from streamkit.recipes import reading_stages
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response


@define
class Found:
    """What came of some bytes: events, repairs and losses, each with the offset of its frame; and what an encoder writes."""

    events: list[tuple[int, Event]] = field(factory=list)
    repairs: list[tuple[int, str, int]] = field(factory=list)  #: offset, kind, how often
    losses: list[tuple[int, str, int]] = field(factory=list)
    encoded: bytes = b""


class Reading:
    """The machines that read a stream of ``dialect``; with a ``client`` also those that write it, for what is lost there.

    ``whole``: what comes is a whole response, whose events are those of a stream that says the same, all at its end.
    What breaks the reading is in ``report``, and raises nothing. Raises UsageError for an unknown name.
    """

    def __init__(self, dialect: str, options: ReadOptions, client: str | None = None, *, whole: bool = False) -> None:
        self._dialect, self._options = dialect, options
        self._body: bytearray | None = bytearray() if whole else None
        self.report: StreamReport = report_for(source_named(dialect)[1], None)
        first, *others = reading_stages(dialect, options)
        self._parser = first.make(self.report)
        self._reader = Chain(*(stage.make(self.report) for stage in others))
        self._encoder: ErrorWriter[list[Event]] | None = None
        if client is not None:
            target, profile = client_named(client)
            self._encoder = target.encoder(Encoding(limits=options.limits, profile=profile), self.report)
        self._offset = 0  # of the next byte
        self._repairs: Counter[str] = Counter()  # those that were found
        self._losses: Counter[str] = Counter()

    def feed(self, chunk: bytes) -> Found:
        found = Found()
        if self._body is not None:
            self._body += chunk
            return found
        for line in chunk.splitlines(keepends=True):
            if self.report.error is None:
                self._take(self._parser.feed(line), found)
            self._offset += len(line)
        return found

    def finish(self) -> Found:
        """What the end of the input came to."""
        found = Found()
        if self._body is not None:
            self._read_whole(bytes(self._body), found)
            return found
        if self.report.error is None:
            self._take(self._parser.finish(), found)
        if self.report.error is None:
            self._read(self._reader.finish(), self._offset, found)
        if self._encoder is not None and self.report.error is None:
            found.encoded += self._encoder.finish()
        self._count(self._offset, found)
        return found

    def _read_whole(self, body: bytes, found: Found) -> None:
        try:
            answer = decode_response(body, self._dialect, self._options, report=self.report)
        except StreamError as error:
            self._fail(error, [], found)
            return
        events = replay(answer)
        if self._encoder is not None:
            found.encoded += self._encoder.feed(events) + self._encoder.finish()
        found.events += [(0, event) for event in events]
        self._count(0, found)

    def _take(self, frames: list[Frame], found: Found) -> None:
        for frame in frames:
            self._read(self._reader.feed([frame]), frame.offset, found)
        if self._parser.fault is not None:
            self._fail(self._parser.fault, self._reader.abandon(), found)
        self._count(self._offset, found)

    def _read(self, events: list[Event], offset: int, found: Found) -> None:
        found.events += [(offset, event) for event in events]
        if self._encoder is not None and events:
            found.encoded += self._encoder.feed(events)
        if self._reader.fault is not None:
            self._fail(self._reader.fault, [], found)
        self._count(offset, found)

    def _fail(self, error: Exception, held: list[Event], found: Found) -> None:
        """The reading broke; nothing behind it is read."""
        offset = error.offset if isinstance(error, StreamError) and error.offset is not None else self._offset
        found.events += [(offset, event) for event in held]
        if self.report.error is None:
            self.report.failed(error)
            if self._encoder is not None:
                found.encoded += (self._encoder.feed(held) if held else b"") + self._encoder.fail(error)

    def _count(self, offset: int, found: Found) -> None:
        """Note what was counted since, at that byte."""
        for counted, known, into in (
            (self.report.repairs, self._repairs, found.repairs),
            (self.report.losses, self._losses, found.losses),
        ):
            if counted != known:
                into += [(offset, kind, times) for kind, times in (counted - known).items()]
                known.clear()
                known.update(counted)
