"""One dialect in and out: frames pass byte for byte while the other machines watch them for the report (design.md §1, L4).

How far the bytes may pass is all that is decided here. Nothing passes before a frame of the dialect was seen: a web page
is no stream. What the end of the input broke off never passes: it stands in the report. And bytes stop for good at

* a terminator that comes before the completion point (``[DONE]`` though no choice has a stop reason): an error frame takes
  its place (L3);
* an error of the provider in a form that the dialect's clients do not see as one: the dialect's own form takes its place.

A frame that the client did not ask for is taken out, and one that names no model names the one asked for (``passing.py``).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from streamkit.dialects.base import Dialect, Encoding
from streamkit.dialects.decoding import FrameDecoder
from streamkit.dialects.passing import Rule, rule_for
from streamkit.errors import HeldTooLong
from streamkit.events import Event, ProviderFailed, ResponseStarted, StreamEnded
from streamkit.framing.frame import Frame
from streamkit.pipeline import Chain
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.check import JSONChecker
from streamkit.tool_calls.schema import ToolSchemas

#: Repairs that show an error to be in a form which official clients pass over.
UNSEEN_ERRORS = ("error_shape", "sse_error_field", "sse_bare_json", "event_name_missing")

#: What a profile may change without its stream being written anew.
PASSES: Final = frozenset({"include_usage"})
#: The end of a frame's last line, and the blank line behind it.
_FRAME_END: Final = re.compile(rb"(?:\r\n|\r|\n){0,2}")


@frozen
class _Edit:
    """A frame that does not pass as it came: its bytes of the stream, its payload, and the one in its place, if any."""

    start: int
    end: int  #: comments and blanks behind it may be counted in
    payload: bytes
    instead: bytes


class PassThrough:
    """Machine of ``transcode`` within one dialect: bytes to the same bytes, in whole frames."""

    def __init__(
        self,
        dialect: Dialect,
        encoding: Encoding,
        policy: Policy,
        report: StreamReport,
        tools: ToolSchemas | None = None,
    ) -> None:
        limits = encoding.limits
        self.fault: Exception | None = None
        self._dialect = dialect
        self._report = report
        self._limit = limits.held_chars
        self._parser = dialect.parser(limits, report)
        self._decoder = dialect.decoder(limits, report)
        self._accumulator = ToolCallAccumulator(limits=limits, report=report, policy=policy, make_id=encoding.make_id)
        checker = JSONChecker(limits=limits, report=report, tools=tools)
        self._watch = Chain(self._decoder, self._accumulator, checker)
        self._encoder = dialect.encoder(encoding, report)  # writes error frames only
        self._rule = rule_for(dialect, encoding.profile)
        self._edits: deque[_Edit] = deque()  # of what did not pass yet
        self._split_end = False  # a frame was taken out, and the last line end of it may go on with LF
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._passed = 0  # bytes handed on
        self._last = b""  # the last of them that is not blank
        self._stop_at: int | None = None  # the byte from which on nothing passes
        self._error: ProviderFailed | None = None  # what is written there
        self._reason: str | None = None  # why the stream was cut
        self._start: ResponseStarted | None = None

    @property
    def ended(self) -> bool:
        """Whether the stream was whole, or an error frame was written."""
        return self._report.clean is True or self._encoder.ended

    def feed(self, chunk: bytes, /) -> bytes:
        self._see(self._parser.feed(chunk))
        if self._encoder.ended:
            return b""
        self._held.append(chunk)
        self._held_bytes += len(chunk)
        self.fault = self._watch.fault or self._parser.fault
        output = self._pass(self._whole())
        if self._held_bytes > self._limit and self.fault is None:
            self.fault = HeldTooLong(self._limit)
        if self._error is not None:
            output += self._framed(self._encoder.feed([self._error]))
        elif self._report.terminated and self._stop_at is None and self._report.failure is None:
            self._report.completed = True
        return output

    def finish(self) -> bytes:
        frames = self._parser.finish()
        self._see(frames)
        if self._watch.fault is None and self._parser.fault is None:
            self._note(self._watch.finish())
        self.fault = self._watch.fault or self._parser.fault
        if self.fault is not None or self._encoder.ended:
            return b""
        output = self._pass(self._whole())
        output += self._end(payload=any(frame.data for frame in frames))
        if self._error is not None:
            output += self._framed(self._encoder.feed([self._error]))
        elif not self._report.clean and self._report.provider_error is None:
            output += self._framed(self._encoder.feed([StreamEnded(clean=False, reason=self._reason)]))
        return output

    def abandon(self) -> bytes:
        self._note(self._watch.abandon())
        return b""

    def fail(self, error: Exception) -> bytes:
        self.abandon()
        if self._report.clean:
            return b""
        if torso := b"".join(self._held):
            self._report.broken_frame = torso
        return self._framed(self._encoder.fail(error))

    def _whole(self) -> int:
        """The byte up to which the stream may pass."""
        if self._stop_at is not None:
            return self._stop_at
        if isinstance(self._decoder, FrameDecoder) and not self._decoder.recognised:
            return 0
        broken = getattr(self.fault, "offset", None)
        return self._parser.boundary if broken is None else min(self._parser.boundary, broken)

    def _see(self, frames: list[Frame]) -> None:
        if self._rule is not None and self._stop_at is None:
            self._hold_against(frames, self._rule)
        for run in self._runs(frames):
            failure = self._note(self._watch.feed(run))
            if self._stop_at is not None:
                continue
            if failure is not None and not self._report.repairs.keys().isdisjoint(UNSEEN_ERRORS):
                self._stop_at, self._error = run[0].offset, failure
            elif self._accumulator.terminated_early:
                self._stop_at = run[0].offset
            elif run[-1].terminated:
                self._encoder.follow(self._start, run[-1])

    def _hold_against(self, frames: list[Frame], rule: Rule) -> None:
        for position, frame in enumerate(frames, 1):
            if frame.data.startswith(rule.known):
                continue
            instead = rule(frame.data)
            if instead is not frame.data:
                end = frames[position].offset if position < len(frames) else self._parser.boundary
                if not frame.terminated:
                    end = self._passed + self._held_bytes
                self._edits.append(_Edit(frame.offset, end, frame.data, instead))

    def _note(self, events: list[Event]) -> ProviderFailed | None:
        """What the events say of the end; the provider's error if it is among them."""
        failure = None
        for event in events:
            if type(event) is ProviderFailed:
                failure = event
            elif type(event) is ResponseStarted:
                self._start = event
            elif type(event) is StreamEnded:
                self._reason = event.reason
        if failure is not None and self._stop_at is not None and self._error is None:
            self._error = failure  # said in the stop reason only, and its terminator was held
        return failure

    def _runs(self, frames: list[Frame]) -> Iterator[list[Frame]]:
        """The frames in runs: one that may end the stream stands alone, so that its byte is known."""
        start = 0
        for position, frame in enumerate(frames):
            if frame.event == "error" or b'"error"' in frame.data or self._dialect.terminates(frame):
                if position > start:
                    yield frames[start:position]
                yield [frame]
                start = position + 1
        if start < len(frames):
            yield frames[start:]

    def _pass(self, whole: int) -> bytes:
        """Everything up to byte ``whole`` of the stream that was not passed yet."""
        size = whole - self._passed
        if size <= 0:
            return b""
        held = b"".join(self._held)
        self._held = [held[size:]] if len(held) > size else []
        self._held_bytes = len(held) - size
        self._passed += size
        self._last = held[:size].rstrip()[-1:] or self._last
        return self._edited(held[:size], whole - size)

    def _edited(self, passing: bytes, start: int) -> bytes:
        """Bytes of the stream that begin at ``start``, with what stands in the place of their frames."""
        if self._split_end:
            self._split_end = False
            if passing.startswith(b"\n"):
                passing, start = passing[1:], start + 1
        if not self._edits:
            return passing
        pieces, done, size = [], 0, len(passing)
        while self._edits and self._edits[0].start < start + size:
            edit = self._edits.popleft()
            begin, end = max(edit.start - start, done), min(edit.end - start, size)
            found = passing.find(edit.payload, begin, end)
            instead = edit.instead
            if found < 0:  # in several lines
                instead = b"data: " + instead.replace(b"\n", b" ") + b"\n\n" if instead else b""
            elif instead:
                begin, end = found, found + len(edit.payload)
            else:
                behind = _FRAME_END.match(passing, found + len(edit.payload))
                end = behind.end() if behind else end
            pieces += [passing[done:begin], instead]
            done = end
            self._split_end = not instead and end == size and passing.endswith(b"\r")
        return b"".join([*pieces, passing[done:]])

    def _end(self, *, payload: bool) -> bytes:
        """What did not pass yet of a stream that is whole, and the end that readers need. Anything else is for the report.

        ``payload``: the input ended behind a whole payload that lacks nothing but its end.
        """
        torn = self._report.broken_frame is not None
        rest = b"" if torn else b"".join(self._held)
        last = rest.rstrip()[-1:]
        end = self._dialect.continued(self._parser, last or self._last, b"")
        as_usual = end is None
        if as_usual:
            end = self._dialect.frame_end if last else b""
        elif end and last:  # a comma, and no element behind it
            rest = b""
        if end is not None and self._stop_at is None and (self._report.clean or (payload and not torn)):
            edited = self._edited(rest, self._passed)
            return b"" if edited != rest and not edited.strip() else edited + end
        if last and as_usual:
            self._report.broken_frame = rest
        return b""

    def _framed(self, frame: bytes) -> bytes:
        """An error frame of the encoder in the framing of what passed."""
        framed = self._dialect.continued(self._parser, self._last, frame)
        return frame if framed is None else framed
